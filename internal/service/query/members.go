package query

import (
	"context"
	"maps"
	"slices"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// Members returns the servers of the cluster as the leader sees them.
func (c *Calls) Members(ctx context.Context, req *api.MembersRequest) (*api.MembersResponse, error) {
	here := func(ctx context.Context) (*api.MembersResponse, error) {
		if _, err := c.cfg.Node.Read(ctx); err != nil {
			return nil, err
		}
		answer := &api.MembersResponse{Cluster: c.cfg.Cluster}
		err := c.cfg.Node.View(ctx, func(r *replica.Replica) {
			for _, m := range r.Members() {
				answer.Members = append(answer.Members, c.Member(&m))
			}
		})
		return answer, err
	}
	return forward.OnLeaderInTime(ctx, c.cfg.Forward, here, forward.Asking(api.ConclaveClient.Members, req))
}

// Member describes a server. What is not in the registry yet comes from the configuration
// and from its introduction.
func (c *Calls) Member(m *replica.Member) *api.Member {
	described := &api.Member{
		Id: m.ID, PeerAddress: m.PeerAddress, ClientAddress: c.cfg.Node.ClientAddress(m.ID),
		Connected: m.ID == c.cfg.Server || slices.Contains(c.cfg.Node.Connected(), m.ID),
		Voter:     m.Voter && !m.Emptied, Learner: m.Learner, Leader: m.Leader, MatchIndex: m.Match, Behind: m.Behind, Stage: stageOf(m),
	}
	if refused := c.cfg.Node.CopyOf(m.ID); refused.Where != "" {
		described.CopyAddress, described.CopyRefusedUnixNs = refused.Where, refused.At.UnixNano()
	}
	if described.PeerAddress == "" {
		described.PeerAddress = c.cfg.Founders[m.ID]
	}
	return described
}

func stageOf(m *replica.Member) api.Stage {
	switch {
	case m.Standing == registry.Removed:
		return api.Stage_STAGE_LEAVING
	case m.Emptied:
		return api.Stage_STAGE_JOINING
	case m.Voter, m.Learner && m.Standing == registry.Learner:
		return api.Stage_STAGE_SETTLED
	case m.Reserved():
		return api.Stage_STAGE_RESERVED
	}
	return api.Stage_STAGE_JOINING
}

// founders are the servers named at this server's start, before it knows more.
func (c *Calls) founders() []*api.Member {
	var all []*api.Member
	for _, id := range slices.Sorted(maps.Keys(c.cfg.Founders)) {
		m := c.Member(&replica.Member{Member: registry.Member{ID: id}})
		m.Stage = api.Stage_STAGE_SETTLED
		all = append(all, m)
	}
	return all
}
