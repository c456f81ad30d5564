package leasemodel

import "testing"

// A leader that stands still takes requests before it knows that. Its clock then goes back. A hold whose
// revocation it has seen in between is dropped one TTL after that, not later.
func TestRevocationSeenByALeaderThatStoodStill(t *testing.T) {
	const ttl, claim = 10, 7
	m := &measure{ttl: ttl, lease: lease{left: ttl}}
	m.pass(5) // it stood still, and does not know
	m.ousters.put(claim).see(true, ttl, None)
	m.pass(2) // it does
	for reading := int64(3); reading <= 12; reading++ {
		m.pass(reading)
		if due := m.ousters.get(claim).due(); due != (reading == 12) {
			t.Errorf("at the reading %d the hold may be dropped: %t", reading, due)
		}
	}
}
