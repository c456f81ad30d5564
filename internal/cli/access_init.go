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

const accessInitHelp = `Turn the rules of access on: from then on what no rule allows is denied, on every
server.

The first administrator comes in through the admin socket of any server, and so does one who
has lost access: run this again there. --everyone gives all who have proven a name some
verbs on all names.

Sessions of anonymous programs would go on with what they hold, and could acquire nothing
more. So they have to end first: --end-sessions asks their holders to leave.`

// everyoneRole is the role that init gives to everyone.
const everyoneRole = "everyone"

func newAccessInit(a *app) *cobra.Command {
	r := &reform{app: a}
	var admins []string
	var everyone string
	cmd := &cobra.Command{
		Use:   "init --admin PRINCIPAL",
		Short: "Turn rules on, and name who may change them",
		Long:  accessInitHelp,
		Example: `  conclave access init --admin cert:alice --servers unix:/var/lib/conclave/admin.sock
  conclave access init --admin cert:alice --everyone read,hold --servers unix:/var/lib/conclave/admin.sock
  conclave access init --admin token:ops --end-sessions --servers unix:/var/lib/conclave/admin.sock`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(admins) == 0 && !r.force {
				return errors.New("--admin: missing; name a principal that may change the rules, such as cert:alice")
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
	cmd.Flags().StringSliceVar(&admins, "admin", nil, "principals that get the role admin, with commas between")
	cmd.Flags().StringVar(&everyone, "everyone", "", "verbs that all get who have proven a name, such as read,hold")
	cmd.Flags().BoolVar(&r.endSessions, "end-sessions", false, "end the sessions of anonymous programs")
	r.register(cmd)
	return cmd
}

// initial returns the edits that turn rules on.
func initial(rules conclave.Access, admins []string, verbs access.Verbs) edits {
	e := edits{done: "rules are on; they may be changed by: " + strings.Join(admins, ", ")}
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

const accessDisableHelp = `Turn the rules of access off: from then on everybody who reaches a server may do
everything, on every server. Roles, bindings, tokens and quotas stay, and hold again after
conclave access init. The change is on record. It needs --force.`

func newAccessDisable(a *app) *cobra.Command {
	r := &reform{app: a}
	cmd := &cobra.Command{
		Use:   "disable --force",
		Short: "Turn rules off: everybody may do everything",
		Long:  accessDisableHelp,
		Example: `  conclave access disable --force
  conclave access disable --force --servers unix:/var/lib/conclave/admin.sock`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !r.force {
				return errors.New("--force: missing; without rules everybody who reaches a server may do everything")
			}
			return r.change(cmd, func(conclave.Access) (edits, error) {
				return edits{[]conclave.AccessEdit{conclave.SetMode(access.Open.String())}, "rules are off"}, nil
			})
		},
	}
	cmd.Flags().BoolVar(&r.force, "force", false, "turn the rules off")
	a.addJSON(cmd)
	return cmd
}
