package world

import "github.com/conclave-io/conclave/internal/test/vopr/history"

const (
	// GuardedUnits is the number of claims that may hold a name whose algorithm has units. The floor
	// of their grants is 0.
	GuardedUnits = 2
	// FenceBits is the number of bits of a fence below the epoch.
	FenceBits = 40
	// SeatTTL is the lease of a seat.
	SeatTTL = 1200 * ms
)

// GuardedNames are the names that algorithms guard at times.
var GuardedNames = []string{"live/a", "live/c", "live/b/d", "live/b/e"}

// newGuardedResources returns the locks that an algorithm guards at times, and agreement at others.
func newGuardedResources() (list []*Resource) {
	for _, name := range GuardedNames {
		list = append(list, &Resource{Name: name, Guarded: true, Given: make(map[uint64]history.ClaimID)})
	}
	return list
}

// guardedGrant records the grant of a lock that an algorithm guards at times. Its fences must
// increase from grant to grant, no matter which algorithm guards it (N2).
func (p *claim) guardedGrant(fence, floor uint64) {
	w, who := p.w, history.ClaimOf(p.session, p.sequence)
	p.Fence, p.floor = fence, floor
	p.leave()
	w.Stats.Grants++
	if p.owner.Home() {
		w.Stats.Hosts.Grants++
	} else {
		w.Stats.Hosts.Agreed++
	}
	if other, given := p.Res.Given[fence]; given && other != who {
		w.Violate("fence", "the fence %d of %q was given to %x and to %x", fence, p.Res.Name, other, who)
	}
	p.Res.Given[fence] = who
	if known := p.above; fence <= known && (floor != 0 || fence>>FenceBits < known>>FenceBits) { // with units, fences increase only from epoch to epoch
		w.Violate("fence", "%q was asked for when the fence %d was known, and granted with %d", p.Res.Name, known, fence)
	}
	if floor != fence && (floor != 0 || !p.owner.Home()) {
		w.Violate("floor", "%q is granted with the fence %d and the floor %d", p.Res.Name, fence, floor)
	}
	p.Res.Newest = max(p.Res.Newest, fence)
}

// atHome checks a hold that begins at a home.
func (w *World) atHome(h *Hold) {
	if w.Hosts == nil || !h.Session.Home() {
		return
	}
	w.Hosts.Granted(h)
	h.Claim.Res.Clean()
}

// Clean forgets holds that have ended.
func (r *Resource) Clean() {
	kept := r.Holds[:0]
	for _, h := range r.Holds {
		if !h.over && !h.Session.lost {
			kept = append(kept, h)
		}
	}
	r.Holds = kept
}
