package node

import (
	"log/slog"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/clocks"
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
