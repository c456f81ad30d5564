package wrap

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/cluster"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/guard"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/alike"
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
	lingering
	runFlags
	statuses
	file statusFile
	// until is when the wait ends, if --wait is given.
	until time.Time
	// taken is the process that has it, if that is why it was not acquired, and closed the hold after
	// which it stays closed.
	taken  conclave.Holder
	closed *conclave.Closed

	// use does under a hold what the command is for, and returns at its end. The error is errLost,
	// errRevoked, or why there is no result.
	use     func(h hold, arrived signals) (guard.Result, error)
	acquire func(ctx context.Context, client *conclave.Client) (hold, error)
	release func(ctx context.Context, h hold) error
	// discard releases a hold under which nothing ran.
	discard func(ctx context.Context, h hold) error
	list    func(ctx context.Context, client *conclave.Client) (known []conclave.Resource, silent []uint64, err error)
}

// register adds the flags of all commands that run another command.
func (s *seeker) register(cmd *cobra.Command) {
	s.list = func(ctx context.Context, client *conclave.Client) ([]conclave.Resource, []uint64, error) {
		return s.of.ListAll(ctx, client, s.name)
	}
	if s.use == nil {
		s.use = s.command
		s.registerChildren(cmd.Flags())
	}
	s.runFlags.register(cmd)
	s.statuses.register(cmd.Flags())
	s.lingering.register(cmd.Flags())
	cmd.Flags().StringVar(&s.file.path, "status-file", "", "write to this `file` who has it, then how that ended, as JSON; it replaces the file")
	cmd.Flags().BoolVar(&s.try, "try", false, "do not wait: exit with status 124 if it is not free at once")
	cmd.Flags().BoolVar(&s.quiet, "quiet", false, "print only losses and failures: not who has it, and not what is waited for")
}

// check checks the flags, and sets the defaults that depend on other flags.
func (s *seeker) check(flags interface{ Changed(string) bool }) error {
	switch {
	case s.try && flags.Changed("wait"):
		return ui.Exclude("--try", "--wait")
	case flags.Changed("status-file") && s.file.path == "":
		return aboutFile("", errors.New("must name a file"))
	}
	if err := s.lingering.check(s.shared); err != nil {
		return err
	}
	return s.resolve(flags)
}

// main runs a command under what it acquires.
func (s *seeker) main(cmd *cobra.Command, args []string) error {
	err := s.check(cmd.Flags())
	if err != nil {
		return err
	}
	if s.name, s.argv, err = split(cmd, args); err != nil {
		return err
	}
	cfg, err := s.app.Client.Config()
	if err != nil {
		return err
	}
	cfg.Program = s.argv[0]
	s.file.Program = s.argv[0]
	if err := s.file.open(s.of.String(), s.name); err != nil {
		return err
	}
	if !guard.Complete {
		s.app.Say("warning: on this system, conclave ends only the process group of the command if the %s is lost", s.of)
	}
	return s.begin(cmd.Context(), cfg)
}

// begin acquires, uses and releases it, and sets the exit status.
func (s *seeker) begin(ctx context.Context, cfg conclave.Config) error {
	connect.HideToken()
	s.app.inherit()
	cfg.TTL = time.Duration(s.ttl)
	return s.finish(s.seek(ctx, cfg))
}

