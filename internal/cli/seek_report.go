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

// report says what a wait is for, once it has lasted for a while, and whenever that
// changes. The function that it returns ends it.
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

// follow prints what the wait is for, and a line for each change of that. Of a lock that an
// algorithm guards it prints no changes. If the cluster does not answer, the wait itself
// says what is wrong.
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

// waitingFor says who has a resource, and how many are ahead of a session that waits for
// it; "" if it does not wait.
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
		return fmt.Sprintf("waiting for %s %q: it is being handed over%s", s.kind, s.name, more)
	case 1:
		return fmt.Sprintf("waiting for %s %q: %s by %s%s", s.kind, s.name, s.taken(), holders[0], more)
	}
	return fmt.Sprintf("waiting for %s %q: %s by %d, the first is %s%s", s.kind, s.name, s.taken(), len(holders), holders[0], more)
}
