package node

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/replica"
)

func (j *journal) count(words string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.text.String(), words)
}

// TestFounderCrashes stops each server of a new cluster after each step of the
// founding that is on disk, and starts it again, with its disk and without.
func TestFounderCrashes(t *testing.T) {
	for victim := uint64(1); victim <= 3; victim++ {
		for _, step := range []founding.Step{founding.Write, founding.Found} {
			for _, emptied := range []bool{false, true} {
				t.Run(fmt.Sprintf("server %d step %d emptied %v", victim, step, emptied), func(t *testing.T) {
					t.Parallel()
					crashWhileFounding(t, victim, step, emptied)
				})
			}
		}
	}
}

func crashWhileFounding(t *testing.T, victim uint64, step founding.Step, emptied bool) {
	c, listeners := reserveCluster(t, 3)
	crash := errors.New("crash")
	for id, l := range listeners {
		if id != victim {
			c.startOn(id, l)
		}
	}
	cfg := c.config(victim, listeners[victim])
	cfg.founded = func(s founding.Step) error {
		if s == step {
			return crash
		}
		return nil
	}
	n, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	<-n.Done()
	if !errors.Is(n.Err(), crash) {
		t.Fatalf("server %d stops with %v, want a crash", victim, n.Err())
	}
	if emptied {
		c.empty(victim)
	}
	c.start(victim)
	c.ok(open(1))
	held := c.ok(acquire(2, "a"))
	c.holds(held.Fence)
	for id := range c.peers {
		c.until(fmt.Sprintf("server %d votes", id), func() bool { return c.votes(id) })
	}
}

// TestFoundersWaitForEachOther: two of three do not found a cluster. They log which
// servers they wait for, once, and again when that changes.
func TestFoundersWaitForEachOther(t *testing.T) {
	t.Parallel()
	c, listeners := reserveCluster(t, 3)
	var log journal
	cfg := c.config(1, listeners[1])
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	n, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.nodes[1] = n
	const waits = "waiting for peers before the cluster can be founded"
	c.until("it waits for two", func() bool { return log.count("peers=\"[2 3]\"") == 1 })
	c.startOn(2, listeners[2])
	c.until("it waits for one", func() bool { return log.count("peers=[3]") == 1 })
	if err := n.View(c.ctx, func(r *replica.Replica) {
		if r != nil {
			t.Error("two of three servers founded a cluster")
		}
	}); err != nil && !errors.Is(err, ErrNotLeader) {
		t.Fatal(err)
	}
	c.startOn(3, listeners[3])
	c.ok(open(1))
	if told := log.count(waits); told > 4 {
		t.Errorf("it says %d times whom it waits for", told)
	}
}

// TestFoundersAreOnRecordAsTheyWere: the cluster uses the founding record, and not the
// order in which servers connect.
func TestFoundersAreOnRecordAsTheyWere(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.ok(open(1))
	c.until("all founders are on record with their first directories", func() bool {
		right := 0
		_ = c.leader().View(c.ctx, func(r *replica.Replica) {
			for id, n := range c.nodes {
				if m, ok := r.Registry().Member(id); ok && m.UID == n.found.UID {
					right++
				}
			}
		})
		return right == 3
	})
}
