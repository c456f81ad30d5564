package world

import (
	"slices"

	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/test/vopr/history"
)

// fate is what the servers show about a claim that held. The judge looks whenever an entry is
// applied for the first time. A history must explain what clients observed. But for a request
// without an answer, no client knows whether and when it was carried out, and checking all
// possibilities takes too long. So the judge uses what the servers show. If that is wrong, the rest
// of the history has no explanation.
type fate struct {
	fence uint64
	since int64 // the wall clock of the leader that granted it
	asked bool  // the holder was asked to leave
	seen  int64 // when it was first observed to hold
	last  int64 // when it was last observed to hold
	gone  int64 // when it was first observed not to hold any more
}

// asked reports whether the servers have asked for the hold of a claim back. They drop it a TTL
// later, and a release that waited for the window of its session may arrive after that.
func (p *claim) asked() bool {
	f := p.Res.fates[history.ClaimOf(p.session, p.sequence)]
	return f != nil && f.asked
}

// look records who holds a resource now, after an entry that nobody had applied before.
func (r *Resource) look(s *Server, now int64) {
	view, _, ended := s.Replica.Registry().Freeze().Explain(r.Class, r.Name, r.queued)
	var present, waiters, begun []history.ClaimID
	for _, x := range view.Waiters {
		waiters = append(waiters, history.ClaimOf(x.Session, x.Sequence))
	}
	for _, h := range view.Holders {
		c := history.ClaimOf(h.Session, h.Sequence)
		present = append(present, c)
		f := r.fates[c]
		if f == nil {
			f = &fate{fence: h.Fence, since: h.Since, seen: now, gone: history.Forever}
			r.fates[c] = f
			s.w.Judge.shown[h.Fence] = c
			begun = append(begun, c)
		}
		f.last = now
		if h.Revoked && !f.asked {
			f.asked = true
			r.asked(s, c, &h, slices.Concat(r.candidates, waiters))
		}
	}
	slices.Reverse(ended) // the newest is first
	r.ends(s, ended)
	for _, c := range begun {
		s.w.Judge.lingers.Holds(c)
	}
	for _, c := range r.present {
		if !slices.Contains(present, c) {
			r.fates[c].gone = now
			r.remembered(s.w, c)
		}
	}
	r.present, r.candidates = present, waiters
}

// span is the time between two looks at the newest fence.
type span struct {
	fence    uint64 // the newest one at the end
	from, to int64
}

// lookAt records the newest fence.
func (j *judge) lookAt(fence uint64, now int64) {
	if n := len(j.spans); n == 0 || j.spans[n-1].fence != fence {
		j.spans = append(j.spans, span{fence, j.looked, now})
	}
	j.looked = now
}

// claimOf returns the claim that a server has shown with a fence.
func (j *judge) claimOf(fence uint64) (history.ClaimID, bool) {
	claim, shown := j.shown[fence]
	return claim, shown
}

// dark returns the spans in which a fence was given that nobody observed: neither the judge at a
// holder, nor a client in a reply.
func (j *judge) dark() (spans []span) {
	last := uint64(0)
	for _, s := range j.spans {
		for fence := max(last, s.fence&^(1<<40-1)) + 1; fence <= s.fence; fence++ {
			_, told := j.fences[fence]
			if _, shown := j.shown[fence]; !told && !shown {
				spans = append(spans, s)
				break
			}
		}
		last = s.fence
	}
	return spans
}

// settle replaces unknown parts of the operations of a resource by their fates. An operation
// without an answer ends with its session. A claim that nobody observed to hold did not hold,
// except perhaps in a dark span.
func (r *Resource) settle(dark []span, ended map[registry.SessionID]int64) {
	for i := range r.history {
		o := &r.history[i]
		if at, over := ended[o.Session]; over && o.Ret == history.Forever {
			o.Ret = max(at, o.Call)
		}
	}
	r.history = slices.DeleteFunc(r.history, func(o history.Operation) bool {
		if r.fates[o.Claim] != nil || o.Kind != history.Maybe && o.Kind != history.End {
			return false
		}
		return !slices.ContainsFunc(dark, func(s span) bool { return o.Call <= s.to && s.from <= o.Ret })
	})
	for i := range r.history {
		o := &r.history[i]
		f := r.fates[o.Claim]
		if f == nil {
			continue
		}
		switch o.Kind {
		case history.Maybe:
			o.Kind, o.Fence, o.Ret = history.Grant, f.fence, max(f.seen, o.Call)
		case history.End:
			o.Call = max(o.Call, f.last)
			o.Ret = max(min(o.Ret, f.gone), o.Call)
		}
	}
}
