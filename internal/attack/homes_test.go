package attack

import (
	"time"

	"google.golang.org/grpc/codes"

	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/server/servertest"
)

func init() {
	attacks = append(attacks, attack{
		number: 41, what: "hold, revoke and end a session at the home of locks that algorithms guard, without the verb", expected: "DENIED; same", apart: true, run: homesWithoutVerb,
	})
}

// atHome opens a stream to the home on the first server, and opens a session.
func (r *ruled) atHome(name string) *stream {
	r.Helper()
	raw, err := api.NewConclaveClient(r.with(1, r.tokens[name])).AttachHome(r.within())
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

func homesWithoutVerb(w *world) {
	r := w.withRules(1)
	if _, err := r.admin.SetGuard(r.within(), &api.SetGuardRequest{Prefix: "reports/", Algorithm: "central"}); err != nil {
		r.Fatal(err)
	}
	servertest.Eventually(w.T, "the server takes part", func() bool {
		v, err := r.admin.View(r.within(), &api.ViewRequest{Homes: true})
		return err == nil && len(v.GetMembers()) == 1 && v.GetMembers()[0].GetHome().GetState() == "OPEN"
	})
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
}
