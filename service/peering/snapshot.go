package peering

import "fmt"

// Shipping decides which snapshot is sent to a peer: one after the other, each on a
// connection of its own. One may wait while another is sent. M is a snapshot, and its zero
// value none. For each that Offer takes, End tells once what became of it.
type Shipping[M comparable] struct {
	waiting, sent M
	taken         bool
}

// Offer takes a snapshot, and reports false if it drops it: then it has failed.
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

// Taken says that the peer has taken over the whole snapshot that is being sent.
func (s *Shipping[M]) Taken() { s.taken = true }

// End says that the connection for the snapshot has ended, or that there was none. It
// reports whether the peer has the snapshot.
func (s *Shipping[M]) End() bool {
	var none M
	s.sent = none
	return s.taken
}

// CheckSnapshot reports that a snapshot of so many bytes is too large.
func CheckSnapshot(size uint64, most int) error {
	if size > uint64(most) {
		return fmt.Errorf("a snapshot has %d bytes: at most %d are allowed", size, most)
	}
	return nil
}

// Arrival is the data of a snapshot that come in parts.
type Arrival struct {
	size int
	data []byte
}

// NewArrival awaits a snapshot of so many bytes. A peer that got this far is believed:
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
