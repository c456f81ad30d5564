package admin

import (
	"cmp"
	"context"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client"
)

// Expectation is the rule that a lock or an election is to be held again at the latest one period after
// its last hold has ended. A name counts as held for as long as anybody holds it.
type Expectation struct {
	Name     string
	Election bool // or a lock
	Every    time.Duration
	// Set is when the name became one with a rule, by the clock of the server that led then. SetBy is the
	// principal that has set the rule as it is now. It is empty for an anonymous one.
	Set   time.Time
	SetBy string
	// Held means that somebody holds the name.
	Held bool
	// Last is the newest hold or, if nobody holds the name, the hold that ended last. While it lasts,
	// Until is zero and How is empty. Its fence is 0 if the name has not been held since the rule was set.
	Last conclave.Ended
	// Idle is for how long nobody has held the name, or has not since the rule was set. It is an estimate:
	// the longer one of what the wall clock and the replicated time of the answering server say. A wrong
	// wall clock can make it too long. It is too short only by time in which the cluster had no leader, and
	// only if the wall clock is wrong too.
	Idle time.Duration
	// Overdue means that Idle is longer than Every.
	Overdue bool
}

// Expected returns the rules by class and name: those of names that the caller may read.
func (a *Admin) Expected(ctx context.Context) ([]Expectation, error) {
	answer, err := call(ctx, a, "expected", api.ConclaveClient.Expected, &api.ExpectedRequest{})
	if err != nil {
		return nil, err
	}
	return client.Each(answer.GetRules(), expectationOf), nil
}

// Expect sets the rule that a lock is to be held again within a period of its last hold, from 1 second to
// 366 days. A rule of a name counts from when it was set first. The cluster keeps at most 256 rules. A lock
// that an algorithm guards cannot have one. Without a deadline in ctx it tries for 10 seconds.
func (a *Admin) Expect(ctx context.Context, name string, every time.Duration) error {
	return a.expect(ctx, &api.ExpectRequest{Name: name, EveryNs: int64(every)})
}

// ExpectElection is Expect for an election, which is held while it has a leader.
func (a *Admin) ExpectElection(ctx context.Context, name string, every time.Duration) error {
	return a.expect(ctx, &api.ExpectRequest{Class: api.Class_CLASS_ELECTION, Name: name, EveryNs: int64(every)})
}

// RemoveExpectation removes the rule of a lock, or returns conclave.ErrNotFound.
func (a *Admin) RemoveExpectation(ctx context.Context, name string) error {
	return a.expect(ctx, &api.ExpectRequest{Name: name, Remove: true})
}

// RemoveElectionExpectation removes the rule of an election, or returns conclave.ErrNotFound.
func (a *Admin) RemoveElectionExpectation(ctx context.Context, name string) error {
	return a.expect(ctx, &api.ExpectRequest{Class: api.Class_CLASS_ELECTION, Name: name, Remove: true})
}

func (a *Admin) expect(ctx context.Context, req *api.ExpectRequest) error {
	var missing error
	err := a.ask(ctx, "expect", func(ctx context.Context, server api.ConclaveClient) error {
		_, err := server.Expect(ctx, req)
		if status.Code(err) == codes.NotFound {
			missing = &conclave.RequestError{Op: "expect", Name: req.GetName(), Code: api.Code_CODE_NOT_FOUND, Message: status.Convert(err).Message()}
			return nil
		}
		return err
	})
	return cmp.Or(err, missing)
}

func expectationOf(e *api.Expectation) Expectation {
	x := Expectation{
		Name: e.GetName(), Election: e.GetClass() == api.Class_CLASS_ELECTION, Every: time.Duration(e.GetEveryNs()),
		Set: time.Unix(0, e.GetSetUnixNs()), SetBy: e.GetSetBy(), Held: e.GetHeld(), Idle: time.Duration(e.GetIdleNs()), Overdue: e.GetOverdue(),
	}
	l := e.GetLast()
	if l == nil {
		return x
	}
	x.Last = conclave.Ended{
		Fence: l.GetFence(), Since: time.Unix(0, l.GetSinceUnixNs()), Owner: l.GetOwner(), Host: l.GetHost(), PID: l.GetPid(), Program: l.GetProgram(),
	}
	if l.GetHow() != api.Ending_ENDING_UNSPECIFIED {
		x.Last.Until, x.Last.How = time.Unix(0, l.GetUntilUnixNs()), strings.ToLower(strings.TrimPrefix(l.GetHow().String(), "ENDING_"))
	}
	return x
}
