package replica

import (
	"testing"

	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/version"
)

// lingering returns a cluster in which session 1 has released x, which stays closed until so long after
// the grant, and session 2 waits for it. It also returns the time of the grant.
func lingering(t *testing.T, seed uint64, atLeast int64) (*cluster, int64) {
	c := newCluster(t, 3, seed)
	for _, s := range c.each() {
		s.newest = version.Linger
	}
	c.start()
	c.until("the level is that of names that stay closed", func() bool { return c.level() == version.Linger })
	for session := range byte(2) {
		c.want(c.do(open(session+1, 1, 3600_000*ms)), registry.OK)
	}
	first := acquire(1, 2, "x")
	first.AtLeast = atLeast
	granted := c.now
	c.want(c.do(first), registry.OK)
	c.want(c.do(registry.Command{Op: registry.OpRelease, Session: id(1), Sequence: 3, Hold: 2}), registry.OK)
	c.want(c.do(acquire(2, 2, "x")), registry.Queued)
	return c, granted
}

// holds reports whether a session holds x.
func (c *cluster) holds(session byte) bool {
	view, _, _ := c.await().replica.Registry().Freeze().Explain(registry.Lock, "x", 0)
	return len(view.Holders) == 1 && view.Holders[0].Session == id(session)
}

// A name opens without a request that would make time pass. One entry a minute is enough meanwhile.
func TestANameOpensByItself(t *testing.T) {
	const atLeast = 200_000 * ms
	c, granted := lingering(t, 71, atLeast)
	c.run(1000 * ms)
	leader := c.await()
	before := leader.replica.Applied()
	for c.now < granted+atLeast {
		if c.run(100 * ms); c.holds(2) && c.now < granted+atLeast {
			t.Fatalf("x is granted %d ms after the first grant", (c.now-granted)/ms)
		}
	}
	if entries := leader.replica.Applied() - before; entries < 3 || entries > 5 {
		t.Errorf("%d entries were written in 200 s", entries)
	}
	c.run(2000 * ms)
	if !c.holds(2) {
		t.Error("x does not open")
	}
	c.same()
}

// A change of leaders makes it later, by the time without a leader and at most a minute, and never
// earlier.
func TestALeaderThatCrashesOpensNothing(t *testing.T) {
	const atLeast = 200_000 * ms
	c, granted := lingering(t, 72, atLeast)
	down := int64(0)
	for change := range int64(3) {
		c.run((10_000 + 20_000*change) * ms)
		leader, from := c.await(), c.now
		c.crash(leader)
		c.run(10_000 * ms)
		c.restart(leader)
		c.await()
		down += c.now - from
	}
	for !c.holds(2) {
		if c.run(100 * ms); c.now > granted+atLeast+down+3*timeEvery {
			t.Fatalf("x is closed %d ms after the first grant", (c.now-granted)/ms)
		}
	}
	if c.now < granted+atLeast {
		t.Errorf("x is granted %d ms after the first grant", (c.now-granted)/ms)
	}
	c.same()
}

// Below its level, a wish is refused and not ignored.
func TestLingerNeedsItsLevel(t *testing.T) {
	c := newCluster(t, 3, 73)
	for _, s := range c.each() {
		s.newest = version.Access
	}
	c.start()
	c.until("the level is that of rules", func() bool { return c.level() == version.Access })
	c.want(c.do(open(1, 1, 600_000*ms)), registry.OK)
	for sequence, wish := range []registry.Command{{AtLeast: 1}, {LossDelay: 1}} {
		wanted := acquire(1, uint64(sequence)+2, "x")
		wanted.AtLeast, wanted.LossDelay = wish.AtLeast, wish.LossDelay
		refused := c.want(c.do(wanted), registry.Invalid)
		if want := "level 4: names stay closed after their holds from level 5 on: see conclave upgrade status"; refused.Message != want {
			t.Errorf("it says %q, want %q", refused.Message, want)
		}
	}
}
