package vopr

import (
	"slices"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// claim is the judge's record of an acquire, from its transmission to its end.
type claim struct {
	w        *world
	res      *resource
	owner    *session
	session  registry.SessionID
	sequence uint64
	shared   bool
	hold     *hold  // the hold of a worker that received the grant
	called   int64  // when it was transmitted
	above    uint64 // the largest fence known when it was transmitted: its own must be larger
	below    uint64 // the fence of a later claim that was granted, or 0
	ahead    []ahead
	fence    uint64
	floor    uint64
	priority int64  // of a candidate
	value    string // of a candidate: different for each worker
	patience int64  // of a candidate, in ns
	told     int64  // when its client received the answer that it waits, or 0
	gone     bool   // it no longer waits
	goneAt   int64  // when it stopped waiting
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
func (j *judge) enter(w *world, res *resource, s *session, sequence uint64, a *api.Acquire) *claim {
	p := &claim{
		w: w, res: res, owner: s, session: s.id, sequence: sequence, shared: a.GetShared(), called: w.now, above: j.newest,
		priority: a.GetPriority(), value: string(a.GetValue()), patience: a.GetPatienceNs(),
	}
	over := func(other *claim) bool { return other.gone }
	res.waiting = slices.DeleteFunc(res.waiting, over)
	if res.live {
		p.above = res.newest
		return p
	}
	for _, other := range res.waiting {
		if other.priority >= p.priority {
			p.ahead = append(p.ahead, ahead{other, 0})
		}
	}
	if res.claims != nil { // nil for the resources of a flood
		res.claims[claimOf(s.id, sequence)] = p
	}
	if res.class == registry.Election {
		res.entered = append(slices.DeleteFunc(res.entered, over), p)
	}
	return p
}

func (p *claim) operation(kind opKind, call, ret int64) operation {
	return operation{
		kind: kind, claim: claimOf(p.session, p.sequence), session: p.session,
		shared: p.shared, fence: p.fence, call: call, ret: ret,
	}
}

// queued records that a client was told that its claim waits. Claims that are made from now on
// come after it.
func (j *judge) queued(p *claim) {
	for _, other := range p.res.waiting {
		if other == p {
			return
		}
	}
	if p.gone || p.res.live {
		return
	}
	p.told = p.w.now
	p.res.waiting = append(p.res.waiting, p)
	for _, other := range p.res.entered {
		if other.priority < p.priority && !other.gone {
			other.ahead = append(other.ahead, ahead{p, j.applied})
		}
	}
}

// leave records that the claim need not be granted in its turn any more.
func (p *claim) leave() {
	if !p.gone {
		p.gone, p.goneAt = true, p.w.now
	}
}

// answered records a final answer other than a grant.
func (p *claim) answered(code registry.Code) {
	w := p.w
	p.leave()
	switch code {
	case registry.Held:
		p.res.note(p.operation(opHeld, p.called, w.now))
	case registry.Cancelled, registry.Deadlocked: // the judge of deadlocks checks these in the log
	case registry.Revoked:
		if !p.owner.dismissed {
			w.violate("answer", "an acquire of %q is refused because its session is being ended, which nobody asked for", p.res.name)
		}
	case registry.Stale:
		p.vanish()
	case registry.Moved:
		w.stats.Hosts.Moved++
		if !p.res.live {
			w.violate("answer", "an acquire of %q is referred to another guard", p.res.name)
		}
	case registry.StateLimit:
		w.stats.Limited++
		if !w.plan.Limits {
			w.violate("answer", "an acquire of %q is refused because of a limit of the state, and there is none", p.res.name)
		}
		p.vanish() // the client repeats it, with a Cancel behind it, if its stream breaks
	case registry.Denied, registry.Quota:
		if !w.plan.Access {
			w.violate("answer", "an acquire of %q is denied, and there are no rules", p.res.name)
		}
		p.vanish() // an older leader may have refused a resent request that a newer leader has granted
	case registry.Exhausted:
		if w.stats.Floods == 0 {
			w.violate("answer", "an acquire of %q is refused because a queue is full, and nobody floods", p.res.name)
		}
		p.vanish() // an earlier copy of the request may have been granted
	default:
		w.violate("answer", "an acquire of %q is answered with the code %d", p.res.name, code)
	}
	p.ended = true
}

// granted records the grant.
func (p *claim) granted(w *world, fence, floor uint64) {
	if p.res.live {
		p.grantedLive(fence, floor)
		return
	}
	j := &w.judge
	waited := !p.gone
	p.fence, p.floor = fence, floor
	p.leave()
	w.stats.Grants++
	who := claimOf(p.session, p.sequence)
	if other, given := j.fences[fence]; given && other != who {
		w.violate("fence", "the fence %d was given to %x and to %x", fence, other, who)
	}
	j.fences[fence] = who
	if fence <= p.above {
		w.violate("fence", "%q was asked for when the fence %d was known, and granted with %d", p.res.name, p.above, fence)
	}
	if floor == 0 || floor > fence || p.exclusive() && floor != fence {
		w.violate("floor", "%q is granted with the fence %d and the floor %d", p.res.name, fence, floor)
	}
	if waited && p.below != 0 && fence > p.below {
		w.violate("order", "%x waited for %q before another came, which was granted with fence %d, and then it with %d", who, p.res.name, p.below, fence)
	}
	j.newest = max(j.newest, fence)
	p.inTurn()
	p.res.note(p.operation(opGrant, p.called, w.now))
}

// inTurn requires that the claims ahead of this one were granted before it. A candidate that the
// leader named as its successor may overtake them.
func (p *claim) inTurn() {
	named := p.isNamed()
	for _, other := range p.ahead {
		switch {
		case named || p.fence <= other.after:
		case !other.gone && (other.below == 0 || p.fence < other.below):
			other.below = p.fence
		case other.fence != 0 && p.res.class == registry.Election:
			p.w.stats.Preferred++
		case other.fence != 0:
			p.w.stats.Pairs++
		}
	}
	p.ahead = nil
}

// exclusive reports whether nobody else may hold the resource while this claim holds it.
func (p *claim) exclusive() bool { return p.res.room() == 1 && !p.shared && p.units() == 1 }

// units returns how many claims may hold the resource at the same time if an algorithm guards it.
func (p *claim) units() int {
	if p.res.live && p.fence != 0 && p.floor == 0 {
		return liveUnits
	}
	return 1
}

// vanish records that no answer to the acquire will come. It may have been granted; then the end
// of its session ends it.
func (p *claim) vanish() {
	p.leave()
	if p.ended || p.fence != 0 {
		return
	}
	p.ended = true
	p.res.note(p.operation(opMaybe, p.called, forever))
	p.res.note(p.operation(opEnd, p.called, forever))
}

// end records that the client gave up or lost its hold without a release. The servers end the hold,
// not before the given moment.
func (p *claim) end(from int64) {
	if p.ended {
		return
	}
	p.ended = true
	p.res.note(p.operation(opEnd, max(from, p.called), forever))
}

// released records the answer to a release that was transmitted at the moment called, or that no
// answer will come.
func (p *claim) released(called int64, code registry.Code) {
	switch code {
	case registry.OK:
		p.rememberedAs(registry.Released)
		p.res.note(p.operation(opRelease, called, p.w.now))
	case registry.NotHeld:
		p.res.note(p.operation(opNotHeld, called, p.w.now))
		if p.asked() {
			called = p.called // they may have dropped it before the release was transmitted
		}
		p.res.note(p.operation(opEnd, called, p.w.now))
	default:
		p.res.note(p.operation(opEnd, called, forever))
	}
}
