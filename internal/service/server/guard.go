package server

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/host"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// SetGuard starts to change the algorithm that guards a prefix.
func (s service) SetGuard(ctx context.Context, req *api.SetGuardRequest) (*api.SetGuardResponse, error) {
	ctx, by, err := originOf(ctx)
	if err != nil {
		return nil, err
	}
	command := registry.Command{
		Op: registry.OpGuard, Name: req.GetPrefix(), Value: req.GetReason(), By: &by,
		Guarding: &registry.Guarding{
			Use:    view.Use{Algorithm: req.GetAlgorithm(), Options: req.GetOptions()},
			Remove: req.GetRemove(), Wait: req.GetWaitNs(), Force: req.GetForce(),
		},
	}
	check := host.Check
	if req.GetWatch() {
		command.Class, check = registry.View, host.CheckWatch
	}
	if err := check(command.Guarding.Use); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return forward.OnLeaderInTime(ctx, s.forward, func(ctx context.Context) (*api.SetGuardResponse, error) {
		return &api.SetGuardResponse{}, s.carryOutAlone(ctx, command)
	}, forward.Asking(api.ConclaveClient.SetGuard, req))
}

// View returns which servers take part in the view, and which algorithm guards which prefix.
func (s service) View(ctx context.Context, req *api.ViewRequest) (*api.ViewResponse, error) {
	answer := new(api.ViewResponse)
	look := func(state node.State) {
		l := state.Guarded()
		answer.Epoch, answer.Coordinator = l.Epoch, l.Coordinator
		answer.Watch, answer.WatchOptions = l.Watch.Algorithm, l.Watch.Options
		answer.Members = s.seats(ctx, l.Members)
		for _, seat := range s.seats(ctx, l.Seats) {
			if !member(answer.Members, seat) {
				answer.Others = append(answer.Others, seat)
			}
		}
		for i := range l.Guards {
			answer.Guards = append(answer.Guards, guardState(&l.Guards[i]))
		}
	}
	answer, err := forward.Read(ctx, s.forward, req.GetStale(), answer, look, forward.Asking(api.ConclaveClient.View, &api.ViewRequest{Stale: req.GetStale()}))
	if err == nil && req.GetHomes() {
		s.askHomes(ctx, answer.GetMembers())
	}
	return answer, err
}

// askHomes asks each member for its status as a home.
func (s *Server) askHomes(ctx context.Context, members []*api.Seat) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	said := atMembers(ctx, s, s.status, forward.Asking(api.ConclaveClient.Status, &api.StatusRequest{}))
	for _, m := range members {
		at := slices.IndexFunc(said, func(f fromMember[*api.StatusResponse]) bool { return f.server == m.GetServer() })
		switch {
		case at < 0:
			m.Problem = "it takes no part, as far as this server knows"
		case said[at].err != nil:
			m.Problem = api.Reason(said[at].err)
		default:
			m.Home = said[at].answer.GetHome()
		}
	}
}

func member(members []*api.Seat, seat *api.Seat) bool {
	for _, m := range members {
		if string(m.GetId()) == string(seat.GetId()) {
			return true
		}
	}
	return false
}

func (s *Server) seats(ctx context.Context, seats []view.Seat) (list []*api.Seat) {
	sessions := make([]registry.Session, len(seats))
	for i := range seats {
		sessions[i].ID = registry.SeatID(seats[i])
	}
	for i, left := range s.remaining(ctx, sessions) { // in the order of the sessions
		list = append(list, &api.Seat{Id: sessions[i].ID[:], Server: seats[i].Server, ClientAddress: s.node.ClientAddress(seats[i].Server), RemainingNs: left})
	}
	return list
}

func guardState(g *view.Guard) *api.GuardState {
	state := &api.GuardState{Prefix: g.Prefix, Algorithm: g.Use.Algorithm, Options: g.Use.Options}
	if g.Change != 0 {
		state.Change, state.NextAlgorithm, state.NextOptions, state.Remove = g.Change, g.Next.Algorithm, g.Next.Options, g.Remove
		state.Quiet, state.WaitNs, state.Reason, state.By = g.Quiet, g.Conditions.Wait, g.Conditions.Reason, g.Conditions.By
	}
	return state
}

// homeOf returns this server's status as a home.
func homeOf(h host.Status) *api.Home {
	home := &api.Home{
		Epoch: h.View.Epoch, State: h.State.String(), RemainingNs: h.Remaining, Missing: h.Missing,
		Sessions: uint64(h.Sessions), Names: uint64(h.Names), PausedNs: h.Paused,
	}
	if h.Seat != (registry.SessionID{}) {
		home.Seat = h.Seat[:]
	}
	for _, l := range h.Links {
		home.Lanes = append(home.Lanes, &api.Lane{Server: l.Server, Up: l.Up, Unacknowledged: uint64(l.Unacked)})
	}
	for _, n := range h.Prefixes {
		home.Namespaces = append(home.Namespaces, &api.Namespace{
			Prefix: n.Prefix, Algorithm: n.Algorithm, Names: uint64(n.Names), Entries: n.Entries, Messages: n.Messages, OtherMessages: n.Others, WaitedNs: n.Waited,
		})
	}
	home.Watch = &api.Watching{
		Stack: h.Watch.Stack, Doubted: h.Watch.Doubted, Elected: h.Watch.Elected,
		Suspicions: h.Watch.Suspicions, Failures: h.Watch.Failures, Trusts: h.Watch.Trusts, Elections: h.Watch.Elections, Messages: h.Watch.Messages,
	}
	for _, start := range h.Starts {
		home.Starts = append(home.Starts, &api.ViewStart{Epoch: start.Epoch, AtUnixNs: start.At, Why: start.Why})
	}
	return home
}
