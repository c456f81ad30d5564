package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/service/access"
)

func newAccessGrant(a *app) *cobra.Command {
	r := &reform{app: a}
	cmd := &cobra.Command{
		Use:   "grant WHO ROLE",
		Short: "Give a principal a role",
		Long: `Give a role to WHO: a principal such as cert:bob, all principals that begin with what comes
before a trailing *, or everyone who has proven a name. WHO keeps the roles that it has.`,
		Example: `  conclave access grant cert:bob batch
  conclave access grant 'cert:ci-*' batch
  conclave access grant everyone viewer --json`,
		Args: whoAndRole,
		RunE: func(cmd *cobra.Command, args []string) error {
			who, role := args[0], args[1]
			return r.change(cmd, func(rules conclave.Access) (edits, error) {
				if slices.Contains(rolesOf(rules, who), role) {
					return edits{nil, fmt.Sprintf("%s has the role %s already", shown(who), shown(role))}, nil
				}
				return edits{[]conclave.AccessEdit{bound(rules, who, role)}, fmt.Sprintf("%s has the role %s", shown(who), shown(role))}, nil
			})
		},
	}
	r.register(cmd)
	return cmd
}

func newWithdraw(a *app) *cobra.Command {
	r := &reform{app: a}
	cmd := &cobra.Command{
		Use:   "withdraw WHO ROLE",
		Short: "Take a role away from a principal",
		Long: `Take a role away from WHO, as conclave access grant gives it. A holder keeps its lock.
A waiting request that only this role allowed is refused. The command says how many holds
the new rules would not grant.

Exit status:
    0  the role is withdrawn
    1  WHO does not have the role
  125  conclave itself failed, or was called wrongly`,
		Example: `  conclave access withdraw cert:bob batch
  conclave access withdraw cert:bob batch --revoke-holds
  conclave access withdraw everyone viewer`,
		Args: whoAndRole,
		RunE: func(cmd *cobra.Command, args []string) error {
			who, role := args[0], args[1]
			return r.change(cmd, func(rules conclave.Access) (edits, error) {
				roles := slices.Clone(rolesOf(rules, who))
				at := slices.Index(roles, role)
				if at < 0 {
					return edits{}, failure(StatusNo, "binding: %q: does not have the role %q", who, role)
				}
				put := conclave.PutBinding(conclave.Binding{Who: who, Roles: slices.Delete(roles, at, at+1)})
				if len(roles) == 1 {
					put = conclave.DropBinding(who)
				}
				return edits{[]conclave.AccessEdit{put}, fmt.Sprintf("%s does not have the role %s any more", shown(who), shown(role))}, nil
			})
		},
	}
	r.register(cmd)
	return cmd
}

func whoAndRole(cmd *cobra.Command, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("%s: %d arguments: expected a principal and a role, such as cert:bob batch", cmd.CommandPath(), len(args))
	}
	return nil
}

func newRole(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "role",
		Short: "Set, drop and show roles",
		Long: `Set, drop and show the roles that bindings give to principals.

A rule is written: allow|deny VERBS [on [lock|election] prefix|name NAME]`,
		Example: `  conclave access role set batch 'allow read,hold on prefix reports/' 'deny hold on prefix reports/frozen/'
  conclave access role show batch
  conclave access role drop batch`,
		Args: subcommand("set, drop or show"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRoleSet(a), newRoleDrop(a), newRoleShow(a))
	return cmd
}

// subcommand refuses arguments of a command that only has other commands.
func subcommand(expected string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("%s: %q: must be %s", cmd.CommandPath(), args[0], expected)
		}
		return nil
	}
}

func newRoleSet(a *app) *cobra.Command {
	r := &reform{app: a}
	cmd := &cobra.Command{
		Use:   "set NAME RULE...",
		Short: "Make a role, or replace its rules",
		Long: `Make the role NAME, or replace its rules. Each RULE is one argument:

  allow|deny VERBS [on [lock|election] prefix|name NAME]

VERBS have commas between them. A rule without a place is about the cluster, or about all
names. End a prefix with one of / - . : because reports is also the prefix of reports-secret.`,
		Example: `  conclave access role set batch 'allow read,hold on prefix reports/'
  conclave access role set batch 'allow read,hold on prefix reports/' 'deny hold on name reports/frozen'
  conclave access role set ops 'allow status,sessions,members' 'allow revoke on lock prefix ""'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fmt.Errorf("access role set: %d arguments: expected a name and at least one rule", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			role := conclave.Role{Name: args[0]}
			for _, text := range args[1:] {
				rule, err := access.ParseRule(text)
				if err != nil {
					return err
				}
				r.warn([]access.Rule{rule})
				role.Rules = append(role.Rules, rule.String())
			}
			return r.change(cmd, func(conclave.Access) (edits, error) {
				return edits{[]conclave.AccessEdit{conclave.PutRole(role)}, fmt.Sprintf("role %s: %s", shown(role.Name), strings.Join(role.Rules, "; "))}, nil
			})
		},
	}
	r.register(cmd)
	return cmd
}

func newRoleDrop(a *app) *cobra.Command {
	r := &reform{app: a}
	cmd := &cobra.Command{
		Use:   "drop NAME",
		Short: "Remove a role that no binding gives to anybody",
		Example: `  conclave access role drop batch
  conclave access role drop batch --json`,
		Args: oneArgument("the name of a role"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.change(cmd, func(rules conclave.Access) (edits, error) {
				if !slices.ContainsFunc(rules.Roles, func(role conclave.Role) bool { return role.Name == args[0] }) {
					return edits{}, failure(StatusNo, "role: %q: not found", args[0])
				}
				return edits{[]conclave.AccessEdit{conclave.DropRole(args[0])}, fmt.Sprintf("role %s is removed", shown(args[0]))}, nil
			})
		},
	}
	r.register(cmd)
	return cmd
}

func newRoleShow(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [NAME]",
		Short: "Print the rules of a role, or of all roles",
		Example: `  conclave access role show
  conclave access role show batch --json`,
		Args: atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRules(cmd, func(rules conclave.Access) error {
				roles := allRoles(rules)
				if len(args) > 0 {
					roles = slices.DeleteFunc(roles, func(role conclave.Role) bool { return role.Name != args[0] })
				}
				if len(args) > 0 && len(roles) == 0 {
					return failure(StatusNo, "role: %q: not found", args[0])
				}
				return a.print(map[string]any{"roles": roles}, func(w io.Writer) error {
					t := newTable(w, "ROLE", "RULE")
					for _, role := range roles {
						for _, rule := range role.Rules {
							t.row(shown(role.Name), rule)
						}
					}
					return t.flush()
				})
			})
		},
	}
	a.addJSON(cmd)
	return cmd
}

// allRoles returns the roles of a cluster, those that are there always first.
func allRoles(rules conclave.Access) []conclave.Role {
	var all []conclave.Role
	for _, fixed := range access.Fixed() {
		role := conclave.Role{Name: fixed.Name}
		for _, rule := range fixed.Rules {
			role.Rules = append(role.Rules, rule.String())
		}
		all = append(all, role)
	}
	return append(all, rules.Roles...)
}
