package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
)

// oneName takes exactly one name of a lock or an election.
func oneName(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return fmt.Errorf("no name given; write: %s NAME", cmd.CommandPath())
	case len(args) > 1:
		return fmt.Errorf("%s takes one name, but was given %d", cmd.CommandPath(), len(args))
	}
	return conclave.ValidateName(args[0])
}

// completionPatience is how long somebody who presses Tab is kept waiting.
const completionPatience = time.Second

// completeNames completes the name of what is held now. Without a cluster that
// answers at once there is nothing to complete.
func (a *app) completeNames(of *resourceKind) func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return func(_ *cobra.Command, args []string, begun string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) == 0 {
			a.client.timeout = min(a.client.timeout, duration(completionPatience))
			// What goes wrong has no place to be said in.
			_ = a.ask(context.Background(), func(ctx context.Context, client *conclave.Client) error {
				held, err := of.listAll(ctx, client, begun)
				for _, r := range held {
					names = append(names, cobra.Completion(r.Name))
				}
				return err
			})
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
