package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"github.com/conclave-io/conclave/service/access"
)

// SessionID names a session in public. It is derived from the secret that the
// client drew and from the principal that the client proved to be (Derive), so
// whoever reads it cannot act in the session.
type SessionID [16]byte

// Derive returns the id of the session that a principal opens with a secret.
func Derive(principal string, secret []byte) SessionID {
	b := append([]byte("conclave-session-1\x00"), principal...)
	b = append(append(b, 0), secret...)
	sum := sha256.Sum256(b)
	return SessionID(sum[:len(SessionID{})])
}

// String returns the id as people see it: "s-" and 32 hexadecimal digits.
func (id SessionID) String() string { return "s-" + hex.EncodeToString(id[:]) }

// Compare orders ids by their bytes.
func (id SessionID) Compare(other SessionID) int { return bytes.Compare(id[:], other[:]) }

// Class separates the names of locks from those of elections.
type Class uint8

// The classes. The numbers are those of the public interface.
const (
	Lock Class = iota
	Election

	classes

	// View is not a class of names: an OpGuard of it changes what all members run.
	View = classes
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
	// OpMember records what is known of a server, and what it is meant to be.
	OpMember

	// OpRevoke, of a client, asks the holders of a resource to leave.
	OpRevoke
	// OpTransfer, of a client, hands an election that it leads to a candidate.
	OpTransfer
	// OpDrop, of the leader, takes revoked holds away whose time is over.
	OpDrop
	// OpOvertake, of the leader, has an election look whether a candidate may
	// take its leader's place.
	OpOvertake

	// OpEnd, of an operator, ends the session of somebody else.
	OpEnd Op = 15
	// OpAccess, of an operator, changes the rules.
	OpAccess Op = 16
	// OpNote, of a server, puts an act on record that is no entry of its own.
	OpNote Op = 17
	// OpLevel changes the level of the formats.
	OpLevel Op = 18

	// OpEnter, of a server, opens the session that is its seat, or renews it.
	OpEnter Op = 19
	// OpTurn, of a seat, asks for another epoch.
	OpTurn Op = 20
	// OpQuiet, of a seat, says that nothing is held under a prefix whose guard changes.
	OpQuiet Op = 21
	// OpGuard, of an operator, changes what guards a prefix, or what finds failures and
	// elects a coordinator in a view. The leader cancels the change of a prefix.
	OpGuard Op = 22
	// opBequeath is how an entry names the OpClose of a seat that has an heir.
	opBequeath Op = 23
)

// Renews reports whether an operation keeps its session alive.
func (op Op) Renews() bool { return op == OpOpen || op == OpRenew || op == OpEnter }

// Seated reports whether a seat asks for an operation.
func (op Op) Seated() bool { return op.ofSeat() || op == OpRenew || op == OpClose }

// ofSeat reports whether only a seat asks for an operation.
func (op Op) ofSeat() bool { return OpEnter <= op && op <= OpQuiet }

// client reports whether an operation is one that clients ask for.
func (op Op) client() bool {
	return OpOpen <= op && op <= OpUpdate || op == OpRevoke || op == OpTransfer || op.ofSeat()
}

// Live reports whether an operation is about seats or guards. Only a level that has
// those can express it.
func (op Op) Live() bool { return op.ofSeat() || op == OpGuard || op == opBequeath }

// Unbound reports whether an operation belongs to no session: an operator asks for it.
func (op Op) Unbound() bool { return op == OpEnd || op == OpGuard || op.ForAccess() }

