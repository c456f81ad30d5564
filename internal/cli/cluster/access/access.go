// Package access has the commands for the rules of who may do what in a cluster: roles, bindings, quotas
// and tokens.
package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/service/access"
)

const accessHelp = `Who a program is, its principal, depends on how it connects:

  cert:NAME     it shows a client certificate (--cert)
  token:NAME    it shows a token (--token-file)
  local:ID/UID  it connects through the admin socket in the data directory of server ID
                (--servers unix:/var/lib/conclave/admin.sock). Only root and the user that
                runs the server can do so, and they may do everything
  anonymous     anything else

A role is a list of rules. A rule allows or denies verbs, either on the cluster or on the
names that start with a prefix. For each verb the rule with the longest match decides. Of two
equal matches, deny wins. What no rule allows is denied. A binding gives roles to one
principal, to all principals that start with a prefix (cert:ci-*), or to everyone with a
proven name.

  verbs on names    read, hold, revoke
  verbs on the      status, sessions, end-session, members, backup, access-read, access,
  cluster           audit, upgrade
  built-in roles    admin (everything), operator (everything but access),
                    viewer (read, status, sessions), metrics (status)

A change applies to all later requests. A holder keeps its lock.`

// NewAccess returns the command access.
func NewAccess(a *connect.App) *cobra.Command {
	return ui.Group(&cobra.Command{
		Use:   "access",
		Short: "Show and change who may do what in the cluster",
		Long:  accessHelp,
		Example: `  conclave access whoami
  conclave access init --admin cert:alice --servers unix:/var/lib/conclave/admin.sock
  conclave access role set batch 'allow read,hold on prefix reports/'
  conclave access grant cert:bob batch
  conclave access check hold reports/nightly --as cert:bob`,
	},
		newAccessInit(a), newAccessShow(a), newAccessApply(a), newAccessGrant(a), newWithdraw(a), newRole(a), newToken(a), newQuota(a),
		newWhoAmI(a), newAccessCheck(a), newAccessDisable(a),
	)
}

func newWhoAmI(a *connect.App) *cobra.Command {
	return a.WithJSON(&cobra.Command{
		Use:   "whoami",
		Short: "Print who the cluster thinks that this program is",
		Long: `The line shows the principal, how it was proven (certificate, token, socket), and the
address from which the server sees the connection.`,
		Example: `  conclave access whoami
  conclave access whoami --token-file reports.token
  conclave access whoami --json`,
		Args: ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.Show(a, cmd, (*admin.Admin).WhoAmI, func(who admin.Caller) error {
				return a.PrintLine(forms.WhoAmIOf(who), fmt.Sprintf("%s\tvia %s from %s", ui.Shown(cmp.Or(who.Principal, "anonymous")), who.Via, ui.Shown(who.Remote)))
			})
		},
	})
}

const accessCheckHelp = `VERB is one of the verbs that conclave access --help lists. A verb on names also needs NAME.

Without --as, the question is about this program, and everyone may ask it. With --as, the
caller needs the verb access-read.`

func newAccessCheck(a *connect.App) *cobra.Command {
	var check admin.AccessCheck
	cmd := &cobra.Command{
		Use:         "check VERB [NAME]",
		Short:       "Print whether a principal may use a verb, and which rule decides",
		Long:        accessCheckHelp,
		Annotations: ui.Statuses("0 the rules allow it", "1 the rules do not allow it"),
		Example: `  conclave access check hold reports/nightly
  conclave access check revoke reports/nightly --as cert:bob
  conclave access check members --as token:deploy --json`,
		Args: verbAndName,
		RunE: func(cmd *cobra.Command, args []string) error {
			check.Verb = args[0]
			if len(args) > 1 {
				check.Name = args[1]
			}
			return a.Ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				verdict, err := admin.New(client).CheckAccess(ctx, check)
				if err != nil {
					return err
				}
				if !verdict.Allowed {
					a.Status = ui.StatusNo
				}
				return a.PrintLine(forms.VerdictOf(verdict), verdict.Why)
			})
		},
	}
	cmd.Flags().StringVar(&check.Principal, "as", "", "ask about this `principal`, such as cert:bob (default: this program)")
	cmd.Flags().BoolVar(&check.Election, "election", false, "NAME is an election, not a lock")
	return a.WithJSON(cmd)
}

