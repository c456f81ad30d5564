package world

import (
	"cmp"
	"slices"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/test/vopr/history"
)

// handovers is the judge's record of the leaders of an election that handed over.
type handovers struct {
	named    map[string]bool // values of candidates, and ids of sessions, that leaders named
	accepted []handover
}

// handover is a transfer of an election that was answered with OK.
type handover struct {
	fence uint64 // the fence of the leader that handed over
	to    string
}

// transfer hands the leadership over to a candidate that probably waits, and then releases it. The
// root package does the same. Sometimes the named candidate does not exist.
func (k *worker) transfer(h *Hold) {
	w := k.client.w
	to := "nobody"
	var heirs []*claim
	for _, p := range h.Claim.Res.waiting {
		if !p.gone {
			heirs = append(heirs, p)
		}
	}
	if len(heirs) > 0 && w.work.IntN(8) > 0 {
		heir := heirs[w.work.IntN(len(heirs))]
		if to = heir.value; w.work.IntN(4) == 0 {
			to = heir.session.String()
		}
	}
	op := &api.Request{Op: &api.Request_Transfer{Transfer: &api.Transfer{To: []byte(to)}}}
	k.client.submit(&request{call: line.Call{Of: &h.request.call, Op: op}}, func(reply *api.Reply) {
		code := codeOf(reply)
		switch {
		case reply == nil:
		case code == registry.NotHeld && h.Counts():
			w.Violate("hold", "session %v hands %q over by its hold %d, and is told that it does not lead", h.Session.ID, h.Claim.Res.Name, h.Claim.sequence)
		case (code == registry.OK || code == registry.Stale) && k.Hold == h && !h.over:
			k.release(h)
		}
	})
}

// handsOver checks that another server leads soon after the leader was asked to hand over. This
// must hold if there are no faults before and after, and another voter has nearly the whole log. A
// server that waits for a snapshot cannot lead.
func (w *World) handsOver(leader *Server, term uint64) {
	const soon = 1000 * ms
	follows := func(p agreement.Peer) bool { return p.ID != leader.ID && !p.Learner && p.State == "StateReplicate" }
	if w.Now-w.uneasy < soon || !slices.ContainsFunc(w.peers(), follows) {
		return
	}
	asked := w.Now
	w.After(soon, func() {
		if w.uneasy > asked {
			return
		}
		if w.Stats.Resigned++; leader.Up() && leader.Replica.Leading() && leader.Replica.Term() == term {
			w.Violate("transfer", "server %d was asked to hand over %d ms ago, and still leads", leader.ID, soon/ms)
		}
	})
}

// answersTo reports whether a transfer names this candidate.
func (p *claim) answersTo(name string) bool { return p.value == name || p.session.String() == name }

// isNamed reports whether a leader may have named this candidate.
func (p *claim) isNamed() bool {
	return len(p.Res.named) > 0 && (p.Res.named[p.value] || p.Res.named[p.session.String()])
}

// transferred checks the first answer to a transfer that was transmitted at the time called. It may
// be refused only if no named candidate waited during the whole time.
func (p *claim) transferred(to string, called int64, code registry.Code) {
	switch code {
	case registry.OK:
		p.Res.accepted = append(p.Res.accepted, handover{p.Fence, to})
	case registry.NotFound:
		for _, x := range p.Res.waiting {
			if x.answersTo(to) && !x.gone && x.told < called && !x.ends() {
				p.w.Violate("transfer", "%q is not handed over to %q because no such candidate waits; %v does", p.Res.Name, to, x.session)
			}
		}
	}
}

// ends reports whether the servers may have ended the wait before the client was informed.
func (p *claim) ends() bool { return p.owner.dismissed || p.over() <= p.w.Now }

// over returns when the session of the claim had ended, as far as servers have shown.
func (p *claim) over() int64 {
	if at, ended := p.w.Judge.ended[p.session]; ended {
		return at
	}
	return history.Forever
}

// inherited checks that a candidate that was named by a leader became the next leader, unless it
// had stopped waiting.
func (r *Resource) inherited(w *World) {
	type grant struct {
		fence uint64
		at    int64
		claim *claim
	}
	var grants []grant
	for c, f := range r.fates {
		grants = append(grants, grant{f.fence, f.seen, r.claims[c]})
	}
	slices.SortFunc(grants, func(a, b grant) int { return cmp.Compare(a.fence, b.fence) })
	for _, h := range r.accepted {
		next := slices.IndexFunc(grants, func(g grant) bool { return g.fence > h.fence })
		if next < 0 {
			continue
		}
		g := grants[next]
		if g.claim.answersTo(h.to) {
			w.Stats.Transfers++
			continue
		}
		left := false
		for _, x := range r.claims {
			left = left || x.answersTo(h.to) && (x.owner.dismissed || x.gone && x.goneAt <= g.at || x.over() <= g.at)
		}
		if !left {
			w.Violate("transfer", "the leader of %q with fence %d handed over to %q, and the next was %q with fence %d", r.Name, h.fence, h.to, g.claim.value, g.fence)
		}
	}
}
