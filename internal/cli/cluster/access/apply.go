package access

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

func newAccessShow(a *connect.App) *cobra.Command {
	return a.WithJSON(&cobra.Command{
		Use:   "show",
		Short: "Print roles, bindings and quotas as a file for access apply",
		Long:  `The output does not contain tokens. conclave access token list shows them.`,
		Example: `  conclave access show
  conclave access show > rules.toml
  conclave access show --json`,
		Args: ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.Show(a, cmd, (*admin.Admin).Access, func(rules admin.Access) error {
				return a.Print(forms.RulesOf(rules), func(w io.Writer) error { return writeRules(w, rules) })
			})
		},
	})
}

const accessApplyHelp = `The command prints the difference between the rules of the cluster and those in FILE, and
then applies FILE. With --dry-run it only prints. The FILE "-" is standard input. Tokens do
not change. FILE is TOML:

  [[role]]
  name = "batch"
  rules = [
    {allow = ["read", "hold"], prefix = "reports/"},
    {deny = ["hold"], prefix = "reports/frozen/"},
    {allow = ["hold"], class = "lock", name = "exact"},
    {allow = ["status"]},
  ]

  [[bind]]
  who = "cert:batch-*"
  roles = ["batch"]

  [[quota]]
  prefix = "reports/"
  claims = 5000

If FILE is -, the command reads standard input.

FILE may begin with a line such as names = ["uri", "cn"]. It says which names of a client
certificate count, in order of preference: uri, cn, dns.`

func newAccessApply(a *connect.App) *cobra.Command {
	r := &reform{App: a}
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Replace roles, bindings and quotas with those in a file",
		Long:  accessApplyHelp,
		Example: `  conclave access apply rules.toml --dry-run
  conclave access apply rules.toml
  conclave access show | conclave access apply - --dry-run`,
		Args: ui.Takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted, all, err := readRules(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			r.warn(all)
			return r.change(cmd, func(rules admin.Access) (edits, error) {
				if wanted.Names == nil {
					wanted.Names = rules.Names
				}
				return edits{replacing(rules, wanted), strings.Join(difference(rules, wanted), "\n")}, nil
			})
		},
	}
	cmd.Flags().BoolVar(&r.dryRun, "dry-run", false, "print the difference and change nothing")
	return ui.StreamsArguments(r.register(cmd))
}

// replacing returns the edits that make rules what is wanted.
func replacing(rules, wanted admin.Access) []admin.AccessEdit {
	roles, noRoles := compared(rules.Roles, wanted.Roles, roleKey, func(a, b admin.Role) bool { return slices.Equal(a.Rules, b.Rules) })
	binds, unbinds := compared(rules.Bindings, wanted.Bindings, bindingKey, func(a, b admin.Binding) bool { return slices.Equal(a.Roles, b.Roles) })
	quotas, noQuotas := compared(rules.Quotas, wanted.Quotas, quotaKeyOf, func(a, b admin.Quota) bool { return a == b })
	list := slices.Concat(
		ui.Each(roles, admin.PutRole), ui.Each(noRoles, func(r admin.Role) admin.AccessEdit { return admin.DropRole(r.Name) }),
		ui.Each(binds, admin.PutBinding), ui.Each(unbinds, func(b admin.Binding) admin.AccessEdit { return admin.DropBinding(b.Who) }),
		ui.Each(quotas, admin.PutQuota), ui.Each(noQuotas, admin.DropQuota),
	)
	if !slices.Equal(rules.Names, wanted.Names) {
		list = append(list, admin.SetNames(wanted.Names...))
	}
	return list
}

// compared returns what to put, which is wanted and absent or different, and what to drop,
// which exists and is not wanted.
func compared[T any](have, wanted []T, key func(T) string, same func(a, b T) bool) (put, drop []T) {
	there, kept := make(map[string]T), make(map[string]bool)
	for _, h := range have {
		there[key(h)] = h
	}
	for _, w := range wanted {
		kept[key(w)] = true
		if h, found := there[key(w)]; !found || !same(h, w) {
			put = append(put, w)
		}
	}
	for _, h := range have {
		if !kept[key(h)] {
			drop = append(drop, h)
		}
	}
	return put, drop
}

// difference returns one line for each removal, with a minus, and each addition, with a plus.
func difference(rules, wanted admin.Access) []string {
	before, after := linesOf(rules), linesOf(wanted)
	var lines []string
	for line := range before {
		if !after[line] {
			lines = append(lines, "- "+line)
		}
	}
	for line := range after {
		if !before[line] {
			lines = append(lines, "+ "+line)
		}
	}
	// Sort by what follows the sign, so that both lines of a change are neighbors.
	slices.SortFunc(lines, func(a, b string) int { return cmp.Or(strings.Compare(a[2:], b[2:]), strings.Compare(b, a)) })
	if len(lines) == 0 {
		return []string{"no difference"}
	}
	return lines
}

// linesOf returns the rules as a set of lines.
func linesOf(rules admin.Access) map[string]bool {
	lines := map[string]bool{"names: " + strings.Join(rules.Names, ", "): true}
	for _, r := range rules.Roles {
		lines[roleKey(r)] = true
		for _, rule := range r.Rules {
			lines[roleKey(r)+": "+rule] = true
		}
	}
	for _, b := range rules.Bindings {
		for _, role := range b.Roles {
			lines[bindingKey(b)+": "+role] = true
		}
	}
	for _, q := range rules.Quotas {
		lines["quota of "+amountOf(q)] = true
	}
	return lines
}
