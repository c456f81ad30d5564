package conclave

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/conclave-io/conclave/api"
)

// Status is one server's view of itself and of the cluster.
type Status struct {
	Cluster string
	Server  uint64
	// Leader is the id of the leader, or 0 if the server knows none.
	Leader        uint64
	Term          uint64
	CommitIndex   uint64
	AppliedIndex  uint64
	SnapshotIndex uint64
	Members       []Member
	Sessions      uint64
	Locks         uint64
	Elections     uint64
	Waiters       uint64
	// Fence is the fence of the newest grant.
	Fence   uint64
	Version string
	Uptime  time.Duration
	// Clocks has this server's estimates of the clocks of other servers, by id.
	Clocks []Clock
}

// Clock compares the clock of another server with that of the server that was asked.
type Clock struct {
	Server uint64
	// Offset is how far the other wall clock is ahead. The estimate is wrong by at most Error.
	Offset, Error time.Duration
	// Drift is how much faster the clock runs that measures leases there: 0.01 is 1 %. The
	// estimate is wrong by at most DriftError. It was measured over the time Over, which is 0 if
	// the drift is not known yet. Leases require a drift below 0.1.
	Drift, DriftError float64
	Over              time.Duration
	// Notable means that the drift certainly exceeds a tenth of what leases allow.
	Notable bool
}

// Member is one server of the cluster.
type Member struct {
	ID          uint64
	PeerAddress string
	// ClientAddress is empty if the answering server does not know it yet.
	ClientAddress string
	Voter         bool
	Leader        bool
	// Connected reports whether the answering server has a connection to this member.
	Connected bool
	// MatchIndex is the last log index known to be on the member's disk. Only the leader
	// knows it.
	MatchIndex uint64
	// Learner means that the member receives the log and has no vote.
	Learner bool
	// Behind is the number of committed log entries that the member may not have yet. Only the
	// leader knows it.
	Behind uint64
	Stage  Stage
	// CertificateExpires is when the first of its certificates expires. It is zero without TLS,
	// and if the answering server does not know it.
	CertificateExpires time.Time
}

// Stage is how far a server has got in joining or leaving the cluster.
type Stage string

const (
	Settled  Stage = "settled"  // no change is under way
	Reserved Stage = "reserved" // it has an id, and has not asked to join yet
	Joining  Stage = "joining"  // it has asked to join, and has not caught up yet
	Leaving  Stage = "leaving"  // it is being removed
)

// Resource is a lock or an election, with its holders and waiters.
type Resource struct {
	Name    string
	Limit   uint32
	Holders []Holder
	// Waiters has the first waiters of the queue, in order.
	Waiters []Waiter
	// QueueLength is the length of the whole queue.
	QueueLength uint32
	// Guard is the algorithm that guards the lock, or empty.
	Guard string
}

// Holder describes a holder of a lock or the leader of an election.
type Holder struct {
	// Session is the public id of the session: "s-" and 32 hexadecimal digits.
	Session string
	// Owner is the principal that opened the session, proved by its certificate. It is
	// empty for an anonymous one. The client itself reports Host, PID and Program, and
	// nothing proves them.
	Owner string
	// Sequence distinguishes the holds of one session.
	Sequence uint64
	Fence    uint64
	// Since is the time of the grant, by the clock of the server that led then.
	Since   time.Time
	Host    string
	PID     int64
	Program string
	// Value is what the leader of an election published.
	Value []byte
	// Shared means that there may be other shared holds at the same time.
	Shared bool
	// Priority is the priority of the leader of an election.
	Priority int64
	// Revoked means that the holder is asked to leave; Reason says why.
	Revoked bool
	Reason  string
}

// Waiter describes a session that waits for a lock, or a candidate of an election.
type Waiter struct {
	Session  string
	Owner    string
	Sequence uint64
	Since    time.Time
	Host     string
	PID      int64
	Program  string
	// Value and Priority belong to a candidate.
	Value    []byte
	Priority int64
	// Shared means that it waits for a shared hold.
	Shared bool
}

