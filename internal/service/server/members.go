package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/act"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/peering"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/store"
	"github.com/conclave-io/conclave/internal/service/transport"
	"github.com/conclave-io/conclave/internal/service/version"
)

// Members returns the servers of the cluster as the leader sees them.
func (s service) Members(ctx context.Context, req *api.MembersRequest) (*api.MembersResponse, error) {
	here := func(ctx context.Context) (*api.MembersResponse, error) {
		if _, err := s.node.Read(ctx); err != nil {
			return nil, err
		}
		answer := &api.MembersResponse{Cluster: s.identity}
		err := s.node.View(ctx, func(r *replica.Replica) {
			for _, m := range r.Members() {
				answer.Members = append(answer.Members, s.member(&m))
			}
		})
		return answer, err
	}
	return forward.OnLeaderInTime(ctx, s.forward, here, forward.Asking(api.ConclaveClient.Members, req))
}

// member describes a server. What is not in the registry yet comes from the configuration
// and from its introduction.
func (s *Server) member(m *replica.Member) *api.Member {
	described := &api.Member{
		Id: m.ID, PeerAddress: m.PeerAddress, ClientAddress: s.node.ClientAddress(m.ID),
		Connected: m.ID == s.cfg.ID || slices.Contains(s.node.Connected(), m.ID),
		Voter:     m.Voter && !m.Emptied, Learner: m.Learner, Leader: m.Leader, MatchIndex: m.Match, Behind: m.Behind, Stage: stageOf(m),
	}
	if described.PeerAddress == "" {
		described.PeerAddress = s.peers[m.ID]
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
func (s *Server) founders() []*api.Member {
	var all []*api.Member
	for _, id := range slices.Sorted(maps.Keys(s.peers)) {
		m := s.member(&replica.Member{Member: registry.Member{ID: id}})
		m.Stage = api.Stage_STAGE_SETTLED
		all = append(all, m)
	}
	return all
}

// Removed reports whether a server stopped because it was removed from the cluster.
func Removed(err error) bool {
	return isA[*replica.RemovedError](err)
}

func isA[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

// Final reports whether a server ended, or did not start, for a reason that a restart does
// not remove: its data directory is damaged, belongs to another server, or has a format or
// level that this release does not read; it was removed from the cluster; or its state
// differs from that of the others.
func Final(err error) bool {
	refused, is := errors.AsType[*transport.Refusal](err)
	return Removed(err) || isA[*version.Error](err) || isA[*replica.DivergedError](err) ||
		is && refused.Code == peering.LevelUnknown || isA[*store.CorruptError](err) || isA[*store.FormatError](err) ||
		isA[*store.ClusterError](err) || isA[*store.ServerError](err) || isA[*store.DirectoryError](err)
}

// ChangeMembers reserves an id, promotes a learner, removes a server, or makes one the leader.
func (s service) ChangeMembers(ctx context.Context, req *api.ChangeMembersRequest) (*api.ChangeMembersResponse, error) {
	change, err := changeOf(req)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if ctx, change.Origin, err = act.OriginOf(ctx); err != nil {
		return nil, err
	}
	return forward.OnLeaderInTime(ctx, s.forward, func(ctx context.Context) (*api.ChangeMembersResponse, error) {
		if change.Kind == replica.Lead && s.rules() != nil { // no log entry of its own records it
			if err := act.Note(ctx, s.node, change.Origin, "leader", describe(&change)); err != nil {
				return nil, err
			}
		}
		id, err := s.node.Change(ctx, change)
		return &api.ChangeMembersResponse{Id: id}, s.refusedChange(ctx, change.Origin, "member", describe(&change), err)
	}, forward.Asking(api.ConclaveClient.ChangeMembers, req))
}

func changeOf(req *api.ChangeMembersRequest) (replica.Change, error) {
	switch c := req.GetChange().(type) {
	case *api.ChangeMembersRequest_Add:
		address := c.Add.GetPeerAddress()
		return replica.Change{Kind: replica.Add, Server: registry.Member{PeerAddress: address, Standing: standing(c.Add.GetLearner())}},
			reachable(address)
	case *api.ChangeMembersRequest_Promote:
		return replica.Change{Kind: replica.Promote, ID: c.Promote.GetId()}, nil
	case *api.ChangeMembersRequest_Remove:
		return replica.Change{Kind: replica.Remove, ID: c.Remove.GetId(), Force: c.Remove.GetForce()}, nil
	case *api.ChangeMembersRequest_Lead:
		return replica.Change{Kind: replica.Lead, ID: c.Lead.GetId()}, nil
	}
	return replica.Change{}, errors.New("change: missing: must be add, promote, remove or lead")
}

func standing(learner bool) registry.Standing {
	if learner {
		return registry.Learner
	}
	return registry.Voter
}

// describe returns a change of the members as text for the audit trail.
func describe(c *replica.Change) string {
	switch c.Kind {
	case replica.Add:
		return "reserve an id for " + c.Server.PeerAddress
	case replica.Join:
		return "let the server at " + c.Server.PeerAddress + " join"
	case replica.Promote:
		return fmt.Sprintf("promote server %d", c.ID)
	case replica.Remove:
		return fmt.Sprintf("remove server %d", c.ID)
	}
	return fmt.Sprintf("try to hand the leadership to server %d", c.ID) // it is recorded before
}

// refusedChange returns the error for the caller of a refused change. A refusal by the rules
// is recorded.
func (s *Server) refusedChange(ctx context.Context, by registry.Origin, kind, what string, err error) error {
	var refused *replica.ChangeError
	switch {
	case !errors.As(err, &refused):
		return err
	case refused.Code != 0:
		return cmp.Or(act.Note(ctx, s.node, by, kind, what), status.Error(api.MeaningOf(api.Code(refused.Code)).GRPC, refused.Text))
	case refused.Busy:
		return status.Error(codes.Aborted, refused.Text)
	}
	return status.Error(codes.InvalidArgument, refused.Text)
}

// Join reserves an id for a server that joins.
func (s service) Join(ctx context.Context, req *api.JoinRequest) (*api.JoinResponse, error) {
	newcomer := registry.Member{
		UID: req.GetUid(), PeerAddress: req.GetPeerAddress(), ClientAddress: req.GetClientAddress(), Standing: standing(req.GetLearner()),
	}
	err := errors.Join(reachable(newcomer.PeerAddress), reachable(newcomer.ClientAddress))
	if newcomer.UID == 0 {
		err = errors.New("uid: 0: must be a random number other than 0")
	}
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	change := replica.Change{Kind: replica.Join, Server: newcomer}
	if ctx, change.Origin, err = act.OriginOf(ctx); err != nil {
		return nil, err
	}
	return forward.OnLeaderInTime(ctx, s.forward, func(ctx context.Context) (*api.JoinResponse, error) {
		id, err := s.node.Change(ctx, change)
		if err != nil {
			return nil, s.refusedChange(ctx, change.Origin, "member", describe(&change), err)
		}
		return s.welcome(ctx, id)
	}, forward.Asking(api.ConclaveClient.Join, req))
}

// welcome tells a server that joins its id and the other members.
func (s *Server) welcome(ctx context.Context, id uint64) (*api.JoinResponse, error) {
	answer := &api.JoinResponse{Cluster: s.identity, Id: id}
	err := s.node.View(ctx, func(r *replica.Replica) {
		for _, m := range r.Members() {
			if m.ID != id {
				answer.Members = append(answer.Members, s.member(&m))
			}
		}
	})
	return answer, err
}

// reachable returns an error for an address to which others cannot connect.
func reachable(address string) error {
	if len(address) > registry.MaxAddress {
		return errors.New("an address has more than 1,024 bytes")
	}
	if err := config.CheckAddress(address); err != nil {
		return err
	}
	if !config.HasPort(address) || config.Everywhere(address) {
		return errors.New(address + ": others cannot connect to this address; give the address at which they reach the server")
	}
	return nil
}
