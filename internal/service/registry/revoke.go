package registry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/conclave-io/conclave/internal/service/access"
)

// A hold can be revoked: by an operator, or by a candidate of an election that has waited long
// enough behind a leader of lower priority. The hold continues until the holder has left, or
// until its session could not have been renewed since without the client being told. Only
// then does the leader of the servers drop it. So even a holder that is forced out knows
// it before anyone else can enter.

// revoke asks all holders of a resource to leave, or the one with a given fence. It opens the places
// that linger, or the one with that fence: what is granted then stays.
func (r *Registry) revoke(c *Command, fx *Effects) Result {
	res, fence := r.find(c.Class, c.Name), uint64(0)
	held := res.held()
	if held {
		res = r.thaw(res)
		for i, holder := range res.holders() {
			if c.Fence == 0 || c.Fence == holder.fence {
				fence = holder.fence
				r.ask(res, i, ByOperator, c.Value, c.Origin().Actor, fx)
			}
		}
	}
	if places := r.lingers.with(key{c.Class, c.Name}, c.Fence); len(places) > 0 {
		fence = max(fence, places[len(places)-1].fence)
		r.reopen(places, fx)
	}
	switch {
	case fence != 0:
		return Result{Code: OK, Fence: fence}
	case !held:
		return Result{Code: NotFound, Message: "nobody holds " + quoted(c.Name)}
	}
	return Result{Code: NotFound, Message: fmt.Sprintf("nobody holds %s with the fence %d", quoted(c.Name), c.Fence)}
}

// ask asks a holder of a thawed resource to leave, unless it was asked before.
func (r *Registry) ask(res *resource, holder int, why Motive, reason, by string, fx *Effects) {
	if res.holders()[holder].revoked {
		return
	}
	r.deeds.asked(why)
	c := r.amend(res, holder, func(t *extras) { t.revoked, t.reason, t.by = true, reason, by })
	r.thawSession(c.session)
	c.session.revocations++
	*fx.outcome(c) = Result{Code: Revoked, Fence: c.fence, Message: reason}
	fx.queued(c.resource)
}

// dismiss ends a session for an operator, as fast as possible without ending a hold on which
// its holder relies: waiting claims are withdrawn, and holds are revoked. The
// session may be renewed meanwhile, but acquires nothing more.
func (r *Registry) dismiss(c *Command, fx *Effects) Result {
	if problem := c.Validate(); problem != "" {
		return Result{Code: Invalid, Message: problem}
	}
	s, refusal := r.sessions[c.Session], Result{}
	switch {
	case r.Forbids(c.Origin(), access.EndSession, &refusal):
		return refusal
	case s == nil:
		return Result{Code: NotFound, Message: fmt.Sprintf("no such session: %v: it may have expired or been closed", c.Session)}
	case s.server != 0:
		// A seat has no holds here and would end at once, while clients of that server hold locks.
		return Result{Code: Invalid, Message: fmt.Sprintf("session %v is the seat of server %d: stop or remove the server instead", s.id, s.server)}
	}
	r.seeOff(s, c.Value, c.Origin().Actor, fx)
	return Result{Code: OK}
}

// seeOff starts to end a session, and withdraws what it waits for.
func (r *Registry) seeOff(s *session, reason, actor string, fx *Effects) {
	r.thawSession(s)
	s.leaving = true
	r.withdraw(s, reason, fx)
	for _, held := range s.sortedClaims(nil) {
		res := r.thaw(held.resource)
		r.ask(res, slices.Index(res.holders(), held), ByEnd, reason, actor, fx)
	}
	r.leave(s, fx)
}

// withdraw removes all waiting claims of a session from the queues, before anything is
// granted to those behind them.
func (r *Registry) withdraw(s *session, reason string, fx *Effects) {
	why := "the session is being ended"
	if reason != "" {
		why += ": " + reason
	}
	var freed []*resource
	for _, c := range s.sortedClaims(nil) {
		if c.held() {
			continue
		}
		r.unlist(c)
		r.waits(c, -1)
		res := r.thaw(c.resource)
		res.countQueue()
		r.exit(c)
		s.remember(answer{sequence: c.sequence, code: Cancelled, message: "the session is being ended"})
		*fx.outcome(c) = Result{Code: Cancelled, Message: why}
		if !res.has(swept) {
			res.set(swept, true)
			freed = append(freed, res)
		}
	}
	for _, res := range freed {
		res.sweep()
		r.settle(res, fx)
	}
}

