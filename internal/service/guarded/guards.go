package guarded

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/act"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/host"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// SetGuard starts to change the algorithm that guards a prefix.
func (d *Door) SetGuard(ctx context.Context, req *api.SetGuardRequest) (*api.SetGuardResponse, error) {
	ctx, by, err := act.OriginOf(ctx)
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
	return forward.OnLeaderInTime(ctx, d.cfg.Forward, func(ctx context.Context) (*api.SetGuardResponse, error) {
		return &api.SetGuardResponse{}, act.CarryOut(ctx, d.cfg.Node, command)
	}, forward.Asking(api.ConclaveClient.SetGuard, req))
}

// View returns which servers take part in the view, and which algorithm guards which prefix.
func (d *Door) View(ctx context.Context, req *api.ViewRequest) (*api.ViewResponse, error) {
	answer := new(api.ViewResponse)
	look := func(state node.State) {
		l := state.Guarded()
		answer.Epoch, answer.Coordinator = l.Epoch, l.Coordinator
		answer.Watch, answer.WatchOptions = l.Watch.Algorithm, l.Watch.Options
		answer.Members = d.seats(ctx, l.Members)
		for _, seat := range d.seats(ctx, l.Seats) {
			if !member(answer.Members, seat) {
				answer.Others = append(answer.Others, seat)
			}
		}
		for i := range l.Guards {
			answer.Guards = append(answer.Guards, guardState(&l.Guards[i]))
		}
	}
	answer, err := forward.Read(ctx, d.cfg.Forward, req.GetStale(), answer, look, forward.Asking(api.ConclaveClient.View, &api.ViewRequest{Stale: req.GetStale()}))
	if err == nil && req.GetHomes() {
		d.askHomes(ctx, answer.GetMembers())
	}
	return answer, err
}

// statusWithin is how long the status of a home may take.
const statusWithin = 2 * time.Second

// askHomes asks each member for its status as a home.
func (d *Door) askHomes(ctx context.Context, members []*api.Seat) {
	ctx, cancel := context.WithTimeout(ctx, statusWithin)
	defer cancel()
	said := atMembers(ctx, d, d.cfg.Status, forward.Asking(api.ConclaveClient.Status, &api.StatusRequest{}))
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

// seats describes seats, with the time that remains of them as far as this server knows.
func (d *Door) seats(ctx context.Context, seats []view.Seat) (list []*api.Seat) {
	for _, seat := range seats {
		id := registry.SeatID(seat)
		list = append(list, &api.Seat{Id: id[:], Server: seat.Server, ClientAddress: d.cfg.Node.ClientAddress(seat.Server)})
	}
	_ = d.cfg.Node.View(ctx, func(r *replica.Replica) { // fails if the server is stopping: then nothing is known
		for _, seat := range list {
			seat.RemainingNs = r.Remaining(registry.SessionID(seat.GetId()))
		}
	})
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

// HomeProto returns the status of a home as a message.
func HomeProto(h host.Status) *api.Home {
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
