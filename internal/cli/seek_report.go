package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/conclave-io/conclave"
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

// follow prints a line for the holder and the position in the queue, and one for each change. It
// prints no changes of a lock that an algorithm guards. It ignores errors, because the wait itself
// reports them.
func (s *seeker) follow(ctx context.Context, client *conclave.Client) {
	said := ""
	say := func(resources []conclave.Resource) {
		i := slices.IndexFunc(resources, func(r conclave.Resource) bool { return r.Name == s.name })
		if i < 0 {
			return
		}
		text := s.waitingFor(&resources[i], client.SessionID())
		if text != said && text != "" && ctx.Err() == nil {
			s.app.say("%s", text)
		}
		said = text
	}
	now, err := s.list(ctx, client)
	if err != nil {
		return
	}
	say(now)
	changes, err := s.resources().watch(ctx, client, s.name)
	if err != nil {
		return
	}
	for c := range changes {
		say(c.Resources)
	}
}

// waitingFor describes who has a resource, and how many requests are ahead of that of a session. It
// returns "" if the session does not wait.
func (s *seeker) waitingFor(r *conclave.Resource, session string) string {
	ahead := slices.IndexFunc(r.Waiters, func(w conclave.Waiter) bool { return w.Session == session })
	var more string
	switch {
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
		holders = append(holders, strings.TrimPrefix(by(h), " by "))
	}
	switch len(holders) {
	case 0:
		return fmt.Sprintf("waiting for %s %q: in transit to the next holder%s", s.class, s.name, more)
	case 1:
		return fmt.Sprintf("waiting for %s %q: %s by %s%s", s.class, s.name, s.taken(), holders[0], more)
	}
	return fmt.Sprintf("waiting for %s %q: %s by %d processes, the first is %s%s", s.class, s.name, s.taken(), len(holders), holders[0], more)
}