// Command is one step of the replicated state. Which fields count depends on
// Op; the comments name the operations.
type Command struct {
	Op Op

	// Session, Sequence and Low identify a client's request. Low is the lowest
	// sequence still unanswered.
	Session  SessionID
	Sequence uint64
	Low      uint64

	// OpAcquire; Class and Name also OpRevoke and OpOvertake. Limit 0 means 1.
	// Value is that of a candidate (also OpUpdate), of the candidate to hand over
	// to (OpTransfer), or the reason (OpRevoke).
	Class  Class
	Name   string
	Try    bool
	Limit  uint32
	Shared bool // a hold beside which other shared ones fit
	Value  string
	// Priority orders the candidates of an election, higher ones first. Patience
	// is after how long, in ns, one takes the place of a leader of lower
	// priority; 0: never.
	Priority int64
	Patience int64
	// Keeps are the holds that the caller keeps while it waits (OpAcquire). They may
	// be of other sessions of the same principal.
	Keeps []Kept

	// Fence says whose hold is revoked; 0: that of every holder (OpRevoke).
	Fence uint64

	// Hold is the sequence of the claim spoken of (OpRelease, OpCancel,
	// OpUpdate, OpTransfer).
	Hold uint64

	// TTL is in nanoseconds; Host, PID and Program are for people (OpOpen). Owner
	// is the principal that the caller proved to be, empty for an anonymous one;
	// it never comes from the client.
	TTL     int64
	Host    string
	PID     int64
	Program string
	Owner   string

	// Origin is who asked for it (OpRevoke, OpMember, OpEnd, OpLevel, OpGuard, OpAccess,
	// OpNote). An OpEnd
	// names its session in Session and its reason in Value, and has no sequence.
	Origin Origin

	// From and To are levels, and Stay says that the level is not to rise by itself
	// (OpLevel).
	From, To uint32
	Stay     bool

	// Term is the term of the leader that decided, Leases of whom (OpExpire,
	// OpSilence), Claims of what (OpDrop).
	Term   uint64
	Leases []Lease
	Claims []ClaimID

	// Member is the server spoken of (OpMember).
	Member Member

	// Live are the operands of OpEnter, OpTurn, OpQuiet and OpGuard, else nil. An OpEnter
	// has TTL, Host and PID as well, an OpGuard its prefix in Name, or none and the class
	// View, and an OpGuard or an OpTurn its reason in Value.
	Live *Live

	// Change is what an OpAccess changes. An OpNote has the kind of the act in Name, and
	// what is to be known of it in Value.
	Change *access.Change
}

// asker is what an answer is routed by that belongs to no session's request: the
// number of the request, in the place of a session.
func (c *Command) asker() SessionID { return SessionID(c.Origin.Request) }

// Origin is who asked for a command. The zero value is the leader by itself.
type Origin struct {
	Actor  string // the principal; empty if it is anonymous
	Via    string // how the request came: "grpc", "http" or "local"
	Remote string // the address that it came from
	// Request is drawn by the server that took the request. A command without a
	// session is answered by it.
	Request [16]byte
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

// ClaimID names a hold or a place in a queue: the session, and the sequence of
// the request that made it.
type ClaimID struct {
	Session  SessionID
	Sequence uint64
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
	Revoked     Code = 15
	NotFound    Code = 16
	// What the rules and quotas refuse.
	Unauthenticated Code = 17
	Denied          Code = 18
	Quota           Code = 19
	Deadlocked      Code = 20
	Moved           Code = 21
	NotMember       Code = 22
	StateLimit      Code = 23
)

// Result is the answer to a request.
type Result struct {
	Code Code
	// Message says what was wrong and what would be right.
	Message string
	// Fence is that of a grant, or of the hold that a cancel came too late for.
	Fence uint64
	// Floor is the smallest fence among the holders at a grant.
	Floor uint64
	// Ahead counts the waiters before this one (Queued).
	Ahead uint32
	// Holder is one of those that stand in the way (Held).
	Holder *Holder
	// Deadlock is what the request would have completed (Deadlocked). It is not
	// remembered, so it is nil if the request was sent again.
	Deadlock *Deadlock
	// Guard is what guards the lock (Moved). It is not remembered either.
	Guard *Guard
	// Remaining is how long the session lives on from the moment at which the
	// request was sent, in ns (OpOpen and OpRenew).
	Remaining int64
	// Revoked are the session's holds that it is asked to leave, by sequence
	// (OpOpen and OpRenew).
	Revoked []uint64
}

// Guard is what guards the locks whose names begin with a prefix. The prefix is empty for
// locks that none covers, the algorithm if it is agreement.
type Guard struct{ Prefix, Algorithm string }

// Outcome is an answer and the request it answers. A request to acquire that
// waits has two: Queued, and how the wait ended. One that was granted has
// another, Revoked, when its holder is asked to leave.
type Outcome struct {
	Session  SessionID
	Sequence uint64
	Result   Result
}
