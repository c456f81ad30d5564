package admin

import (
	"context"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client"
)

// Status returns the view of any server that can be reached, the one in use
// first. It does not need a leader.
func (a *Admin) Status(ctx context.Context) (Status, error) {
	answer, err := call(ctx, a, "status", api.ConclaveClient.Status, &api.StatusRequest{Certificates: true})
	return statusOf(answer), err
}

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
	// CopyAddress is the address of a process that a server refused within the last ten minutes,
	// because it runs with the data of this member while another process does. CopyRefused is when
	// it was last refused. Both are zero if there was none.
	CopyAddress string
	CopyRefused time.Time
}

// Stage is how far a server has got in joining or leaving the cluster.
type Stage string

const (
	Settled  Stage = "settled"  // no change is under way
	Reserved Stage = "reserved" // it has an id, and has not asked to join yet
	Joining  Stage = "joining"  // it has asked to join, and has not caught up yet
	Leaving  Stage = "leaving"  // it is being removed
)

func statusOf(r *api.StatusResponse) Status {
	return Status{
		Cluster: r.GetCluster(), Server: r.GetServer(), Leader: r.GetLeader(), Term: r.GetTerm(),
		CommitIndex: r.GetCommitIndex(), AppliedIndex: r.GetAppliedIndex(), SnapshotIndex: r.GetSnapshotIndex(),
		Sessions: r.GetSessions(), Locks: r.GetLocks(), Elections: r.GetElections(), Waiters: r.GetWaiters(),
		Fence: r.GetFence(), Version: r.GetVersion(), Uptime: time.Duration(r.GetUptimeNs()),
		Members: client.Each(r.GetMembers(), memberOf), Clocks: client.Each(r.GetClocks(), clockOf),
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
		Learner: m.GetLearner(), Behind: m.GetBehind(), Stage: stageOf(m.GetStage()), CopyAddress: m.GetCopyAddress(),
	}
	if at := m.GetCopyRefusedUnixNs(); at != 0 {
		member.CopyRefused = time.Unix(0, at).UTC()
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
