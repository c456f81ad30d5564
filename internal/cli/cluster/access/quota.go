package access

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/service/access"
)

func newQuota(a *connect.App) *cobra.Command {
	return ui.Group(&cobra.Command{
		Use:   "quota",
		Short: "Set, drop and list quotas",
		Long: fmt.Sprintf(`A quota of a principal limits what it may have: sessions, claims (holds and waits) and bytes
of values. A quota of a prefix limits the claims and bytes of all principals together, on the
names that start with the prefix.

If several quotas match a principal, one applies: the quota that names it, otherwise the one
with the longest pattern, otherwise that of everyone. The default is %d sessions, %d
claims and %d bytes. A quota of a principal can also limit its requests per second at each
server. Requests have no default limit, and a prefix has no default limits.`,
			access.DefaultAmount.Sessions, access.DefaultAmount.Claims, access.DefaultAmount.Bytes),
		Example: `  conclave access quota set cert:batch-7 --sessions 50
  conclave access quota set --prefix reports/ --claims 5000
  conclave access quota list
  conclave access quota drop --prefix reports/`,
	}, newQuotaSet(a), newQuotaDrop(a), newQuotaList(a))
}

// quotaKey sets whose quota it is: the argument WHO, or --prefix.
func quotaKey(q *admin.Quota, args []string) error {
	switch {
	case len(args) == 1 && q.Prefix != "":
		return ui.Exclude("--prefix", "the argument WHO")
	case len(args) == 0 && q.Prefix == "":
		return errors.New("WHO: missing; give a principal or everyone, or set --prefix")
	case len(args) == 1:
		q.Who = args[0]
	}
	return nil
}

// ofQuota returns whose quota it is.
func ofQuota(q admin.Quota) string {
	if q.Who == "" {
		return access.PrefixQuota(q.Prefix)
	}
	return ui.Shown(q.Who)
}

func newQuotaSet(a *connect.App) *cobra.Command {
	r := &reform{App: a}
	var q admin.Quota
	cmd := &cobra.Command{
		Use:   "set WHO | --prefix PREFIX",
		Short: "Create a quota, or replace its limits",
		Long:  "A limit that is not given is the default.",
		Args:  ui.AtMostOne,
		Example: `  conclave access quota set cert:batch-7 --sessions 50 --claims 1000
  conclave access quota set everyone --sessions 100 --requests 200
  conclave access quota set --prefix reports/ --claims 5000 --bytes 1048576`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := quotaKey(&q, args); err != nil {
				return err
			}
			return r.change(cmd, func(admin.Access) (edits, error) {
				return edits{[]admin.AccessEdit{admin.PutQuota(q)}, "quota of " + amountOf(q)}, nil
			})
		},
	}
	cmd.Flags().StringVar(&q.Prefix, "prefix", "", "limit all principals together on names that start with this `prefix`")
	cmd.Flags().Uint64Var(&q.Sessions, "sessions", 0, "how many sessions (0: the default)")
	cmd.Flags().Uint64Var(&q.Claims, "claims", 0, "how many holds and waits (0: the default, which for a prefix is unlimited)")
	cmd.Flags().Uint64Var(&q.Bytes, "bytes", 0, "how many bytes of values (0: the default, which for a prefix is unlimited)")
	cmd.Flags().Uint64Var(&q.Requests, "requests", 0, "how many requests per second of a principal at each server (0: unlimited)")
	return r.registerForce(cmd)
}

// amountOf returns whose quota it is, and its limits.
func amountOf(q admin.Quota) string {
	text := ofQuota(q) + ":"
	for _, amount := range amountsOf(q) {
		text += fmt.Sprintf(" %d %s", amount.n, amount.name)
	}
	return text
}

// amount is a limit of a quota.
type amount struct {
	name string
	n    uint64
}

// amountsOf returns the limits that a quota sets.
func amountsOf(q admin.Quota) []amount {
	all := []amount{{"sessions", q.Sessions}, {"claims", q.Claims}, {"bytes", q.Bytes}, {"requests", q.Requests}}
	return slices.DeleteFunc(all, func(a amount) bool { return a.n == 0 })
}

func newQuotaDrop(a *connect.App) *cobra.Command {
	r := &reform{App: a}
	var q admin.Quota
	cmd := &cobra.Command{
		Use:   "drop WHO | --prefix PREFIX",
		Short: "Remove a quota",
		Long:  "The default limits apply again.",
		Example: `  conclave access quota drop cert:batch-7
  conclave access quota drop everyone
  conclave access quota drop --prefix reports/`,
		Annotations: ui.Statuses("0 the quota is removed", "1 there is no such quota"),
		Args:        ui.AtMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := quotaKey(&q, args); err != nil {
				return err
			}
			return r.change(cmd, func(rules admin.Access) (edits, error) {
				if !slices.ContainsFunc(rules.Quotas, func(set admin.Quota) bool { return set.Who == q.Who && set.Prefix == q.Prefix }) {
					return edits{}, ui.Failure(ui.StatusNo, "quota of %s: not found", ofQuota(q))
				}
				return edits{[]admin.AccessEdit{admin.DropQuota(q)}, fmt.Sprintf("quota of %s removed", ofQuota(q))}, nil
			})
		},
	}
	cmd.Flags().StringVar(&q.Prefix, "prefix", "", "remove the quota of this `prefix`")
	return r.registerForce(cmd)
}

func newQuotaList(a *connect.App) *cobra.Command {
	return a.WithJSON(&cobra.Command{
		Use:   "list",
		Short: "List the quotas",
		Long:  "A limit that a quota does not set is shown as -.",
		Example: `  conclave access quota list
  conclave access quota list --timeout 2s
  conclave access quota list --json`,
		Args: ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.Show(a, cmd, (*admin.Admin).Access, func(rules admin.Access) error {
				return a.Print(map[string]any{"quotas": ui.Each(rules.Quotas, forms.QuotaOf)}, func(w io.Writer) error {
					t := ui.NewTable(w, "QUOTA OF", "SESSIONS", "CLAIMS", "BYTES", "REQUESTS/S")
					for _, q := range rules.Quotas {
						t.Row(ofQuota(q), ui.Bounded(q.Sessions), ui.Bounded(q.Claims), ui.Bounded(q.Bytes), ui.Bounded(q.Requests))
					}
					return t.Flush()
				})
			})
		},
	})
}
