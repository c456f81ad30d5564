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
environment; it should hand fence and floor to whatever it writes to. If %[1]s is lost, because
this machine cannot reach the cluster, or because conclave was killed or
stopped, or if its holder is asked to leave (conclave release --force), the
command and all that it has started are ended before anyone else can get it:
TERM first, KILL after --grace. %[2]s is given up only when nothing of the
command is left, so also after its background processes.

Signals TERM, INT, HUP, QUIT, USR1, USR2 and WINCH are passed on. A command that
is suspended (Ctrl-Z) for longer than --ttl is lost.

Exit status: that of the command, or 128+n if signal n ended it;
  120  lost, or asked to leave; the command was ended
  124  not acquired in time
  125  conclave itself failed, or was called wrongly
  126  the command cannot be executed
  127  the command was not found`

func helpFor(it string) string {
	return fmt.Sprintf(runHelp, it, strings.ToUpper(it[:1])+it[1:])
}

func newLock(a *app) *cobra.Command {
	s := &seeker{app: a, kind: "lock"}
	var kind lockKind
	cmd := &cobra.Command{
		Use:   "lock NAME [flags] -- COMMAND [ARGUMENTS]",
		Short: "Run a command while holding a lock",
		Long: "Wait for the lock NAME, run a command while holding it, and release it.\n" + helpFor("the lock") + `

With --shared, other shared holders come in beside this one: a lock for readers,
whose writers take it without the flag. With --limit N, up to N hold it at a time,
all of whom give the same N. Who comes waits behind those who wait.`,
		Example: `  conclave lock nightly-report -- ./report.sh
  conclave lock backup --try -- ./backup.sh        # do nothing if it is held
  conclave lock deploy --wait 5m -- make deploy    # wait 5 minutes at most
  conclave lock db -- sh -c 'echo "fence $CONCLAVE_FENCE"'
  conclave lock catalogue --shared -- ./read.sh    # beside other readers
  conclave lock crawlers --limit 4 -- ./crawl.sh   # four at a time
  conclave lock lab -- bash                        # a shell that holds the lock`,
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
	s.list = func(ctx context.Context, client *conclave.Client) ([]conclave.Resource, error) {
		return client.List(ctx, s.name)
	}
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
