package wrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/guard"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/alike"
	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// keeper keeps a lock without a command.
type keeper struct {
	*seeker
	max        ui.Duration
	whilePID   int
	background bool
	watched    *guard.Other // the process of --while-pid

	reportTo int            // the file descriptor to which a process in the background reports, or 0
	report   io.WriteCloser // that descriptor
	granted  atomic.Bool    // it has reported that the lock is granted
}

// NewHold returns the command hold.
func NewHold(a *connect.App) *cobra.Command {
	h := &keeper{seeker: &seeker{app: &runner{App: a}}}
	var sharing lockSharing
	cmd := &cobra.Command{
		Use:   "hold NAME",
		Short: "Hold a lock without running a command",
		Long: `conclave waits for the lock NAME behind earlier requests and holds it until it gets TERM, INT, HUP
or QUIT, until --max is over, or until the process of --while-pid has ended. Then it releases the
lock and exits with 0.

Nothing ends your work when the lock is lost. conclave lock does that for a command; use it where you
can. With conclave hold, only the fence protects the resource: send it with each write. The
fence is in the status file.

The lock is lost if this machine cannot reach the cluster, if conclave is killed or stopped, or if an
operator asks the holder to leave. conclave then exits with status 120: --grace before another
program can get the lock, and at once if it was asked to leave. It does not release a lost lock: your
work has the rest of --ttl to end.

Under systemd, the service is ready when the lock is granted. A unit with BindsTo= is stopped
when the lock is lost: see the unit conclave-hold@.service.

With --background, conclave returns after the grant, and a process in the background holds the lock.
It requires --status-file, and --max or --while-pid. conclave drop ends it and reports whether the
lock was held until then.`,
		Example: `  conclave hold nightly                                  # until Ctrl-C
  conclave hold nightly --wait 5m --max 1h
  conclave hold deploy --background --while-pid 4711 --status-file /run/deploy.json
  conclave hold deploy --background --max 1h --try --status-file /run/deploy.json
  conclave drop /run/deploy.json`,
		Annotations: ui.Statuses("0 released, or with --background: granted", "120 lost, or the holder was asked to leave\n(--lost-status sets another status)",
			"124 not acquired: the cluster answered that another process has it\n(--conflict-status sets another status)",
			"125 invalid arguments; or conclave failed, the cluster did not answer, or waiting\nwould complete a deadlock (--failure-status sets another status for these)",
			"128+n signal n ended the wait"),
		Args: ui.Takes("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := h.lockOptions(&sharing, cmd.Flags())
			if err != nil {
				return err
			}
			h.shared, h.name = sharing.shared, args[0]
			h.acquire = func(ctx context.Context, client *conclave.Client) (hold, error) {
				if h.try {
					return holdOf(client.TryLock(ctx, h.name, options...))
				}
				return holdOf(client.Lock(ctx, h.name, options...))
			}
			return h.main(cmd)
		},
	}
	h.use = h.stay
	h.release = func(ctx context.Context, l hold) error { return l.(*conclave.Lock).Unlock(ctx) }
	h.discard = func(ctx context.Context, l hold) error { return l.(*conclave.Lock).Discard(ctx) }
	h.seeker.register(cmd)
	sharing.register(cmd.Flags())
	h.register(cmd.Flags())
	return cmd
}

// reportFlag is the flag with which a process in the background is started.
const reportFlag = "report-to"

func (h *keeper) register(flags *pflag.FlagSet) {
	flags.Lookup("grace").Usage = "exit this long before another program can get the lock, at most a quarter of --ttl, or 300ms if an algorithm guards the lock (default: 2s, or that maximum)"
	flags.Var(&h.max, "max", "release the lock this long after the grant (default: never)")
	flags.IntVar(&h.whilePID, "while-pid", 0, "release the lock when the process with this `pid` has ended (Linux only)")
	flags.BoolVar(&h.background, "background", false, "return after the grant, and hold the lock in the background (Linux only)")
	flags.IntVar(&h.reportTo, reportFlag, 0, "the file descriptor to which a process in the background reports")
	_ = flags.MarkHidden(reportFlag) // it exists
}

// check checks the flags.
func (h *keeper) check(flags interface{ Changed(string) bool }) error {
	switch {
	case flags.Changed("max") && h.max <= 0:
		return ui.NotPositive("--max", h.max)
	case flags.Changed("while-pid") && h.whilePID <= 0:
		return fmt.Errorf("--while-pid: %d: must be above 0", h.whilePID)
	case h.background && h.file.path == "":
		return errors.New("--background: requires --status-file")
	case h.background && h.max == 0 && h.whilePID == 0:
		return errors.New("--background: requires --max or --while-pid, because nothing else would end a forgotten hold")
	case h.background && !guard.Complete:
		return errors.New("--background: requires Linux; run conclave hold under a service manager")
	}
	return h.seeker.check(flags)
}

