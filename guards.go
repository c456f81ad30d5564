package conclave

import (
	"context"
	"time"

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
}

// Seat is the session of a server that guards locks by algorithms.
type Seat struct {
	ID      string
	Server  uint64
	Address string // where it takes clients
	// Remaining is what is left of its lease.
	Remaining time.Duration
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
func (c *Client) View(ctx context.Context) (v View, err error) {
	err = c.ask(ctx, "view", func(ctx context.Context, server api.ConclaveClient, _ *api.StatusResponse) error {
		answer, err := server.View(ctx, &api.ViewRequest{})
		v = View{Epoch: answer.GetEpoch(), Members: seatsOf(answer.GetMembers()), Others: seatsOf(answer.GetOthers()), Coordinator: answer.GetCoordinator()}
		for _, g := range answer.GetGuards() {
			v.Guards = append(v.Guards, guardOf(g))
		}
		return err
	})
	return v, err
}

func seatsOf(seats []*api.Seat) (list []Seat) {
	for _, s := range seats {
		list = append(list, Seat{publicID(s.GetId()), s.GetServer(), s.GetClientAddress(), time.Duration(s.GetRemainingNs())})
	}
	return list
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
