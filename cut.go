package conclave

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/service/api"
)

// ErrCutAborted means that the servers that guard locks by algorithms changed during each attempt
// to record a cut. A cut lies within one epoch.
var ErrCutAborted = errors.New("the members of the view changed before the cut was complete")

// Cut is a consistent cut through locks that algorithms guard: a state of all machines and
// of the messages between them that the run could have been in. It may never have been
// in it at any one moment.
type Cut struct {
	Epoch uint64
	// Members are the servers that take part, by id.
	Members []uint64
	// Locks are those that some member has needed in the epoch, by name.
	Locks []CutLock
}

// CutLock is what a cut has of one lock.
type CutLock struct {
	Name, Algorithm string
	// Machines has one for each member, in their order.
	Machines []CutMachine
	// Messages were on their way, by sender, then by receiver, in their order.
	Messages []CutMessage
	// OneToken says that the algorithm promises one token, and Tokens is how many there are
	// at machines and in messages.
	OneToken bool
	Tokens   int
	// Wrong is what the invariant of the algorithm says is wrong, or empty.
	Wrong string
}

// CutMachine is the state of the algorithm at one member.
type CutMachine struct {
	Server uint64
	// Made is false if the member needed no machine yet. The state is then the initial one.
	Made  bool
	State []CutField
	// Holder is the public id of the session that holds the lock at this member, or empty.
	Holder string
}

// CutField is one piece of the state, under the name that it has in the paper.
type CutField struct{ Name, Value string }

// CutMessage is a message on its way between two servers.
type CutMessage struct {
	From, To uint64
	Text     string
}

// Cut records a consistent cut through the locks whose names start with a prefix and that
// algorithms guard, after Chandy and Lamport. It stops no lock. The error is ErrCutAborted
// if the servers that take part changed again and again, and ErrNotFound if no algorithm
// guards such a lock. Over 1,000 locks need a longer prefix.
func (c *Client) Cut(ctx context.Context, prefix string) (cut Cut, err error) {
	var code codes.Code
	err = c.ask(ctx, "cut", func(ctx context.Context, server api.ConclaveClient) error {
		answer, err := server.Cut(ctx, &api.CutRequest{Prefix: prefix})
		code, cut = status.Code(err), cutOf(answer)
		return err
	})
	switch {
	case err == nil:
		return cut, nil
	case code == codes.Aborted:
		err = fmt.Errorf("conclave: cut: %w", ErrCutAborted)
	case code == codes.NotFound:
		err = fmt.Errorf("conclave: cut: %w: no algorithm guards locks that start with %q", ErrNotFound, prefix)
	case code == codes.Unimplemented:
		err = fmt.Errorf("conclave: cut: unsupported by the release of the server; upgrade it")
	}
	return Cut{}, err
}

func cutOf(r *api.CutResponse) Cut {
	cut := Cut{Epoch: r.GetEpoch(), Members: r.GetMembers()}
	for _, l := range r.GetLocks() {
		lock := CutLock{Name: l.GetName(), Algorithm: l.GetAlgorithm(), OneToken: l.GetOneToken(), Tokens: int(l.GetTokens()), Wrong: l.GetWrong()}
		for _, m := range l.GetMachines() {
			machine := CutMachine{Server: m.GetServer(), Made: m.GetMade()}
			if len(m.GetHolder()) > 0 {
				machine.Holder = publicID(m.GetHolder())
			}
			for _, f := range m.GetState() {
				machine.State = append(machine.State, CutField{f.GetName(), f.GetValue()})
			}
			lock.Machines = append(lock.Machines, machine)
		}
		for _, m := range l.GetMessages() {
			lock.Messages = append(lock.Messages, CutMessage{m.GetFrom(), m.GetTo(), m.GetText()})
		}
		cut.Locks = append(cut.Locks, lock)
	}
	return cut
}
