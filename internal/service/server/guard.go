package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/api"
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
	return onLeaderInTime(ctx, s.Server, func(ctx context.Context) (*api.SetGuardResponse, error) {
		return &api.SetGuardResponse{}, s.carryOutAlone(ctx, command)
	}, asking(api.ConclaveClient.SetGuard, req))
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
	answer, err := read(ctx, s.Server, req.GetStale(), answer, look, asking(api.ConclaveClient.View, &api.ViewRequest{Stale: req.GetStale()}))
	if err == nil && req.GetHomes() {
		s.askHomes(ctx, answer.GetMembers())
	}
	return answer, err
}

// askHomes asks each member for its status as a home.
func (s *Server) askHomes(ctx context.Context, members []*api.Seat) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	said := atMembers(ctx, s, s.status, asking(api.ConclaveClient.Status, &api.StatusRequest{}))
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
	for _, n := range h.Namespaces {
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

// homeJSON is the status of a server that guards locks by algorithms.
type homeJSON struct {
	Seat      sessionID  `json:"seat"`
	Epoch     uint64     `json:"epoch"`
	State     string     `json:"state"`
	Remaining spanJSON   `json:"remaining"`
	Missing   []uint64   `json:"missing,omitempty"`
	Sessions  uint64     `json:"sessions"`
	Names     uint64     `json:"names"`
	Lanes     []laneJSON `json:"lanes"`
	// Paused is how long the members paused at the last change of epoch.
	Paused     spanJSON            `json:"paused"`
	Namespaces []homeNamespaceJSON `json:"namespaces"`
	Watch      *watchingJSON       `json:"watch,omitempty"`
	// Starts are the latest epochs that began at the server, the newest last.
	Starts []viewStartJSON `json:"starts"`
}

// homeNamespaceJSON counts what a server has done for the locks under one prefix since it started.
type homeNamespaceJSON struct {
	Prefix    string `json:"prefix"`
	Algorithm string `json:"algorithm"`
	Names     uint64 `json:"names"`
	Entries   uint64 `json:"entries"`
	Messages  uint64 `json:"messages"`
	Others    uint64 `json:"other_messages"`
	// Waited is the total waiting time of all entries.
	Waited spanJSON `json:"waited"`
}

// laneJSON is the connection for messages of algorithms to another server.
type laneJSON struct {
	Server         uint64 `json:"server"`
	Up             bool   `json:"up"`
	Unacknowledged uint64 `json:"unacknowledged"`
}

func homeToJSON(h *api.Home) *homeJSON {
	if len(h.GetSeat()) == 0 {
		return nil
	}
	return &homeJSON{
		Seat: h.GetSeat(), Epoch: h.GetEpoch(), State: h.GetState(), Remaining: spanJSON(h.GetRemainingNs()),
		Missing: h.GetMissing(), Sessions: h.GetSessions(), Names: h.GetNames(),
		Lanes:  listed(h.GetLanes(), func(l *api.Lane) laneJSON { return laneJSON{l.GetServer(), l.GetUp(), l.GetUnacknowledged()} }),
		Paused: spanJSON(h.GetPausedNs()),
		Namespaces: listed(h.GetNamespaces(), func(n *api.Namespace) homeNamespaceJSON {
			return homeNamespaceJSON{n.GetPrefix(), n.GetAlgorithm(), n.GetNames(), n.GetEntries(), n.GetMessages(), n.GetOtherMessages(), spanJSON(n.GetWaitedNs())}
		}),
		Watch: watchingToJSON(h.GetWatch()),
		Starts: listed(h.GetStarts(), func(one *api.ViewStart) viewStartJSON {
			return viewStartJSON{one.GetEpoch(), wallClock(one.GetAtUnixNs()), one.GetWhy()}
		}),
	}
}

// guardJSON is the guard of a prefix, and its change, if there is one.
type guardJSON struct {
	Prefix    string      `json:"prefix"`
	Algorithm string      `json:"algorithm"`
	Options   string      `json:"options,omitempty"`
	Change    *changeJSON `json:"change,omitempty"`
}

// changeJSON is a change of a guard that is under way.
type changeJSON struct {
	Algorithm string   `json:"algorithm"`
	Options   string   `json:"options,omitempty"`
	Remove    bool     `json:"remove,omitempty"`
	Quiet     []uint64 `json:"quiet,omitempty"`
	Wait      spanJSON `json:"wait,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	By        string   `json:"by,omitempty"`
}

// seatJSON is the seat of a server.
type seatJSON struct {
	ID        sessionID `json:"id"`
	Server    uint64    `json:"server"`
	Address   string    `json:"client_address"`
	Remaining spanJSON  `json:"remaining,omitempty"`
	Home      *homeJSON `json:"home,omitempty"`
	Problem   string    `json:"problem,omitempty"`
}

func seatToJSON(s *api.Seat) seatJSON {
	return seatJSON{s.GetId(), s.GetServer(), s.GetClientAddress(), spanJSON(s.GetRemainingNs()), homeToJSON(s.GetHome()), s.GetProblem()}
}

// getView serves GET /v1/view.
func (s service) getView(r *http.Request) (any, error) {
	p := newParameters(r)
	stale, homes := p.truth("stale"), p.truth("homes")
	if err := p.check(); err != nil {
		return nil, err
	}
	answer, err := s.View(r.Context(), &api.ViewRequest{Stale: stale, Homes: homes})
	if err != nil {
		return nil, err
	}
	return struct {
		Epoch       uint64      `json:"epoch"`
		Coordinator uint64      `json:"coordinator"`
		Members     []seatJSON  `json:"members"`
		Others      []seatJSON  `json:"others"`
		Guards      []guardJSON `json:"guards"`
		Watch       string      `json:"watch,omitempty"`
		Options     string      `json:"watch_options,omitempty"`
	}{
		answer.GetEpoch(), answer.GetCoordinator(), listed(answer.GetMembers(), seatToJSON), listed(answer.GetOthers(), seatToJSON),
		listed(answer.GetGuards(), guardToJSON), answer.GetWatch(), answer.GetWatchOptions(),
	}, nil
}

func guardToJSON(g *api.GuardState) guardJSON {
	body := guardJSON{Prefix: g.GetPrefix(), Algorithm: agreed(g.GetAlgorithm()), Options: g.GetOptions()}
	if g.GetChange() != 0 {
		body.Change = &changeJSON{agreed(g.GetNextAlgorithm()), g.GetNextOptions(), g.GetRemove(), g.GetQuiet(), spanJSON(g.GetWaitNs()), g.GetReason(), g.GetBy()}
	}
	return body
}

// agreement is the name in JSON for names that the log of the servers guards.
const agreement = "agreement"

func agreed(algorithm string) string { return cmp.Or(algorithm, agreement) }

type guardsBody struct {
	Prefix    string   `json:"prefix"`
	Algorithm string   `json:"algorithm"`
	Options   string   `json:"options"`
	Remove    bool     `json:"remove"`
	Wait      spanJSON `json:"wait"`
	Force     bool     `json:"force"`
	Reason    string   `json:"reason"`
}

// postGuards serves POST /v1/guards.
func (s service) postGuards(r *http.Request, body *guardsBody) (any, error) {
	if body.Remove == (body.Algorithm != "") {
		return nil, malformed("algorithm: name one, or agreement, or set remove")
	}
	req := &api.SetGuardRequest{
		Prefix: body.Prefix, Options: body.Options, Remove: body.Remove, WaitNs: int64(body.Wait), Force: body.Force, Reason: body.Reason,
	}
	if body.Algorithm != agreement {
		req.Algorithm = body.Algorithm
	}
	_, err := s.SetGuard(r.Context(), req)
	return body, err
}
