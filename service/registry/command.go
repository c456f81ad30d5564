package registry

import (
	"bytes"
	"encoding/hex"
)

// SessionID names a session. The client draws it at random.
type SessionID [16]byte

// String returns the id as 32 hexadecimal digits.
func (id SessionID) String() string { return hex.EncodeToString(id[:]) }

// Compare orders ids by their bytes.
func (id SessionID) Compare(other SessionID) int { return bytes.Compare(id[:], other[:]) }

// Class separates the names of locks from those of elections.
type Class uint8

// The classes. The numbers are those of the public interface.
const (
	Lock Class = iota
	Election

	classes
)

// Op is what a command does.
type Op uint8

// The operations of clients, then those of the leader. Numbers are part of the
// log's format: append only.
const (
	// OpOpen opens the session, or renews it if it is open.
	OpOpen Op = 1 + iota
	// OpRenew renews, through the log, a session whose silence is on record.
	OpRenew
	// OpClose ends the session.
	OpClose
	// OpAcquire claims a resource.
	OpAcquire
	// OpRelease gives a hold back.
	OpRelease
	// OpCancel leaves a queue.
	OpCancel
	// OpUpdate changes the value of a held election.
	OpUpdate

	// OpExpire ends sessions whose time is over.
	OpExpire
	// OpSilence records how much time silent sessions have left.
	OpSilence
	// OpMember records the identity of a server.
	OpMember
)

// Command is one step of the replicated state. Which fields count depends on
// Op; the comments name the operations.
type Command struct {
	Op Op

	// Session, Sequence and Low identify a client's request (OpOpen to
	// OpUpdate). Low is the lowest sequence still unanswered.
	Session  SessionID
	Sequence uint64
	Low      uint64

	// OpAcquire. Limit 0 means 1. Value is that of a candidate (also OpUpdate).
	Class Class
	Name  string
	Try   bool
	Limit uint32
	Value string

	// Hold is the sequence of the claim spoken of (OpRelease, OpCancel,
	// OpUpdate).
	Hold uint64

	// TTL is in nanoseconds; Host, PID and Program are for people (OpOpen).
	TTL     int64
	Host    string
	PID     int64
	Program string

	// Term is the term of the leader that decided, Leases of whom (OpExpire,
	// OpSilence).
	Term   uint64
	Leases []Lease

	// Member is the server spoken of (OpMember).
	Member Member
}

// Lease is the leader's verdict on the time of a session. It is void if the
// session was renewed through the log after the verdict, which Renewals tells:
// whoever is told that a session was renewed may rely on it.
type Lease struct {
	Session SessionID
	// Renewals is that of the session when the verdict was passed.
	Renewals uint64
	// Remaining is the time left in ns; 0 in an expiry.
	Remaining int64
}

// Member is what the cluster knows of a server for good: the number that its
// data directory drew when it was made. A server that comes back under the same
// id with another number has lost its data.
type Member struct {
	ID  uint64
	UID uint64
}

// Code says how a request ended. The numbers are those of the public
// interface.
type Code uint8

// The codes that the registry itself answers with.
const (
	OK          Code = 1
	Queued      Code = 2
	Held        Code = 3
	NotHeld     Code = 4
	SessionGone Code = 5
	Invalid     Code = 6
	Exhausted   Code = 7
	NotLeader   Code = 8
	Unavailable Code = 9
	Stale       Code = 10
	Cancelled   Code = 11
)

// Result is the answer to a request.
type Result struct {
	Code Code
	// Message says what was wrong and what would be right.
	Message string
	// Fence is that of a grant, or of the hold that a cancel came too late for.
	Fence uint64
	// Ahead counts the waiters before this one (Queued).
	Ahead uint32
	// Holder is one of those that stand in the way (Held).
	Holder *Holder
	// Remaining is how long the session lives on from the moment at which the
	// request was sent, in ns (OpOpen and OpRenew).
	Remaining int64
}

// Outcome is an answer and the request it answers. A request to acquire that
// waits has two: Queued, and how the wait ended.
type Outcome struct {
	Session  SessionID
	Sequence uint64
	Result   Result
}
