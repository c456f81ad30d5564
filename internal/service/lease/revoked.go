package lease

import "github.com/conclave-io/conclave/internal/service/registry"

// Revocations measures the time of revoked holds, whose holders were asked to leave.
//
// A revoked hold is dropped one TTL after its revocation was first seen here. A renewal
// that is acknowledged after that moment tells the client about the revocation. One that was
// acknowledged before was also sent before, so it extends the session by at most one TTL from
// then. So the client has either stopped by itself or has been told.
type Revocations struct{ until map[registry.ClaimID]int64 }

// NewRevocations returns Revocations that have seen nothing.
func NewRevocations() *Revocations {
	return &Revocations{until: make(map[registry.ClaimID]int64)}
}

// Clear forgets all that was seen.
func (v *Revocations) Clear() { clear(v.until) }

// Overdue returns the revoked holds whose time is over. The TTLs are those of their
// sessions. A hold that stays is returned again one TTL later.
func (v *Revocations) Overdue(claims []registry.ClaimID, ttls []int64, now int64) (overdue []registry.ClaimID) {
	for i, id := range claims {
		switch until, known := v.until[id]; {
		case !known:
			v.until[id] = now + ttls[i]
		case until <= now:
			overdue = append(overdue, id)
			v.until[id] = now + ttls[i]
		}
	}
	if len(v.until) > len(claims) {
		v.forget(claims)
	}
	return overdue
}

// forget drops the deadlines of holds that have ended.
func (v *Revocations) forget(claims []registry.ClaimID) {
	present := make(map[registry.ClaimID]bool, len(claims))
	for _, id := range claims {
		present[id] = true
	}
	for id := range v.until {
		if !present[id] {
			delete(v.until, id)
		}
	}
}
