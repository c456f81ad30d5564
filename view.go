package conclave

import (
	"encoding/hex"
	"strings"
	"time"

	"github.com/conclave-io/conclave/service/api"
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
	// Clocks are those of other servers, as this one estimates them, by id.
	Clocks []Clock
}

// Clock is that of another server beside the one of the server that was asked.
type Clock struct {
	Server uint64
	// Offset is how far its wall clock is ahead. It is wrong by Error at most.
	Offset, Error time.Duration
	// Drift is how much faster its clock runs, by which leases are measured: 0.01 is one in a
	// hundred. It is wrong by DriftError at most, and was measured over a time of Over, which
	// is 0 if it is not known yet. Leases allow less than 0.1.
	Drift, DriftError float64
	Over              time.Duration
	// Notable says that the clocks certainly drift apart by more than a tenth of that.
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
	// Connected says whether the answering server has a connection to it.
	Connected bool
	// MatchIndex is the last log index known to be on the member's disk, if the
	// answering server leads.
	MatchIndex uint64
	// Learner says that it receives the log and has no vote.
	Learner bool
	// Behind is how many committed entries of the log it is not known to have, if
	// the answering server leads.
	Behind uint64
	Stage  Stage
	// CertificateExpires is when the first of its certificates expires; zero without TLS,
	// or if that is not known.
	CertificateExpires time.Time
}

// Stage is how far a server has come, or gone.
type Stage string

const (
	Settled  Stage = "settled"  // it is what it is meant to be
	Reserved Stage = "reserved" // its id is kept for it, and it has not asked to join
	Joining  Stage = "joining"  // it has its id, and has not come or caught up yet
	Leaving  Stage = "leaving"  // it is being removed
)

// Resource is a lock or an election with those who hold it and wait for it.
type Resource struct {
	Name    string
	Limit   uint32
	Holders []Holder
	// Waiters are the first of the queue, in order.
	Waiters []Waiter
	// QueueLength is the length of the whole queue.
	QueueLength uint32
	// Guard is the algorithm that guards the lock, or empty.
	Guard string
}

// Holder is who holds a lock or leads an election.
type Holder struct {
	// Session is the public id of the session: "s-" and 32 hexadecimal digits.
	Session string
	// Owner is the principal that opened the session, as its certificate proved;
	// empty for an anonymous one. Host, PID and Program are only what it said.
	Owner string
	// Sequence tells apart the holds of one session.
	Sequence uint64
	Fence    uint64
	// Since is when the grant was given, by the clock of the leader that gave it.
	Since   time.Time
	Host    string
	PID     int64
	Program string
	// Value is what the leader of an election published.
	Value []byte
	// Shared says that other shared holds may be beside this one.
	Shared bool
	// Priority is that of the leader of an election.
	Priority int64
	// Revoked says that the holder is asked to leave, and Reason why.
	Revoked bool
	Reason  string
}

// Waiter is who waits for a lock or an election.
type Waiter struct {
	Session  string
	Owner    string
	Sequence uint64
	Since    time.Time
	Host     string
	PID      int64
	Program  string
	// Value and Priority are those of a candidate.
	Value    []byte
	Priority int64
	// Shared says that it waits for a shared hold.
	Shared bool
}

// Explanation is what is known of a lock or an election.
type Explanation struct {
	// Held says that somebody holds it. Resource is then who, and who waits.
	Held     bool
	Resource Resource
	// Past is how its last holds ended, the newest first: at most 16, and none if
	// holds of 1,024 other names have ended since.
	Past []Ended
	// Algorithm is what guards the lock between the servers, and Prefix the names that it
	// guards; empty for agreement. Homes is then what each server says, one after another.
	Algorithm, Prefix string
	Homes             []AtHome
}

// AtHome is what one server says of a lock that an algorithm guards.
type AtHome struct {
	Server uint64
	// Held says that a client of this server holds it, and QueueLength how many wait here.
	Held        bool
	QueueLength uint32
	// Problem is why the server says nothing, or empty.
	Problem string
}

// Ended is a hold that has ended.
type Ended struct {
	Fence uint64
	// Since and Until are readings of the clock of the leader of the servers.
	Since, Until time.Time
	Host         string
	PID          int64
	Program      string
	// How is "released", "closed" (with its session), "expired" (with its session,
	// which was not renewed) or "dropped" (asked to leave, and not released).
	How string
	// Reason is why the holder was asked to leave, if it was, and By the principal
	// that asked; empty if that was the leader of the servers, or an anonymous one.
	Reason string
	By     string
	// Owner is the principal whose session held it; empty for an anonymous one.
	Owner string
}