func (h *keeper) main(cmd *cobra.Command) error {
	if err := h.check(cmd.Flags()); err != nil {
		return err
	}
	if err := conclave.ValidateName(h.name); err != nil {
		return err
	}
	cfg, err := h.app.Client.Config()
	if err != nil {
		return err
	}
	if h.whilePID > 0 {
		if h.watched, err = guard.Find(h.whilePID); err != nil {
			return fmt.Errorf("--while-pid: %d: %w", h.whilePID, aboutProcess(err))
		}
	}
	if err := h.file.open(h.of.String(), h.name); err != nil {
		return err
	}
	if err := h.file.unused(); err != nil {
		return err
	}
	if h.background && h.reportTo == 0 {
		return h.detach()
	}
	h.attach()
	return h.begin(cmd.Context(), cfg)
}

// aboutProcess translates the errors of guard.Find.
func aboutProcess(err error) error {
	switch {
	case errors.Is(err, os.ErrProcessDone):
		return errors.New("no such process")
	case errors.Is(err, errors.ErrUnsupported):
		return errors.New("requires Linux")
	}
	return err
}

// unused fails if a hold that has not ended uses the file: nothing else tells conclave drop about it.
func (f *statusFile) unused() error {
	if f.path == "" {
		return nil
	}
	r, err := readRecord(f.path)
	if err != nil || r.State != stateHeld || r.PID == f.PID {
		return nil // there is no such file, or it is replaced
	}
	p, err := r.process()
	if err != nil {
		return nil
	}
	p.Close()
	return aboutFile(f.path, fmt.Errorf("in use: process %d holds %s %s; use another file, or conclave drop", r.PID, r.Class, alike.Quoted(r.Name)))
}

// Why a hold without a command was released.
const (
	bySignal  = "signal"
	byMax     = "max"
	byProcess = "while-pid"
)

// stay holds the lock until it is to be released. The error is errLost or errRevoked, or why nobody
// could be told about the grant.
func (h *keeper) stay(l hold, arrived signals) (guard.Result, error) {
	// Several may have waited with the same file.
	err := h.file.unused()
	if err == nil {
		err = h.file.granted(l, h.app.under)
	}
	if err == nil {
		err = h.announce(l)
	}
	if err != nil {
		return guard.Result{}, err
	}
	over, ended := h.ends()
	for {
		loss := time.NewTimer(boottime.Until(h.giveUpAt(l)))
		select {
		case <-l.Context().Done():
			return guard.Result{}, endOf(l)
		case <-loss.C:
			if boottime.Until(h.giveUpAt(l)) <= 0 {
				return guard.Result{}, endOf(l)
			}
		case <-l.Renewed():
		case sig := <-arrived:
			if ui.Ending(sig) {
				h.file.Reason = bySignal
				return guard.Result{}, nil
			}
		case <-over:
			h.file.Reason = byMax
			return guard.Result{}, nil
		case <-ended:
			h.file.Reason = byProcess
			return guard.Result{}, nil
		}
		loss.Stop()
	}
}

// giveUpAt returns when the lock counts as lost if it is not renewed until then.
func (h *keeper) giveUpAt(l hold) boottime.Time {
	return boottime.Time(l.Deadline()).Add(-h.graceOf(l) - marginOf(l.TTL()))
}

// ends returns channels for --max and --while-pid. Without the flag, a channel blocks forever.
func (h *keeper) ends() (over <-chan time.Time, ended <-chan struct{}) {
	if h.max > 0 {
		over = time.After(time.Duration(h.max))
	}
	if h.watched != nil {
		ended = h.watched.Ended()
	}
	return over, ended
}

// announce tells the user, systemd, or the process that has started this one in the background that the
// lock is granted.
func (h *keeper) announce(l hold) error {
	fence, err := l.Fence()
	if err != nil {
		return endOf(l)
	}
	if h.report != nil {
		return h.tellParent()
	}
	text := fmt.Sprintf("%s %s: held, fence %d", h.of, alike.Quoted(h.name), fence)
	if !h.quiet {
		h.app.Say("%s", text)
	}
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady+"\nSTATUS="+text); err != nil {
		h.app.Say("warning: systemd: %s", ui.OneLine(err.Error()))
	}
	return nil
}
