package attack

import (
	"fmt"
	"time"

	"github.com/conclave-io/conclave/api"
)

// lingering asks for a lock that is to stay closed for an hour after the grant.
func lingering(name string) *api.Request {
	return &api.Request{Op: &api.Request_Acquire{Acquire: &api.Acquire{Name: name, Try: true, AtLeastNs: int64(time.Hour)}}}
}

// enterClosed tries to get a lock that stays closed after its hold, and to see who held it without the
// right. Then it closes more locks than a quota allows.
func enterClosed(w *world) {
	r := w.withRules(1)
	r.change(r.token("eve", 0), bind("token:eve", "batch"), quota(&api.Quota{Who: "token:eve", Claims: 50}))
	bob, eve := r.stream("bob"), r.stream("eve")
	for _, name := range []string{"reports/closed", "blind/closed"} {
		held := bob.expect(bob.send(lingering(name)), api.Code_CODE_OK)
		bob.expect(bob.send(releasing(held.GetSequence())), api.Code_CODE_OK)
	}
	tries := []struct {
		what string
		*api.Acquire
	}{
		{"a try", &api.Acquire{}},
		{"a shared hold", &api.Acquire{Shared: true}},
		{"another limit", &api.Acquire{Limit: 2}},
		{"a hold that lingers", &api.Acquire{AtLeastNs: 1}},
		{"a hold with a delay", &api.Acquire{DelayAfterLossNs: 1}},
		{"a hold that keeps nothing", &api.Acquire{Keeps: []*api.Kept{{Name: "reports/closed", Fence: 1}}}},
	}
	closed := func(after string) {
		r.Helper()
		for _, a := range tries {
			a.Name, a.Try = "reports/closed", true
			reply := eve.reply(eve.send(&api.Request{Op: &api.Request_Acquire{Acquire: a.Acquire}}))
			if reply.GetCode() != api.Code_CODE_HELD && !(a.Limit == 2 && reply.GetCode() == api.Code_CODE_INVALID) {
				r.Errorf("after %s, %s is answered %v", after, a.what, reply)
			}
		}
	}
	closed("the release")
	if reply := eve.expect(eve.send(lingering("blind/closed")), api.Code_CODE_HELD); reply.GetClosed() != nil || reply.GetHolder() != nil {
		r.Errorf("who may not read a name is told %v", reply)
	}
	eve.expect(eve.send(&api.Request{Op: &api.Request_Revoke{Revoke: &api.Revoke{Name: "reports/closed"}}}), api.Code_CODE_DENIED)
	closed("a revocation")
	for hold := range uint64(5) {
		eve.reply(eve.send(releasing(hold)))
		eve.reply(eve.send(&api.Request{Op: &api.Request_Cancel{Cancel: &api.Cancel{Hold: hold}}}))
	}
	closed("releases and cancellations")
	bob.expect(bob.send(closing()), api.Code_CODE_OK)
	closed("the end of the session that held it")
	got := make(answers)
	for i := range 60 {
		reply := eve.reply(eve.send(lingering(fmt.Sprint("reports/many/", i))))
		if got[reply.GetCode()]++; reply.GetCode() == api.Code_CODE_OK {
			eve.expect(eve.send(releasing(reply.GetSequence())), api.Code_CODE_OK)
		}
	}
	if got[api.Code_CODE_OK] != 50 || got[api.Code_CODE_QUOTA] != 10 {
		r.Errorf("60 locks that stay closed are answered %v", got)
	}
}
