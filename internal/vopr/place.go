package vopr

import "github.com/conclave-io/conclave/service/registry"

// place is an acquire, as the judge sees it: from the request to the answer.
type place struct {
	res      *resource
	request  *request
	session  registry.SessionID
	sequence uint64
	called   int64
	above    uint64 // fences known when it was asked for: its own is larger
	below    uint64 // the fence of one that came later and was granted, or 0
	ahead    []*place
	fence    uint64
	floor    uint64
	gone     bool // it waits no more
	ended    bool // how it ended is in the history
}

// enter is an acquire that is about to be asked for.
func (j *judge) enter(w *world, res *resource, r *request) *place {
	p := &place{res: res, request: r, called: w.now, above: j.newest}
	if res.class == registry.Lock {
		for _, other := range res.waiting {
			if !other.gone {
				p.ahead = append(p.ahead, other)
			}
		}
		res.waiting = append(res.waiting[:0], p.ahead...)
	}
	return p
}

// named is called when the request has its number.
func (p *place) named() {
	p.session, p.sequence = p.request.session.id, p.request.command.Sequence
}

func (p *place) operation(kind opKind, call, ret int64) operation {
	return operation{
		kind: kind, claim: claimOf(p.session, p.sequence), session: p.session,
		shared: p.request.command.Shared, fence: p.fence, call: call, ret: ret,
	}
}

// queued is the news that a place waits. Whoever asks from now on comes later.
func (j *judge) queued(_ *world, p *place) {
	for _, other := range p.res.waiting {
		if other == p {
			return
		}
	}
	if !p.gone {
		p.res.waiting = append(p.res.waiting, p)
	}
}

// leave says that the place need not be granted in its turn any more.
func (p *place) leave() { p.gone = true }

// answered is a final answer other than a grant.
func (p *place) answered(w *world, code registry.Code) {
	p.gone = true
	switch code {
	case registry.Held:
		p.res.note(p.operation(opHeld, p.called, w.now))
	case registry.Cancelled:
	case registry.Revoked:
		if !p.request.session.dismissed {
			w.violate("answer", "an acquire of %q is refused because its session is being ended, which nobody asked for", p.res.name)
		}
	case registry.Stale:
		p.vanish(w)
	default:
		w.violate("answer", "an acquire of %q is answered with the code %d", p.res.name, code)
	}
	p.ended = true
}

// granted is the grant.
func (p *place) granted(w *world, fence, floor uint64) {
	j := &w.judge
	waited := !p.gone
	p.fence, p.floor, p.gone = fence, floor, true
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
	for _, other := range p.ahead {
		switch {
		case !other.gone && (other.below == 0 || fence < other.below):
			other.below = fence
		case other.fence != 0:
			w.stats.Pairs++
		}
	}
	p.ahead = nil
	p.res.note(p.operation(opGrant, p.called, w.now))
}

// exclusive reports whether the place, once granted, lets nobody in beside it.
func (p *place) exclusive() bool { return p.res.room() == 1 && !p.request.command.Shared }

// vanish is an acquire of which no answer will come: it may have been granted, and
// then its session has ended it, or will.
func (p *place) vanish(_ *world) {
	p.gone = true
	if p.ended || p.fence != 0 {
		return
	}
	p.ended = true
	if p.request.first == 0 {
		return // it never left
	}
	p.res.note(p.operation(opMaybe, p.called, forever))
	p.res.note(p.operation(opEnd, p.called, forever))
}

// end is a grant that its client has given up or lost without saying so: the servers
// end it, not before the given moment.
func (p *place) end(_ *world, from int64) {
	if p.ended {
		return
	}
	p.ended = true
	p.res.note(p.operation(opEnd, max(from, p.called), forever))
}

// release records a release that was just submitted.
func (p *place) release(w *world, r *request) {
	called := w.now
	p.ended = true
	r.done = func(result registry.Result, known bool) {
		switch {
		case known && result.Code == registry.OK:
			p.res.note(p.operation(opRelease, called, w.now))
		case known && result.Code == registry.NotHeld:
			p.res.note(p.operation(opNotHeld, called, w.now))
			p.res.note(p.operation(opEnd, called, w.now))
		default:
			p.res.note(p.operation(opEnd, called, forever))
		}
	}
}
