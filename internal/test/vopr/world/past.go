package world

import (
	"slices"
	"strings"

	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/test/vopr/faults"
	"github.com/conclave-io/conclave/internal/test/vopr/history"
)

// past is what the servers remember about the ended holds of a resource, as of the last check.
type past struct {
	known []registry.Ended
	how   map[uint64]registry.Ending // by fence, all that were ever shown
	// lost means that more holds ended between two checks than the servers remember.
	lost     bool
	revokers map[string]bool // who asked holders to leave
}

// Names and reasons of those who ask holders to leave.
const (
	WhyAsked  = "asked"
	dismissed = "dismissed"
	// unsaid is the name if servers do not show who asked.
	unsaid = "?"
)

// revokes records that someone asks the holders of a resource to leave.
func (j *judge) revokes(class registry.Class, name, who string) {
	for _, res := range j.resources {
		if res.Class == class && res.Name == name {
			res.past.revokers[who] = true
		}
	}
}

// ends checks what the servers remember. They must still remember the same as before, except the
// oldest entries. They must also remember each hold that has ended since, once.
func (r *Resource) ends(s *Server, now []registry.Ended) {
	p := &r.past
	if n := len(now); n == len(p.known) && (n == 0 || now[n-1] == p.known[n-1]) {
		return
	}
	added := 0
	for !continues(p.known, now[:len(now)-added], len(now) == registry.MaxPast) && added < len(now) {
		added++
	}
	forgets := s.w.Stats.Floods > 1 || s.w.Plan.Names // more names than the servers remember
	if added == len(now) && len(p.known) > 0 {
		if len(now) < registry.MaxPast && !forgets {
			s.w.Violate("past", "server %d remembers of %q %+v, and before that was %+v", s.ID, r.Name, now, p.known)
		}
		p.lost = true
	}
	for _, e := range now[len(now)-added:] {
		if _, again := p.how[e.Fence]; again && !forgets {
			s.w.Violate("past", "server %d remembers twice how the hold of %q with fence %d ended", s.ID, r.Name, e.Fence)
		}
		p.how[e.Fence] = e.How
		s.w.Stats.Endings++
		r.ended(s, &e)
	}
	p.known = now
}

// continues reports whether left continues the list before. If forgets is set, the oldest entries
// may be missing.
func continues(before, left []registry.Ended, forgets bool) bool {
	forgotten := len(before) - len(left)
	return forgotten >= 0 && (forgotten == 0 || len(left) > 0 && forgets) && slices.Equal(before[forgotten:], left)
}

// ended checks that a hold ended as the servers say.
func (r *Resource) ended(s *Server, e *registry.Ended) {
	who, known := s.w.Judge.claimWith(r, e.Fence)
	if !known {
		return // nobody observed that it held
	}
	p, f := r.claims[who], r.fates[who]
	if e.How == registry.Expired {
		s.w.Judge.lingers.Lost(who, p.owner.EndsAt)
	}
	_, alive := s.Replica.Registry().Session(p.session)
	because := ""
	switch {
	case e.Owner != p.owner.client.principal():
		because = "it was another's"
	case f != nil && e.Since != f.since:
		because = "it began at another time"
	case e.How == registry.Released && !p.releasing:
		because = "it was not released"
	case e.How == registry.Closed && !s.w.Judge.closed[p.session]:
		because = "its session was not closed"
	case e.How == registry.Expired && (alive || s.w.Judge.closed[p.session] && p.owner.believed()):
		because = "its session did not expire"
	case e.How == registry.Dropped && e.Reason == "":
		because = "it was not asked to leave"
	case (e.Reason != "" || e.By != "") && !r.hasAsked(p, e.Reason, e.By):
		because = "nobody asked it so"
	case f != nil && f.asked && e.Reason == "":
		because = "it was asked to leave"
	default:
		return
	}
	s.w.Violate("past", "server %d says of %q that %+v: %s", s.ID, r.Name, *e, because)
}

// claimWith returns the claim that had a fence.
func (j *judge) claimWith(r *Resource, fence uint64) (who history.ClaimID, known bool) {
	if who, known = j.shown[fence]; !known {
		who, known = j.fences[fence]
	}
	return who, known && r.claims[who] != nil
}

// hasAsked reports whether someone asked a holder to leave for that reason.
func (r *Resource) hasAsked(p *claim, reason, by string) bool {
	is := func(who string) bool { return by == who || by == unsaid }
	switch {
	case reason == WhyAsked:
		return r.past.revokers[by] || by == unsaid && len(r.past.revokers) > 0
	case reason == dismissed:
		return is(OperatorName) && p.owner.dismissed
	case strings.HasPrefix(reason, "it hands over to "):
		return is(p.owner.client.principal()) && len(r.named) > 0
	case strings.HasPrefix(reason, forPriority):
		return is("") && r.Class == registry.Election
	}
	return false
}

const forPriority = "a candidate of priority "

// remembered checks that the servers remember how a hold ended.
func (r *Resource) remembered(w *World, c history.ClaimID) {
	if f := r.fates[c]; r.past.how[f.fence] == 0 && !r.past.lost {
		w.Violate("past", "the hold of %q with fence %d has ended, and nobody remembers how", r.Name, f.fence)
	}
}

// rememberedAs checks that a hold ended in this way.
func (p *claim) rememberedAs(how registry.Ending) {
	if said := p.Res.past.how[p.Fence]; p.Res.claims != nil && said != how && !(said == 0 && p.Res.past.lost) {
		p.w.Violate("past", "the hold of %q with fence %d ended by %d, and is remembered to have by %d", p.Res.Name, p.Fence, how, said)
	}
}

// asked checks a holder that was asked to leave. A candidate may cause that only after its
// patience: the candidate has waited, and the holder has led, for that time.
func (r *Resource) asked(s *Server, c history.ClaimID, h *registry.Holder, waiters []history.ClaimID) {
	p := r.claims[c]
	if !r.hasAsked(p, h.Reason, unsaid) {
		s.w.Violate("past", "server %d says that the holder of %q with fence %d is asked to leave, because %q: nobody did", s.ID, r.Name, h.Fence, h.Reason)
	}
	if !strings.HasPrefix(h.Reason, forPriority) {
		return
	}
	s.w.Stats.Overtaken++
	for _, id := range waiters {
		q := r.claims[id]
		least := q.patience - q.patience*faults.MaxDrift/1_000_000
		if q.patience > 0 && q.priority > h.Priority && s.w.Now-max(q.called, p.called) >= least {
			return
		}
	}
	s.w.Violate("patience", "the leader of %q with fence %d is asked to leave, because %q: no candidate has waited so long", r.Name, h.Fence, h.Reason)
}