// command runs the command under a hold.
func (s *seeker) command(h hold, arrived signals) (guard.Result, error) {
	if err := s.file.granted(h, s.app.under); err != nil {
		s.app.Say("%s", ui.OneLine(err.Error())) // the command matters more
	}
	return s.app.runUnder(h, s.specOf(h), arrived)
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
	if end == exited && s.argv == nil {
		end = released
	}
	if w := s.file.ended(end, s.statuses.of(end, result, err), result, s.taken, s.closed, err); w != nil {
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
		defer func() {
			if !s.abandoned(err) {
				hangUp(client)
			}
		}()
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
	errors.As(err, &held)
	switch {
	case held != nil && held.Closed != nil:
		s.closed = held.Closed
		return ui.Failure(ui.StatusNotAcquired, "%s %s: %s", s.of, alike.Quoted(s.name), cluster.StaysClosed(held.Closed))
	case held != nil:
		if held.Holder.Fence == 0 {
			if blocked := s.blocked(ctx, client, nil); blocked != "" {
				return ui.Failure(ui.StatusNotAcquired, "%s %s: %s", s.of, alike.Quoted(s.name), blocked)
			}
		}
		s.taken = held.Holder
		return ui.Failure(ui.StatusNotAcquired, "%s %s: %s%s", s.of, alike.Quoted(s.name), s.of.Taken(), s.by(held.Holder))
	case errors.Is(err, conclave.ErrDeadlock):
		return &ui.Error{Status: ui.StatusError, Err: err}
	case errors.Is(err, conclave.ErrUnavailable):
		return s.unknown(connect.Silence(err, s.app.Client.Timeout))
	case errors.Is(err, context.DeadlineExceeded):
		holder, err := s.holder(ctx, client)
		if errors.Is(err, context.DeadlineExceeded) {
			return s.unknown(&connect.Unanswered{Within: s.app.Client.Timeout, Tried: ui.OneLine(err.Error()), Err: err})
		}
		return ui.Failure(ui.StatusNotAcquired, "%s %s: not acquired within %v%s", s.of, alike.Quoted(s.name), &s.runFlags.wait, holder)
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
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.app.Client.Timeout))
	defer cancel()
	resources, _, err := s.list(ctx, client)
	if errors.Is(err, conclave.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		return s.unknown(connect.Silence(err, s.app.Client.Timeout)) // the wait might never end
	}
	r := named(s.name, resources)
	if r == nil || r.Limit > 1 {
		return nil // it may not be shown to this caller, or others may leave before an ancestor
	}
	if i := slices.IndexFunc(r.Holders, above); i >= 0 && !(s.shared && r.Holders[i].Shared) {
		return ui.Failure(ui.StatusError, "%s %s: %w: %s; run the inner command directly",
			s.of, alike.Quoted(s.name), errAncestor, strings.TrimPrefix(cluster.By(r.Holders[i]), " by "))
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
	return ui.Failure(ui.StatusError, "%s %s: %w; whether it is free is unknown", s.of, alike.Quoted(s.name), silent)
}

// hold runs the command and releases the hold. It returns when no process of the command is left.
func (s *seeker) hold(h hold, arrived signals) (guard.Result, error) {
	result, err := s.use(h, arrived)
	early := new(notStarted)
	release := s.release
	if errors.As(err, &early) { // it has not run, so others may
		release = s.discard
	}
	if stands(h) && !s.abandoned(err) {
		// A new context: the release is necessary even if the command was interrupted.
		ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
		defer cancel()
		if r := release(ctx, h); r != nil && !errors.Is(r, conclave.ErrNotHeld) {
			s.app.Say("%s %s: release failed: %s; it will be free within %v", s.of, alike.Quoted(s.name), ui.OneLine(r.Error()), &s.ttl)
		}
	}
	end := "; the command was ended"
	if early.error != nil {
		err, end = early.error, "; the command was not started"
	}
	if s.argv == nil {
		end = ""
	}
	switch {
	case errors.Is(err, errRevoked):
		return result, ui.Failure(ui.StatusLost, "%s %s: revoked: %w%s", s.of, alike.Quoted(s.name), err, end)
	case errors.Is(err, errLost):
		return result, ui.Failure(ui.StatusLost, "%s %s: lost: %w%s", s.of, alike.Quoted(s.name), err, end)
	}
	return result, err
}

// abandoned reports whether a hold without a command was lost. It is then not released before its
// deadline: what it is held for has this time to end, and nobody says when it has ended.
func (s *seeker) abandoned(err error) bool {
	return s.argv == nil && (errors.Is(err, errLost) || errors.Is(err, errRevoked))
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
	if r != nil && len(r.Closed) > 0 {
		s.closed = &r.Closed[0]
		return ": " + cluster.StaysClosed(s.closed), nil
	}
	if blocked := s.blocked(ctx, client, r); blocked != "" {
		return ": " + blocked, nil
	}
	if away := cluster.NoAnswer(silent); away != "" {
		return ": " + away, nil
	}
	return "", err
}
