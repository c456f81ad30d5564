package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/act"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// ChangeMembers reserves an id, promotes a learner, removes a server, or makes one the leader.
func (a *Acts) ChangeMembers(ctx context.Context, req *api.ChangeMembersRequest) (*api.ChangeMembersResponse, error) {
	change, err := changeOf(req)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if ctx, change.Origin, err = act.OriginOf(ctx); err != nil {
		return nil, err
	}
	return forward.OnLeaderInTime(ctx, a.cfg.Forward, func(ctx context.Context) (*api.ChangeMembersResponse, error) {
		if change.Kind == replica.Lead && a.cfg.Node.Rules() != nil { // no log entry of its own records it
			if err := act.Note(ctx, a.cfg.Node, change.Origin, "leader", describe(&change)); err != nil {
				return nil, err
			}
		}
		id, err := a.cfg.Node.Change(ctx, change)
		return &api.ChangeMembersResponse{Id: id}, a.refusedChange(ctx, change.Origin, "member", describe(&change), err)
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
func (a *Acts) refusedChange(ctx context.Context, by registry.Origin, kind, what string, err error) error {
	var refused *replica.ChangeError
	switch {
	case !errors.As(err, &refused):
		return err
	case refused.Code != 0:
		return cmp.Or(act.Note(ctx, a.cfg.Node, by, kind, what), status.Error(api.MeaningOf(api.Code(refused.Code)).GRPC, refused.Text))
	case refused.Busy:
		return status.Error(codes.Aborted, refused.Text)
	}
	return status.Error(codes.InvalidArgument, refused.Text)
}

// Join reserves an id for a server that joins.
func (a *Acts) Join(ctx context.Context, req *api.JoinRequest) (*api.JoinResponse, error) {
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
	return forward.OnLeaderInTime(ctx, a.cfg.Forward, func(ctx context.Context) (*api.JoinResponse, error) {
		id, err := a.cfg.Node.Change(ctx, change)
		if err != nil {
			return nil, a.refusedChange(ctx, change.Origin, "member", describe(&change), err)
		}
		return a.welcome(ctx, id)
	}, forward.Asking(api.ConclaveClient.Join, req))
}

// welcome tells a server that joins its id and the other members.
func (a *Acts) welcome(ctx context.Context, id uint64) (*api.JoinResponse, error) {
	answer := &api.JoinResponse{Cluster: a.cfg.Cluster, Id: id}
	err := a.cfg.Node.View(ctx, func(r *replica.Replica) {
		for _, m := range r.Members() {
			if m.ID != id {
				answer.Members = append(answer.Members, a.cfg.Query.Member(&m))
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
