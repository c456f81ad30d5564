// Package wrap has the commands that run another command while they hold a lock or lead an election.
package wrap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/keeps"
	"github.com/conclave-io/conclave/internal/cli/guard"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/alike"
	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// hold is a held lock or a won election.
type hold interface {
	Name() string
	Fence() (uint64, error)
	Floor() (uint64, error)
	Context() context.Context
	Deadline() time.Duration
	TTL() time.Duration
	Renewed() <-chan struct{}
	Kept() conclave.Kept
}

// runFlags are the flags of the commands that run another command.
type runFlags struct {
	wait, ttl, grace ui.Duration
	leave, end       bool // the processes that the command has left when it exits
}

const defaultGrace = 2 * time.Second

func (f *runFlags) register(cmd *cobra.Command) {
	f.ttl = ui.Duration(conclave.DefaultTTL)
	flags := cmd.Flags()
	flags.Var(&f.wait, "wait", "give up after this time, also if no server answers; --timeout then does not apply (default: wait forever)")
	flags.Var(&f.ttl, "ttl", "how long others wait for the lock if this machine dies, 100ms to 1h")
	flags.Var(&f.grace, "grace", "time between TERM and KILL after a loss, at most a quarter of --ttl, or 300ms if an algorithm guards the lock (default: 2s, or that maximum)")
}

// registerChildren adds the flags about the processes that a command leaves.
func (f *runFlags) registerChildren(flags *pflag.FlagSet) {
	flags.BoolVar(&f.end, "end-children", false, "when COMMAND has exited, end the processes that it has started (default: wait for them)")
	flags.BoolVar(&f.leave, "leave-children", false, "when COMMAND has exited, release it at once and leave the processes that COMMAND has started; only the fence protects from them")
}

// resolve checks the flags and sets the defaults that depend on other flags.
func (f *runFlags) resolve(flags interface{ Changed(string) bool }) error {
	if ttl := time.Duration(f.ttl); ttl < conclave.MinTTL || ttl > conclave.MaxTTL {
		return ui.Failure(ui.StatusError, "--ttl: %v: must be between %v and %v", ttl, conclave.MinTTL, conclave.MaxTTL)
	}
	if flags.Changed("wait") && f.wait <= 0 {
		return ui.NotPositive("--wait", f.wait)
	}
	if f.leave && f.end {
		return ui.Exclude("--leave-children", "--end-children")
	}
	most := f.ttl / 4
	if !flags.Changed("grace") {
		f.grace = min(ui.Duration(defaultGrace), most)
		if time.Duration(f.ttl) < time.Second {
			// The client stops such a short session a third of the TTL early. With a grace
			// of a quarter, TERM would come before a renewal that is slightly late.
			f.grace = f.ttl / 10
		}
	}
	if f.grace < 0 || f.grace > most {
		return ui.Failure(ui.StatusError, "--grace: %v: must be between 0s and a quarter of --ttl, which is %v", &f.grace, &most)
	}
	return nil
}

// marginOf is how long before the deadline the guard kills the command. Killing takes time on a
// busy machine.
func marginOf(ttl time.Duration) time.Duration {
	return min(max(ttl/20, 10*time.Millisecond), 500*time.Millisecond)
}

// graceOf is the grace of a hold. If an algorithm guards the lock, the TTL may be shorter than
// --ttl.
func (f *runFlags) graceOf(h hold) time.Duration { return min(time.Duration(f.grace), h.TTL()/4) }

// split returns the name and the command of a command line with both. It fails at once if
// the command does not exist, before it waits for the lock.
func split(cmd *cobra.Command, args []string) (name string, argv []string, err error) {
	dash := cmd.ArgsLenAtDash()
	switch {
	case len(args) == 0 || dash == 0:
		return "", nil, ui.Takes("NAME")(cmd, nil)
	case dash < 0 && len(args) > 1 || dash > 1:
		return "", nil, fmt.Errorf("%q: unexpected argument after NAME; put -- before the command", args[1])
	case len(args) < 2:
		return "", nil, fmt.Errorf("COMMAND: missing; usage: %s", cmd.UseLine())
	}
	if err := conclave.ValidateName(args[0]); err != nil {
		return "", nil, err
	}
	if _, err := guard.Lookup(args[1]); err != nil {
		return "", nil, startFailure(err)
	}
	return args[0], args[1:], nil
}

// startFailure sets the exit status of a command that cannot start: 126 or 127, as for env.
func startFailure(err error) error {
	var start *guard.StartError
	if errors.As(err, &start) {
		return &ui.Error{Status: start.Status, Err: err}
	}
	return err
}

// signals has the signals that have arrived and were not yet forwarded to the command.
type signals chan os.Signal

func catchSignals() signals {
	c := make(signals, 16)
	for _, sig := range ui.Passed {
		if !signal.Ignored(sig) { // as under nohup: the command then ignores it too
			signal.Notify(c, sig)
		}
	}
	return c
}

func (c signals) stop() { signal.Stop(c) }

// during calls wait with a context that ends when a terminating signal arrives. It returns that
// signal, or nil.
func (c signals) during(ctx context.Context, wait func(context.Context)) os.Signal {
	ctx, cancel := context.WithCancel(ctx)
	var got os.Signal
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case sig := <-c:
				if ui.Ending(sig) {
					got = sig
					cancel()
				}
			}
		}
	})
	wait(ctx)
	cancel()
	watching.Wait()
	return got
}

