// Package near is what a client and the server in its own process share of a lock that is
// held near: one that the machine of an algorithm at that server grants and takes back by
// itself, in the very call, without a message or a session. See package host, whose rules
// it names.
package near

import "time"

// Server is a server in this process. Its methods may be called by any goroutine.
type Server interface {
	// Open is called once for each owner, before it asks for anything.
	Open(o *Owner)
	// Lock asks for h.Name. It reports whether it was granted at once. If it was not, the
	// caller holds nothing and asks as any client does.
	Lock(h *Hold) bool
	// Unlock gives a hold up. It returns the state in which that was until now.
	Unlock(h *Hold) State
	// State returns the state of a hold now, by the clock of deadlines.
	State(h *Hold) State
	// Watch has a hold tell from now on what becomes of it: events are given to tell, which
	// must not block or call the server. It returns the state at present. A hold that is
	// Held or Asked and tells so again is certain for longer than before.
	Watch(h *Hold, tell func(Event)) Event
	// Deadline returns the reading of the clock of deadlines before which a hold is certain,
	// unless it is given up.
	Deadline(h *Hold) time.Duration
	// Lease is how long a hold lasts at most if the server cannot renew its seat.
	Lease() time.Duration
	// Close gives up all that an owner holds. It is granted nothing afterwards.
	Close(o *Owner)
}

// Owner is a client that holds, for people. They see the session, which is an id and no
// more: a near hold needs none.
type Owner struct {
	Session [16]byte
	Host    string
	PID     int64
	Program string

	// Principal and Closed are the server's.
	Principal string
	Closed    bool
}

// Hold is a grant. Name and Owner are the caller's. All else is the server's: a caller to
// which Lock has granted it may read Fence, Floor and Since.
type Hold struct {
	Name  string
	Owner *Owner
	Fence uint64
	Floor uint64
	Since int64 // wall clock, ns since 1970

	State  State
	Reason string // why its holder was asked to leave
	By     string // the principal that has asked, or empty
	Asked  int64  // when, by the clock of the leases of homes
	Until  int64  // the deadline of one that was lost
}

// State is where a hold stands.
type State uint8

// The states of a hold.
const (
	None  State = iota // it was not granted
	Held               // and nobody wants it back
	Asked              // it is held, and its holder was asked to leave
	Given              // its holder gave it up
	Lost               // its server can rely on its seat no longer, or the holder did not leave in time
)

// Holds reports whether a hold in this state excludes others.
func (s State) Holds() bool { return s == Held || s == Asked }

// Event is something that its holder is told.
type Event struct {
	State  State
	Reason string // if it is Asked
}
