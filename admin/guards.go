package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client"
)

// View lists the servers that run the algorithms that guard locks, and what guards which
// names.
type View struct {
	// Epoch increases whenever the members change.
	Epoch uint64
	// Members has the servers that take part, by id. Others has the servers with a seat that
	// do not take part, or do not yet.
	Members, Others []Seat
	// Coordinator is the server that was elected to coordinate, or 0.
	Coordinator uint64
	Guards      []Guard
	// FailureDetector names the failure detector that all members run, and the election on top of
	// it, such as "swim+bully". They find members that do not answer, and elect a coordinator.
	// FailureDetector.Algorithm is empty if the members run none.
	FailureDetector Use
}

// Seat is the session of a server that takes part in guarding locks with algorithms.
type Seat struct {
	ID      string
	Server  uint64
	Address string // for clients
	// Remaining is the time left of its lease.
	Remaining time.Duration
	// Home is the server's report about itself. It is nil if nobody asked for it, or if the
	// server did not answer; Problem then says why it did not.
	Home    *Home
	Problem string
}

// Home is the state of a server as the home of clients: it runs the algorithms for their locks.
type Home struct {
	Epoch uint64
	// State is OUT, RESUMING or OPEN. A home grants locks only while it is OPEN.
	State string
	// Remaining is the time left of the lease of its seat, as the server sees it.
	Remaining time.Duration
	// Paused is how long the locks paused at the last change of the epoch.
	Paused time.Duration
	// Missing lists the servers that the home waits for before it opens.
	Missing []uint64
	// Sessions is the number of sessions of clients that use this home. Names is the number
	// of locks that have a machine here.
	Sessions, Names uint64
	Lanes           []Lane
	Namespaces      []Namespace
	// Detector is the state of its failure detector and its election. It is nil if the home runs
	// none.
	Detector *Detector
	// Starts has the latest epochs that began here, the newest last.
	Starts []ViewStart
}

// Detector is the state of the failure detector and the election of a home. The counters
// start at 0 when the server starts.
type Detector struct {
	// Stack has the names of the two algorithms, such as "swim+bully".
	Stack string
	// Suspected lists the members that the detector suspects or considers failed.
	Suspected []uint64
	// Elected is the member elected in this epoch, or 0.
	Elected uint64
	// Suspicions and Failures count reports about other members. Trusts counts reports that
	// withdraw one of them.
	Suspicions, Failures, Trusts uint64
	// Elections counts the results that the home received. Messages counts the messages that
	// it sent.
	Elections, Messages uint64
}

// ViewStart is the start of an epoch at one home.
type ViewStart struct {
	Epoch uint64
	At    time.Time
	Why   string
}

// Lane is the connection from a home to another server for the messages of algorithms.
type Lane struct {
	Server uint64
	Up     bool
	// Unacknowledged is the number of messages that the other server has not acknowledged.
	Unacknowledged uint64
}

// Namespace has the counts of one server for the locks under one prefix, since it started.
type Namespace struct {
	Prefix, Algorithm string
	// Names is the number of locks that have a machine at the server.
	Names uint64
	// Entries counts the grants to clients of the server. Messages counts the messages of the
	// algorithm that it sent to other servers. Others counts messages that the costs of the
	// algorithm leave out, such as acknowledgements.
	Entries, Messages, Others uint64
	// Waited is the sum over all entries of the time from the request to the algorithm until
	// the grant.
	Waited time.Duration
}

// Guard is what decides who holds the locks whose names start with a prefix. If several
// prefixes match, the longest one counts. Agreement guards names that no prefix matches.
type Guard struct {
	Prefix string
	Use    Use
	// Change is the change of the guard that is under way, or nil.
	Change *GuardChange
}

// Use names a guard.
type Use struct {
	// Algorithm is the name of an algorithm, such as "suzuki-kasami". It is empty for agreement.
	Algorithm string
	// Options has pairs such as "k=3", sorted by name and separated by commas.
	Options string
}

