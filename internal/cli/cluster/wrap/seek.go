package wrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/cluster"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/guard"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// seeker waits for a lock or a leadership, runs a command under it, and releases it.
type seeker struct {
	app  *runner
	of   cluster.ResourceClass
	name string
	argv []string
	// try means not to wait, repeat to start again after a loss, and quiet to print only losses
	// and failures.
	try, repeat, quiet bool
	shared             bool // a lock that other shared holders can have at the same time
	runFlags
	statuses
	file statusFile
	// until is when the wait ends, if --wait is given.
	until time.Time
	// taken is the process that has it, if that is why it was not acquired.
	taken conclave.Holder

	acquire func(ctx context.Context, client *conclave.Client) (hold, error)
	release func(ctx context.Context, h hold) error
	list    func(ctx context.Context, client *conclave.Client) (known []conclave.Resource, silent []uint64, err error)
}

// register adds the flags of all commands that run another command.
func (s *seeker) register(cmd *cobra.Command) {
	s.list = func(ctx context.Context, client *conclave.Client) ([]conclave.Resource, []uint64, error) {
		return s.of.ListAll(ctx, client, s.name)
	}
	s.runFlags.register(cmd)
	s.statuses.register(cmd.Flags())
	cmd.Flags().StringVar(&s.file.path, "status-file", "", "write to this `file` who has it, then how that ended, as JSON; it replaces the file")
	cmd.Flags().BoolVar(&s.try, "try", false, "do not wait: exit with status 124 if it is not free at once")
	cmd.Flags().BoolVar(&s.quiet, "quiet", false, "print only losses and failures: not who has it, and not what is waited for")
}

func (s *seeker) main(cmd *cobra.Command, args []string) error {
	if err := s.resolve(cmd.Flags()); err != nil {
		return err
	}
	if s.try && cmd.Flags().Changed("wait") {
		return ui.Exclude("--try", "--wait")
	}
	if cmd.Flags().Changed("status-file") && s.file.path == "" {
		return aboutFile("", errors.New("must name a file"))
	}
	var err error
	if s.name, s.argv, err = split(cmd, args); err != nil {
		return err
	}
	cfg, err := s.app.Client.Config()
	if err != nil {
		return err
	}
	cfg.TTL, cfg.Program = time.Duration(s.ttl), s.argv[0]
	s.file.Class, s.file.Name, s.file.Program = s.of.String(), s.name, s.argv[0]
	if err := s.file.open(); err != nil {
		return err
	}
	if !guard.Complete {
		s.app.Say("warning: on this system, conclave ends only the process group of the command if the %s is lost", s.of)
	}
	connect.HideToken()
	s.app.inherit()
	result, err := s.seek(cmd.Context(), cfg)
	return s.finish(result, err)
}

// finish records how the run ended, and sets the exit status.
func (s *seeker) finish(result guard.Result, err error) error {
	end := s.record(result, err)
	status := s.statuses.of(end, result, err)
	var gaveUp *interruption
	switch {
	case errors.As(err, &gaveUp):
		yield(gaveUp.sig)
	case err != nil && end == conflict && s.quiet: // the status says it
	case err != nil:
		return &ui.Error{Status: status, Err: err}
	case result.Foreground:
		defer share(result.Signal)
	}
	s.app.Status = status
	return nil
}

// record writes how a turn ended to the status file, and returns it.
func (s *seeker) record(result guard.Result, err error) outcome {
	end := outcomeOf(result, err)
	if w := s.file.ended(end, s.statuses.of(end, result, err), result, s.taken, err); w != nil {
		s.app.Say("%s", ui.OneLine(w.Error()))
	}
	return end
}

// seek connects, takes its turns and disconnects.
func (s *seeker) seek(ctx context.Context, cfg conclave.Config) (result guard.Result, err error) {
	arrived := catchSignals()
	defer arrived.stop()
	var client *conclave.Client
	s.until = time.Now().Add(time.Duration(s.runFlags.wait))
	if s.runFlags.wait > 0 { // it is how long the user is willing to wait, with a quorum or without
		s.app.Client.Timeout = s.runFlags.wait
	}
	sig := arrived.during(ctx, func(ctx context.Context) {
		ctx, cancel := s.bounded(ctx)
		defer cancel()
		client, err = s.app.DialReady(ctx, cfg)
	})
	if client != nil {
		defer hangUp(client)
	}
	switch {
	case sig != nil:
		return result, &interruption{sig}
	case err != nil:
		return result, s.unknown(err)
	}
	return s.turns(ctx, client, arrived)
}

