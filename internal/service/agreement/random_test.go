package agreement

import (
	"errors"
	"fmt"
	"testing"
	"testing/cryptotest"

	"pgregory.net/rapid"
)

// scramble takes one random step: deliver or lose a message, tick, finish a
// write, propose, read, crash, restart, snapshot.
func (c *cluster) scramble(step int) {
	ids := c.ids()
	m := c.members[ids[c.chance.IntN(len(ids))]]
	switch n := c.chance.IntN(100); {
	case n < 50 && len(c.network) > 0:
		c.deliver(c.chance.IntN(min(len(c.network), 8))) // out of order
	case n < 52 && len(c.network) > 0:
		c.network = c.network[1:]
		c.counts["lost"]++
	case n < 70:
		if m.core != nil {
			m.core.Tick()
		}
	case n < 88:
		if m.core != nil && len(m.saves) > 0 {
			c.persist(m)
		}
	case n < 94:
		c.proposeAny(m, step)
	case n < 97:
		if m.core != nil {
			_, _ = c.read(m) // refused unless it leads
		}
	case n == 97 && c.chance.IntN(5) == 0:
		c.flip(m)
	case n == 98 && m.core != nil:
		c.snapshot(m)
	case n == 99 && c.chance.IntN(10) == 0:
		c.isolate(m.id, c.chance.IntN(2) == 0)
	}
	c.drain(m)
}

func (c *cluster) proposeAny(m *member, step int) {
	if m.core == nil {
		return
	}
	switch err := m.core.Propose(fmt.Appendf(nil, "v%d", step)); {
	case err == nil:
		c.counts["proposed"]++
	case !errors.Is(err, ErrNotLeader):
		c.t.Fatalf("propose: %v", err)
	}
}

// flip restarts a member that is down, and sometimes crashes one that is up,
// leaders more often.
func (c *cluster) flip(m *member) {
	switch {
	case m.core == nil:
		c.start(m.id)
	case m.core.Status().Role == Leader:
		c.crash(m.id)
		c.counts["leader crash"]++
	case c.chance.IntN(4) == 0:
		c.crash(m.id)
	}
}

// heal ends all faults and checks that all members reach one state.
func (c *cluster) heal() {
	clear(c.cut)
	for _, id := range c.ids() {
		if c.members[id].core == nil {
			c.start(id)
		}
	}
	c.converge()
	c.propose(c.elect(), "healed")
	c.converge()
}

func history(t *testing.T, seed uint64, steps int) *cluster {
	cryptotest.SetGlobalRandom(t, seed)
	c := newCluster(t, seed, testConfig(), 1, 2, 3)
	for step := range steps {
		c.scramble(step)
	}
	c.heal()
	return c
}

// TestDeterminism runs one schedule many times and finds one trace: only the seed
// determines what a Core does.
func TestDeterminism(t *testing.T) {
	runs := 100
	if testing.Short() {
		runs = 10
	}
	trace := func(seed uint64) (sum string) {
		t.Run("", func(t *testing.T) { sum = fmt.Sprintf("%x", history(t, seed, 5000).trace.Sum(nil)) })
		return sum
	}
	first := trace(7)
	for run := 1; run < runs; run++ {
		if again := trace(7); again != first {
			t.Fatalf("run %d has trace %s, the first had %s", run, again, first)
		}
	}
	seen := map[string]uint64{first: 7}
	for seed := uint64(8); seed < 13; seed++ {
		sum := trace(seed)
		if other, ok := seen[sum]; ok {
			t.Fatalf("seeds %d and %d have the same trace", seed, other)
		}
		seen[sum] = seed
	}
}

// TestSafetyInRandomHistories checks agreement at every index, and that reads are not
// stale, through losses, crashes that take what was not yet saved, partitions and
// snapshots. It also checks that the histories contain all of these events.
func TestSafetyInRandomHistories(t *testing.T) {
	total := map[string]int{}
	for seed := uint64(100); seed < 140; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := history(t, seed, 20000)
			for what, n := range c.counts {
				total[what] += n
			}
			total["agreed"] += len(c.agreed)
		})
	}
	for what, least := range map[string]int{
		"agreed": 2000, "proposed": 2000, "read": 200, "lost": 500, "leader crash": 40, "snapshot": 300, "install": 10,
	} {
		if total[what] < least {
			t.Errorf("the histories came to only %d of %q; want %d", total[what], what, least)
		}
	}
	if total["refused"] > 0 {
		t.Errorf("%d messages of correct peers were refused", total["refused"])
	}
}

// TestCompactKeepsATail checks the bounds of the tail for any sizes.
func TestCompactKeepsATail(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	rapid.Check(t, func(rt *rapid.T) {
		cfg := testConfig()
		cfg.KeepEntries = rapid.IntRange(1, 30).Draw(rt, "entries")
		cfg.KeepBytes = rapid.Uint64Range(1, 3000).Draw(rt, "bytes")
		c := newCluster(t, 1, cfg, 1)
		m := c.elect()
		for i := range rapid.IntRange(1, 40).Draw(rt, "proposals") {
			c.propose(m, fmt.Sprintf("%0*d", 1+i%100, i))
		}
		if _, err := m.core.CreateSnapshot(m.index, m.state[:]); err != nil {
			rt.Fatal(err)
		}
		before := m.core.Status()
		if err := m.core.Compact(m.index); err != nil {
			rt.Fatal(err)
		}
		tail := m.core.Status().Last - m.core.Status().First + 1
		if tail > uint64(cfg.KeepEntries) {
			rt.Fatalf("%d entries kept, want at most %d", tail, cfg.KeepEntries)
		}
		all := before.Last - before.First + 1
		if cfg.KeepBytes >= 3000 && tail < min(all, uint64(cfg.KeepEntries)) {
			rt.Fatalf("%d entries kept of %d, though %d are allowed", tail, all, cfg.KeepEntries)
		}
	})
}