// verbAndName takes a verb, and a name if the verb is one on names.
func verbAndName(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return ui.Takes("VERB")(cmd, args)
	}
	verb, err := access.ParseVerb(args[0])
	switch {
	case err != nil:
		return err
	case !verb.OnNames() && len(args) > 1:
		return fmt.Errorf("%q: unexpected argument; the verb %s is about the cluster", args[1], verb)
	case !verb.OnNames():
		return nil
	}
	if err := ui.Takes("VERB", "NAME")(cmd, args); err != nil {
		return err
	}
	return conclave.ValidateName(args[1])
}

const accessInitHelp = `From then on, every server denies what no rule allows.

Run this command through the admin socket of any server: before the first rules exist nobody
else is an administrator. An administrator who has lost access does the same again.
--everyone gives all programs with a proven name some verbs on all names.

The command fails while anonymous programs have sessions, because they could acquire nothing
more. --end-sessions ends these sessions. Their holders are asked to leave.`

// everyoneRole is the role that init gives to everyone.
const everyoneRole = "everyone"

func newAccessInit(a *connect.App) *cobra.Command {
	r := &reform{App: a}
	var admins []string
	var everyone string
	cmd := &cobra.Command{
		Use:   "init --admin PRINCIPAL",
		Short: "Turn the rules on, and name who may change them",
		Long:  accessInitHelp,
		Example: `  conclave access init --admin cert:alice --servers unix:/var/lib/conclave/admin.sock
  conclave access init --admin cert:alice --everyone read,hold --servers unix:/var/lib/conclave/admin.sock
  conclave access init --admin token:ops --end-sessions --servers unix:/var/lib/conclave/admin.sock`,
		Args: ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(admins) == 0 && !r.force {
				return errors.New("--admin: missing; set it to a principal that may change the rules, such as cert:alice")
			}
			var verbs access.Verbs
			if everyone != "" {
				var err error
				if verbs, err = access.ParseVerbs(everyone); err != nil {
					return fmt.Errorf("--everyone: %w", err)
				}
			}
			return r.change(cmd, func(rules admin.Access) (edits, error) { return initial(rules, admins, verbs), nil })
		},
	}
	cmd.Flags().StringSliceVar(&admins, "admin", nil, "`principals` that get the role admin, separated by commas")
	cmd.Flags().StringVar(&everyone, "everyone", "", "give these `verbs` to all programs with a proven name, such as read,hold")
	cmd.Flags().BoolVar(&r.endSessions, "end-sessions", false, "end the sessions of anonymous programs")
	return r.register(cmd)
}

// initial returns the edits that turn rules on.
func initial(rules admin.Access, admins []string, verbs access.Verbs) edits {
	e := edits{done: "rules are on; administrators: " + strings.Join(admins, ", ")}
	for _, who := range admins {
		e.list = append(e.list, bound(rules, who, "admin"))
	}
	if verbs != 0 {
		rule := access.Rule{Verbs: verbs, Class: access.Any}
		e.list = append(e.list, admin.PutRole(admin.Role{Name: everyoneRole, Rules: []string{rule.String()}}), bound(rules, access.Everyone, everyoneRole))
	}
	e.list = append(e.list, admin.SetMode(access.Closed.String()))
	return e
}

// bound returns the edit that adds roles to a binding.
func bound(rules admin.Access, who string, roles ...string) admin.AccessEdit {
	all := append(slices.Clone(rolesOf(rules, who)), roles...)
	slices.Sort(all)
	return admin.PutBinding(admin.Binding{Who: who, Roles: slices.Compact(all)})
}

const accessDisableHelp = `From then on, everyone who reaches a server may do everything. Roles, bindings, tokens and
quotas are kept, and apply again after conclave access init. The audit log records the change.
The command requires --force.`

func newAccessDisable(a *connect.App) *cobra.Command {
	r := &reform{App: a}
	cmd := &cobra.Command{
		Use:   "disable --force",
		Short: "Turn the rules off, so that everyone may do everything",
		Long:  accessDisableHelp,
		Example: `  conclave access disable --force
  conclave access disable --force --json
  conclave access disable --force --servers unix:/var/lib/conclave/admin.sock`,
		Args: ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !r.force {
				return errors.New("--force: missing; without rules, everyone who reaches a server may do everything")
			}
			return r.change(cmd, func(admin.Access) (edits, error) {
				return edits{[]admin.AccessEdit{admin.SetMode(access.Open.String())}, "rules are off"}, nil
			})
		},
	}
	cmd.Flags().BoolVar(&r.force, "force", false, "turn the rules off")
	return a.WithJSON(cmd)
}
