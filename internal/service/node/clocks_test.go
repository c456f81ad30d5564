package node

import (
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/clocks"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// TestClocksOfNodes: each node knows how far the wall clocks of the others are ahead.
func TestClocksOfNodes(t *testing.T) {
	t.Parallel()
	const ahead = 90 * time.Second
	c := newCluster(t, 3, func(cfg *Config) {
		if cfg.ID == 2 {
			cfg.wall = func() int64 { return time.Now().Add(ahead).UnixNano() }
		}
	})
	c.until("all clocks are known", func() bool {
		for _, n := range c.nodes {
			if len(n.Clocks()) != 2 {
				return false
			}
		}
		return true
	})
	for id, n := range c.nodes {
		for _, e := range n.Clocks() {
			want := time.Duration(0)
			switch {
			case id == 2:
				want = -ahead
			case e.Server == 2:
				want = ahead
			}
			wrong := time.Duration(e.Offset) - want
			if wrong.Abs() > time.Duration(e.Error)+time.Millisecond || e.Error > int64(time.Second) || e.Notable() {
				t.Errorf("node %d: the clock of %d is %v ahead, not %v: %+v", id, e.Server, time.Duration(e.Offset), want, e)
			}
		}
	}
}

// TestDriftIsLogged: a drift is logged once when it becomes too large, and once when it
// is acceptable again.
func TestDriftIsLogged(t *testing.T) {
	said := new(lines)
	p := newPeerClocks(&Node{log: slog.New(slog.NewTextHandler(said, nil))})
	apart := []clocks.Estimate{{Server: 2, Drift: 0.031, DriftError: 0.0001, Over: 30e9}, {Server: 3, Drift: 0.0001, DriftError: 0.0001, Over: 30e9}}
	for range 3 {
		p.warn(apart)
	}
	apart[0].Drift = 0.0001
	for range 3 {
		p.warn(apart)
	}
	for pattern, want := range map[string]int{`level=WARN msg=.*peer=2 drift="3.10 %" over=30s\n`: 1, `run at the same rate again" peer=2`: 1, "\n": 2} {
		if n := said.count(pattern); n != want {
			t.Errorf("%d lines match %s, want %d: %s", n, pattern, want, said.text.String())
		}
	}
}

func TestStepsBackAreNoticed(t *testing.T) {
	const second = int64(time.Second)
	var w wallClock
	for i, c := range []struct {
		wall, boot int64
		want       time.Duration
	}{
		{1000 * second, 5 * second, 0},
		{1001 * second, 6 * second, 0},
		{2000 * second, 7 * second, 0}, // set forward
		{1900 * second, 8 * second, 101 * time.Second},
		{1901*second - second/2, 9 * second, 0}, // slewed
	} {
		if got := w.step(c.wall, c.boot); got != c.want {
			t.Errorf("reading %d: set back by %v, want %v", i, got, c.want)
		}
	}
}

// TestClockSetBackChangesNothing sets the wall clock of a leader back by a day.
func TestClockSetBackChangesNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 0)
	c.peers[1] = "127.0.0.1:0"
	var back atomic.Int64
	var said journal
	cfg := c.config(1, listen(t))
	cfg.wall = func() int64 { return time.Now().UnixNano() - back.Load() }
	cfg.Log = slog.New(slog.NewTextHandler(&said, nil))
	n, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.nodes[1] = n
	c.ok(open(1))
	before := c.ok(acquire(2, "a"))
	c.until("the clock was read", func() bool { return said.has("leads") })
	back.Store(int64(24 * time.Hour))
	after := c.ok(acquire(3, "b"))
	if after.Fence <= before.Fence {
		t.Errorf("fence %d after %d", after.Fence, before.Fence)
	}
	state, err := n.Read(c.ctx)
	if err != nil {
		t.Fatal(err)
	}
	locks, _ := state.List(registry.Lock, "", "", 10, 0)
	if len(locks) != 2 || locks[1].Holders[0].Since > locks[0].Holders[0].Since-int64(23*time.Hour) {
		t.Errorf("the times shown do not follow the clock: %+v", locks)
	}
	c.until("it is told", func() bool { return said.has("set back") })
}

// journal is a log that can be searched.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) has(words string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Contains(j.text.String(), words)
}
