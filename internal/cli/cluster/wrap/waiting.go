package wrap

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/cluster"
)

// reportAfter is how long a wait lasts before it is reported.
const reportAfter = time.Second

// report prints who holds what this command waits for: after reportAfter, and at each change. The
// function that it returns stops it.
func (s *seeker) report(ctx context.Context, client *conclave.Client) (stop func()) {
	if s.try || s.quiet {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-time.After(reportAfter):
			s.follow(ctx, client)
		case <-ctx.Done():
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// askEvery is how often the servers are asked about a lock whose changes they do not report: one
// that an algorithm guards, or that nobody gets until its guard has changed.
const askEvery = 2 * time.Second

// follow prints a line for the holder and the requests ahead, and one for each change, as paceOf says.
// It ignores errors, because the wait itself reports them.
func (s *seeker) follow(ctx context.Context, client *conclave.Client) {
	pace := &pacer{every: paceOf(s.app.Stderr), say: func(text string) {
		s.app.Say("waiting for %s %q: %s", s.of, s.name, text)
	}}
	defer pace.stop()
	say := func(r *conclave.Resource, silent []uint64) {
		if text := s.waitText(ctx, client, r, silent); text != "" && ctx.Err() == nil {
			pace.tell(text)
		}
	}
	for {
		now, silent, err := s.list(ctx, client)
		if err != nil {
			return
		}
		r := named(s.name, now)
		say(r, silent)
		if r != nil && len(r.Holders)+len(r.Closed) > 0 && r.Guard == "" {
			break
		}
		select {
		case <-time.After(askEvery):
		case <-ctx.Done():
			return
		}
	}
	changes, err := s.of.Watch(ctx, client, s.name)
	if err != nil {
		return
	}
	for c := range changes {
		say(named(s.name, c.Resources), nil)
	}
}

// waitText says why the wait lasts, or returns "".
func (s *seeker) waitText(ctx context.Context, client *conclave.Client, r *conclave.Resource, silent []uint64) string {
	if blocked := s.blocked(ctx, client, r); blocked != "" || r == nil {
		return blocked
	}
	if away := cluster.NoAnswer(silent); away != "" && len(r.Holders) == 0 && r.Guard != "" {
		return away
	}
	return s.waitingFor(r, client.SessionID())
}

// named returns the resource with the name, or nil.
func named(name string, resources []conclave.Resource) *conclave.Resource {
	i := slices.IndexFunc(resources, func(r conclave.Resource) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return &resources[i]
}

// blocked says why nobody gets what this command waits for, if nobody holds it and the reason is a
// change of its guard, or returns "".
func (s *seeker) blocked(ctx context.Context, client *conclave.Client, r *conclave.Resource) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return s.of.Blocked(ctx, client, s.name, r != nil && len(r.Holders) > 0)
}

// waitingFor describes who has a resource, and how many requests are ahead of that of a session, or
// how many others wait if an algorithm guards it. It returns "" if the session does not wait.
func (s *seeker) waitingFor(r *conclave.Resource, session string) string {
	ahead := slices.IndexFunc(r.Waiters, func(w conclave.Waiter) bool { return w.Session == session })
	var more string
	switch {
	case r.Guard != "": // no server knows the order
		if r.QueueLength == 2 {
			more = "; 1 other request waits"
		} else if r.QueueLength > 2 {
			more = fmt.Sprintf("; %d other requests wait", r.QueueLength-1)
		}
	case ahead < 0 && int(r.QueueLength) == len(r.Waiters):
		return ""
	case ahead < 0:
		more = fmt.Sprintf("; at least %d requests are ahead", len(r.Waiters))
	case ahead == 1:
		more = "; 1 request is ahead"
	case ahead > 1:
		more = fmt.Sprintf("; %d requests are ahead", ahead)
	}
	var holders []string
	for _, h := range r.Holders {
		holders = append(holders, strings.TrimPrefix(s.by(h), " by "))
	}
	if len(holders) == 0 && len(r.Closed) > 0 {
		return cluster.StaysClosed(&r.Closed[0]) + more
	}
	switch len(holders) {
	case 0:
		return "in transit to the next holder" + more
	case 1:
		return fmt.Sprintf("%s by %s%s", s.of.Taken(), holders[0], more)
	}
	return fmt.Sprintf("%s by %d processes, the first is %s%s", s.of.Taken(), len(holders), holders[0], more)
}
