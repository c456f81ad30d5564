package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave"
)

const runHelp = `
The command finds CONCLAVE_FENCE, CONCLAVE_FLOOR and CONCLAVE_RESOURCE in its
environment. It should send fence and floor with everything that it writes. A
conclave that it runs learns from CONCLAVE_KEEPS what it runs under: one that would
wait for a holder that waits for this one ends with status 124 (a deadlock).

If %[1]s is lost, the command and all processes that it has started are ended
before anyone else can get it: TERM first, KILL after --grace. It is lost if
this machine cannot reach the cluster, if conclave is killed or stopped, or if
its holder is asked to leave (conclave release --force). %[2]s is
released only when no process of the command is left, in the background either.

Signals TERM, INT, HUP, QUIT, USR1, USR2 and WINCH are passed on. A command that
is suspended (Ctrl-Z) for longer than --ttl is lost.

On Linux three processes see to that: conclave itself, a guard (conclave
__guard), and a sentinel. Any one of them is enough. The sentinel's name and
command line do not contain "conclave", so pkill -9 -f conclave leaves it. The
command runs in a cgroup of its own if the system allows it: cgroup version 2,
Linux 5.14, and root or a delegated cgroup.

Not covered, so that only the fence protects:
  - all three processes killed or stopped; if the guard is killed, the command
    dies with it, but what the command has started goes on
  - processes in uninterruptible sleep: %[1]s is kept as long as the
    session lasts, but they cannot be ended
  - work that others do for the command: daemons (docker, systemd-run, at) and
    other machines
  - without a cgroup: processes that become another user's (sudo), unless
    conclave runs as root, and processes that join another PID namespace
    (nsenter)
  - with a cgroup: the same processes, if they are moved out of it
  - other systems than Linux: there conclave ends the command's process group
    (on Windows the command alone), and nobody does if conclave is killed

Exit status:
  N      the command's own
  128+n  signal n ended the command
  120    lost, or asked to leave; the command was ended
  124    not acquired in time: the cluster answered that somebody else has it;
         or not at all: waiting would complete a deadlock
  125    conclave failed or was called wrongly, or the cluster did not answer
  126    the command cannot be executed
  127    the command was not found`

func helpFor(it string) string {
	return fmt.Sprintf(runHelp, it, strings.ToUpper(it[:1])+it[1:])
}

func newLock(a *app) *cobra.Command {
	s := &seeker{app: a, kind: "lock"}
	var kind lockKind
	cmd := &cobra.Command{
		Use:   "lock NAME [flags] -- COMMAND [ARGUMENTS]",
		Short: "Run a command while holding a lock",
		Long: `Run a command while holding the lock NAME.

conclave waits for the lock behind earlier requests, runs the command, and
releases the lock. After a second of waiting it prints who holds the lock and how
many requests are ahead, and again whenever that changes (not with --quiet). With --shared, other shared holders come in beside this one: a
lock for readers, whose writers take it without the flag. With --limit N, up to N
hold it at a time; all of them give the same N.
` + helpFor("the lock"),
		Example: `  conclave lock nightly-report -- sh -c 'echo "fence $CONCLAVE_FENCE"'
  conclave lock backup --try -- echo "nobody else runs"  # status 124 if it is held
  conclave lock deploy --wait 5m -- echo "my turn"       # wait 5 minutes at most
  conclave lock crawlers --limit 4 -- sleep 10           # four at a time
  conclave lock lab -- sh                                # a shell that holds the lock`,
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := kind.options(cmd.Flags())
			if err != nil {
				return err
			}
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
	s.register(cmd)
	kind.register(cmd.Flags())
	return cmd
}

// lockKind says who else may hold the lock.
type lockKind struct {
	shared bool
	limit  int64
}

func (k *lockKind) register(flags *pflag.FlagSet) {
	flags.BoolVar(&k.shared, "shared", false, "let other shared holders in: a lock for readers")
	flags.Int64Var(&k.limit, "limit", 1, "let so many hold it at a time: a semaphore; all give the same number")
}

func (k *lockKind) options(flags interface{ Changed(string) bool }) ([]conclave.LockOption, error) {
	switch {
	case k.shared && flags.Changed("limit"):
		return nil, errors.New("--shared and --limit: give one of them")
	case k.limit < 1 || k.limit > conclave.MaxLimit:
		return nil, failure(StatusError, "--limit %d is out of range; give 1 to %d", k.limit, conclave.MaxLimit)
	case k.shared:
		return []conclave.LockOption{conclave.Shared()}, nil
	case k.limit == 1:
		return nil, nil
	}
	return []conclave.LockOption{conclave.Limit(uint32(k.limit))}, nil
}

// holdOf returns a nil interface, not one with a nil *Lock in it, along with an
// error.
func holdOf[H hold](h H, err error) (hold, error) {
	if err != nil {
		return nil, err
	}
	return h, nil
}
