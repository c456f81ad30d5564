package cli

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
)

func newAccessShow(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print roles, bindings and quotas as a file for apply",
		Long: `Print the roles, bindings and quotas of the cluster, in the form that conclave access apply
reads. Tokens are in no file: see conclave access token list.`,
		Example: `  conclave access show
  conclave access show > rules.toml
  conclave access show --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withRules(cmd, func(rules conclave.Access) error {
				return a.print(rules, func(w io.Writer) error { return writeRules(w, rules) })
			})
		},
	}
	a.addJSON(cmd)
	return cmd
}

const accessApplyHelp = `Replace the roles, bindings and quotas of the cluster by those in FILE, and print the
difference. "-" is standard input. Tokens stay as they are. --dry-run changes nothing, and
prints the same.

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

The file may begin with names = ["uri", "cn"]: which names of a client's certificate name it,
the first choice first, of uri, cn and dns.`

func newAccessApply(a *app) *cobra.Command {
	r := &reform{app: a}
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Replace roles, bindings and quotas by those in a file",
		Long:  accessApplyHelp,
		Example: `  conclave access apply rules.toml --dry-run
  conclave access apply rules.toml
  conclave access show | conclave access apply - --dry-run`,
		Args: oneArgument("a file, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			wanted, all, err := readRules(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			r.warn(all)
			return r.change(cmd, func(rules conclave.Access) (edits, error) {
				if wanted.Names == nil {
					wanted.Names = rules.Names
				}
				return edits{replacing(rules, wanted), strings.Join(difference(rules, wanted), "\n")}, nil
			})
		},
	}
	cmd.Flags().BoolVar(&r.dryRun, "dry-run", false, "change nothing")
	r.register(cmd)
	return cmd
}

// replacing returns the edits that make rules what is wanted.
func replacing(rules, wanted conclave.Access) (list []conclave.AccessEdit) {
	put, drop := compared(rules.Roles, wanted.Roles, roleKey, func(a, b conclave.Role) bool { return slices.Equal(a.Rules, b.Rules) })
	list = appendEdits(list, put, conclave.PutRole)
	list = appendEdits(list, drop, func(role conclave.Role) conclave.AccessEdit { return conclave.DropRole(role.Name) })
	binds, unbinds := compared(rules.Bindings, wanted.Bindings, bindingKey, func(a, b conclave.Binding) bool { return slices.Equal(a.Roles, b.Roles) })
	list = appendEdits(list, binds, conclave.PutBinding)
	list = appendEdits(list, unbinds, func(b conclave.Binding) conclave.AccessEdit { return conclave.DropBinding(b.Who) })
	quotas, without := compared(rules.Quotas, wanted.Quotas, quotaKeyOf, func(a, b conclave.Quota) bool { return a == b })
	list = appendEdits(list, quotas, conclave.PutQuota)
	list = appendEdits(list, without, conclave.DropQuota)
	if !slices.Equal(rules.Names, wanted.Names) {
		list = append(list, conclave.SetNames(wanted.Names...))
	}
	return list
}

func appendEdits[T any](list []conclave.AccessEdit, of []T, edit func(T) conclave.AccessEdit) []conclave.AccessEdit {
	for _, v := range of {
		list = append(list, edit(v))
	}
	return list
}

// compared returns what is wanted and not there as it is wanted, and what is there and not
// wanted.
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

// difference returns one line for each thing that goes, with a minus, or comes, with a plus.
func difference(rules, wanted conclave.Access) []string {
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
	// The sign comes first, but what belongs together is to stand together.
	slices.SortFunc(lines, func(a, b string) int { return cmp.Or(strings.Compare(a[2:], b[2:]), strings.Compare(b, a)) })
	if len(lines) == 0 {
		return []string{"no difference"}
	}
	return lines
}

// linesOf says each thing of some rules in a line.
func linesOf(rules conclave.Access) map[string]bool {
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