// Explanation is what the cluster knows about a lock or an election.
type Explanation struct {
	// Held means that the lock is held, or that the election has a leader. Resource lists
	// the holders and waiters. While the guard of a lock changes, it can have waiters without
	// a holder.
	Held     bool
	Resource Resource
	// Past lists how its last holds ended, the newest first: at most 16. It is empty if
	// holds of 1,024 other names have ended since.
	Past []Ended
	// Algorithm is the algorithm that guards the lock, and Prefix the prefix of the names that
	// it guards. Both are empty if agreement guards the lock. With an algorithm, Homes has the
	// answer of each server. The servers do not answer at the same moment.
	Algorithm, Prefix string
	Homes             []AtHome
}

// AtHome is the answer of one server about a lock that an algorithm guards.
type AtHome struct {
	Server uint64
	// Held means that a client of this server holds the lock. QueueLength is the number of
	// clients that wait at this server.
	Held        bool
	QueueLength uint32
	// Problem is why the server gave no answer, or empty.
	Problem string
}

// Ended is a hold that has ended.
type Ended struct {
	Fence uint64
	// Since and Until are readings of the clock of the server that led then.
	Since, Until time.Time
	Host         string
	PID          int64
	Program      string
	// How is "released", "closed" (the client closed its session), "expired" (the session
	// was not renewed) or "dropped" (the holder was asked to leave, and did not release).
	How string
	// Reason is why the holder was asked to leave, if it was. By is the principal that asked.
	// By is empty if an anonymous client asked, or the cluster itself did.
	Reason string
	By     string
	// Owner is the principal of the session that held it. It is empty for an anonymous one.
	Owner string
}

// SessionInfo describes a live session.
type SessionInfo struct {
	// ID is public: "s-" and 32 hexadecimal digits.
	ID string
	// Owner is the principal that opened it. It is empty for an anonymous one.
	Owner string
	// Leaving means that EndSession is ending the session.
	Leaving bool
	TTL     time.Duration
	Host    string
	PID     int64
	Program string
	Holds   uint32
	Waits   uint32
	Opened  time.Time
	// Remaining is the time left before the session expires. It is 0 if the answering server
	// does not know it.
	Remaining time.Duration
	// Home is the server that alone keeps the session, for locks that an algorithm guards. It
	// is 0 for a session that the whole cluster keeps.
	Home uint64
}

// publicPrefix begins the text of every public id of a session.
const publicPrefix = "s-"

func publicID(id []byte) string { return publicPrefix + hex.EncodeToString(id) }

// Observation is the state of an election at one moment.
type Observation struct {
	Name string
	// Elected is false while there is no leader.
	Elected bool
	Leader  Holder
}

// each converts a list. It returns nil for an empty one.
func each[From, To any](list []From, convert func(From) To) (converted []To) {
	for _, from := range list {
		converted = append(converted, convert(from))
	}
	return converted
}

func statusOf(r *api.StatusResponse) Status {
	return Status{
		Cluster: r.GetCluster(), Server: r.GetServer(), Leader: r.GetLeader(), Term: r.GetTerm(),
		CommitIndex: r.GetCommitIndex(), AppliedIndex: r.GetAppliedIndex(), SnapshotIndex: r.GetSnapshotIndex(),
		Sessions: r.GetSessions(), Locks: r.GetLocks(), Elections: r.GetElections(), Waiters: r.GetWaiters(),
		Fence: r.GetFence(), Version: r.GetVersion(), Uptime: time.Duration(r.GetUptimeNs()),
		Members: each(r.GetMembers(), memberOf), Clocks: each(r.GetClocks(), clockOf),
	}
}

func clockOf(c *api.Clock) Clock {
	return Clock{
		c.GetServer(), time.Duration(c.GetOffsetNs()), time.Duration(c.GetErrorNs()), c.GetDrift(), c.GetDriftError(), time.Duration(c.GetOverNs()), c.GetNotable(),
	}
}

