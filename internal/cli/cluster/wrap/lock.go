package wrap

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

const runHelp = `
COMMAND gets the variables CONCLAVE_RESOURCE (the name), CONCLAVE_FENCE and CONCLAVE_FLOOR. With
each write to a shared resource it should send the fence and the floor, so that the resource can
reject an earlier holder. The variable CONCLAVE_KEEPS tells a conclave that runs inside COMMAND
what is held. On Linux, such a conclave also finds it in the environments of its ancestors. If its
wait would complete a deadlock, or an ancestor has what it waits for, it fails at once.

%[2]s is lost if this machine cannot reach the cluster, if conclave is killed or
stopped, or if an operator asks the holder to leave (conclave release --force). Then conclave
ends COMMAND and all processes that COMMAND has started, before another program can get
%[1]s: it sends TERM, and KILL after --grace.

After COMMAND exits, %[1]s is released when no process of COMMAND is left, not even in
the background. If that takes more than a second, conclave prints which processes are left.
--end-children ends them. --leave-children releases %[1]s at once and leaves them running.

--at-least 10m lets nobody else get %[1]s until 10 minutes after the grant, however COMMAND ends. So
a job of cron with --try and --at-least runs once per period, on one of several machines.
--delay-after-loss does the same after a loss only. If COMMAND cannot be started, neither applies.

--wait bounds the whole wait, with a quorum or without. At its end, the exit status is 124 if a
server answers that another process has %[1]s, and 125 if no server answers.

If standard error is not a terminal, for example under cron, conclave prints at most one line per
minute while it waits. With --quiet it prints only losses and failures. --status-file F writes JSON
to F when COMMAND starts and when it has ended: the fence, the times, the outcome (exited,
signaled, lost, revoked, conflict, deadlock, interrupted or failed) and the exit status.

conclave forwards the signals TERM, INT, HUP, QUIT, USR1, USR2 and WINCH to COMMAND. If COMMAND is
suspended (Ctrl-Z) for longer than --ttl, %[1]s is lost.

On Linux, three processes can end COMMAND: conclave, a guard (conclave __guard) and a sentinel. One
of them is enough. The name and command line of the sentinel do not contain "conclave", so that
pkill -9 -f conclave does not kill it. COMMAND runs in its own cgroup if the system allows it:
cgroup version 2, Linux 5.14 or later, and root or a delegated cgroup.

In these cases conclave cannot end COMMAND in time, and only the fence protects the resource:
  - All three processes are killed or stopped. If the guard is killed, COMMAND is killed too, but
    the processes that COMMAND has started continue.
  - A process is in uninterruptible sleep.
  - Another program works for COMMAND: a daemon (docker, systemd-run, at) or another machine.
  - Without a cgroup: a process changes its user (sudo) while conclave does not run as root, or
    joins another PID namespace (nsenter).
  - With a cgroup: such a process is moved to another cgroup.
  - On systems other than Linux: conclave is killed. There it ends only the process group of
    COMMAND, and on Windows only COMMAND itself.`

// runStatuses are the exit statuses of the commands that run another.
var runStatuses = ui.Statuses(
	"N the exit status of COMMAND",
	"128+n signal n ended COMMAND",
	"120 lost, or the holder was asked to leave; conclave ended COMMAND\n(--lost-status sets another status)",
	"124 not acquired: the cluster answered that another process has it\n(--conflict-status sets another status)",
	"125 invalid arguments; or conclave failed, the cluster did not answer, or waiting\nwould complete a deadlock (--failure-status sets another status for these)",
	"126 COMMAND cannot be executed",
	"127 COMMAND was not found",
)

func helpFor(it string) string {
	return fmt.Sprintf(runHelp, it, strings.ToUpper(it[:1])+it[1:])
}

// NewLock returns the command lock.
func NewLock(a *connect.App) *cobra.Command {
	s := &seeker{app: &runner{App: a}}
	var sharing lockSharing
	cmd := &cobra.Command{
		Use:   "lock NAME [flags] -- COMMAND [ARGUMENTS]",
		Short: "Run a command while holding a lock",
		Long: `conclave waits for the lock NAME behind earlier requests, runs COMMAND, and releases the lock. After
one second of waiting, it prints who holds the lock and how many requests are ahead, and again
whenever that changes.

With --shared, several shared holders can have the lock at the same time, as readers do. A holder
without --shared excludes all others, as a writer does. With --limit N, up to N holders can have
the lock at the same time. All of them must give the same N.
` + helpFor("the lock"),
		Example: `  conclave lock nightly-report -- sh -c 'echo "fence $CONCLAVE_FENCE"'
  conclave lock backup --try --at-least 10m -- echo "I run"   # for cron on several machines: one of them runs it
  conclave lock deploy --wait 5m -- echo "my turn"       # wait at most 5 minutes
  conclave lock crawlers --limit 4 -- sleep 10           # up to four at the same time
  conclave lock catalog --shared -- cat /etc/hostname    # together with other readers`,
		Annotations: runStatuses,
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := s.lockOptions(&sharing, cmd.Flags())
			if err != nil {
				return err
			}
			s.shared = sharing.shared
			s.acquire = func(ctx context.Context, client *conclave.Client) (hold, error) {
				if s.try {
					return holdOf(client.TryLock(ctx, s.name, options...))
				}
				return holdOf(client.Lock(ctx, s.name, options...))
			}
			return s.main(cmd, args)
		},
	}
	s.release = func(ctx context.Context, h hold) error { return h.(*conclave.Lock).Unlock(ctx) }
	s.discard = func(ctx context.Context, h hold) error { return h.(*conclave.Lock).Discard(ctx) }
	s.register(cmd)
	sharing.register(cmd.Flags())
	return cmd
}

// lockSharing has the flags for sharing a lock with other holders.
type lockSharing struct {
	shared bool
	limit  int64
}

func (k *lockSharing) register(flags *pflag.FlagSet) {
	flags.BoolVar(&k.shared, "shared", false, "allow other shared holders at the same time, as for readers")
	flags.Int64Var(&k.limit, "limit", 1, "allow this many holders at the same time; all holders must give the same number")
}

func (k *lockSharing) options(flags interface{ Changed(string) bool }) ([]conclave.LockOption, error) {
	switch {
	case k.shared && flags.Changed("limit"):
		return nil, ui.Exclude("--shared", "--limit")
	case k.limit < 1 || k.limit > conclave.MaxLimit:
		return nil, ui.Failure(ui.StatusError, "--limit: %d: must be between 1 and %d", k.limit, conclave.MaxLimit)
	case k.shared:
		return []conclave.LockOption{conclave.Shared()}, nil
	case k.limit == 1:
		return nil, nil
	}
	return []conclave.LockOption{conclave.Limit(uint32(k.limit))}, nil
}

// holdOf returns a nil interface with an error, not an interface that contains a nil *Lock.
func holdOf[H hold](h H, err error) (hold, error) {
	if err != nil {
		return nil, err
	}
	return h, nil
}
