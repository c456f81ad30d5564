package conclave

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/service/api"
)

// View is which servers guard locks by algorithms, and what guards which names.
type View struct {
	// Epoch changes with the members.
	Epoch uint64
	// Members are the servers that take part, by id, and Others those with a seat that do
	// not, or not yet.
	Members, Others []Seat
	// Coordinator is the server that was elected to coordinate, or 0.
	Coordinator uint64
	Guards      []Guard
	// Watch is what all members run to find those that do not answer, and to elect a
	// coordinator: a detector and an election, such as "swim+bully". Algorithm is empty if
	// they run none.
	Watch Use
}

// Seat is the session of a server that guards locks by algorithms.
type Seat struct {
	ID      string
	Server  uint64
	Address string // where it takes clients
	// Remaining is what is left of its lease.
	Remaining time.Duration
	// Home is what the server says of itself, if it was asked for, or nil. Problem is then
	// why there is no answer.
	Home    *Home
	Problem string
}

// Home is what a server does for the locks that algorithms guard.
type Home struct {
	Epoch uint64
	// State is OUT, RESUMING or OPEN. Only at an open home locks are granted.
	State string
	// Remaining is what is left of the lease of its seat, as the server sees it.
	Remaining time.Duration
	// Paused is how long the locks paused at the last change of the epoch.
	Paused time.Duration
	// Missing are the servers that it waits for before it opens.
	Missing []uint64
	// Sessions are those of clients that have it as their home, and Names the locks that
	// have a machine here.
	Sessions, Names uint64
	Lanes           []Lane
	Namespaces      []Namespace
	// Watch is what its failure detector and its election say; nil if it runs none.
	Watch *Watching
	// Starts are the latest epochs that began there, the newest last.
	Starts []ViewStart
}

// Watching is what the failure detector and the election of a home say. Counters grow from
// the start of the server.
type Watching struct {
	// Stack is their names, such as "swim+bully".
	Stack string
	// Doubted are the members that do not answer, as far as the detector can tell.
	Doubted []uint64
	// Elected was elected in this epoch; 0: nobody was.
	Elected uint64
	// Suspicions and Failures are of other members. Trusts takes either back.
	Suspicions, Failures, Trusts uint64
	// Elections are results that the home has heard, and Messages what it sent.
	Elections, Messages uint64
}

// ViewStart is the beginning of an epoch, as a home saw it.
type ViewStart struct {
	Epoch uint64
	At    time.Time
	Why   string
}

// Lane is the connection of a home to another server for messages of algorithms.
type Lane struct {
	Server uint64
	Up     bool
	// Unacknowledged are the messages that the other has not acknowledged.
	Unacknowledged uint64
}

// Namespace is what a server has done for the locks under one prefix, since it started.
type Namespace struct {
	Prefix, Algorithm string
	// Names are the locks that have a machine there.
	Names uint64
	// Entries are grants to clients of the server, and Messages those of the algorithm that
	// it sent to other servers. Others are messages that its costs do not count, such as
	// acknowledgements.
	Entries, Messages, Others uint64
	// Waited is how long all entries together took, from when the algorithm was asked to the
	// grant.
	Waited time.Duration
}

// Guard is what decides who holds the locks whose names start with a prefix. The longest
// prefix counts; agreement guards what is under none.
type Guard struct {
	Prefix string
	Use    Use
	// Change is what the guard changes to, or nil.
	Change *GuardChange
}

// Use names a guard.
type Use struct {
	// Algorithm is one such as "suzuki-kasami", or empty for agreement.
	Algorithm string
	// Options are pairs such as "k=3", with commas between them, sorted by name.
	Options string
}

// GuardChange is a change of a guard that is under way: nothing more is granted under the
// prefix until nothing is held there.
type GuardChange struct {
	Use Use
	// Remove says that the guard of a shorter prefix takes over.
	Remove bool
	// Quiet are the servers that have said that nothing is held there.
	Quiet []uint64
	// Wait is after how long the change is cancelled; 0: never.
	Wait       time.Duration
	Reason, By string
}

// GuardOption says how a guard changes.
type GuardOption struct{ set func(*api.SetGuardRequest) }

// CancelAfter has the change cancelled if it is not made in so long.
func CancelAfter(wait time.Duration) GuardOption {
	return GuardOption{func(r *api.SetGuardRequest) { r.WaitNs = int64(wait) }}
}

// AskHolders asks those to leave who hold a lock under the prefix, as Revoke does.
func AskHolders(reason string) GuardOption {
	return GuardOption{func(r *api.SetGuardRequest) { r.Force, r.Reason = true, reason }}
}

// View returns which servers guard locks by algorithms, and what guards which names.
func (c *Client) View(ctx context.Context) (v View, err error) { return c.view(ctx, false) }

// Homes is like View, and has each member say what it does as a home.
func (c *Client) Homes(ctx context.Context) (v View, err error) { return c.view(ctx, true) }