// leave ends a session that is to end, once it holds nothing.
func (r *Registry) leave(s *session, fx *Effects) {
	if s.leaving && s.claims.len() == 0 {
		r.end([]*session{s}, Dropped, fx)
	}
}

// dropOverdue drops revoked holds whose time is over.
func (r *Registry) dropOverdue(claims []ClaimID, fx *Effects) {
	for _, id := range claims {
		if c := r.revoked[id]; c != nil {
			r.put(Record{Kind: "drop", Class: c.resource.class, Name: c.resource.name, Fence: c.fence, Owner: c.session.owner, Reason: c.reason, Result: OK})
			r.drop(c, Stale, Dropped)
			r.settle(c.resource, fx)
			r.leave(c.session, fx)
		}
	}
}

// Revoked returns the holds whose holders are asked to leave, by session and
// sequence, and the TTLs of their sessions.
func (st *state) Revoked() (claims []ClaimID, ttls []int64) {
	if len(st.revoked) == 0 {
		return nil, nil
	}
	claims = slices.SortedFunc(maps.Keys(st.revoked), compareClaims)
	for _, id := range claims {
		ttls = append(ttls, st.revoked[id].session.ttl)
	}
	return claims, ttls
}

func compareClaims(a, b ClaimID) int {
	return cmp.Or(a.Session.Compare(b.Session), cmp.Compare(a.Sequence, b.Sequence))
}

// Asked returns the holds that a session is asked to release, by sequence.
func (st *state) Asked(id SessionID) []uint64 {
	if s := st.sessions[id]; s != nil {
		return s.asked()
	}
	return nil
}

// transfer names the candidate that is to lead next, selected by its value or session, and asks
// the present leader, who requested the transfer, to leave. Nobody else leads until the
// leader has left.
func (r *Registry) transfer(s *session, c *Command, fx *Effects) Result {
	made := s.claims.get(number(c.Hold))
	if made == nil || !made.held() || made.resource.class != Election {
		return Result{Code: NotHeld, Message: fmt.Sprintf("the session leads no election by request %d", c.Hold)}
	}
	res := made.resource
	at := slices.IndexFunc(res.queue(), func(candidate *claim) bool {
		return candidate.value == c.Value || candidate.session.id.String() == c.Value
	})
	if at < 0 {
		return Result{Code: NotFound, Message: fmt.Sprintf("no candidate %s waits to lead %s", quoted(c.Value), quoted(res.name))}
	}
	res = r.thaw(res)
	res.countQueue()
	heir := res.queue()[at].amended(func(t *extras) { t.named = true })
	r.replace(heir)
	res.prefer(at, heir)
	r.ask(res, 0, ByTransfer, "it hands over to "+quoted(c.Value), s.owner, fx)
	return Result{Code: OK, Fence: made.fence}
}

// overtake asks the leader of an election to leave if a candidate may replace it: the candidate
// has a higher priority, its patience is over, and the leader has led for at least as long. So
// a candidate of high priority that comes and goes does not depose a leader each time.
func (r *Registry) overtake(name string, fx *Effects) {
	if c := r.overtaker(name, r.now); c != nil {
		res := r.thaw(c.resource)
		leader := res.holders()[0]
		r.ask(res, 0, ByPatience, fmt.Sprintf("a candidate of priority %d has waited, this leader has %d", c.priority, leader.priority), "", fx)
	}
}

// overtaker returns the candidate that may replace a leader, or nil.
func (st *state) overtaker(name string, now int64) *claim {
	res := st.find(Election, name)
	if res == nil || len(res.queue()) == 0 || len(res.holders()) == 0 {
		return nil
	}
	first, leader := res.queue()[0], res.holders()[0]
	if first.patience == 0 || first.named || first.priority <= leader.priority || leader.revoked || now-max(first.at, leader.at) < first.patience {
		return nil
	}
	return first
}

// Overtaken returns the elections in which a candidate may replace the leader at the given
// replicated time, sorted by name.
func (st *state) Overtaken(now int64) (names []string) {
	for _, c := range st.eager {
		if st.overtaker(c.resource.name, now) == c {
			names = append(names, c.resource.name)
		}
	}
	slices.Sort(names)
	return names
}
