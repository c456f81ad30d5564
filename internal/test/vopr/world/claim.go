package world

import (
	"slices"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/kit/alike"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/test/vopr/history"
)

// claim is the judge's record of an acquire, from its transmission to its end.
type claim struct {
	w        *World
	Res      *Resource
	owner    *session
	session  registry.SessionID
	sequence uint64
	shared   bool
	hold     *Hold  // the hold of a worker that received the grant
	called   int64  // when it was transmitted
	above    uint64 // the largest fence known when it was transmitted: its own must be larger
	below    uint64 // the fence of a later claim that was granted, or 0
	ahead    []ahead
	Fence    uint64
	floor    uint64
	priority int64  // of a candidate
	value    string // of a candidate: different for each worker
	patience int64  // of a candidate, in ns
	told     int64  // when its client received the answer that it waits, or 0
	// recalled means that its client was told to release it before it was told the grant.
	recalled bool
	gone     bool  // it no longer waits
	goneAt   int64 // when it stopped waiting
	// releasing means that its client has sent a release for it.
	releasing bool
	ended     bool // its end is in the history, or will be when the release is answered
}

// ahead is a claim that must be granted before another one, if the other one gets a larger
// fence than after.
type ahead struct {
	*claim
	after uint64
}

// enter records an acquire that is transmitted for the first time. The claims whose clients know
// that they wait go before it, except candidates of lower priority.
func (j *judge) enter(w *World, res *Resource, s *session, sequence uint64, a *api.Acquire) *claim {
	p := &claim{
		w: w, Res: res, owner: s, session: s.ID, sequence: sequence, shared: a.GetShared(), called: w.Now, above: j.newest,
		priority: a.GetPriority(), value: string(a.GetValue()), patience: a.GetPatienceNs(),
	}
	over := func(other *claim) bool { return other.gone }
	res.waiting = slices.DeleteFunc(res.waiting, over)
	if res.Guarded {
		p.above = res.Newest
		return p
	}
	for _, other := range res.waiting {
		if other.priority >= p.priority {
			p.ahead = append(p.ahead, ahead{other, 0})
		}
	}
	if res.claims != nil { // nil for the resources of a flood
		res.claims[history.ClaimOf(s.ID, sequence)] = p
	}
	if res.Class == registry.Election {
		res.entered = append(slices.DeleteFunc(res.entered, over), p)
	}
	return p
}

func (p *claim) operation(kind history.Kind, call, ret int64) history.Operation {
	return history.Operation{
		Kind: kind, Claim: history.ClaimOf(p.session, p.sequence), Session: p.session,
		Shared: p.shared, Fence: p.Fence, Call: call, Ret: ret,
	}
}

// queued records that a client was told that its claim waits. Claims that are made from now on
// come after it.
func (j *judge) queued(p *claim) {
	for _, other := range p.Res.waiting {
		if other == p {
			return
		}
	}
	if p.gone || p.Res.Guarded {
		return
	}
	p.told = p.w.Now
	p.Res.waiting = append(p.Res.waiting, p)
	for _, other := range p.Res.entered {
		if other.priority < p.priority && !other.gone {
			other.ahead = append(other.ahead, ahead{p, j.applied})
		}
	}
}

// leave records that the claim need not be granted in its turn any more.
func (p *claim) leave() {
	if !p.gone {
		p.gone, p.goneAt = true, p.w.Now
	}
}

// answered records a final answer other than a grant.
func (p *claim) answered(code registry.Code) {
	w := p.w
	p.leave()
	switch code {
	case registry.Held:
		p.Res.note(p.operation(history.Held, p.called, w.Now))
	case registry.Cancelled, registry.Deadlocked: // the judge of deadlocks checks these in the log
	case registry.Revoked:
		if !p.owner.dismissed {
			w.Violate("answer", "an acquire of %q is refused because its session is being ended, which nobody asked for", p.Res.Name)
		}
	case registry.Stale:
		p.vanish()
	case registry.Moved:
		w.Stats.Hosts.Moved++
		if !p.Res.Guarded {
			w.Violate("answer", "an acquire of %q is referred to another guard", p.Res.Name)
		}
	case registry.StateLimit:
		w.Stats.Limited++
		if !w.Plan.Limits {
			w.Violate("answer", "an acquire of %q is refused because of a limit of the state, and there is none", p.Res.Name)
		}
		p.vanish() // the client repeats it, with a Cancel behind it, if its stream breaks
	case registry.Denied, registry.Quota:
		if !w.Plan.Access {
			w.Violate("answer", "an acquire of %q is denied, and there are no rules", p.Res.Name)
		}
		p.vanish() // an older leader may have refused a resent request that a newer leader has granted
	case registry.Invalid:
		if !w.Plan.Names || alike.IsNFC(p.Res.Name) {
			w.Violate("answer", "an acquire of %q is refused as invalid", p.Res.Name)
		}
		p.vanish() // likewise
	case registry.Exhausted:
		if w.Stats.Floods == 0 {
			w.Violate("answer", "an acquire of %q is refused because a queue is full, and nobody floods", p.Res.Name)
		}
		p.vanish() // an earlier copy of the request may have been granted
	default:
		w.Violate("answer", "an acquire of %q is answered with the code %d", p.Res.Name, code)
	}
	p.ended = true
}

