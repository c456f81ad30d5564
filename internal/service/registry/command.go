package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/access"
)

// SessionID is the public name of a session. It is derived from the secret that the client
// drew and from its principal (Derive), so knowing it is not enough to act in the
// session.
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

	// View is not a class of names. An OpGuard of this class changes the watch stack of the view.
	View = classes
)

// Op is what a command does.
type Op uint8

// The operations of clients, then those of the leader. Numbers are part of the
// log's format: append only.
const (
	// OpOpen opens the session, or renews it if it is open.
	OpOpen Op = 1 + iota
	// OpRenew renews, through the log, a session that is recorded as silent.
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

	// OpExpire ends sessions that have expired.
	OpExpire
	// OpSilence records how much time silent sessions have left.
	OpSilence
	// OpMember records a server's identity, addresses and standing.
	OpMember

	// OpRevoke, sent by a client, asks the holders of a resource to leave.
	OpRevoke
	// OpTransfer, sent by a client, hands an election that it leads to a candidate.
	OpTransfer
	// OpDrop, written by the leader, ends revoked holds whose time is over.
	OpDrop
	// OpOvertake, written by the leader, checks whether a candidate may replace the
	// leader of an election.
	OpOvertake

	// OpEnd, sent by an operator, ends a session of another client.
	OpEnd Op = 15
	// OpAccess, sent by an operator, changes the access rules.
	OpAccess Op = 16
	// OpNote, written by a server, records an act that has no entry of its own.
	OpNote Op = 17
	// OpLevel changes the level of the formats.
	OpLevel Op = 18

	// OpEnter, sent by a server, opens or renews the session that is its seat.
	OpEnter Op = 19
	// OpTurn, sent by a seat, asks for another epoch.
	OpTurn Op = 20
	// OpQuiet, sent by a seat, reports that nothing is held under a prefix whose guard changes.
	OpQuiet Op = 21
	// OpGuard, sent by an operator, changes the guard of a prefix, or the watch stack of the
	// view. The leader uses it to cancel the change of a prefix.
	OpGuard Op = 22
	// opBequeath is the number in entries of an OpClose whose seat has an heir.
	opBequeath Op = 23

	// OpTime, written by the leader, has no effect of its own. The time of its entry opens places
	// that linger.
	OpTime Op = 24

	// OpSet, sent by an operator, changes a setting of the cluster.
	OpSet Op = 25
	// OpExpect, sent by an operator, sets or removes the rule that a name is expected to be held.
	OpExpect Op = 26
)

// Renews reports whether an operation keeps its session alive.
func (op Op) Renews() bool { return op == OpOpen || op == OpRenew || op == OpEnter }

// Seated reports whether seats use an operation.
func (op Op) Seated() bool { return op.ofSeat() || op == OpRenew || op == OpClose }

// ofSeat reports whether only seats use an operation.
func (op Op) ofSeat() bool { return OpEnter <= op && op <= OpQuiet }

// client reports whether clients use an operation.
func (op Op) client() bool {
	return OpOpen <= op && op <= OpUpdate || op == OpRevoke || op == OpTransfer || op.ofSeat()
}

// ForGuards reports whether an operation is about seats or guards. Only a level with guarded names
// can express it.
func (op Op) ForGuards() bool { return op.ofSeat() || op == OpGuard || op == opBequeath }

// Unbound reports whether an operation, sent by an operator, belongs to no session.
func (op Op) Unbound() bool {
	return op == OpEnd || op == OpGuard || op == OpSet || op == OpExpect || op.ForAccess()
}