// bounded returns a context that ends when --wait is over.
func (s *seeker) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.runFlags.wait <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, s.until)
}

// hangUp closes the session. If no server confirms in time, the session expires by itself.
func hangUp(client *conclave.Client) {
	closed := make(chan struct{})
	go func() {
		client.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(closeTimeout):
	}
}

// closeTimeout bounds how long closing the session delays the exit.
const closeTimeout = 500 * time.Millisecond

// turns takes one turn, or with repeat another one after each loss.
func (s *seeker) turns(ctx context.Context, client *conclave.Client, arrived signals) (guard.Result, error) {
	for {
		result, err := s.turn(ctx, client, arrived)
		if !s.repeat || !errors.Is(err, errLost) && !errors.Is(err, errRevoked) {
			return result, err
		}
		s.record(result, err)
		s.app.Say("%s; waiting for it again", ui.OneLine(err.Error()))
		s.until = time.Now().Add(time.Duration(s.runFlags.wait))
	}
}

// turn waits once, and runs the command once.
func (s *seeker) turn(ctx context.Context, client *conclave.Client, arrived signals) (guard.Result, error) {
	h, err := s.wait(ctx, client, arrived)
	if err != nil {
		return guard.Result{}, err
	}
	if err := s.file.granted(h, s.app.under); err != nil {
		s.app.Say("%s", ui.OneLine(err.Error())) // the command runs for its own sake
	}
	return s.hold(h, arrived)
}

// wait returns a hold, or why there is none.
func (s *seeker) wait(ctx context.Context, client *conclave.Client, arrived signals) (h hold, err error) {
	ctx = conclave.Keeping(ctx, s.app.under.Holds...)
	sig := arrived.during(ctx, func(ctx context.Context) {
		if err = s.refuseAncestor(ctx, client); err != nil {
			return
		}
		ctx, cancel := s.bounded(ctx)
		if s.try { // wait only for the answer
			ctx, cancel = context.WithTimeout(ctx, time.Duration(s.app.Client.Timeout))
		}
		defer cancel()
		defer s.report(ctx, client)()
		h, err = s.acquire(ctx, client)
	})
	if sig != nil {
		// A hold that was granted meanwhile ends with the session.
		return nil, &interruption{sig}
	}
	return h, s.refusal(ctx, client, err)
}

// refusal says why something was not acquired. It returns nil if err is nil.
func (s *seeker) refusal(ctx context.Context, client *conclave.Client, err error) error {
	var held *conclave.HeldError
	switch {
	case errors.As(err, &held):
		if held.Holder.Fence == 0 {
			if blocked := s.blocked(ctx, client, nil); blocked != "" {
				return ui.Failure(ui.StatusNotAcquired, "%s %q: %s", s.of, s.name, blocked)
			}
		}
		s.taken = held.Holder
		return ui.Failure(ui.StatusNotAcquired, "%s %q: %s%s", s.of, s.name, s.of.Taken(), s.by(held.Holder))
	case errors.Is(err, conclave.ErrDeadlock):
		return &ui.Error{Status: ui.StatusError, Err: err}
	case errors.Is(err, conclave.ErrUnavailable):
		return s.unknown(connect.Silence(err, s.app.Client.Timeout))
	case errors.Is(err, context.DeadlineExceeded):
		holder, err := s.holder(ctx, client)
		if errors.Is(err, context.DeadlineExceeded) {
			return s.unknown(&connect.Unanswered{Within: s.app.Client.Timeout, Tried: ui.OneLine(err.Error()), Err: err})
		}
		return ui.Failure(ui.StatusNotAcquired, "%s %q: not acquired within %v%s", s.of, s.name, &s.runFlags.wait, holder)
	}
	return err
}

