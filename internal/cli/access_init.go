package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/service/access"
)

const accessInitHelp = `From then on, every server denies what no rule allows.

Run this command through the admin socket of any server: before the first rules exist nobody
else is an administrator. An administrator who has lost access does the same again.
--everyone gives all programs with a proven name some verbs on all names.

The command fails while anonymous programs have sessions, because they could acquire nothing
more. --end-sessions ends these sessions. Their holders are asked to leave.`

// everyoneRole is the role that init gives to everyone.
const everyoneRole = "everyone"

func newAccessInit(a *app) *cobra.Command {
	r := &reform{app: a}
	var admins []string
	var everyone string
	cmd := &cobra.Command{
		Use:   "init --admin PRINCIPAL",
		Short: "Turn the rules on, and name who may change them",
		Long:  accessInitHelp,
		Example: `  conclave access init --admin cert:alice --servers unix:/var/lib/conclave/admin.sock
  conclave access init --admin cert:alice --everyone read,hold --servers unix:/var/lib/conclave/admin.sock
  conclave access init --admin token:ops --end-sessions --servers unix:/var/lib/conclave/admin.sock`,
		Args: noArguments,
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
			return r.change(cmd, func(rules conclave.Access) (edits, error) { return initial(rules, admins, verbs), nil })
		},
	}
	cmd.Flags().StringSliceVar(&admins, "admin", nil, "`principals` that get the role admin, separated by commas")
	cmd.Flags().StringVar(&everyone, "everyone", "", "give these `verbs` to all programs with a proven name, such as read,hold")
	cmd.Flags().BoolVar(&r.endSessions, "end-sessions", false, "end the sessions of anonymous programs")
	return r.register(cmd)
}

// initial returns the edits that turn rules on.
func initial(rules conclave.Access, admins []string, verbs access.Verbs) edits {
	e := edits{done: "rules are on; administrators: " + strings.Join(admins, ", ")}
	for _, who := range admins {
		e.list = append(e.list, bound(rules, who, "admin"))
	}
	if verbs != 0 {
		rule := access.Rule{Verbs: verbs, Class: access.Any}
		e.list = append(e.list, conclave.PutRole(conclave.Role{Name: everyoneRole, Rules: []string{rule.String()}}), bound(rules, access.Everyone, everyoneRole))
	}
	e.list = append(e.list, conclave.SetMode(access.Closed.String()))
	return e
}

// bound returns the edit that adds roles to a binding.
func bound(rules conclave.Access, who string, roles ...string) conclave.AccessEdit {
	all := append(slices.Clone(rolesOf(rules, who)), roles...)
	slices.Sort(all)
	return conclave.PutBinding(conclave.Binding{Who: who, Roles: slices.Compact(all)})
}

const accessDisableHelp = `From then on, everyone who reaches a server may do everything. Roles, bindings, tokens and
quotas are kept, and apply again after conclave access init. The audit log records the change.
The command requires --force.`

func newAccessDisable(a *app) *cobra.Command {
	r := &reform{app: a}
	cmd := &cobra.Command{
		Use:   "disable --force",
		Short: "Turn the rules off, so that everyone may do everything",
		Long:  accessDisableHelp,
		Example: `  conclave access disable --force
  conclave access disable --force --json
  conclave access disable --force --servers unix:/var/lib/conclave/admin.sock`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !r.force {
				return errors.New("--force: missing; without rules, everyone who reaches a server may do everything")
			}
			return r.change(cmd, func(conclave.Access) (edits, error) {
				return edits{[]conclave.AccessEdit{conclave.SetMode(access.Open.String())}, "rules are off"}, nil
			})
		},
	}
	cmd.Flags().BoolVar(&r.force, "force", false, "turn the rules off")
	return a.withJSON(cmd)
}