func memberOf(m *api.Member) Member {
	member := Member{
		ID: m.GetId(), PeerAddress: m.GetPeerAddress(), ClientAddress: m.GetClientAddress(), Voter: m.GetVoter(),
		Leader: m.GetLeader(), Connected: m.GetConnected(), MatchIndex: m.GetMatchIndex(),
		Learner: m.GetLearner(), Behind: m.GetBehind(), Stage: stageOf(m.GetStage()),
	}
	if at := m.GetCertificateExpiresUnixNs(); at != 0 {
		member.CertificateExpires = time.Unix(0, at).UTC()
	}
	return member
}

func stageOf(s api.Stage) Stage {
	switch s {
	case api.Stage_STAGE_RESERVED:
		return Reserved
	case api.Stage_STAGE_JOINING:
		return Joining
	case api.Stage_STAGE_LEAVING:
		return Leaving
	}
	return Settled
}

func resourceOf(r *api.Resource) Resource {
	return Resource{
		Name: r.GetName(), Limit: r.GetLimit(), Holders: each(r.GetHolders(), holderOf), Waiters: each(r.GetWaiters(), waiterOf),
		QueueLength: r.GetQueueLength(), Guard: r.GetGuard(),
	}
}

func waiterOf(w *api.Waiter) Waiter {
	return Waiter{
		Session: publicID(w.GetSession()), Owner: w.GetOwner(), Sequence: w.GetSequence(), Since: time.Unix(0, w.GetSinceUnixNs()),
		Host: w.GetHost(), PID: w.GetPid(), Program: w.GetProgram(),
		Value: w.GetValue(), Priority: w.GetPriority(), Shared: w.GetShared(),
	}
}

// holderOf returns the zero Holder if h is nil.
func holderOf(h *api.Holder) Holder {
	if h == nil {
		return Holder{}
	}
	return Holder{
		Session: publicID(h.GetSession()), Owner: h.GetOwner(), Sequence: h.GetSequence(), Fence: h.GetFence(),
		Since: time.Unix(0, h.GetSinceUnixNs()), Host: h.GetHost(), PID: h.GetPid(), Program: h.GetProgram(), Value: h.GetValue(),
		Shared: h.GetShared(), Priority: h.GetPriority(), Revoked: h.GetRevoked(), Reason: h.GetReason(),
	}
}

func explanationOf(e *api.ExplainResponse) Explanation {
	return Explanation{
		Held: len(e.GetResource().GetHolders()) > 0, Resource: resourceOf(e.GetResource()), Past: each(e.GetPast(), endedOf),
		Algorithm: e.GetGuard().GetAlgorithm(), Prefix: e.GetGuard().GetPrefix(), Homes: each(e.GetHomes(), atHomeOf),
	}
}

func atHomeOf(h *api.AtHome) AtHome {
	return AtHome{h.GetServer(), len(h.GetResource().GetHolders()) > 0, h.GetResource().GetQueueLength(), h.GetProblem()}
}

func endedOf(p *api.Ended) Ended {
	return Ended{
		Fence: p.GetFence(), Since: time.Unix(0, p.GetSinceUnixNs()), Until: time.Unix(0, p.GetUntilUnixNs()),
		Host: p.GetHost(), PID: p.GetPid(), Program: p.GetProgram(),
		How: strings.ToLower(strings.TrimPrefix(p.GetHow().String(), "ENDING_")), Reason: p.GetReason(),
		Owner: p.GetOwner(), By: p.GetBy(),
	}
}

func sessionInfoOf(s *api.Session) SessionInfo {
	return SessionInfo{
		ID: publicID(s.GetId()), Owner: s.GetOwner(), Leaving: s.GetLeaving(), TTL: time.Duration(s.GetTtlNs()), Host: s.GetHost(), PID: s.GetPid(),
		Program: s.GetProgram(), Holds: s.GetHolds(), Waits: s.GetWaits(), Opened: time.Unix(0, s.GetOpenedUnixNs()),
		Remaining: time.Duration(s.GetRemainingNs()), Home: s.GetHome(),
	}
}
