package vopr

import (
	"slices"

	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/registry"
)

// place is an acquire, as the judge sees it: from its transmission to its end.
type place struct {
	w        *world
	res      *resource
	owner    *session
	session  registry.SessionID
	sequence uint64
	shared   bool
	hold     *hold // of a worker that was told of the grant
	called   int64
	above    uint64 // fences known when it was asked for: its own is larger
	below    uint64 // the fence of one that came later and was granted, or 0
	ahead    []ahead
	fence    uint64
	floor    uint64
	priority int64  // of a candidate
	value    string // of a candidate: no other worker's has the same
	patience int64  // of a candidate, in ns
	told     int64  // when its client was told that it waits, or 0
	gone     bool   // it waits no more
	goneAt   int64  // since when
	// releasing says that its client has sent a release of it.
	releasing bool
	ended     bool // how it ended is in the history, or will be when its release is answered
}

// ahead is a place that is to be granted before another one, if that gets a larger fence
// than after.
type ahead struct {
	*place
	after uint64
}

// enter is an acquire that is transmitted for the first time. Those that know that they
// wait go before it, but for candidates of lower priority.
func (j *judge) enter(w *world, res *resource, s *session, sequence uint64, a *api.Acquire) *place {
	p := &place{
		w: w, res: res, owner: s, session: s.id, sequence: sequence, shared: a.GetShared(), called: w.now, above: j.newest,
		priority: a.GetPriority(), value: string(a.GetValue()), patience: a.GetPatienceNs(),
	}
	over := func(other *place) bool { return other.gone }
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
	if res.places != nil { // not of a flood
		res.places[claimOf(s.id, sequence)] = p
	}
	if res.class == registry.Election {
		res.entered = append(slices.DeleteFunc(res.entered, over), p)
	}
	return p
}

func (p *place) operation(kind opKind, call, ret int64) operation {
	return operation{
		kind: kind, claim: claimOf(p.session, p.sequence), session: p.session,
		shared: p.shared, fence: p.fence, call: call, ret: ret,
	}
}

// queued is the news that a place waits. Whoever asks from now on comes later.
func (j *judge) queued(p *place) {
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

// leave says that the place need not be granted in its turn any more.
func (p *place) leave() {
	if !p.gone {
		p.gone, p.goneAt = true, p.w.now
	}
}

// answered is a final answer other than a grant.
func (p *place) answered(code registry.Code) {
	w := p.w
	p.leave()
	switch code {
	case registry.Held:
		p.res.note(p.operation(opHeld, p.called, w.now))
	case registry.Cancelled, registry.Deadlocked: // the judge of deadlocks looks at the log
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
	case registry.Denied, registry.Quota:
		if !w.plan.Access {
			w.violate("answer", "an acquire of %q is denied, and there are no rules", p.res.name)
		}
		p.vanish() // an older leader may have refused what came again, and a newer one have granted it
	case registry.Exhausted:
		if w.stats.Floods == 0 {
			w.violate("answer", "an acquire of %q is refused because a queue is full, and nobody floods", p.res.name)
		}
		p.vanish() // one that came before it may have been carried out
	default:
		w.violate("answer", "an acquire of %q is answered with the code %d", p.res.name, code)
	}
	p.ended = true
}

// granted is the grant.
func (p *place) granted(w *world, fence, floor uint64) {
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

// inTurn requires that those ahead of a place were granted before it, if it was not named
// by a leader that handed over.
func (p *place) inTurn() {
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

// exclusive reports whether the place, once granted, lets nobody in beside it.
func (p *place) exclusive() bool { return p.res.room() == 1 && !p.shared && p.units() == 1 }

// units returns how many may hold what is granted, if an algorithm guards it.
func (p *place) units() int {
	if p.res.live && p.fence != 0 && p.floor == 0 {
		return liveUnits
	}
	return 1
}

// vanish is an acquire of which no answer will come: it may have been granted, and
// then its session has ended it, or will.
func (p *place) vanish() {
	p.leave()
	if p.ended || p.fence != 0 {
		return
	}
	p.ended = true
	p.res.note(p.operation(opMaybe, p.called, forever))
	p.res.note(p.operation(opEnd, p.called, forever))
}

// end is a grant that its client has given up or lost without saying so: the servers
// end it, not before the given moment.
func (p *place) end(from int64) {
	if p.ended {
		return
	}
	p.ended = true
	p.res.note(p.operation(opEnd, max(from, p.called), forever))
}

// released records the answer to a release that was transmitted at a moment, or that
// there will be none.
func (p *place) released(called int64, code registry.Code) {
	switch code {
	case registry.OK:
		p.rememberedAs(registry.Released)
		p.res.note(p.operation(opRelease, called, p.w.now))
	case registry.NotHeld:
		p.res.note(p.operation(opNotHeld, called, p.w.now))
		p.res.note(p.operation(opEnd, called, p.w.now))
	default:
		p.res.note(p.operation(opEnd, called, forever))
	}
}
