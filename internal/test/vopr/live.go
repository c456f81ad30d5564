package vopr

import "github.com/conclave-io/conclave/internal/service/registry"

const (
	// liveUnits is the number of claims that may hold a name whose algorithm has units. The floor
	// of their grants is 0.
	liveUnits = 2
	// fenceBits is the number of bits of a fence below the epoch.
	fenceBits = 40
)

// newLiveResources returns the locks that an algorithm guards at times, and agreement at others.
func newLiveResources() (list []*resource) {
	for _, name := range liveNames {
		list = append(list, &resource{name: name, live: true, given: make(map[uint64]claimID)})
	}
	return list
}

// grantedLive records the grant of a lock that an algorithm guards at times. Its fences must
// increase from grant to grant, no matter which algorithm guards it (N2).
func (p *claim) grantedLive(fence, floor uint64) {
	w, who := p.w, claimOf(p.session, p.sequence)
	p.fence, p.floor = fence, floor
	p.leave()
	w.stats.Grants++
	if p.owner.home() {
		w.stats.Hosts.Grants++
	} else {
		w.stats.Hosts.Agreed++
	}
	if other, given := p.res.given[fence]; given && other != who {
		w.violate("fence", "the fence %d of %q was given to %x and to %x", fence, p.res.name, other, who)
	}
	p.res.given[fence] = who
	if known := p.above; fence <= known && (floor != 0 || fence>>fenceBits < known>>fenceBits) { // with units, fences increase only from epoch to epoch
		w.violate("fence", "%q was asked for when the fence %d was known, and granted with %d", p.res.name, known, fence)
	}
	if floor != fence && (floor != 0 || !p.owner.home()) {
		w.violate("floor", "%q is granted with the fence %d and the floor %d", p.res.name, fence, floor)
	}
	p.res.newest = max(p.res.newest, fence)
}

// atHome checks a hold that begins at a home. The seat of the home must not have ended (N4).
func (w *world) atHome(h *hold) {
	if w.hosts == nil || !h.session.home() {
		return
	}
	at := w.hosts.at(h.session.seat)
	for seat := range w.hosts.ended {
		if registry.SeatID(seat) == at {
			w.violate("seat", "%q is granted at the home of server %d, the seat of which has ended", h.claim.res.name, seat.Server)
		}
	}
	h.claim.res.clean()
}

// clean forgets holds that have ended.
func (r *resource) clean() {
	kept := r.holds[:0]
	for _, h := range r.holds {
		if !h.over && !h.session.lost {
			kept = append(kept, h)
		}
	}
	r.holds = kept
}
