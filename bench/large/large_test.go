package large

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/test/longrun"

	"github.com/conclave-io/conclave/bench/holders"
	"github.com/conclave-io/conclave/bench/trial"
)

// testTimeout is the maximum time to wait for an expected event. A server with a large state takes
// long to become ready.
const testTimeout = time.Minute

// ttl is long enough to fill the servers before the first renewal.
const ttl = 10 * time.Minute

// cluster is a cluster of three servers.
type cluster struct {
	*trial.Cluster
	t *testing.T
}

func start(t *testing.T) *cluster {
	t.Helper()
	dir, binary := trial.Build(t, "long-large")
	return &cluster{trial.Start(t, dir, binary, testTimeout), t}
}

// size returns the number of locks to hold. The environment variable LOCKS overrides the default.
func size(t *testing.T, locks int) int {
	if text := os.Getenv("LOCKS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1000 {
			t.Fatalf("LOCKS: %q: must be at least 1000", text)
		}
		return n
	}
	return locks
}

// figure returns a metric of a server, or -1 if the server does not answer.
func (c *cluster) figure(id int, name string) float64 {
	v, err := strconv.ParseFloat(c.Figure(id, name), 64)
	if err != nil {
		return -1
	}
	return v
}

// leader returns the leading server.
func (c *cluster) leader() (int, error) {
	if id := c.Leader(); id != 0 {
		return id, nil
	}
	return 0, errors.New("no server leads")
}

func (c *cluster) address(context.Context) (string, error) {
	id, err := c.leader()
	if err != nil {
		return "", err
	}
	return c.Addresses()[id-1], nil
}

// fill opens many sessions that hold the given number of locks.
func (c *cluster) fill(ctx context.Context, sessions, locks int) *holders.Group {
	c.t.Helper()
	c.Until("a server leads", func() bool { _, err := c.leader(); return err == nil })
	group := holders.New(sessions, locks/sessions, ttl, c.address)
	if err := group.Fill(ctx); err != nil {
		c.t.Fatal(err)
	}
	return group
}

// clients lock and unlock until ctx is cancelled. They share two names. After each lock, a client
// checks that no other client is inside and that its fence is the largest so far.
type clients struct {
	mu    sync.Mutex
	names map[string]*owner
	took  []time.Duration // durations of the locks
	group errgroup.Group
}

type owner struct {
	in    bool
	fence uint64
}

// load starts clients, each with its own session.
func (c *cluster) load(ctx context.Context, n int) *clients {
	load := &clients{names: map[string]*owner{"shared-0": {}, "shared-1": {}}}
	for i := range n {
		load.group.Go(func() error {
			client, err := conclave.Dial(ctx, conclave.Config{Servers: c.Addresses(), TTL: 10 * time.Second})
			if err != nil {
				return err
			}
			defer client.Close()
			held, err := client.Lock(ctx, fmt.Sprint("all-along-", i))
			if err != nil {
				return err
			}
			for turn := 0; ctx.Err() == nil; turn++ {
				if err := load.enter(ctx, client, fmt.Sprint("shared-", (i+turn)%2)); err != nil && ctx.Err() == nil {
					return err
				}
			}
			if lost := context.Cause(held.Context()); lost != nil {
				return fmt.Errorf("client %d lost the lock that it held all along: %w", i, lost)
			}
			return nil
		})
	}
	return load
}

func (l *clients) enter(ctx context.Context, client *conclave.Client, name string) error {
	begun := time.Now()
	lock, err := client.Lock(ctx, name)
	if err != nil {
		return err
	}
	took := time.Since(begun)
	fence, err := lock.Fence()
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.took = append(l.took, took)
	o := l.names[name]
	switch {
	case o.in:
		err = fmt.Errorf("two hold %q", name)
	case fence <= o.fence:
		err = fmt.Errorf("%q: the fence %d follows %d", name, fence, o.fence)
	}
	o.in, o.fence = true, fence
	l.mu.Unlock()
	if err != nil {
		return err
	}
	l.mu.Lock()
	o.in = false
	l.mu.Unlock()
	return lock.Unlock(context.WithoutCancel(ctx))
}

// quantile returns a quantile of the durations of the locks, in ms.
func (l *clients) quantile(permille int) float64 {
	slices.Sort(l.took)
	return float64(l.took[(len(l.took)-1)*permille/1000]) / 1e6
}

