package replica

import (
	"strings"
	"testing"

	"github.com/conclave-io/conclave/service/access"
	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/version"
)

// administer submits a command that belongs to no session, and returns its answer.
func (c *cluster) administer(actor string, command registry.Command) registry.Result {
	c.t.Helper()
	c.asked++
	command.Origin = registry.Origin{Actor: actor, Via: "grpc", Request: [16]byte{1: c.asked, 2: 2}}
	c.await().replica.Submit(c.now, 1, []registry.Command{command})
	return c.answerTo(registry.SessionID(command.Origin.Request), 0)
}

func rules() registry.Command {
	change := &access.Change{Force: true, Edits: []access.Edit{
		{Kind: access.PutRole, Role: access.Role{Name: "x", Rules: []access.Rule{{Verbs: access.Of(access.Hold), Class: access.Any, Name: "x/"}}}},
		{Kind: access.PutBinding, Binding: access.Binding{Who: "cert:a", Roles: []string{"x"}}},
		{Kind: access.PutQuota, Quota: access.Quota{Who: "cert:a", Most: access.Amount{Claims: 1}}},
		{Kind: access.SetMode, Mode: access.Closed},
	}}
	return registry.Command{Op: registry.OpAccess, Change: change}
}

// What the rules or a quota refuse does not get into the log, but for acts of
// administration, whose refusal is on record. What ends a hold asks no rule.
func TestWhatIsDeniedIsNotLogged(t *testing.T) {
	c := newCluster(t, 3, 61)
	for _, s := range c.each() {
		s.newest = version.Access
	}
	c.start()
	c.until("the level is that of rules", func() bool { return c.level() == version.Access })
	c.want(c.administer("local:1/0", rules()), registry.OK)
	owned := open(1, 1, 600_000*ms)
	owned.Owner = "cert:a"
	c.want(c.do(owned), registry.OK)
	c.want(c.do(acquire(1, 2, "x/1")), registry.OK)
	leader := c.await()
	logged := func() uint64 { return leader.replica.Applied() }
	before := logged()
	c.want(c.do(open(2, 1, 600_000*ms)), registry.Unauthenticated)
	c.want(c.do(acquire(1, 3, "y")), registry.Denied)
	c.want(c.do(acquire(1, 4, "x/2")), registry.Quota)
	if after := logged(); after != before {
		t.Errorf("%d entries have what was refused", after-before)
	}
	c.want(c.do(acquire(1, 2, "x/1")), registry.OK) // it is held, and asked for again
	c.want(c.administer("cert:a", registry.Command{Op: registry.OpEnd, Session: id(1)}), registry.Denied)
	records := leader.replica.Registry().Records(0)
	if last := records[len(records)-1]; last.Kind != "end-session" || last.Result != registry.Denied || last.Origin.Actor != "cert:a" || logged() == before {
		t.Errorf("on record is %+v", last)
	}
	c.want(c.do(registry.Command{Op: registry.OpRelease, Session: id(1), Sequence: 9, Hold: 2}), registry.OK)
	c.want(c.do(acquire(1, 10, "x/2")), registry.OK)
}

// Below the level of rules nobody writes what others cannot read.
func TestRulesNeedTheirLevel(t *testing.T) {
	c := newCluster(t, 3, 62)
	for _, s := range c.each() {
		s.newest = version.Live
	}
	c.start()
	c.until("the level is that of live names", func() bool { return c.level() == version.Live })
	refused := c.want(c.administer("local:1/0", rules()), registry.Invalid)
	if !strings.HasPrefix(refused.Message, "level 3: there are rules of access from level 4 on") {
		t.Error(refused.Message)
	}
	c.want(c.administer("", registry.Command{Op: registry.OpNote, Name: "backup"}), registry.Invalid)
}