// SessionInfo describes a live session.
type SessionInfo struct {
	// ID is public: "s-" and 32 hexadecimal digits.
	ID string
	// Owner is the principal that opened it; empty for an anonymous one.
	Owner string
	// Leaving says that it is being ended by EndSession.
	Leaving bool
	TTL     time.Duration
	Host    string
	PID     int64
	Program string
	Holds   uint32
	Waits   uint32
	Opened  time.Time
	// Remaining is what is left before the session expires, or 0 if the
	// answering server does not know.
	Remaining time.Duration
	// Home is the server that keeps the session by itself, for locks that an algorithm
	// guards; 0 if it is on record.
	Home uint64
}

// publicPrefix begins the text of every public id of a session.
const publicPrefix = "s-"

func publicID(id []byte) string { return publicPrefix + hex.EncodeToString(id) }

// Observation is the state of an election at one moment.
type Observation struct {
	Name string
	// Elected is false while nobody leads.
	Elected bool
	Leader  Holder
}

func statusOf(r *api.StatusResponse) Status {
	s := Status{
		Cluster: r.GetCluster(), Server: r.GetServer(), Leader: r.GetLeader(), Term: r.GetTerm(),
		CommitIndex: r.GetCommitIndex(), AppliedIndex: r.GetAppliedIndex(), SnapshotIndex: r.GetSnapshotIndex(),
		Sessions: r.GetSessions(), Locks: r.GetLocks(), Elections: r.GetElections(), Waiters: r.GetWaiters(),
		Fence: r.GetFence(), Version: r.GetVersion(), Uptime: time.Duration(r.GetUptimeNs()),
	}
	s.Members = membersOf(r.GetMembers())
	for _, c := range r.GetClocks() {
		s.Clocks = append(s.Clocks, Clock{
			c.GetServer(), time.Duration(c.GetOffsetNs()), time.Duration(c.GetErrorNs()), c.GetDrift(), c.GetDriftError(), time.Duration(c.GetOverNs()), c.GetNotable(),
		})
	}
	return s
}

func membersOf(all []*api.Member) []Member {
	var members []Member
	for _, m := range all {
		var expires time.Time
		if at := m.GetCertificateExpiresUnixNs(); at != 0 {
			expires = time.Unix(0, at).UTC()
		}
		members = append(members, Member{
			ID: m.GetId(), PeerAddress: m.GetPeerAddress(), ClientAddress: m.GetClientAddress(), Voter: m.GetVoter(),
			Leader: m.GetLeader(), Connected: m.GetConnected(), MatchIndex: m.GetMatchIndex(),
			Learner: m.GetLearner(), Behind: m.GetBehind(), Stage: stageOf(m.GetStage()), CertificateExpires: expires,
		})
	}
	return members
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
	res := Resource{Name: r.GetName(), Limit: r.GetLimit(), QueueLength: r.GetQueueLength(), Guard: r.GetGuard()}
	for _, h := range r.GetHolders() {
		res.Holders = append(res.Holders, holderOf(h))
	}
	for _, w := range r.GetWaiters() {
		res.Waiters = append(res.Waiters, waiterOf(w))
	}
	return res
}

func waiterOf(w *api.Waiter) Waiter {
	return Waiter{
		Session: publicID(w.GetSession()), Owner: w.GetOwner(), Sequence: w.GetSequence(), Since: time.Unix(0, w.GetSinceUnixNs()),
		Host: w.GetHost(), PID: w.GetPid(), Program: w.GetProgram(),
		Value: w.GetValue(), Priority: w.GetPriority(), Shared: w.GetShared(),
	}
}

// holderOf takes nil for nobody.
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
	x := Explanation{Held: e.GetResource() != nil, Algorithm: e.GetGuard().GetAlgorithm(), Prefix: e.GetGuard().GetPrefix()}
	for _, h := range e.GetHomes() {
		x.Homes = append(x.Homes, AtHome{h.GetServer(), len(h.GetResource().GetHolders()) > 0, h.GetResource().GetQueueLength(), h.GetProblem()})
	}
	if x.Held {
		x.Resource = resourceOf(e.GetResource())
	}
	for _, p := range e.GetPast() {
		x.Past = append(x.Past, Ended{
			Fence: p.GetFence(), Since: time.Unix(0, p.GetSinceUnixNs()), Until: time.Unix(0, p.GetUntilUnixNs()),
			Host: p.GetHost(), PID: p.GetPid(), Program: p.GetProgram(),
			How: strings.ToLower(strings.TrimPrefix(p.GetHow().String(), "ENDING_")), Reason: p.GetReason(),
			Owner: p.GetOwner(), By: p.GetBy(),
		})
	}
	return x
}

func sessionInfoOf(s *api.Session) SessionInfo {
	return SessionInfo{
		ID: publicID(s.GetId()), Owner: s.GetOwner(), Leaving: s.GetLeaving(), TTL: time.Duration(s.GetTtlNs()), Host: s.GetHost(), PID: s.GetPid(),
		Program: s.GetProgram(), Holds: s.GetHolds(), Waits: s.GetWaits(), Opened: time.Unix(0, s.GetOpenedUnixNs()),
		Remaining: time.Duration(s.GetRemainingNs()), Home: s.GetHome(),
	}
}
