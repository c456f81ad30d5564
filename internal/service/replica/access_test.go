package replica

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/version"
)

// administer submits a command that belongs to no session, and returns its answer.
func (c *cluster) administer(actor string, command registry.Command) registry.Result {
	c.t.Helper()
	c.asked++
	command.By = &registry.Origin{Actor: actor, Via: "grpc", Request: [16]byte{1: c.asked, 2: 2}}
	c.await().replica.Submit(c.now, 1, []registry.Command{command})
	return c.answerTo(registry.SessionID(command.Origin().Request), 0)
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

// Requests that the rules or a quota refuse do not get into the log, except acts of
// administration, whose refusals are recorded. No rule applies to requests that end a
// hold.
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
		s.newest = version.Guarded
	}
	c.start()
	c.until("the level is that of guarded names", func() bool { return c.level() == version.Guarded })
	refused := c.want(c.administer("local:1/0", rules()), registry.Invalid)
	if !strings.HasPrefix(refused.Message, "level 3: there are rules of access from level 4 on") {
		t.Error(refused.Message)
	}
	c.want(c.administer("", registry.Command{Op: registry.OpNote, Name: "backup"}), registry.Invalid)
}

// A change of the members or of the level is refused by the present rules, and recorded
// with its principal. Its entry refuses it again if the principal has lost the right
// meanwhile.
func TestMembersAndRules(t *testing.T) {
	c := newCluster(t, 3, 63)
	for _, s := range c.each() {
		s.newest = version.Access
	}
	c.start()
	c.until("the level is that of rules", func() bool { return c.level() == version.Access })
	begin := rules()
	begin.Change.Edits = append(begin.Change.Edits, access.Edit{Kind: access.PutBinding, Binding: access.Binding{Who: "cert:ops", Roles: []string{"operator"}}})
	c.want(c.administer("local:1/0", begin), registry.OK)
	reg := func() *registry.Registry { return c.await().replica.Registry() }
	by := func(actor string, request byte) registry.Origin {
		return registry.Origin{Actor: actor, Via: "grpc", Request: [16]byte{9, request}}
	}
	numbered := uint64(0)
	for _, rec := range reg().Records(0) {
		numbered = rec.Number
	}
	add := Change{Kind: Add, Server: registry.Member{PeerAddress: "new:1"}, Origin: by("cert:a", 1)}
	var refused *ChangeError
	if _, _, err := c.await().replica.Change(c.now, add); !errors.As(err, &refused) || refused.Code != registry.Denied || !strings.HasPrefix(refused.Text, "cert:a may not change members, settings, guards or views") {
		t.Errorf("the change of one who may not: %v", err)
	}
	if _, err := c.await().replica.ChangeLevel(c.now, Hold, 0, by("cert:a", 2)); !errors.As(err, &refused) || refused.Code != registry.Denied {
		t.Errorf("the change of the level of one who may not: %v", err)
	}
	c.want(c.administer("cert:a", registry.Command{Op: registry.OpNote, Name: "member", Value: "reserve an id"}), registry.Denied)
	c.want(c.administer("cert:a", registry.Command{Op: registry.OpNote, Name: "level", Value: "hold"}), registry.Denied)
	c.want(c.administer("cert:ops", registry.Command{Op: registry.OpNote, Name: "leader", Value: "server 2"}), registry.OK)

	add.Origin = by("cert:ops", 3)
	added := c.make(add)
	// The right goes in the same entry, before the removal.
	leader := c.await()
	withdraw := registry.Command{Op: registry.OpAccess, By: new(by("local:1/0", 4)), Change: &access.Change{Force: true, Edits: []access.Edit{{Kind: access.DropBinding, Binding: access.Binding{Who: "cert:ops"}}}}}
	if _, _, err := leader.replica.Change(c.now, Change{Kind: Remove, ID: added, Origin: by("cert:ops", 5)}); err != nil {
		t.Fatal(err)
	}
	leader.replica.verdicts = append([]registry.Command{withdraw}, leader.replica.verdicts...)
	c.until("the right is gone", func() bool {
		return !reg().Rules().Allows("cert:ops", access.Members, access.Any, "")
	})
	if m, _ := reg().Member(added); m.Standing == registry.Removed {
		t.Error("a server was removed behind the entry that withdrew the right")
	}
	var lines []string
	for _, rec := range reg().Records(numbered) {
		lines = append(lines, fmt.Sprintf("%s %s %d", rec.Kind, rec.Origin.Actor, rec.Result))
	}
	want := []string{"member cert:a 17", "level cert:a 17", "leader cert:ops 1", "member cert:ops 1", "access local:1/0 1", "member cert:ops 17"}
	for i, line := range want {
		want[i] = strings.Replace(line, " 17", fmt.Sprintf(" %d", registry.Denied), 1)
	}
	if !slices.Equal(lines, want) {
		t.Errorf("on record are\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}
