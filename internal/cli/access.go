package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
)

const accessHelp = `Access shows whom this program has proven to be to the servers: its principal.

A client proves who it is by its certificate (--cert), and is then cert:NAME. Whoever runs a
server, and root, may connect through the admin socket in its data directory
(--servers unix:/var/lib/conclave/admin.sock), and is local:ID/UID. Others are anonymous.`

func newAccess(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "access",
		Short: "Show who this program is to the servers",
		Long:  accessHelp,
		Example: `  conclave access whoami
  conclave access whoami --servers unix:/var/lib/conclave/admin.sock`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s: %q: must be whoami", cmd.CommandPath(), args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newWhoAmI(a))
	return cmd
}

func newWhoAmI(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "Print the principal of this program",
		Example: `  conclave access whoami
  conclave access whoami --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				who, err := client.WhoAmI(ctx)
				if err != nil {
					return err
				}
				if who.Roles == nil {
					who.Roles = []string{} // in JSON a list
				}
				return a.print(who, func(w io.Writer) error {
					name := shown(who.Principal)
					if who.Principal == "" {
						name = "anonymous"
					}
					_, err := fmt.Fprintf(w, "%s\tvia %s from %s\n", name, who.Via, shown(who.Remote))
					return err
				})
			})
		},
	}
	a.addJSON(cmd)
	return cmd
}
