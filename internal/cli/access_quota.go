package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/service/access"
)

func newQuota(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "quota",
		Short: "Set, drop and list quotas",
		Long: fmt.Sprintf(`Bound what each principal may have, or what all together may have under a prefix.

A principal has the quota that names it, otherwise the one with the longest pattern, otherwise
that of everyone. What no quota says is %d sessions, %d claims (holds and waits) and
%d bytes of values. Requests are counted per second, at each server, and have no bound unless
a quota sets one. A prefix has no bounds unless a quota sets them.`,
			access.DefaultAmount.Sessions, access.DefaultAmount.Claims, access.DefaultAmount.Bytes),
		Example: `  conclave access quota set cert:batch-7 --sessions 50
  conclave access quota set --prefix reports/ --claims 5000
  conclave access quota list
  conclave access quota drop --prefix reports/`,
		Args: subcommand("set, drop or list"),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newQuotaSet(a), newQuotaDrop(a), newQuotaList(a))
	return cmd
}

// quotaKey takes whose quota it is from the arguments.
func quotaKey(q *conclave.Quota, args []string) error {
	switch {
	case len(args) > 1:
		return fmt.Errorf("access quota: %d arguments: expected one principal", len(args))
	case len(args) == 1 && q.Prefix != "":
		return errors.New("access quota: both a principal and --prefix: give one of them")
	case len(args) == 0 && q.Prefix == "":
		return errors.New("access quota: name a principal, everyone, or --prefix")
	case len(args) == 1:
		q.Who = args[0]
	}
	return nil
}

// ofQuota names whose quota it is.
func ofQuota(q conclave.Quota) string {
	if q.Who == "" {
		return access.PrefixQuota(q.Prefix)
	}
	return shown(q.Who)
}

func newQuotaSet(a *app) *cobra.Command {
	r := &reform{app: a}
	var q conclave.Quota
	cmd := &cobra.Command{
		Use:   "set WHO | --prefix PREFIX",
		Short: "Make a quota, or replace its amounts",
		Example: `  conclave access quota set cert:batch-7 --sessions 50 --claims 1000
  conclave access quota set everyone --sessions 100 --requests 200
  conclave access quota set --prefix reports/ --claims 5000 --bytes 1048576`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := quotaKey(&q, args); err != nil {
				return err
			}
			return r.change(cmd, func(conclave.Access) (edits, error) {
				return edits{[]conclave.AccessEdit{conclave.PutQuota(q)}, "quota of " + amountOf(q)}, nil
			})
		},
	}
	cmd.Flags().StringVar(&q.Prefix, "prefix", "", "bound what all together have under this prefix")
	cmd.Flags().Uint64Var(&q.Sessions, "sessions", 0, "sessions; 0 for the default")
	cmd.Flags().Uint64Var(&q.Claims, "claims", 0, "holds and waits; 0 for the default, and for no bound under a prefix")
	cmd.Flags().Uint64Var(&q.Bytes, "bytes", 0, "bytes of values; 0 for the default, and for no bound under a prefix")
	cmd.Flags().Uint64Var(&q.Requests, "requests", 0, "requests per second at each server, of a principal; 0 for no bound")
	r.registerForce(cmd)
	return cmd
}

// amountOf says whose quota it is, and what it bounds.
func amountOf(q conclave.Quota) string {
	text := ofQuota(q) + ":"
	for _, amount := range amountsOf(q) {
		text += fmt.Sprintf(" %d %s", amount.n, amount.name)
	}
	return text
}

// amount is what a quota bounds.
type amount struct {
	name string
	n    uint64
}

// amountsOf returns the bounds that a quota sets.
func amountsOf(q conclave.Quota) []amount {
	all := []amount{{"sessions", q.Sessions}, {"claims", q.Claims}, {"bytes", q.Bytes}, {"requests", q.Requests}}
	return slices.DeleteFunc(all, func(a amount) bool { return a.n == 0 })
}

func newQuotaDrop(a *app) *cobra.Command {
	r := &reform{app: a}
	var q conclave.Quota
	cmd := &cobra.Command{
		Use:   "drop WHO | --prefix PREFIX",
		Short: "Remove a quota",
		Example: `  conclave access quota drop cert:batch-7
  conclave access quota drop --prefix reports/`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := quotaKey(&q, args); err != nil {
				return err
			}
			return r.change(cmd, func(rules conclave.Access) (edits, error) {
				if !slices.ContainsFunc(rules.Quotas, func(set conclave.Quota) bool { return set.Who == q.Who && set.Prefix == q.Prefix }) {
					return edits{}, failure(StatusNo, "quota of %s: not found", ofQuota(q))
				}
				return edits{[]conclave.AccessEdit{conclave.DropQuota(q)}, fmt.Sprintf("quota of %s is removed", ofQuota(q))}, nil
			})
		},
	}
	cmd.Flags().StringVar(&q.Prefix, "prefix", "", "the prefix whose quota it is")
	r.registerForce(cmd)
	return cmd
}

func newQuotaList(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the quotas",
		Example: `  conclave access quota list
  conclave access quota list --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withRules(cmd, func(rules conclave.Access) error {
				return a.print(map[string]any{"quotas": rules.Quotas}, func(w io.Writer) error {
					t := newTable(w, "QUOTA OF", "SESSIONS", "CLAIMS", "BYTES", "REQUESTS/S")
					for _, q := range rules.Quotas {
						t.row(ofQuota(q), bounded(q.Sessions), bounded(q.Claims), bounded(q.Bytes), bounded(q.Requests))
					}
					return t.flush()
				})
			})
		},
	}
	a.addJSON(cmd)
	return cmd
}

// bounded shows an amount of a quota, where 0 is none.
func bounded(n uint64) string {
	if n == 0 {
		return "-"
	}
	return number(n)
}
