package cli

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/service/access"
)

const accessHelp = `Show and change who may do what in the cluster.

A client proves who it is by its certificate (--cert), and is then cert:NAME, or by a token
(--token-file), and is then token:NAME. The user who runs a server, and root, can connect
through the admin socket in its data directory (--servers unix:/var/lib/conclave/admin.sock).
They are local:ID/UID, and may do everything. All others are anonymous.

A role has rules that allow or deny verbs on the names that start with a prefix, or on one
name. The longest match decides for each verb, deny wins over allow at one place, and what no
rule allows is denied. A binding gives roles to a principal, to all that begin with what comes
before a trailing *, or to everyone who has proven a name.

  verbs on names   read, hold, revoke
  on the cluster   status, sessions, end-session, members, backup, access-read, access,
                   audit, upgrade
  roles that are   admin (everything), operator (everything but access),
  there always     viewer (read, status, sessions), metrics (status)

A change decides every request after it. A holder keeps its lock.`

func newAccess(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "access",
		Short: "Show and change who may do what",
		Long:  accessHelp,
		Example: `  conclave access whoami
  conclave access init --admin cert:alice --servers unix:/var/lib/conclave/admin.sock
  conclave access role set batch 'allow read,hold on prefix reports/'
  conclave access grant cert:bob batch
  conclave access check hold reports/nightly --as cert:bob`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s: %q: must be init, show, apply, grant, withdraw, role, token, quota, whoami, check or disable", cmd.CommandPath(), args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newAccessInit(a), newAccessShow(a), newAccessApply(a), newAccessGrant(a), newWithdraw(a), newRole(a), newToken(a), newQuota(a),
		newWhoAmI(a), newAccessCheck(a), newAccessDisable(a),
	)
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

const accessCheckHelp = `Say whether the rules let somebody use a verb, and which rule decides.

VERB is one of those that conclave access --help lists. A verb on names needs NAME. Without
--as the question is about this program itself, which everybody may ask; with --as it needs
the verb access-read.

Exit status:
    0  the rules allow it
    1  the rules do not allow it
  125  conclave itself failed, or was called wrongly`

func newAccessCheck(a *app) *cobra.Command {
	var check conclave.AccessCheck
	cmd := &cobra.Command{
		Use:   "check VERB [NAME]",
		Short: "Say whether somebody may do something, and by which rule",
		Long:  accessCheckHelp,
		Example: `  conclave access check hold reports/nightly
  conclave access check revoke reports/nightly --as cert:bob
  conclave access check members --as token:deploy --json`,
		Args: verbAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			check.Verb = args[0]
			if len(args) > 1 {
				check.Name = args[1]
			}
			return a.ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				verdict, err := client.CheckAccess(ctx, check)
				if err != nil {
					return err
				}
				if !verdict.Allowed {
					a.status = StatusNo
				}
				verdict.Roles = slices.Concat([]string{}, verdict.Roles)
				return a.print(verdict, func(w io.Writer) error {
					_, err := fmt.Fprintln(w, verdict.Why)
					return err
				})
			})
		},
	}
	cmd.Flags().StringVar(&check.Principal, "as", "", "the principal to ask about, such as cert:bob (default: this program)")
	cmd.Flags().BoolVar(&check.Election, "election", false, "NAME is an election, not a lock")
	a.addJSON(cmd)
	return cmd
}

// verbAndName takes a verb, and a name if the verb is one on names.
func verbAndName(_ *cobra.Command, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return fmt.Errorf("access check: %d arguments: expected a verb and, for verbs on names, a name", len(args))
	}
	verb, err := access.ParseVerb(args[0])
	switch {
	case err != nil:
		return err
	case verb.OnNames() && len(args) < 2:
		return fmt.Errorf("access check %s: name: missing; give the name of a lock or an election", verb)
	case !verb.OnNames() && len(args) > 1:
		return fmt.Errorf("access check %s: %q: the verb is about the cluster; leave the name out", verb, args[1])
	case len(args) > 1:
		return conclave.ValidateName(args[1])
	}
	return nil
}
