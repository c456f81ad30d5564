package query

import (
	"context"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/admission"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/registry/expect"
)

// Expected returns the rules about names that are to be held again and again. Whether they are kept is
// decided by the clocks of the server that answers.
func (c *Calls) Expected(ctx context.Context, req *api.ExpectedRequest) (*api.ExpectedResponse, error) {
	answer := new(api.ExpectedResponse)
	look := func(state node.State) {
		now := expect.Moment{Wall: time.Now().UnixNano(), Replicated: state.Now}
		locks, elections := admission.Reader(ctx, state.Rules(), registry.Lock), admission.Reader(ctx, state.Rules(), registry.Election)
		for _, e := range state.Expected() {
			may := locks
			if e.Class == uint8(registry.Election) {
				may = elections
			}
			if may == nil || may(e.Name) {
				answer.Rules = append(answer.Rules, expectation(&e, now))
			}
		}
	}
	return forward.Read(ctx, c.cfg.Forward, req.GetStale(), answer, look, forward.Asking(api.ConclaveClient.Expected, req))
}

func expectation(e *registry.Expected, now expect.Moment) *api.Expectation {
	rule := &api.Expectation{
		Class: api.Class(e.Class), Name: e.Name, EveryNs: e.Period, SetUnixNs: e.Set.Wall, SetBy: e.By,
		Held: e.Holder != nil, IdleNs: e.Idle(now), Overdue: e.Overdue(now),
	}
	if h := e.Holder; h != nil {
		rule.Last = &api.LastHold{Fence: h.Fence, SinceUnixNs: h.Since, Owner: h.Owner, Host: h.Host, Pid: h.PID, Program: h.Program}
	} else if l := &e.Last; l.Fence != 0 {
		rule.Last = &api.LastHold{
			Fence: l.Fence, SinceUnixNs: l.Since, UntilUnixNs: l.Until.Wall, How: api.Ending(l.How),
			Owner: l.Owner, Host: l.Host, Pid: l.PID, Program: l.Program,
		}
	}
	return rule
}