func (c *Client) view(ctx context.Context, homes bool) (v View, err error) {
	err = c.ask(ctx, "view", func(ctx context.Context, server api.ConclaveClient, _ *api.StatusResponse) error {
		answer, err := server.View(ctx, &api.ViewRequest{Homes: homes})
		if status.Code(err) == codes.Unimplemented { // of a release in which no algorithm guards a lock
			err = nil
		}
		v = View{Epoch: answer.GetEpoch(), Members: seatsOf(answer.GetMembers()), Others: seatsOf(answer.GetOthers()), Coordinator: answer.GetCoordinator(), Watch: Use{answer.GetWatch(), answer.GetWatchOptions()}}
		for _, g := range answer.GetGuards() {
			v.Guards = append(v.Guards, guardOf(g))
		}
		return err
	})
	return v, err
}

func seatsOf(seats []*api.Seat) (list []Seat) {
	for _, s := range seats {
		list = append(list, Seat{publicID(s.GetId()), s.GetServer(), s.GetClientAddress(), time.Duration(s.GetRemainingNs()), homeOf(s.GetHome()), s.GetProblem()})
	}
	return list
}

func homeOf(h *api.Home) *Home {
	if h == nil {
		return nil
	}
	home := &Home{
		Epoch: h.GetEpoch(), State: h.GetState(), Remaining: time.Duration(h.GetRemainingNs()), Paused: time.Duration(h.GetPausedNs()),
		Missing: h.GetMissing(), Sessions: h.GetSessions(), Names: h.GetNames(),
	}
	for _, l := range h.GetLanes() {
		home.Lanes = append(home.Lanes, Lane{l.GetServer(), l.GetUp(), l.GetUnacknowledged()})
	}
	for _, n := range h.GetNamespaces() {
		home.Namespaces = append(home.Namespaces, Namespace{n.GetPrefix(), n.GetAlgorithm(), n.GetNames(), n.GetEntries(), n.GetMessages(), n.GetOtherMessages(), time.Duration(n.GetWaitedNs())})
	}
	if w := h.GetWatch(); w.GetStack() != "" {
		home.Watch = &Watching{
			Stack: w.GetStack(), Doubted: w.GetDoubted(), Elected: w.GetElected(), Suspicions: w.GetSuspicions(), Failures: w.GetFailures(),
			Trusts: w.GetTrusts(), Elections: w.GetElections(), Messages: w.GetMessages(),
		}
	}
	for _, s := range h.GetStarts() {
		home.Starts = append(home.Starts, ViewStart{s.GetEpoch(), time.Unix(0, s.GetAtUnixNs()), s.GetWhy()})
	}
	return home
}

func guardOf(g *api.GuardState) Guard {
	guard := Guard{Prefix: g.GetPrefix(), Use: Use{g.GetAlgorithm(), g.GetOptions()}}
	if g.GetChange() != 0 {
		guard.Change = &GuardChange{
			Use: Use{g.GetNextAlgorithm(), g.GetNextOptions()}, Remove: g.GetRemove(), Quiet: g.GetQuiet(),
			Wait: time.Duration(g.GetWaitNs()), Reason: g.GetReason(), By: g.GetBy(),
		}
	}
	return guard
}

// SetGuard begins to change what guards the locks whose names start with a prefix. View
// shows how the change goes on. To set what guards the prefix already cancels a change.
func (c *Client) SetGuard(ctx context.Context, prefix string, use Use, options ...GuardOption) error {
	return c.setGuard(ctx, &api.SetGuardRequest{Prefix: prefix, Algorithm: use.Algorithm, Options: use.Options}, options)
}

// RemoveGuard begins to remove the guard of a prefix: that of a shorter one takes over.
func (c *Client) RemoveGuard(ctx context.Context, prefix string, options ...GuardOption) error {
	return c.setGuard(ctx, &api.SetGuardRequest{Prefix: prefix, Remove: true}, options)
}

func (c *Client) setGuard(ctx context.Context, req *api.SetGuardRequest, options []GuardOption) error {
	for _, option := range options {
		option.set(req)
	}
	return c.ask(ctx, "set guard", func(ctx context.Context, server api.ConclaveClient, _ *api.StatusResponse) error {
		_, err := server.SetGuard(ctx, req)
		return err
	})
}

// SetWatch changes what all members run to find those that do not answer, and to elect a
// coordinator: a detector and an election, such as Use{Algorithm: "swim+bully"}, or the zero
// Use for nothing. When SetWatch returns it has changed, and the next epoch begins with it. The
// reason is for people to read.
func (c *Client) SetWatch(ctx context.Context, use Use, reason string) error {
	return c.setGuard(ctx, &api.SetGuardRequest{Watch: true, Algorithm: use.Algorithm, Options: use.Options, Reason: reason}, nil)
}

// CallElection has the members elect a coordinator, and returns those that do. It does not
// wait for the result, which counts from the next epoch on.
func (c *Client) CallElection(ctx context.Context) (members []uint64, err error) {
	err = c.ask(ctx, "call election", func(ctx context.Context, server api.ConclaveClient, _ *api.StatusResponse) error {
		answer, err := server.CallElection(ctx, &api.CallElectionRequest{})
		members = answer.GetMembers()
		return err
	})
	return members, err
}
