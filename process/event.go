package process

import (
	"slices"
	"strconv"
)

// Kind says what an Event is.
type Kind uint8

// The events. The comment of each names the payload fields of Event that it sets; all
// others are zero.
const (
	// Start is the first event of a process (Incarnation).
	Start Kind = iota + 1
	// Restart is the first event after a crash; only durable fields are left (Incarnation).
	Restart
	// Deliver brings a message (Message).
	Deliver
	// Fire says that an armed timer has expired (Timer).
	Fire

	// Acquire asks for the right to enter. Answered by Grant.
	Acquire
	// Cancel withdraws an Acquire that was not granted. No Grant follows it.
	Cancel
	// Release ends the critical section.
	Release
	// Campaign starts an election.
	Campaign
	// Resign gives up a leadership.
	Resign
	// Propose offers a value to agree on, or to multicast; in a transaction it is the
	// vote, Commit or Abort (Value, Data).
	Propose
	// Transmit asks a carrier to take a message of a layer above to Message.To, or
	// to all others if that is None (Message).
	Transmit
	// Load reports how busy the process is (Value).
	Load
	// Record asks the layer that records global states for one.
	Record

	// Suspect says that a peer may have crashed (Peer).
	Suspect
	// Trust withdraws a suspicion (Peer).
	Trust
	// Fail says that a peer has crashed, as a fact (Peer).
	Fail
	// Rejoin says that a peer is back without its volatile state (Peer, Incarnation).
	Rejoin
	// Neighbor says that another process is now next to this one (Peer).
	Neighbor
	// Leave asks the process to hand over its duties before it goes.
	Leave

	// Elected says that the layer below chose a leader (Peer, Term).
	Elected
	// Decided says that the layer below agreed on a value (Value).
	Decided
	// Granted says that the layer below may enter (Fence).
	Granted
)

var kindNames = [...]string{
	"", "start", "restart", "deliver", "fire",
	"acquire", "cancel", "release", "campaign", "resign", "propose", "transmit", "load", "record",
	"suspect", "trust", "fail", "rejoin", "neighbor", "leave",
	"elected", "decided", "granted",
}

// String returns the name of the kind in lower case.
func (k Kind) String() string {
	if int(k) < len(kindNames) && k > 0 {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// KindByName returns the kind with the given name, or 0 if there is none.
func KindByName(name string) Kind {
	return Kind(max(0, slices.Index(kindNames[:], name)))
}

// Event is one input of a machine. It and what it references belong to the host, and
// may be used only until Step returns.
type Event struct {
	Kind  Kind
	Layer uint8 // of a stack, for Fire; a command (Acquire to Load) goes to the top layer, Record to the recorder
	Timer Timer // the timer that expired
	Peer  ID    // the process that the event is about

	Term        Term
	Fence       Fence
	Value       int64
	Incarnation uint64   // number of starts of the process, from 1
	Now         Duration // the local clock, only if the Spec needs a clock, else 0
	Message     *Message
	Data        []byte
}

// Timer names a timer of a machine: the position of its name in Spec.Timers,
// from 1, and optionally the peer it is about. One timer has one deadline;
// timers for different peers are different timers.
type Timer uint32

// For returns the timer of the same name that is about peer p.
func (t Timer) For(p ID) Timer { return t.Name() | Timer(p+1)<<8 }

// Name returns the timer without its peer.
func (t Timer) Name() Timer { return t & 0xff }

// Peer returns the process the timer is about, or None.
func (t Timer) Peer() ID { return ID(t>>8) - 1 }