// GuardChange is a change of a guard that is under way. Until no lock under the prefix is held,
// none is granted there.
type GuardChange struct {
	Use Use
	// Remove means that the guard of a shorter prefix takes over.
	Remove bool
	// Quiet lists the servers that have reported that no lock under the prefix is held there.
	Quiet []uint64
	// Wait is the time after which the change is cancelled; 0 means never.
	Wait       time.Duration
	Reason, By string
}

// GuardOption sets an option of a change of a guard.
type GuardOption struct{ set func(*api.SetGuardRequest) }

// CancelAfter cancels the change if it is not complete after wait.
func CancelAfter(wait time.Duration) GuardOption {
	return GuardOption{func(r *api.SetGuardRequest) { r.WaitNs = int64(wait) }}
}

// AskHolders asks the holders of locks under the prefix to leave, as Revoke does.
func AskHolders(reason string) GuardOption {
	return GuardOption{func(r *api.SetGuardRequest) { r.Force, r.Reason = true, reason }}
}

// View returns the servers that run the algorithms that guard locks, and what guards which
// names.
func (a *Admin) View(ctx context.Context) (v View, err error) { return a.view(ctx, false) }

// Homes is like View, and also asks each member for its Home.
func (a *Admin) Homes(ctx context.Context) (v View, err error) { return a.view(ctx, true) }

func (a *Admin) view(ctx context.Context, homes bool) (v View, err error) {
	err = a.ask(ctx, "view", func(ctx context.Context, server api.ConclaveClient) error {
		answer, err := server.View(ctx, &api.ViewRequest{Homes: homes})
		if status.Code(err) == codes.Unimplemented { // a release in which algorithms cannot guard locks
			err = nil
		}
		v = View{
			Epoch: answer.GetEpoch(), Members: client.Each(answer.GetMembers(), seatOf), Others: client.Each(answer.GetOthers(), seatOf),
			Coordinator: answer.GetCoordinator(), Guards: client.Each(answer.GetGuards(), guardOf), FailureDetector: Use{answer.GetWatch(), answer.GetWatchOptions()},
		}
		return err
	})
	return v, err
}

func seatOf(s *api.Seat) Seat {
	return Seat{client.PublicID(s.GetId()), s.GetServer(), s.GetClientAddress(), time.Duration(s.GetRemainingNs()), homeOf(s.GetHome()), s.GetProblem()}
}

