package cli

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

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/boottime"
	"github.com/conclave-io/conclave/internal/guard"
)

// hold is a lock that is held or an election that is won.
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

// runFlags are those of the commands that run another.
type runFlags struct {
	wait, ttl, grace duration
}

const defaultGrace = 2 * time.Second

func (f *runFlags) register(cmd *cobra.Command) {
	f.ttl = duration(conclave.DefaultTTL)
	flags := cmd.Flags()
	flags.Var(&f.wait, "wait", "how long to wait before giving up with status 124 (default: for ever)")
	flags.Var(&f.ttl, "ttl", "how long others wait if this machine dies, 100ms to 1h")
	flags.Var(&f.grace, "grace", "time between TERM and KILL if the hold is lost, at most a quarter of --ttl, and of 1.2s under an algorithm (default: 2s, or that quarter)")
	flags.Lookup("wait").DefValue, flags.Lookup("grace").DefValue = "", ""
}

// resolve checks the flags and fills in what depends on others.
func (f *runFlags) resolve(flags interface{ Changed(string) bool }) error {
	if ttl := time.Duration(f.ttl); ttl < conclave.MinTTL || ttl > conclave.MaxTTL {
		return failure(StatusError, "--ttl %v is out of range; give %v to %v", ttl, conclave.MinTTL, conclave.MaxTTL)
	}
	if flags.Changed("wait") && f.wait <= 0 {
		return failure(StatusError, "--wait %v: give more than zero", &f.wait)
	}
	most := f.ttl / 4
	if !flags.Changed("grace") {
		f.grace = min(duration(defaultGrace), most)
		if time.Duration(f.ttl) < time.Second {
			// The deadline of so short a session is a third nearer. With all of
			// the quarter, TERM would come before a renewal that is a little late.
			f.grace = f.ttl / 10
		}
	}
	if f.grace < 0 || f.grace > most {
		return failure(StatusError, "--grace %v is out of range; give 0s to a quarter of --ttl, which is %v", &f.grace, &most)
	}
	return nil
}

// marginOf is how long before the deadline the guard kills under a hold with a TTL: room
// for the killing, on a machine that is busy.
func marginOf(ttl time.Duration) time.Duration {
	return min(max(ttl/20, 10*time.Millisecond), 500*time.Millisecond)
}

// graceOf is the grace under a hold. One that an algorithm guards may have a shorter TTL
// than was asked for.
func (f *runFlags) graceOf(h hold) time.Duration { return min(time.Duration(f.grace), h.TTL()/4) }

// split takes the arguments of a command that runs another apart. A command that
// cannot be found fails here, before anybody waits for it.
func split(cmd *cobra.Command, args []string) (name string, argv []string, err error) {
	dash := cmd.ArgsLenAtDash()
	switch {
	case len(args) == 0 || dash == 0:
		return "", nil, failure(StatusError, "no name given; write: conclave %s NAME -- COMMAND [ARGUMENTS]", cmd.Name())
	case dash < 0 && len(args) > 1 || dash > 1:
		return "", nil, failure(StatusError, "%q follows the name; write -- before the command: conclave %s NAME -- COMMAND [ARGUMENTS]", args[1], cmd.Name())
	case len(args) < 2:
		return "", nil, failure(StatusError, "no command given; write: conclave %s NAME -- COMMAND [ARGUMENTS]", cmd.Name())
	}
	if err := conclave.ValidateName(args[0]); err != nil {
		return "", nil, err
	}
	if _, err := guard.Lookup(args[1]); err != nil {
		return "", nil, startFailure(err)
	}
	return args[0], args[1:], nil
}

// startFailure gives an error of the command the status that env gives it.
func startFailure(err error) error {
	var start *guard.StartError
	if errors.As(err, &start) {
		return &statusError{start.Status, err}
	}
	return err
}

// signals are those that have arrived for the command and not reached it yet.
type signals chan os.Signal

func catchSignals() signals {
	c := make(signals, 16)
	for _, sig := range passed {
		if !signal.Ignored(sig) { // as under nohup: then it is the command's to ignore too
			signal.Notify(c, sig)
		}
	}
	return c
}

func (c signals) stop() { signal.Stop(c) }

// during calls wait with a context that ends with a signal that ends processes.
// It returns that signal, or nil.
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
				if ending(sig) {
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

// interruption is the end of a wait by a signal.
type interruption struct{ sig os.Signal }

func (e *interruption) Error() string { return "ended by signal: " + e.sig.String() }

func signalStatus(sig os.Signal) int {
	if n, ok := sig.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return StatusError
}

// errLost is the end of a command whose lock or leadership was lost, and
// errRevoked of one whose holder was asked to leave: it stands until it is
// released, and that is due when nothing of the command is left.
var (
	errLost    = errors.New("its session was not renewed in time, or was ended by the servers")
	errRevoked = errors.New("its holder was asked to leave")
)

// endOf says why a hold ended that was not given up.
func endOf(h hold) error {
	var revoked *conclave.RevokedError
	switch {
	case !errors.As(context.Cause(h.Context()), &revoked):
		return errLost
	case revoked.Reason == "":
		return errRevoked
	}
	return fmt.Errorf("%w (%s)", errRevoked, shown(revoked.Reason))
}

// stands says whether a hold is still there to be given up.
func stands(h hold) bool { return h.Context().Err() == nil || errors.Is(endOf(h), errRevoked) }

// runUnder runs a command while h holds, and returns when nothing of it is left.
// The error is errLost or errRevoked, or why there is no result.
func (a *app) runUnder(h hold, argv []string, f *runFlags, arrived signals) (guard.Result, error) {
	handle, err := a.startUnder(h, argv, f)
	if err != nil {
		return guard.Result{}, err
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
			// A hold that is revoked is dropped in time, renewed or not: only the
			// deadlines from before are its own.
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

// numbers returns what a command finds of its hold in its environment.
func numbers(h hold, inherited []conclave.Kept) ([]string, error) {
	fence, err := h.Fence()
	if err != nil {
		return nil, err
	}
	floor, err := h.Floor()
	return []string{
		keepsVar + "=" + keepsText(append(slices.Clip(inherited), h.Kept())),
		"CONCLAVE_FENCE=" + strconv.FormatUint(fence, 10), "CONCLAVE_FLOOR=" + strconv.FormatUint(floor, 10), "CONCLAVE_RESOURCE=" + h.Name(),
	}, err
}

// startUnder starts a command under h. A hold that was granted with little time
// left is waited for to be renewed.
func (a *app) startUnder(h hold, argv []string, f *runFlags) (*guard.Handle, error) {
	for {
		env, err := numbers(h, a.keeps)
		if err != nil {
			return nil, endOf(h)
		}
		handle, err := guard.Start(guard.Spec{
			Argv:     argv,
			Env:      append(os.Environ(), env...),
			Deadline: boottime.Time(h.Deadline()), Grace: f.graceOf(h), Margin: marginOf(h.TTL()),
			Terminal: true, Sole: true,
			Suspended: func() {
				left := boottime.Until(boottime.Time(h.Deadline())).Round(100 * time.Millisecond)
				a.say("suspended: unless it is continued, %q is lost and the command ended within %v", h.Name(), left)
			},
		})
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