// granted records the grant.
func (p *claim) granted(w *World, fence, floor uint64) {
	if p.Res.Guarded {
		p.guardedGrant(fence, floor)
		return
	}
	j := &w.Judge
	waited := !p.gone
	p.Fence, p.floor = fence, floor
	p.leave()
	w.Stats.Grants++
	who := history.ClaimOf(p.session, p.sequence)
	if other, given := j.fences[fence]; given && other != who {
		w.Violate("fence", "the fence %d was given to %x and to %x", fence, other, who)
	}
	j.fences[fence] = who
	if fence <= p.above {
		w.Violate("fence", "%q was asked for when the fence %d was known, and granted with %d", p.Res.Name, p.above, fence)
	}
	if floor == 0 || floor > fence || p.exclusive() && floor != fence {
		w.Violate("floor", "%q is granted with the fence %d and the floor %d", p.Res.Name, fence, floor)
	}
	if waited && p.below != 0 && fence > p.below {
		w.Violate("order", "%x waited for %q before another came, which was granted with fence %d, and then it with %d", who, p.Res.Name, p.below, fence)
	}
	j.newest = max(j.newest, fence)
	p.inTurn()
	p.Res.note(p.operation(history.Grant, p.called, w.Now))
}

// inTurn requires that the claims ahead of this one were granted before it. A candidate that the
// leader named as its successor may overtake them.
func (p *claim) inTurn() {
	named := p.isNamed()
	for _, other := range p.ahead {
		switch {
		case named || p.Fence <= other.after:
		case !other.gone && (other.below == 0 || p.Fence < other.below):
			other.below = p.Fence
		case other.Fence != 0 && p.Res.Class == registry.Election:
			p.w.Stats.Preferred++
		case other.Fence != 0:
			p.w.Stats.Pairs++
		}
	}
	p.ahead = nil
}

// exclusive reports whether nobody else may hold the resource while this claim holds it.
func (p *claim) exclusive() bool { return p.Res.room() == 1 && !p.shared && p.Units() == 1 }

// Units returns how many claims may hold the resource at the same time if an algorithm guards it.
func (p *claim) Units() int {
	if p.Res.Guarded && p.Fence != 0 && p.floor == 0 {
		return GuardedUnits
	}
	return 1
}

// vanish records that no answer to the acquire will come. It may have been granted; then the end
// of its session ends it.
func (p *claim) vanish() {
	p.leave()
	if p.ended || p.Fence != 0 {
		return
	}
	p.ended = true
	p.Res.note(p.operation(history.Maybe, p.called, history.Forever))
	p.Res.note(p.operation(history.End, p.called, history.Forever))
}

// end records that the client gave up or lost its hold without a release. The servers end the hold,
// not before the given moment.
func (p *claim) end(from int64) {
	if p.ended {
		return
	}
	p.ended = true
	p.Res.note(p.operation(history.End, max(from, p.called), history.Forever))
}

// released records the answer to a release that was transmitted at the moment called, or that no
// answer will come.
func (p *claim) released(called int64, code registry.Code) {
	switch code {
	case registry.OK:
		p.rememberedAs(registry.Released)
		p.Res.note(p.operation(history.Release, called, p.w.Now))
	case registry.NotHeld:
		p.Res.note(p.operation(history.NotHeld, called, p.w.Now))
		if p.asked() {
			called = p.called // they may have dropped it before the release was transmitted
		}
		p.Res.note(p.operation(history.End, called, p.w.Now))
	default:
		p.Res.note(p.operation(history.End, called, history.Forever))
	}
}