// Command is one step of the replicated state. Op determines which fields are used;
// the comments on the fields name the operations.
type Command struct {
	Op Op

	// Session, Sequence and Low identify a client's request. Low is the lowest
	// sequence still unanswered.
	Session  SessionID
	Sequence uint64
	Low      uint64

	// OpAcquire; Class and Name also OpRevoke, OpOvertake and OpExpect. Limit 0 means 1.
	// Value is that of a candidate (also OpUpdate), of the candidate to hand over
	// to (OpTransfer), or the reason (OpRevoke).
	Class  Class
	Name   string
	Try    bool
	Limit  uint32
	Shared bool // may be held together with other shared holds
	Value  string
	// Priority orders the candidates of an election, higher ones first. Patience is how
	// long, in ns, a candidate waits before it replaces a leader of lower priority; 0
	// means forever.
	Priority int64
	Patience int64
	// AtLeast and LossDelay say how long the place stays closed after the hold, in ns: at least so
	// long after the grant, and so long after a hold that expired or was dropped (OpAcquire).
	AtLeast   int64
	LossDelay int64
	// Keeps are the holds that the caller keeps while it waits (OpAcquire). They may
	// be of other sessions of the same principal.
	Keeps []Kept

	// Fence selects the hold to revoke; 0 means those of all holders (OpRevoke).
	Fence uint64

	// Hold is the sequence of the claim that the command is about (OpRelease, OpCancel,
	// OpUpdate, OpTransfer).
	Hold uint64

	// Unused means that the caller has not used the hold, so that its place does not linger
	// (OpRelease).
	Unused bool

	// TTL is in nanoseconds; Host, PID and Program are for people (OpOpen). Owner
	// is the principal that the caller proved to be, empty for an anonymous one;
	// it never comes from the client.
	TTL     int64
	Host    string
	PID     int64
	Program string
	Owner   string

	// By is who asked for the command (OpRevoke, OpMember, OpEnd, OpLevel, OpGuard, OpAccess,
	// OpNote, OpSet, OpExpect), nil for others and if it was the leader itself. An OpEnd names its session in
	// Session and its reason in Value, and has no sequence.
	By *Origin

	// From and To are levels. Stay means that the level must not rise by itself
	// (OpLevel).
	From, To uint32
	Stay     bool

	// Term is the term of the leader that decided. Verdicts are what it decided about sessions
	// (OpExpire, OpSilence), and Claims are the holds to drop (OpDrop).
	Term     uint64
	Verdicts []Verdict
	Claims   []ClaimID

	// Member is the server that the command is about (OpMember), nil for others.
	Member *Member

	// Guarding are the operands of OpEnter, OpTurn, OpQuiet and OpGuard, nil for others. An OpEnter
	// also has TTL, Host and PID. An OpGuard has its prefix in Name, or no name and the class
	// View. An OpGuard or an OpTurn has its reason in Value.
	Guarding *Guarding

	// Every is the period of the rule in ns, or 0 to remove it (OpExpect).
	Every int64

	// Change is the change of an OpAccess. An OpNote has the kind of the act in Name, and its
	// description in Value. An OpSet has the name of the setting in Name, and its value in Value.
	Change *access.Change
}

// Origin returns who asked for the command.
func (c *Command) Origin() (by Origin) {
	if c.By != nil {
		by = *c.By
	}
	return by
}

// member returns the operand of an OpMember.
func (c *Command) member() (m Member) {
	if c.Member != nil {
		m = *c.Member
	}
	return m
}

// asker identifies where to send the answer to a request without a session: it is the
// number of the request, in the form of a session id.
func (c *Command) asker() SessionID { return SessionID(c.Origin().Request) }

// Origin is who asked for a command. The zero value is the leader itself.
type Origin struct {
	Actor  string // the principal; empty if it is anonymous
	Via    string // how the request came: "grpc", "http" or "local"
	Remote string // the address that it came from
	// Request is drawn by the server that took the request. It identifies the answer to a
	// command without a session.
	Request [16]byte
}

func (o Origin) append(b []byte) []byte {
	b = wire.AppendBytes(b, o.Actor)
	b = wire.AppendBytes(b, o.Via)
	b = wire.AppendBytes(b, o.Remote)
	return append(b, o.Request[:]...)
}

func readOrigin(r *wire.Reader) Origin {
	o := Origin{Actor: r.String(), Via: r.String(), Remote: r.String()}
	r.Fixed(o.Request[:])
	return o
}

func readBy(r *wire.Reader) *Origin {
	if o := readOrigin(r); o != (Origin{}) {
		return &o
	}
	return nil
}

// Verdict is the leader's verdict about the time of a session. It is void if the session was
// renewed through the log after the verdict, which Renewals shows: a client that was told
// that its session was renewed may rely on it.
type Verdict struct {
	Session SessionID
	// Renewals is the session's count at the time of the verdict.
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

// Code is the result of a request. The numbers are those of the public interface.
type Code uint8

// The codes that the registry itself returns.
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
	// The codes of refusals by rules and quotas.
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
	// Ahead is the number of waiters before this one (Queued).
	Ahead uint32
	// Message says what was wrong and what is expected.
	Message string
	// Fence is that of a grant, or of a hold that was granted before a cancel arrived.
	Fence uint64
	// Floor is the smallest fence among the holders at a grant.
	Floor uint64
	// Holder is one of the holders that prevent a grant (Held). It is nil if only places that linger
	// do; Closed is then one of them.
	Holder *Holder
	Closed *Linger
	// Lingers means that the place of the claim is to linger (OK and Queued).
	Lingers bool
	// Deadlock is the deadlock that the request would have completed (Deadlocked). It is not
	// stored, so it is nil if the request was sent again.
	Deadlock *Deadlock
	// Guard is the guard of the lock (Moved). It is not stored either.
	Guard *Guard
	// Remaining is how long the session stays alive, counted from the time at which the
	// request was sent, in ns (OpOpen and OpRenew).
	Remaining int64
	// Revoked are the session's holds that the client is asked to release, by sequence
	// (OpOpen and OpRenew).
	Revoked []uint64
}

// Guard is the algorithm that guards the locks whose names start with a prefix. For locks
// that no prefix covers, the prefix is empty. For agreement, the algorithm is empty.
type Guard struct{ Prefix, Algorithm string }

// Outcome is the answer to a request. A request to acquire that waits has two outcomes:
// Queued, and later the end of the wait. A hold has a further one, Revoked, when its holder
// is asked to leave.
type Outcome struct {
	Session  SessionID
	Sequence uint64
	Result   Result
}
