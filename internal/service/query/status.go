package query

import (
	"context"
	"errors"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/clocks"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/guarded"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/version"
)

// Status describes this server.
func (c *Calls) Status(ctx context.Context, req *api.StatusRequest) (*api.StatusResponse, error) {
	ctx, cancel := forward.WithDeadline(ctx)
	defer cancel()
	answer, err := c.OwnStatus(ctx)
	if err == nil && req.GetCertificates() {
		c.askExpiries(ctx, answer)
	}
	return answer, err
}

// OwnStatus returns the status for a caller. Without the verb it has only what clients need.
func (c *Calls) OwnStatus(ctx context.Context) (*api.StatusResponse, error) {
	who, err := authn.CallerOf(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := c.Describe(ctx)
	if err == nil && c.cfg.Gate.Permit(ctx, who, access.OnCluster(access.Status)) != nil {
		answer = &api.StatusResponse{Cluster: answer.GetCluster(), Server: answer.GetServer(), Leader: answer.GetLeader(), Version: answer.GetVersion()}
	}
	return answer, err
}

// Describe returns the status of this server, whoever asks.
func (c *Calls) Describe(ctx context.Context) (*api.StatusResponse, error) {
	answer := &api.StatusResponse{
		Cluster: c.cfg.Cluster, Server: c.cfg.Server, Version: c.cfg.Version,
		UptimeNs: time.Since(c.cfg.Started).Nanoseconds(), LeaderSinceUnixNs: c.cfg.Node.Metrics().LeaderSince.Load(), Figures: c.cfg.Metrics.Figures(),
		Home: guarded.HomeProto(c.cfg.Node.Home().Status()), Clocks: clocksOf(c.cfg.Node.Clocks()),
		CertificateExpiresUnixNs: c.cfg.Certs.FirstExpiry(),
	}
	err := c.cfg.Node.View(ctx, func(r *replica.Replica) { c.addState(r, answer) })
	if errors.Is(err, node.ErrNotLeader) {
		// The server does not know its role yet: there is no replica.
		err = nil
		answer.Members = c.founders()
	}
	return answer, c.cfg.Forward.Status(ctx, err)
}

// addState adds what the replica knows.
func (c *Calls) addState(r *replica.Replica, answer *api.StatusResponse) {
	state, counts := r.Status(), r.Registry().Counts()
	answer.Leader, answer.Term = state.Leader, state.Term
	answer.CommitIndex, answer.AppliedIndex, answer.SnapshotIndex = state.Commit, state.Applied, state.Snapshot
	answer.Sessions, answer.Waiters = uint64(counts.Sessions), uint64(counts.Waiters)
	answer.Locks, answer.Elections = uint64(counts.Locks), uint64(counts.Elections)
	answer.Fence = counts.Fence
	answer.Level, _ = r.Registry().Level()
	answer.LevelMin, answer.LevelMax = version.Min, version.Max
	size := r.Stats()
	answer.StateBytes, answer.StateLimitBytes = uint64(size.StateBytes), uint64(size.StateLimit)
	for _, m := range r.Members() {
		if m.Voter || m.Learner {
			answer.Members = append(answer.Members, c.Member(&m))
		}
	}
}

// clocksOf returns what this server knows of the clocks of others.
func clocksOf(all []clocks.Estimate) (list []*api.Clock) {
	for i := range all {
		e := &all[i]
		list = append(list, &api.Clock{
			Server: e.Server, OffsetNs: e.Offset, ErrorNs: e.Error, Drift: e.Drift, DriftError: e.DriftError, OverNs: e.Over, Notable: e.Notable(),
		})
	}
	return list
}
