package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
)

// oneName takes exactly one name of a lock or an election.
func oneName(cmd *cobra.Command, args []string) error {
	if err := takes("NAME")(cmd, args); err != nil {
		return err
	}
	return conclave.ValidateName(args[0])
}

// completionTimeout bounds the wait after the Tab key.
const completionTimeout = time.Second

// completeNames completes the name of what is held now. It completes nothing if the cluster
// does not answer in time.
func (a *app) completeNames(of *resourceClass) func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return func(_ *cobra.Command, args []string, begun string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) == 0 {
			a.client.timeout = min(a.client.timeout, duration(completionTimeout))
			// An error cannot be shown here.
			_ = a.ask(context.Background(), func(ctx context.Context, client *conclave.Client) error {
				held, _, err := of.listAll(ctx, client, begun)
				for _, r := range held {
					names = append(names, cobra.Completion(r.Name))
				}
				return err
			})
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
