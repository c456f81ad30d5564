package replica

import (
	"fmt"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/registry/expect"
	"github.com/conclave-io/conclave/internal/service/version"
)

// expected sets the rule of a lock.
func (c *cluster) expected(name string, every int64) registry.Result {
	return c.administer("", registry.Command{Op: registry.OpExpect, Name: name, Every: every})
}

// atLinger returns a cluster at the level that has rules about names.
func atLinger(t *testing.T, seed uint64, cfg Config) *cluster {
	c := newCluster(t, 3, seed)
	c.cfg = cfg
	for _, s := range c.each() {
		s.newest = version.Linger
	}
	c.start()
	c.until("the level is that of rules about names", func() bool { return c.level() == version.Linger })
	return c
}

// TestLastHeldSurvivesEverything: after a job has run, leaders change, a server gets a snapshot, and all
// crash. Each knows afterwards when the name was last held, and that it has not been held since.
func TestLastHeldSurvivesEverything(t *testing.T) {
	c := atLinger(t, 91, Config{SnapshotBytes: 20_000, TailEntries: 5})
	c.want(c.do(open(1, 1, 3600_000*ms)), registry.OK)
	c.want(c.expected("job", 60_000*ms), registry.OK)
	behind := c.servers[c.await().id%3+1]
	c.crash(behind)
	c.want(c.do(acquire(1, 10, "job")), registry.OK)
	c.run(500 * ms)
	c.want(c.do(registry.Command{Op: registry.OpRelease, Session: id(1), Sequence: 11, Low: 11, Hold: 10}), registry.OK)
	ended := c.now
	fence := c.await().replica.Registry().Freeze().Expected()[0].Last.Fence
	for n := range uint64(100) { // until there are snapshots without the entries before them
		c.do(acquire(1, 12+2*n, strings.Repeat("n", 500)+fmt.Sprint(n)))
		c.do(registry.Command{Op: registry.OpRelease, Session: id(1), Sequence: 13 + 2*n, Low: 13 + 2*n, Hold: 12 + 2*n})
	}
	c.restart(behind)
	c.run(3000 * ms)
	c.same()
	for _, s := range c.each() {
		c.crash(s)
	}
	for _, s := range c.each() {
		c.restart(s)
	}
	c.await()
	c.run(40_000 * ms)
	c.same()
	for _, s := range c.each() {
		e := s.replica.Registry().Freeze().Expected()[0]
		idle := e.Idle(expect.Moment{Replicated: s.replica.Estimate()})
		if e.Holder != nil || e.Last.Fence != fence || idle > c.now-ended || idle < 35_000*ms {
			t.Errorf("server %d: %+v, idle for %d ms of %d", s.id, e, idle/ms, (c.now-ended)/ms)
		}
	}
}

// A level below that of rules, and a state at its limit, refuse them before the log.
func TestRulesThatAreRefused(t *testing.T) {
	c := newCluster(t, 3, 92)
	for _, s := range c.each() {
		s.newest = version.Access
	}
	c.start()
	c.until("the level is that of rules of access", func() bool { return c.level() == version.Access })
	if got := c.want(c.expected("job", 60_000*ms), registry.Invalid); got.Message != "level 4: names are expected to be held from level 5 on: see conclave upgrade status" {
		t.Errorf("below the level: %q", got.Message)
	}
	other := atLinger(t, 94, Config{})
	other.want(other.expected(decomposed, 60_000*ms), registry.OK)
	other.want(other.administer("", setNames("nfc")), registry.OK)
	if got := other.want(other.expected(decomposed+"/2", 60_000*ms), registry.Invalid); got.Message != `name: "cafe\u0301/2": is not in the Unicode form NFC; use "café/2", or see conclave settings` {
		t.Errorf("in another form: %q", got.Message)
	}
	other.want(other.expected(decomposed, 0), registry.OK)
	full := atLinger(t, 93, Config{StateLimit: 100_000})
	for n := range expect.MostRules {
		if got := full.expected(strings.Repeat("n", 500)+fmt.Sprint(n), 60_000*ms); got.Code == registry.StateLimit {
			full.want(full.expected(strings.Repeat("n", 500)+"0", 0), registry.OK)
			return
		}
	}
	t.Error("256 rules with names of 500 bytes are within 100,000 bytes")
}