// by describes a holder, as the end of a sentence.
func (s *seeker) by(h conclave.Holder) string {
	text := cluster.By(h)
	if text != "" && s.app.under.Perhaps(h.Host, h.PID) {
		text += ", perhaps an ancestor of this process"
	}
	return text
}

// refuseAncestor fails if this process runs under a hold that excludes what it would wait for. The
// servers refuse such a wait too, but not for a lock that an algorithm guards, and not if this process
// proves another identity than its ancestor.
func (s *seeker) refuseAncestor(ctx context.Context, client *conclave.Client) error {
	above := func(h conclave.Holder) bool {
		return s.app.under.Has(conclave.Kept{Cluster: client.Cluster(), Election: s.of.Election, Name: s.name, Fence: h.Fence})
	}
	if !s.app.under.Names(s.of.Election, s.name) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	resources, _, err := s.list(ctx, client)
	r := named(s.name, resources)
	if err != nil || r == nil || r.Limit > 1 {
		return nil // the wait itself reports errors, and others may leave before an ancestor
	}
	if i := slices.IndexFunc(r.Holders, above); i >= 0 && !(s.shared && r.Holders[i].Shared) {
		return ui.Failure(ui.StatusError, "%s %q: %w: %s; run the inner command directly",
			s.of, s.name, errAncestor, strings.TrimPrefix(cluster.By(r.Holders[i]), " by "))
	}
	return nil
}

// unknown adds to err that the state of the lock is unknown, if the cluster did not answer. The
// status is then not StatusNotAcquired, which is an answer of the cluster.
func (s *seeker) unknown(err error) error {
	var silent *connect.Unanswered
	if !errors.As(err, &silent) {
		return err
	}
	silent.Within = min(silent.Within, s.app.Client.Timeout)
	return ui.Failure(ui.StatusError, "%s %q: %w; whether it is free is unknown", s.of, s.name, silent)
}

// hold runs the command and releases the hold. It returns when no process of the command is left.
func (s *seeker) hold(h hold, arrived signals) (guard.Result, error) {
	result, err := s.app.runUnder(h, s.specOf(h), arrived)
	if stands(h) {
		// A new context: the release is necessary even if the command was interrupted.
		ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
		defer cancel()
		if r := s.release(ctx, h); r != nil && !errors.Is(r, conclave.ErrNotHeld) {
			s.app.Say("%s %q: release failed: %s; it will be free within %v", s.of, s.name, ui.OneLine(r.Error()), &s.ttl)
		}
	}
	end := "the command was ended"
	if early := new(notStarted); errors.As(err, &early) {
		err, end = early.error, "the command was not started"
	}
	switch {
	case errors.Is(err, errRevoked):
		return result, ui.Failure(ui.StatusLost, "%s %q: revoked: %w; %s", s.of, s.name, err, end)
	case errors.Is(err, errLost):
		return result, ui.Failure(ui.StatusLost, "%s %q: lost: %w; %s", s.of, s.name, err, end)
	}
	return result, err
}

// releaseTimeout bounds the wait for the confirmation of a release. Without one, the hold ends
// when the session expires.
const releaseTimeout = 5 * time.Second

// holder describes who holds what was not acquired. The error means that no server answered at
// once.
func (s *seeker) holder(ctx context.Context, client *conclave.Client) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	resources, silent, err := s.list(ctx, client)
	r := named(s.name, resources)
	if r != nil && len(r.Holders) > 0 {
		s.taken = r.Holders[0]
		return ": " + s.of.Taken() + s.by(s.taken), nil
	}
	if blocked := s.blocked(ctx, client, r); blocked != "" {
		return ": " + blocked, nil
	}
	if away := cluster.NoAnswer(silent); away != "" {
		return ": " + away, nil
	}
	return "", err
}

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
		if r != nil && len(r.Holders) > 0 && r.Guard == "" {
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
	switch len(holders) {
	case 0:
		return "in transit to the next holder" + more
	case 1:
		return fmt.Sprintf("%s by %s%s", s.of.Taken(), holders[0], more)
	}
	return fmt.Sprintf("%s by %d processes, the first is %s%s", s.of.Taken(), len(holders), holders[0], more)
}