func homeOf(h *api.Home) *Home {
	if h == nil {
		return nil
	}
	home := &Home{
		Epoch: h.GetEpoch(), State: h.GetState(), Remaining: time.Duration(h.GetRemainingNs()), Paused: time.Duration(h.GetPausedNs()),
		Missing: h.GetMissing(), Sessions: h.GetSessions(), Names: h.GetNames(),
		Lanes: client.Each(h.GetLanes(), func(l *api.Lane) Lane { return Lane{l.GetServer(), l.GetUp(), l.GetUnacknowledged()} }),
		Namespaces: client.Each(h.GetNamespaces(), func(n *api.Namespace) Namespace {
			return Namespace{n.GetPrefix(), n.GetAlgorithm(), n.GetNames(), n.GetEntries(), n.GetMessages(), n.GetOtherMessages(), time.Duration(n.GetWaitedNs())}
		}),
		Starts: client.Each(h.GetStarts(), func(s *api.ViewStart) ViewStart {
			return ViewStart{s.GetEpoch(), time.Unix(0, s.GetAtUnixNs()), s.GetWhy()}
		}),
	}
	if w := h.GetWatch(); w.GetStack() != "" {
		home.Detector = &Detector{
			Stack: w.GetStack(), Suspected: w.GetDoubted(), Elected: w.GetElected(), Suspicions: w.GetSuspicions(), Failures: w.GetFailures(),
			Trusts: w.GetTrusts(), Elections: w.GetElections(), Messages: w.GetMessages(),
		}
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

// SetGuard starts to change what guards the locks whose names start with a prefix. View shows
// the progress. Setting the present guard cancels a change that is under way.
func (a *Admin) SetGuard(ctx context.Context, prefix string, use Use, options ...GuardOption) error {
	return a.setGuard(ctx, &api.SetGuardRequest{Prefix: prefix, Algorithm: use.Algorithm, Options: use.Options}, options)
}

// RemoveGuard starts to remove the guard of a prefix. The guard of a shorter prefix takes over.
func (a *Admin) RemoveGuard(ctx context.Context, prefix string, options ...GuardOption) error {
	return a.setGuard(ctx, &api.SetGuardRequest{Prefix: prefix, Remove: true}, options)
}

func (a *Admin) setGuard(ctx context.Context, req *api.SetGuardRequest, options []GuardOption) error {
	for _, option := range options {
		option.set(req)
	}
	what := "set guard"
	if req.GetWatch() {
		what = "set view"
	}
	_, err := call(ctx, a, what, api.ConclaveClient.SetGuard, req)
	return err
}

// SetFailureDetector sets the failure detector that all members run, and the election on top of it,
// such as Use{Algorithm: "swim+bully"}. The zero Use stops both. The setting is in force when
// SetFailureDetector returns, and the members follow it from the next epoch on. The reason is
// recorded for people.
func (a *Admin) SetFailureDetector(ctx context.Context, use Use, reason string) error {
	return a.setGuard(ctx, &api.SetGuardRequest{Watch: true, Algorithm: use.Algorithm, Options: use.Options, Reason: reason}, nil)
}

// CallElection asks the members to elect a coordinator, and returns the members that take part.
// It does not wait for the result, which counts from the next epoch on.
func (a *Admin) CallElection(ctx context.Context) (members []uint64, err error) {
	answer, err := call(ctx, a, "call election", api.ConclaveClient.CallElection, &api.CallElectionRequest{})
	return answer.GetMembers(), err
}

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
// if the servers that take part changed again and again, and conclave.ErrNotFound if no algorithm
// guards such a lock. Over 1,000 locks need a longer prefix.
func (a *Admin) Cut(ctx context.Context, prefix string) (cut Cut, err error) {
	var code codes.Code
	err = a.ask(ctx, "cut", func(ctx context.Context, server api.ConclaveClient) error {
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
		err = fmt.Errorf("conclave: cut: %w: no algorithm guards locks that start with %q", conclave.ErrNotFound, prefix)
	case code == codes.Unimplemented:
		err = fmt.Errorf("conclave: cut: unsupported by the release of the server; upgrade it")
	}
	return Cut{}, err
}

func cutOf(r *api.CutResponse) Cut {
	return Cut{Epoch: r.GetEpoch(), Members: r.GetMembers(), Locks: client.Each(r.GetLocks(), cutLockOf)}
}

func cutLockOf(l *api.CutLock) CutLock {
	return CutLock{
		Name: l.GetName(), Algorithm: l.GetAlgorithm(), OneToken: l.GetOneToken(), Tokens: int(l.GetTokens()), Wrong: l.GetWrong(),
		Machines: client.Each(l.GetMachines(), cutMachineOf),
		Messages: client.Each(l.GetMessages(), func(m *api.CutMessage) CutMessage { return CutMessage{m.GetFrom(), m.GetTo(), m.GetText()} }),
	}
}

func cutMachineOf(m *api.CutMachine) CutMachine {
	machine := CutMachine{
		Server: m.GetServer(), Made: m.GetMade(),
		State: client.Each(m.GetState(), func(f *api.CutField) CutField { return CutField{f.GetName(), f.GetValue()} }),
	}
	if len(m.GetHolder()) > 0 {
		machine.Holder = client.PublicID(m.GetHolder())
	}
	return machine
}