// interruption is the error of a wait that a signal ended.
type interruption struct{ sig os.Signal }

func (e *interruption) Error() string { return "ended by signal: " + e.sig.String() }

// errLost means that the hold is lost. errRevoked means that the holder was asked to leave: the
// hold lasts until it is released, which must happen when no process of the command is left.
var (
	errLost    = errors.New("the session was not renewed in time, or a server ended it")
	errRevoked = errors.New("the holder was asked to leave")
)

// endOf returns why a hold ended that was not released.
func endOf(h hold) error {
	var revoked *conclave.RevokedError
	switch {
	case !errors.As(context.Cause(h.Context()), &revoked):
		return errLost
	case revoked.Reason == "":
		return errRevoked
	}
	return fmt.Errorf("%w (%s)", errRevoked, ui.Shown(revoked.Reason))
}

// stands reports whether a hold must still be released.
func stands(h hold) bool { return h.Context().Err() == nil || errors.Is(endOf(h), errRevoked) }

// runner runs commands under holds.
type runner struct {
	*connect.App
	under keeps.Inherited // the holds under which this process runs
}

// runUnder runs a command under h, and returns when no process of it is left. The error is errLost,
// errRevoked, or why the command has no result.
func (a *runner) runUnder(h hold, spec guard.Spec, arrived signals) (guard.Result, error) {
	handle, err := a.startUnder(h, spec)
	if err != nil {
		return guard.Result{}, &notStarted{err}
	}
	ended := make(chan struct{})
	var result guard.Result
	go func() {
		defer close(ended)
		result, err = handle.Wait()
	}()
	lost := h.Context().Done()
	for {
		select {
		case <-ended:
			if result.Lost || lost == nil {
				return result, endOf(h)
			}
			return result, err
		case <-lost:
			lost = nil
			handle.Stop()
		case <-h.Renewed():
			// The servers drop a revoked hold after one TTL, even if its session is
			// renewed. Only the deadlines from before the revocation count.
			if deadline := h.Deadline(); h.Context().Err() == nil {
				handle.Extend(boottime.Time(deadline))
			}
		case sig := <-arrived:
			if n, ok := sig.(syscall.Signal); ok {
				handle.Signal(n)
			}
		}
	}
}

// notStarted is why a command did not start.
type notStarted struct{ error }

func (e *notStarted) Unwrap() error { return e.error }

// numbers returns the environment variables that describe the hold to a command.
func numbers(h hold, inherited []conclave.Kept) ([]string, error) {
	fence, err := h.Fence()
	if err != nil {
		return nil, err
	}
	floor, err := h.Floor()
	return []string{
		keeps.Setting(append(slices.Clip(inherited), h.Kept())),
		"CONCLAVE_FENCE=" + strconv.FormatUint(fence, 10), "CONCLAVE_FLOOR=" + strconv.FormatUint(floor, 10), "CONCLAVE_RESOURCE=" + h.Name(),
	}, err
}

// specOf returns how to run the command of s under h. startUnder adds what changes with a renewal.
func (s *seeker) specOf(h hold) guard.Spec {
	spec := guard.Spec{
		Argv: s.argv, Grace: s.graceOf(h), Margin: marginOf(h.TTL()), Terminal: true, Sole: true,
		Suspended: func() {
			left := boottime.Until(boottime.Time(h.Deadline())).Round(100 * time.Millisecond)
			s.app.Say("suspended: unless the command is continued, %s is lost and the command is ended within %v", alike.Quoted(h.Name()), left)
		},
	}
	switch {
	case s.end:
		spec.Children = guard.EndChildren
	case s.leave:
		spec.Children = guard.LeaveChildren
	}
	if !s.quiet {
		spec.Remaining = s.remaining
	}
	return spec
}

// remaining says which processes keep what a command has left.
func (s *seeker) remaining(command guard.Result, left []guard.Process) {
	exit, until := fmt.Sprintf("has exited with %d", command.Status), "the processes that it has started end"
	if command.Signal != 0 {
		exit = fmt.Sprintf("was ended by signal %d", command.Signal)
	}
	switch {
	case len(left) == 1:
		until = keeps.List(left) + " ends"
	case len(left) > 1:
		until = keeps.List(left) + " end"
	}
	s.app.Say("%s %s: %s %s; the %s is kept until %s", s.of, alike.Quoted(s.name), ui.Shown(s.argv[0]), exit, s.of, until)
}

// startUnder starts a command under h. If little time is left until the deadline, it first waits
// for a renewal.
func (a *runner) startUnder(h hold, spec guard.Spec) (*guard.Handle, error) {
	for {
		env, err := numbers(h, a.under.Holds)
		if err != nil {
			return nil, endOf(h)
		}
		spec.Env, spec.Deadline = append(os.Environ(), env...), boottime.Time(h.Deadline())
		handle, err := guard.Start(spec)
		if !errors.Is(err, guard.ErrTooLate) {
			return handle, startFailure(err)
		}
		select {
		case <-h.Renewed():
		case <-h.Context().Done():
			return nil, endOf(h)
		}
	}
}

// inherit reads the holds under which this process runs.
func (a *runner) inherit() {
	var ignored error
	if a.under, ignored = keeps.Inherit(); ignored != nil {
		a.Say("%s: ignored: %s", keeps.Variable, ui.OneLine(ignored.Error()))
	}
}
