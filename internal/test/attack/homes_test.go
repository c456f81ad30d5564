package attack

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/server/servertest"
)

func init() {
	attacks = append(attacks, attack{
		number: 41, what: "hold, revoke and end a session at the home of locks that algorithms guard, without the verb", expected: "DENIED; same", apart: true, run: homesWithoutVerb,
	}, attack{
		number: 45, what: "revoke a lock, and end a session, at a home: over the stream of a follower, and by asking the home alone", expected: "the holder is told; on record", apart: true, run: homesOffTheRecord,
	}, attack{
		number: 46, what: "go on waiting at a home, and ask a home, after the right was withdrawn", expected: "nothing is granted once the change has returned; holds stay", apart: true, run: homesAfterWithdrawal,
	}, attack{
		number: 47, what: "name homes that do not exist, without a role", expected: "UNAVAILABLE; the server keeps nothing", elsewhere: "internal/service/server TestHomesThatDoNotExist",
	})
}

// atHome opens a stream to the home on the first server, and opens a session.
func (r *ruled) atHome(name string) *stream {
	r.Helper()
	return r.atHomeOf(1, name)
}

func (r *ruled) atHomeOf(server int, name string) *stream {
	r.Helper()
	raw, err := api.NewConclaveClient(r.with(server, r.tokens[name])).AttachHome(r.within())
	if err != nil {
		r.Fatal(err)
	}
	if first, err := raw.Recv(); err != nil || first.GetWelcome() == nil {
		r.Fatal(first, err)
	}
	s := &stream{world: r.world, secret: newSecret(), next: 1, Conclave_AttachClient: raw, early: make(map[uint64][]*api.Reply)}
	return s.open(time.Minute)
}

// settled is like expect, but skips the answer that a request is queued.
func (s *stream) settled(sequence uint64, want api.Code) *api.Reply {
	s.Helper()
	reply := s.reply(sequence)
	for reply.GetCode() == api.Code_CODE_QUEUED {
		reply = s.reply(sequence)
	}
	if reply.GetCode() != want {
		s.Errorf("request %d is answered with %v, want %v", sequence, reply, want)
	}
	return reply
}

// guarded has an algorithm guard reports/, and waits until all servers take part.
func (r *ruled) guarded() {
	r.Helper()
	if _, err := r.admin.SetGuard(r.within(), &api.SetGuardRequest{Prefix: "reports/", Algorithm: "central"}); err != nil {
		r.Fatal(err)
	}
	servertest.Eventually(r.T, "the servers take part", func() bool {
		v, err := r.admin.View(r.within(), &api.ViewRequest{Homes: true})
		serves := func(m *api.Seat) bool { return m.GetHome().GetState() == "OPEN" && m.GetHome().GetRemainingNs() > 0 }
		return err == nil && len(v.GetMembers()) == r.cluster.Servers() && !slices.ContainsFunc(v.GetMembers(), func(m *api.Seat) bool { return !serves(m) })
	})
}

func homesWithoutVerb(w *world) {
	r := w.withRules(1)
	r.guarded()
	bob, dave := r.atHome("bob"), r.atHome("dave")
	held := bob.settled(bob.send(acquiring("reports/a")), api.Code_CODE_OK)
	dave.settled(dave.send(acquiring("reports/b")), api.Code_CODE_DENIED)
	bob.settled(bob.send(acquiring("reports/frozen/a")), api.Code_CODE_DENIED)
	through := acquiring("reports/c")
	through.Session, through.Home = dave.secret, 1
	if reply, err := r.as("dave").Do(r.within(), through); err != nil || reply.GetCode() != api.Code_CODE_DENIED {
		r.Errorf("in a call of its own: %v, %v", reply, err)
	}

	plain := r.stream("dave")
	plain.settled(plain.send(&api.Request{Op: &api.Request_Revoke{Revoke: &api.Revoke{Name: "reports/a", Reason: "x"}}}), api.Code_CODE_DENIED)
	for _, home := range []bool{false, true} {
		_, err := r.as("dave").EndSession(r.within(), &api.EndSessionRequest{Id: bob.id, Reason: "x", Home: home})
		r.expectCode("end a session of a home", err, codes.PermissionDenied)
	}
	if renewed := bob.expect(bob.send(renewal()), api.Code_CODE_OK); len(renewed.GetRevoked()) > 0 {
		r.Errorf("the victim is told %v", renewed)
	}
	bob.expect(bob.send(releasing(held.GetSequence())), api.Code_CODE_OK)
	r.listedBehindOthers(bob)
}

// listedBehindOthers lists a lock at a home behind more locks than fit on a page, which the caller
// may not read.
func (r *ruled) listedBehindOthers(bob *stream) {
	r.Helper()
	for _, name := range []string{"a", "b", "c", "d", "e", "z"} {
		bob.settled(bob.send(acquiring("reports/list/"+name)), api.Code_CODE_OK)
	}
	r.change(role("few", `allow read on lock name "reports/list/b"`, `allow read on lock name "reports/list/z"`), bind("token:dave", "few"))
	for after, want := range map[string]string{"": "reports/list/b", "reports/list/b": "reports/list/z"} {
		page, err := r.as("dave").List(r.within(), &api.ListRequest{After: after, Limit: 1})
		if err != nil || len(page.GetResources()) != 1 || page.GetResources()[0].GetName() != want {
			r.Errorf("after %q: %v, %v; want %s", after, page, err, want)
		}
	}
}

