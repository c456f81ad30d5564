package replica

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/version"
)

const (
	composed   = "caf\u00e9"
	decomposed = "cafe\u0301"
)

func setNames(value string) registry.Command {
	return registry.Command{Op: registry.OpSet, Name: "names", Value: value}
}

func guard(prefix string) registry.Command {
	return registry.Command{Op: registry.OpGuard, Name: prefix, Guarding: &registry.Guarding{Use: view.Use{Algorithm: "central"}}}
}

// named returns a cluster in which session 1 holds a name in each form, and session 2 waits for the
// decomposed one.
func named(t *testing.T, seed uint64) *cluster {
	c := newCluster(t, 3, seed)
	for _, s := range c.each() {
		s.newest = version.Settings
	}
	c.start()
	c.until("the level is that of settings", func() bool { return c.level() == version.Settings })
	for session := range byte(2) {
		c.want(c.do(open(session+1, 1, 3600_000*ms)), registry.OK)
	}
	c.want(c.do(acquire(1, 2, decomposed)), registry.OK)
	c.want(c.do(acquire(1, 3, composed)), registry.OK)
	c.want(c.do(acquire(2, 2, decomposed)), registry.Queued)
	c.want(c.administer("", guard(decomposed+"/")), registry.OK)
	return c
}

// With names = nfc the leader refuses a new name in another form before it writes it into the log. What
// has such a name can be repeated, released, cancelled, revoked and removed.
func TestNamesInOtherFormsAreNotLogged(t *testing.T) {
	c := named(t, 81)
	c.want(c.administer("", setNames("nfc")), registry.OK)
	leader := c.await()
	before := leader.replica.Applied()
	campaign := acquire(1, 5, decomposed)
	campaign.Class = registry.Election
	for _, again := range []registry.Command{acquire(1, 4, decomposed), campaign, acquire(1, 6, "a\u0308/x")} {
		refused := c.want(c.do(again), registry.Invalid)
		if again.Name == decomposed && refused.Message != `name: "cafe\u0301": is not in the Unicode form NFC; use "café", or see conclave settings` {
			t.Error(refused.Message)
		}
	}
	refused := c.want(c.administer("", guard("pre"+decomposed)), registry.Invalid)
	if want := `prefix: "precafe\u0301": is not in the Unicode form NFC; use "precafé", or see conclave settings`; refused.Message != want {
		t.Errorf("%q, want %q", refused.Message, want)
	}
	if after := leader.replica.Applied(); after != before {
		t.Errorf("%d entries have what was refused", after-before)
	}
	c.want(c.do(acquire(1, 7, composed+"/new")), registry.OK)
	c.want(c.do(acquire(1, 2, decomposed)), registry.OK)
	c.want(c.do(acquire(2, 2, decomposed)), registry.Queued)
	c.want(c.do(registry.Command{Op: registry.OpRevoke, Session: id(2), Sequence: 3, Name: decomposed}), registry.OK)
	c.want(c.do(registry.Command{Op: registry.OpCancel, Session: id(2), Sequence: 4, Hold: 2}), registry.OK)
	c.want(c.do(release(1, 8, 2)), registry.OK)
	remove := guard(decomposed + "/")
	remove.Guarding = &registry.Guarding{Remove: true}
	c.want(c.administer("", remove), registry.OK)

	c.want(c.administer("", setNames("any")), registry.OK)
	c.want(c.do(acquire(2, 5, decomposed)), registry.OK)
	c.same()
}

// A later leader refuses too, whatever its predecessor has told it: it asks when it has applied the log.
func TestTheNextLeaderKnowsTheSettings(t *testing.T) {
	c := named(t, 82)
	c.want(c.administer("", setNames("nfc")), registry.OK)
	for sequence := uint64(10); sequence < 13; sequence++ {
		leader := c.await()
		c.crash(leader)
		for _, s := range c.each() { // before one of them is ready
			if s.replica != nil {
				s.replica.Submit(c.now, 1, []registry.Command{acquire(1, sequence, decomposed)})
			}
		}
		next := c.await()
		next.replica.Submit(c.now, 1, []registry.Command{acquire(1, sequence, decomposed)})
		for c.replies = nil; ; {
			refused := c.answerTo(id(1), sequence)
			if refused.Code == registry.NotLeader {
				continue
			}
			c.want(refused, registry.Invalid)
			break
		}
		c.restart(leader)
	}
	c.same()
}

// Below its level, a setting is refused; while one is not the default, the level does not come down.
func TestSettingsNeedTheirLevel(t *testing.T) {
	c := newCluster(t, 3, 83)
	for _, s := range c.each() {
		s.newest = version.Access
	}
	c.start()
	c.until("the level is that of rules", func() bool { return c.level() == version.Access })
	refused := c.want(c.administer("", setNames("nfc")), registry.Invalid)
	if want := "level 4: the cluster has settings from level 5 on: see conclave upgrade status"; refused.Message != want {
		t.Errorf("it says %q, want %q", refused.Message, want)
	}
	for _, s := range c.each() {
		c.replace(s, version.Settings)
	}
	c.until("the level is that of settings", func() bool { return c.level() == version.Settings })
	c.want(c.administer("", setNames("nfc")), registry.OK)
	c.run(1000 * ms)
	err := c.upgrade(Lower, version.Access)
	if want := "level 4: the cluster uses the setting names = nfc, which needs level 5"; err == nil || err.Error() != want {
		t.Errorf("the level is lowered: %v, want %q", err, want)
	}
	c.want(c.administer("", setNames("any")), registry.OK)
	if err := c.upgrade(Lower, version.Access); err != nil {
		t.Error(err)
	}
	c.same()
}
