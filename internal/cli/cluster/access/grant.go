package access

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/service/access"
)

func newAccessGrant(a *connect.App) *cobra.Command {
	r := &reform{App: a}
	return r.register(&cobra.Command{
		Use:   "grant WHO ROLE",
		Short: "Give a role to a principal",
		Long: `WHO is one of
  - a principal such as cert:bob or token:reports
  - a prefix and *, such as cert:ci-*, for all principals that start with the prefix
  - everyone, for all programs with a proven name

WHO keeps its other roles.`,
		Example: `  conclave access grant cert:bob batch
  conclave access grant 'cert:ci-*' batch
  conclave access grant everyone viewer --json`,
		Args: ui.Takes("WHO", "ROLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			who, role := args[0], args[1]
			if err := connect.NoToken(who); err != nil {
				return err
			}
			return r.change(cmd, func(rules admin.Access) (edits, error) {
				if slices.Contains(rolesOf(rules, who), role) {
					return edits{nil, fmt.Sprintf("%s already has the role %s", ui.Shown(who), ui.Shown(role))}, nil
				}
				return edits{[]admin.AccessEdit{bound(rules, who, role)}, fmt.Sprintf("%s has the role %s", ui.Shown(who), ui.Shown(role))}, nil
			})
		},
	})
}

func newWithdraw(a *connect.App) *cobra.Command {
	r := &reform{App: a}
	return r.register(&cobra.Command{
		Use:   "withdraw WHO ROLE",
		Short: "Take a role away from a principal",
		Long: `WHO is as in conclave access grant. If a waiting request needs this role, it is refused. A
holder keeps its lock, unless --revoke-holds is given. The command prints how many holds the
new rules would not grant.`,
		Annotations: ui.Statuses("0 the role is withdrawn", "1 WHO does not have the role"),
		Example: `  conclave access withdraw cert:bob batch
  conclave access withdraw cert:bob batch --revoke-holds
  conclave access withdraw everyone viewer`,
		Args: ui.Takes("WHO", "ROLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			who, role := args[0], args[1]
			return r.change(cmd, func(rules admin.Access) (edits, error) {
				roles := slices.Clone(rolesOf(rules, who))
				at := slices.Index(roles, role)
				if at < 0 {
					return edits{}, ui.Failure(ui.StatusNo, "binding: %q: does not have the role %q", who, role)
				}
				put := admin.PutBinding(admin.Binding{Who: who, Roles: slices.Delete(roles, at, at+1)})
				if len(roles) == 1 {
					put = admin.DropBinding(who)
				}
				return edits{[]admin.AccessEdit{put}, fmt.Sprintf("%s no longer has the role %s", ui.Shown(who), ui.Shown(role))}, nil
			})
		},
	})
}

func newRole(a *connect.App) *cobra.Command {
	return ui.Group(&cobra.Command{
		Use:   "role",
		Short: "Set, drop and show roles",
		Long: `A role is a list of rules. A rule has the form

  allow|deny VERBS [on [lock|election] prefix|name NAME]`,
		Example: `  conclave access role set batch 'allow read,hold on prefix reports/' 'deny hold on prefix reports/frozen/'
  conclave access role show batch
  conclave access role drop batch`,
	}, newRoleSet(a), newRoleDrop(a), newRoleShow(a))
}

func newRoleSet(a *connect.App) *cobra.Command {
	r := &reform{App: a}
	return r.register(&cobra.Command{
		Use:   "set NAME RULE...",
		Short: "Create a role, or replace its rules",
		Long: `Each RULE is one argument of the form

  allow|deny VERBS [on [lock|election] prefix|name NAME]

VERBS are separated by commas. A rule without "on" applies to the cluster, or to all names. End
a prefix with one of / - . : because the prefix reports also selects reports-secret.`,
		Example: `  conclave access role set batch 'allow read,hold on prefix reports/'
  conclave access role set batch 'allow read,hold on prefix reports/' 'deny hold on name reports/frozen'
  conclave access role set ops 'allow status,sessions,members' 'allow revoke on lock prefix ""'`,
		Args: func(cmd *cobra.Command, args []string) error {
			return ui.Takes("NAME", "RULE")(cmd, args[:min(len(args), 2)])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			role := admin.Role{Name: args[0]}
			for _, text := range args[1:] {
				rule, err := access.ParseRule(text)
				if err != nil {
					return err
				}
				r.warn([]access.Rule{rule})
				role.Rules = append(role.Rules, rule.String())
			}
			return r.change(cmd, func(admin.Access) (edits, error) {
				return edits{[]admin.AccessEdit{admin.PutRole(role)}, fmt.Sprintf("role %s: %s", ui.Shown(role.Name), strings.Join(role.Rules, "; "))}, nil
			})
		},
	})
}

func newRoleDrop(a *connect.App) *cobra.Command {
	r := &reform{App: a}
	return r.register(&cobra.Command{
		Use:   "drop NAME",
		Short: "Remove a role that no binding uses",
		Long: `A role that a binding uses is not removed. Take it away from its principals first, with
conclave access withdraw.`,
		Example: `  conclave access withdraw cert:bob batch
  conclave access role drop batch
  conclave access role drop batch --json`,
		Annotations: ui.Statuses("0 the role is removed", "1 no role has this name"),
		Args:        ui.Takes("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.change(cmd, func(rules admin.Access) (edits, error) {
				if !slices.ContainsFunc(rules.Roles, func(role admin.Role) bool { return role.Name == args[0] }) {
					return edits{}, ui.Failure(ui.StatusNo, "role: %q: not found", args[0])
				}
				return edits{[]admin.AccessEdit{admin.DropRole(args[0])}, fmt.Sprintf("role %s removed", ui.Shown(args[0]))}, nil
			})
		},
	})
}

func newRoleShow(a *connect.App) *cobra.Command {
	return a.WithJSON(&cobra.Command{
		Use:   "show [NAME]",
		Short: "Print the rules of a role, or of all roles",
		Long:  "Without NAME, print the built-in roles and those of the cluster.",
		Example: `  conclave access role show
  conclave access role show operator
  conclave access role show batch --json`,
		Annotations: ui.Statuses("0 success", "1 no role has this name"),
		Args:        ui.AtMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			return connect.Show(a, cmd, (*admin.Admin).Access, func(rules admin.Access) error {
				roles := allRoles(rules)
				if len(args) > 0 {
					roles = slices.DeleteFunc(roles, func(role admin.Role) bool { return role.Name != args[0] })
				}
				if len(args) > 0 && len(roles) == 0 {
					return ui.Failure(ui.StatusNo, "role: %q: not found", args[0])
				}
				return a.Print(map[string]any{"roles": ui.Each(roles, forms.RoleOf)}, func(w io.Writer) error {
					t := ui.NewTable(w, "ROLE", "RULE")
					for _, role := range roles {
						for _, rule := range role.Rules {
							t.Row(ui.Shown(role.Name), rule)
						}
					}
					return t.Flush()
				})
			})
		},
	})
}

// allRoles returns the built-in roles, and then those of the cluster.
func allRoles(rules admin.Access) []admin.Role {
	var all []admin.Role
	for _, fixed := range access.Fixed() {
		role := admin.Role{Name: fixed.Name}
		for _, rule := range fixed.Rules {
			role.Rules = append(role.Rules, rule.String())
		}
		all = append(all, role)
	}
	return append(all, rules.Roles...)
}
