package wrap

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/cluster"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

const electHelp = `conclave campaigns in the election NAME. When it is elected it runs COMMAND, and resigns after
COMMAND exits. conclave leader NAME shows the --value of the leader to other programs.

The candidate with the highest --priority is elected next. Candidates of equal priority are
elected in order of arrival. A leader stays when a candidate of higher priority arrives, unless
that candidate has --patience: after it has waited that long, and the leader has led that long,
the leader is asked to leave. So a preferred candidate takes over some time after it returns. A
candidate that fails more often than that never replaces the leader.
`

// NewElect returns the command elect.
func NewElect(a *connect.App) *cobra.Command {
	s := &seeker{app: &runner{App: a}, of: cluster.ResourceClass{Election: true}}
	var c candidacy
	cmd := &cobra.Command{
		Use:   "elect NAME [flags] -- COMMAND [ARGUMENTS]",
		Short: "Run a command while leading an election",
		Long:  electHelp + helpFor("the leadership"),
		Example: `  conclave elect scheduler --value "$(hostname):8080" -- sleep 10
  conclave elect scheduler --repeat -- sleep 10    # campaign again after a loss
  conclave elect scheduler --try -- echo "I lead"  # status 124 if another leads
  conclave elect db --priority 10 --patience 30s -- sleep 10
  conclave leader scheduler`,
		Annotations: runStatuses,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.check(); err != nil {
				return err
			}
			s.acquire = func(ctx context.Context, client *conclave.Client) (hold, error) {
				options := []conclave.CampaignOption{conclave.Priority(c.priority), conclave.Patience(time.Duration(c.patience))}
				for _, option := range s.lingering.options() {
					options = append(options, option)
				}
				if s.try {
					return holdOf(client.TryCampaign(ctx, s.name, []byte(c.value), options...))
				}
				return holdOf(client.Campaign(ctx, s.name, []byte(c.value), options...))
			}
			return s.main(cmd, args)
		},
	}
	s.release = func(ctx context.Context, h hold) error { return h.(*conclave.Leadership).Resign(ctx) }
	s.discard = func(ctx context.Context, h hold) error { return h.(*conclave.Leadership).Discard(ctx) }
	s.register(cmd)
	c.register(cmd.Flags())
	cmd.Flags().BoolVar(&s.repeat, "repeat", false, "campaign again if the leadership is lost, instead of exiting with status 120")
	return cmd
}

// candidacy has the flags of a candidate.
type candidacy struct {
	value    string
	priority int64
	patience ui.Duration
}

func (c *candidacy) register(flags *pflag.FlagSet) {
	flags.StringVar(&c.value, "value", "", "publish this value of the leader, such as its address")
	flags.Int64Var(&c.priority, "priority", 0, "candidates with a higher number are elected first")
	flags.Var(&c.patience, "patience", "replace a leader of lower priority after waiting this long, if it has led this long, up to 1h (default: never)")
}

func (c *candidacy) check() error {
	if len(c.value) > conclave.MaxValue {
		return ui.Failure(ui.StatusError, "--value: %d bytes: must have at most %d bytes", len(c.value), conclave.MaxValue)
	}
	if d := time.Duration(c.patience); d < 0 || d > conclave.MaxTTL {
		return ui.Failure(ui.StatusError, "--patience: %v: must be between 0s and %v", d, conclave.MaxTTL)
	}
	return nil
}
