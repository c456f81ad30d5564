package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave"
)

const electHelp = `Run a command while leading the election NAME.

conclave campaigns, runs the command while it leads, and resigns. Observers see
--value of the leader (conclave leader NAME).

Candidates are elected by --priority, higher ones first, and among equals in the
order in which they came. A leader stays when a better candidate comes, unless
that candidate has --patience. When it has waited that long, and the leader has
led that long, the leader is asked to leave. So a favourite that comes back takes
over after a while, and one that comes and goes more often than that, because its
machine or network is failing, unseats nobody.
`

func newElect(a *app) *cobra.Command {
	s := &seeker{app: a, kind: "election"}
	var c candidacy
	cmd := &cobra.Command{
		Use:   "elect NAME [flags] -- COMMAND [ARGUMENTS]",
		Short: "Run a command while leading an election",
		Long:  electHelp + helpFor("the leadership"),
		Example: `  conclave elect scheduler --value "$(hostname):8080" -- sleep 10
  conclave elect scheduler --repeat -- sleep 10   # after a loss, stand again
  conclave elect scheduler --try -- echo "I lead" # status 124 if another leads
  conclave elect db --priority 10 --patience 30s --repeat -- sleep 10  # the favourite
  conclave leader scheduler                       # who leads?`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.check(); err != nil {
				return err
			}
			s.acquire = func(ctx context.Context, client *conclave.Client) (hold, error) {
				options := []conclave.CampaignOption{conclave.Priority(c.priority), conclave.Patience(time.Duration(c.patience))}
				if s.try {
					return holdOf(client.TryCampaign(ctx, s.name, []byte(c.value), options...))
				}
				return holdOf(client.Campaign(ctx, s.name, []byte(c.value), options...))
			}
			return s.main(cmd, args)
		},
	}
	s.release = func(ctx context.Context, h hold) error { return h.(*conclave.Leadership).Resign(ctx) }
	s.register(cmd)
	c.register(cmd.Flags())
	cmd.Flags().BoolVar(&s.repeat, "repeat", false, "campaign again if the leadership is lost, instead of ending with status 120")
	return cmd
}

// candidacy says who stands for election.
type candidacy struct {
	value    string
	priority int64
	patience duration
}

func (c *candidacy) register(flags *pflag.FlagSet) {
	flags.StringVar(&c.value, "value", "", "what observers see of this leader, such as its address")
	flags.Int64Var(&c.priority, "priority", 0, "be elected before waiting candidates of lower priority")
	flags.Var(&c.patience, "patience", "after waiting so long, take the place of a leader of lower priority who has led so long, up to 1h (default: never)")
	flags.Lookup("patience").DefValue = ""
}

func (c *candidacy) check() error {
	if len(c.value) > conclave.MaxValue {
		return failure(StatusError, "--value has %d bytes; give at most %d", len(c.value), conclave.MaxValue)
	}
	if d := time.Duration(c.patience); d < 0 || d > conclave.MaxTTL {
		return failure(StatusError, "--patience %v is out of range; give 0s to %v", d, conclave.MaxTTL)
	}
	return nil
}