// homesOffTheRecord lets an operator ask the holder at a home to leave, over each kind of stream,
// and end its session.
func homesOffTheRecord(w *world) {
	r := w.withRules(3)
	r.guarded()
	r.change(bind("token:victor", "operator"))
	leader := r.cluster.Leader()
	home, relay := leader%3+1, (leader+1)%3+1
	client := api.NewConclaveClient(r.with(relay, r.tokens["victor"]))
	relayed := r.attachTo(metadata.AppendToOutgoingContext(r.within(), "conclave-relay", "1"), client, newSecret()).open(time.Minute)
	for name, over := range map[string]*stream{"reports/direct": r.stream("victor"), "reports/relayed": relayed} {
		bob := r.atHomeOf(home, "bob")
		held := bob.settled(bob.send(acquiring(name)), api.Code_CODE_OK)
		over.settled(over.send(&api.Request{Op: &api.Request_Revoke{Revoke: &api.Revoke{Name: name, Reason: "why " + name}}}), api.Code_CODE_OK)
		bob.expect(held.GetSequence(), api.Code_CODE_REVOKED)
		line := r.oneRecord("revoke", `"`+name+`"`)
		for _, part := range []string{`"actor":"token:victor"`, `"reason":"why ` + name, `"result":"OK"`} {
			if !strings.Contains(line, part) {
				r.Errorf("the record of a revocation lacks %s: %s", part, line)
			}
		}
	}
	bob := r.atHomeOf(home, "bob")
	ends := api.NewConclaveClient(r.with(home, r.tokens["victor"]))
	if _, err := ends.EndSession(r.within(), &api.EndSessionRequest{Id: bob.id, Reason: "why it ends", Home: true}); err != nil {
		r.Error(err)
	}
	if line := r.oneRecord("end-session", "why it ends"); !strings.Contains(line, "token:bob") || !strings.Contains(line, `"actor":"token:victor"`) {
		r.Errorf("the record of an end: %s", line)
	}
	bob = r.atHomeOf(leader, "bob")
	held := bob.settled(bob.send(acquiring("reports/kept")), api.Code_CODE_OK)
	client = api.NewConclaveClient(r.with(relay, r.tokens["dave"]))
	dave := r.attachTo(metadata.AppendToOutgoingContext(r.within(), "conclave-relay", "1"), client, newSecret()).open(time.Minute)
	dave.settled(dave.send(&api.Request{Home: uint64(leader), Op: &api.Request_Revoke{Revoke: &api.Revoke{Name: "reports/kept", Reason: "x"}}}), api.Code_CODE_DENIED)
	bob.expect(bob.send(releasing(held.GetSequence())), api.Code_CODE_OK)
	dave.settled(dave.send(&api.Request{Op: &api.Request_Revoke{Revoke: &api.Revoke{Name: "reports/never", Reason: "why not"}}}), api.Code_CODE_DENIED)
	r.oneRecord("revoke", "why not")
}

// oneRecord returns the only record of a kind with a text.
func (r *ruled) oneRecord(kind, text string) (line string) {
	r.Helper()
	stream, err := r.admin.AuditLog(r.within(), &api.AuditLogRequest{Kind: kind})
	if err != nil {
		r.Fatal(err)
	}
	var all []string
	for message, err := stream.Recv(); err == nil; message, err = stream.Recv() {
		all = append(all, message.GetLines()...)
	}
	found := slices.DeleteFunc(slices.Clone(all), func(line string) bool { return !strings.Contains(line, text) })
	if len(found) != 1 {
		r.Errorf("%d records of %s with %q, want 1: %q", len(found), kind, text, all)
		return ""
	}
	return found[0]
}

// homesAfterWithdrawal withdraws the rights of a holder and of a waiter at homes, and asks the homes
// as soon as the change has returned.
func homesAfterWithdrawal(w *world) {
	r := w.withRules(3)
	r.guarded()
	r.change(bind("token:carol", "batch"))
	leader := r.cluster.Leader()
	holds, waits := r.atHomeOf(leader, "carol"), r.atHomeOf(leader%3+1, "bob")
	held := holds.settled(holds.send(acquiring("reports/a")), api.Code_CODE_OK)
	kept := waits.settled(waits.send(acquiring("reports/b")), api.Code_CODE_OK)
	waiting := waits.send(acquiring("reports/a"))
	waits.expect(waiting, api.Code_CODE_QUEUED)
	r.change(&api.AccessEdit{Edit: &api.AccessEdit_DropBinding{DropBinding: "token:bob"}})
	waits.expect(waits.send(acquiring("reports/late")), api.Code_CODE_DENIED)
	waits.expect(waiting, api.Code_CODE_DENIED)
	holds.expect(holds.send(releasing(held.GetSequence())), api.Code_CODE_OK)
	holds.settled(holds.send(acquiring("reports/a")), api.Code_CODE_OK)
	for range 20 { // each is another chance to meet a server that lags behind
		r.change(bind("token:bob", "batch"))
		waits.expect(waits.send(renewal()), api.Code_CODE_OK)
		again := waits.settled(waits.send(acquiring("reports/c")), api.Code_CODE_OK)
		waits.expect(waits.send(releasing(again.GetSequence())), api.Code_CODE_OK)
		r.change(&api.AccessEdit{Edit: &api.AccessEdit_DropBinding{DropBinding: "token:bob"}})
		waits.expect(waits.send(acquiring("reports/c")), api.Code_CODE_DENIED)
	}
	if renewed := waits.expect(waits.send(renewal()), api.Code_CODE_OK); len(renewed.GetRevoked()) > 0 {
		r.Errorf("who held before the change is told %v", renewed)
	}
	waits.expect(waits.send(releasing(kept.GetSequence())), api.Code_CODE_OK)
}