// Readers page through all locks continuously. The leader must stay the same and no session may be
// lost.
func TestReaders(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	const span = 25 * time.Second
	locks := size(t, 600_000)
	began := time.Now()
	group := c.fill(ctx, locks/100, locks)
	filled := time.Since(began)
	leader, err := c.leader()
	if err != nil {
		t.Fatal(err)
	}
	term := c.figure(leader, "conclave_term")
	loading, stop := context.WithTimeout(ctx, span)
	defer stop()
	load := c.load(loading, 16)
	var readers errgroup.Group
	var pages [4]int
	for i := range pages {
		readers.Go(func() error {
			conn, err := holders.Connect(c.Addresses()[leader-1])
			if err != nil {
				return err
			}
			defer conn.Close()
			for loading.Err() == nil {
				err := holders.Scan(ctx, conn, "held-", func([]*api.Resource) error {
					pages[i]++
					return loading.Err()
				})
				if err != nil && loading.Err() == nil {
					return fmt.Errorf("a reader: %w", err)
				}
			}
			return nil
		})
	}
	if err := errors.Join(readers.Wait(), load.group.Wait()); err != nil {
		t.Error(err)
	}
	if now := c.figure(leader, "conclave_term"); now != term {
		t.Errorf("the term is %v: it was %v before the readers came", now, term)
	}
	if err := group.Verify(ctx); err != nil {
		t.Error(err)
	}
	note(t, fmt.Sprintf("four readers page %d locks for %v", locks, span),
		longrun.Figure{Name: "s to fill", Value: filled.Seconds()},
		longrun.Figure{Name: "pages of 1,000", Value: float64(pages[0] + pages[1] + pages[2] + pages[3])},
		longrun.Figure{Name: "new terms", Value: c.figure(leader, "conclave_term") - term},
		longrun.Figure{Name: "locks meanwhile", Value: float64(len(load.took))},
		longrun.Figure{Name: "median, ms", Value: load.quantile(500)},
		longrun.Figure{Name: "p99, ms", Value: load.quantile(990)},
		longrun.Figure{Name: "longest, ms", Value: load.quantile(1000)})
}

// Servers with a million held locks are killed in turn, and the leader twice more. All acknowledged
// state must survive, and mutual exclusion must hold.
func TestKills(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	locks := size(t, 1_000_000)
	began := time.Now()
	group := c.fill(ctx, locks/10, locks)
	filled := time.Since(began)
	loading, stop := context.WithCancel(ctx)
	defer stop()
	load := c.load(loading, 8)
	var ready, elected []float64
	victims := []int{1, 2, 3, 0, 0}
	for _, victim := range victims {
		if victim == 0 {
			c.Until("a server leads", func() (yes bool) { leader, err := c.leader(); victim = leader; return err == nil })
		}
		if err := c.Kill(victim); err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		c.Until("one of the others leads", func() bool { leader, err := c.leader(); return err == nil && leader != victim })
		elected = append(elected, time.Since(killed).Seconds())
		if err := group.Renew(ctx); err != nil {
			t.Fatal(err)
		}
		restarted := time.Now()
		if err := c.Restart(victim); err != nil {
			t.Fatal(err)
		}
		c.Until("the server is ready again", func() bool { status, _ := c.Get(victim, "/readyz"); return status == 200 })
		ready = append(ready, time.Since(restarted).Seconds())
		t.Logf("server %d was ready %.1f s after its restart, with %.0f MB of memory", victim, ready[len(ready)-1], c.resident(victim))
		if err := group.Verify(ctx); err != nil {
			t.Fatalf("after server %d was killed: %v", victim, err)
		}
	}
	stop()
	if err := load.group.Wait(); err != nil {
		t.Error(err)
	}
	if err := c.Died(); err != nil {
		t.Error(err)
	}
	leader, err := c.leader()
	if err != nil {
		t.Fatal(err)
	}
	note(t, fmt.Sprintf("%d locks while servers are killed", locks),
		longrun.Figure{Name: "s to fill", Value: filled.Seconds()},
		longrun.Figure{Name: "kills", Value: float64(len(victims))},
		longrun.Figure{Name: "longest s without a leader", Value: slices.Max(elected)},
		longrun.Figure{Name: "longest s until ready", Value: slices.Max(ready)},
		longrun.Figure{Name: "locks by others meanwhile", Value: float64(len(load.took))},
		longrun.Figure{Name: "longest of these, ms", Value: load.quantile(1000)},
		longrun.Figure{Name: "estimated state, MB", Value: c.figure(leader, "conclave_state_bytes") / 1e6},
		longrun.Figure{Name: "snapshot, MB", Value: c.snapshot(leader)},
		longrun.Figure{Name: "memory of the leader, MB", Value: c.resident(leader)})
}

// resident returns the memory of a server in MB.
func (c *cluster) resident(id int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.PID(id)))
	if err != nil {
		c.t.Error(err)
		return 0
	}
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		c.t.Errorf("server %d has no memory", id)
		return 0
	}
	kB, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		c.t.Error(err)
	}
	return kB * 1024 / 1e6
}

// snapshot returns the size of the newest snapshot of a server in MB.
func (c *cluster) snapshot(id int) float64 {
	var newest os.FileInfo
	err := filepath.Walk(c.Dir(id), func(path string, info os.FileInfo, err error) error {
		if err == nil && filepath.Ext(path) == ".snap" && (newest == nil || info.ModTime().After(newest.ModTime())) {
			newest = info
		}
		return nil
	})
	if err != nil || newest == nil {
		c.t.Errorf("server %d has no snapshot: %v", id, err)
		return 0
	}
	return float64(newest.Size()) / 1e6
}

func note(t *testing.T, subject string, figures ...longrun.Figure) {
	t.Helper()
	t.Logf("%s: %v", subject, figures)
	if err := longrun.Note(subject, figures...); err != nil {
		t.Error(err)
	}
}
