package peering

import "fmt"

// Shipping decides which snapshot is sent to a peer: one after the other, each on its own
// connection. One may wait while another is sent. M is a snapshot, and its zero value means
// none. End reports the result of each snapshot that Offer takes, once.
type Shipping[M comparable] struct {
	waiting, sent M
	taken         bool
}

// Offer takes a snapshot, or drops it and returns false: then sending it has failed.
func (s *Shipping[M]) Offer(m M) bool {
	var none M
	if s.waiting != none {
		return false
	}
	s.waiting = m
	return true
}

// Begin returns the snapshot to send now, unless one is being sent or none waits.
func (s *Shipping[M]) Begin() (m M, ok bool) {
	var none M
	if s.sent != none || s.waiting == none {
		return none, false
	}
	s.sent, s.waiting, s.taken = s.waiting, none, false
	return s.sent, true
}

// Taken notes that the peer has taken over the whole snapshot that is being sent.
func (s *Shipping[M]) Taken() { s.taken = true }

// End notes that the connection for the snapshot has ended, or that there was none. It
// reports whether the peer has the snapshot.
func (s *Shipping[M]) End() bool {
	var none M
	s.sent = none
	return s.taken
}

// CheckSnapshot returns an error if a snapshot of size bytes is too large.
func CheckSnapshot(size uint64, most int) error {
	if size > uint64(most) {
		return fmt.Errorf("snapshot: %d bytes: must be at most %d", size, most)
	}
	return nil
}

// Arrival collects the data of a snapshot that arrives in parts.
type Arrival struct {
	size int
	data []byte
}

// NewArrival expects a snapshot of size bytes. A peer that got this far is trusted:
// memory that is never written to costs nothing, and growing step by step would copy most
// of it twice.
func NewArrival(size int) Arrival { return Arrival{size, make([]byte, 0, size)} }

// Add adds a part.
func (a *Arrival) Add(part []byte) error {
	if len(part) == 0 || len(part) > a.size-len(a.data) {
		return fmt.Errorf("a snapshot of %d bytes has a part of %d bytes at %d", a.size, len(part), len(a.data))
	}
	a.data = append(a.data, part...)
	return nil
}

// Whole reports whether all parts are there.
func (a *Arrival) Whole() bool { return len(a.data) >= a.size }

// Data returns what has arrived.
func (a *Arrival) Data() []byte { return a.data }
