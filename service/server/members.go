package server

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/peering"
	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/replica"
	"github.com/conclave-io/conclave/service/store"
	"github.com/conclave-io/conclave/service/transport"
	"github.com/conclave-io/conclave/service/version"
)

// Members returns the servers of the cluster as the leader sees them.
func (s service) Members(ctx context.Context, req *api.MembersRequest) (*api.MembersResponse, error) {
	defer s.metrics.call("members", time.Now())
	return s.listMembers(ctx, req)
}

func (s *Server) listMembers(ctx context.Context, req *api.MembersRequest) (*api.MembersResponse, error) {
	ctx, cancel := deadlineFor(ctx, false)
	defer cancel()
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
	return onLeader(ctx, s, here, func(ctx context.Context, leader api.ConclaveClient) (*api.MembersResponse, error) {
		return leader.Members(ctx, req)
	})
}

// member describes a server. What is not on record yet is known from the
// configuration and from its introduction.
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

// founders are the servers that this one was told of, before it knows better.
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
	var removed *replica.RemovedError
	return errors.As(err, &removed)
}

// Final reports whether a server ended, or did not start, for a reason that a restart
// does not remove: its data directory is damaged, another's, or of a format or level
// that this release does not read; it was removed from the cluster; or its state is not
// that of the others.
func Final(err error) bool {
	var (
		damaged *store.CorruptError
		format  *store.FormatError
		cluster *store.ClusterError
		server  *store.ServerError
		other   *store.DirectoryError
		unread  *version.Error
		differs *replica.DivergedError
		refused *transport.Refusal
	)
	return Removed(err) || errors.As(err, &unread) || errors.As(err, &differs) ||
		errors.As(err, &refused) && refused.Code == peering.LevelUnknown || errors.As(err, &damaged) || errors.As(err, &format) ||
		errors.As(err, &cluster) || errors.As(err, &server) || errors.As(err, &other)
}

// ChangeMembers reserves an id, promotes a learner, removes a server, or makes one the leader.
func (s service) ChangeMembers(ctx context.Context, req *api.ChangeMembersRequest) (*api.ChangeMembersResponse, error) {
	defer s.metrics.call("change_members", time.Now())
	return s.changeMembers(ctx, req)
}

func (s *Server) changeMembers(ctx context.Context, req *api.ChangeMembersRequest) (*api.ChangeMembersResponse, error) {
	change, err := changeOf(req)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	ctx, cancel := deadlineFor(ctx, false)
	defer cancel()
	return onLeader(ctx, s, func(ctx context.Context) (*api.ChangeMembersResponse, error) {
		id, err := s.node.Change(ctx, change)
		return &api.ChangeMembersResponse{Id: id}, refusedChange(err)
	}, func(ctx context.Context, leader api.ConclaveClient) (*api.ChangeMembersResponse, error) {
		return leader.ChangeMembers(ctx, req)
	})
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
	return replica.Change{}, errors.New("no change is named: add, promote or remove a server, or make one the leader")
}

func standing(learner bool) registry.Standing {
	if learner {
		return registry.Learner
	}
	return registry.Voter
}

// refusedChange gives the refusal of a change the form that it has for callers.
func refusedChange(err error) error {
	var refused *replica.ChangeError
	switch {
	case !errors.As(err, &refused):
		return err
	case refused.Busy:
		return status.Error(codes.Aborted, refused.Text)
	}
	return status.Error(codes.InvalidArgument, refused.Text)
}

// Join gives a server that is to become a member its id.
func (s service) Join(ctx context.Context, req *api.JoinRequest) (*api.JoinResponse, error) {
	defer s.metrics.call("join", time.Now())
	return s.join(ctx, req)
}

func (s *Server) join(ctx context.Context, req *api.JoinRequest) (*api.JoinResponse, error) {
	newcomer := registry.Member{
		UID: req.GetUid(), PeerAddress: req.GetPeerAddress(), ClientAddress: req.GetClientAddress(), Standing: standing(req.GetLearner()),
	}
	err := errors.Join(reachable(newcomer.PeerAddress), reachable(newcomer.ClientAddress))
	if newcomer.UID == 0 {
		err = errors.New("the uid of the server is 0: draw a random number")
	}
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	ctx, cancel := deadlineFor(ctx, false)
	defer cancel()
	return onLeader(ctx, s, func(ctx context.Context) (*api.JoinResponse, error) {
		id, err := s.node.Change(ctx, replica.Change{Kind: replica.Join, Server: newcomer})
		if err != nil {
			return nil, refusedChange(err)
		}
		return s.welcome(ctx, id)
	}, func(ctx context.Context, leader api.ConclaveClient) (*api.JoinResponse, error) {
		return leader.Join(ctx, req)
	})
}

// welcome tells a server that joins who it is and who the others are.
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

// reachable reports what keeps others from connecting to an address.
func reachable(address string) error {
	if len(address) > registry.MaxAddress {
		return errors.New("an address has over 1,024 bytes")
	}
	if err := checkAddress(address); err != nil {
		return err
	}
	if _, port, _ := splitAddress(address); port == 0 || listensEverywhere(address) {
		return errors.New(address + " is no address to connect to: say how others reach the server")
	}
	return nil
}
