package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
)

func newElect(a *app) *cobra.Command {
	s := &seeker{app: a, kind: "election"}
	var value string
	cmd := &cobra.Command{
		Use:   "elect NAME [flags] -- COMMAND [ARGUMENTS]",
		Short: "Run a command while leading an election",
		Long: "Campaign in the election NAME, run a command while leading, and resign. Candidates\nare elected in the order in which they came; observers see --value of the leader.\n" +
			helpFor("the leadership"),
		Example: `  conclave elect scheduler --value "$(hostname):8080" -- ./scheduler
  conclave elect scheduler --repeat -- ./scheduler    # after a loss, stand again
  conclave elections scheduler                        # who leads?`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(value) > conclave.MaxValue {
				return failure(StatusError, "--value has %d bytes; give at most %d", len(value), conclave.MaxValue)
			}
			return s.main(cmd, args)
		},
	}
	s.acquire = func(ctx context.Context, client *conclave.Client) (hold, error) {
		l, err := client.Campaign(ctx, s.name, []byte(value))
		if err != nil {
			return nil, err
		}
		return l, nil
	}
	s.release = func(ctx context.Context, h hold) error { return h.(*conclave.Leadership).Resign(ctx) }
	s.list = func(ctx context.Context, client *conclave.Client) ([]conclave.Resource, error) {
		return client.ListElections(ctx, s.name)
	}
	s.register(cmd)
	cmd.Flags().StringVar(&value, "value", "", "what observers see of this leader, such as its address")
	cmd.Flags().BoolVar(&s.repeat, "repeat", false, "campaign again if the leadership is lost, instead of ending with status 120")
	return cmd
}
