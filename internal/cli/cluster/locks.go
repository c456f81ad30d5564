// Package cluster has the commands that show and change what is in a cluster: locks, elections, sessions,
// members, namespaces, snapshots and the audit log.
package cluster

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/alike"
)

// NewLocks returns the command locks.
func NewLocks(a *connect.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "locks [PREFIX]",
		Short: "List locks with their holders and the number of waiters",
		Long: `With PREFIX, list only the locks whose names start with PREFIX. Free locks are not listed. The
table has a row for each holder. While a server that guards locks does not answer, locks that its
clients hold are missing or have no holder, and standard error names the server.

A name such as "cafe\u0301" looks like a shorter one, which is another lock: the accent is a character
of its own. Such characters are shown by their codes, and standard error names the locks that look alike.`,
		Example: `  conclave locks
  conclave locks reports/
  conclave locks --prefix reports/ --json`,
		Args: ui.AtMostOne,
	}
	cmd.RunE = listing(a, cmd, "locks", "HOLDER", ResourceClass{})
	return a.WithJSON(cmd)
}

// NewElections returns the command elections.
func NewElections(a *connect.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "elections [PREFIX]",
		Short: "List elections with their leaders and the number of candidates",
		Long:  "With PREFIX, list only the elections whose names start with PREFIX.",
		Example: `  conclave elections
  conclave elections scheduler
  conclave elections scheduler --json`,
		Args: ui.AtMostOne,
	}
	cmd.RunE = listing(a, cmd, "elections", leaderColumn, ResourceClass{Election: true})
	return a.WithJSON(cmd)
}

const leaderColumn = "LEADER"

// listing prints what is held. The JSON is an object with one key, and with the servers that did not
// answer, if any. The prefix of the names
// is an argument or a flag.
func listing(a *connect.App, cmd *cobra.Command, key, holder string, of ResourceClass) func(*cobra.Command, []string) error {
	var prefix string
	cmd.Flags().StringVar(&prefix, "prefix", "", "list only names that start with this `prefix`; the same as the argument")
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 0 && cmd.Flags().Changed("prefix"):
			return ui.Exclude("--prefix", "the argument PREFIX")
		case len(args) > 0:
			prefix = args[0]
		}
		return a.Ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
			found, silent, err := of.ListAll(ctx, client, prefix)
			if err != nil {
				return err
			}
			form := map[string]any{key: ui.Each(found, forms.ResourceOf), "more": false}
			if away := NoAnswer(silent); away != "" {
				form["silent"] = silent
				a.Say("%s", away)
			}
			for _, names := range alike.Groups(ui.Each(found, func(r conclave.Resource) string { return r.Name })) {
				a.Say("%s look alike, and are different %s", strings.Join(ui.Each(names, alike.Quoted), " and "), key)
			}
			return a.Print(form, func(w io.Writer) error {
				return resourcesTable(w, holder, found)
			})
		})
	}
}

// resourcesTable has a row for each holder. The columns of both locks and elections come first.
// ASKED TO LEAVE is last, because it may contain a reason.
func resourcesTable(w io.Writer, holder string, found []conclave.Resource) error {
	elections := holder == leaderColumn
	head := []string{"NAME", ui.OwnerColumn, holder, "PID", "PROGRAM", "SESSION", "SINCE", "FENCE", "WAITERS"}
	if elections {
		head = append(head, "VALUE", "PRIORITY")
	} else {
		head = append(head, "SHARED", "LIMIT")
	}
	head = append(head, "ASKED TO LEAVE")
	guarded := func(r conclave.Resource) bool { return r.Guard != "" }
	row := func(r *conclave.Resource, cells ...string) []string { return cells }
	if slices.ContainsFunc(found, guarded) {
		head = append(head, "GUARD")
		row = func(r *conclave.Resource, cells ...string) []string { return append(cells, ui.Shown(r.Guard)) }
	}
	closed := func(c *conclave.Closed) string { return "-" }
	if slices.ContainsFunc(found, anyClosed) {
		head = append(head, "CLOSED UNTIL ABOUT")
		closed = func(c *conclave.Closed) string { return clock(c.Until) }
		bare := row
		row = func(r *conclave.Resource, cells ...string) []string { return append(bare(r, cells...), "-") }
	}
	t := ui.NewTable(w, head...)
	for _, r := range found {
		for _, h := range r.Holders {
			cells := []string{ui.Shown(r.Name), ui.Shown(h.Owner), ui.Shown(h.Host), ui.Number(h.PID), ui.Shown(h.Program), ui.ShortID(h.Session), ui.Since(h.Since), ui.Number(h.Fence), ui.Number(r.QueueLength)}
			if elections {
				cells = append(cells, ui.Shown(string(h.Value)), ui.Number(h.Priority))
			} else {
				cells = append(cells, ui.Yes(h.Shared), atOnce(&r, h))
			}
			t.Row(row(&r, append(cells, asked(h))...)...)
		}
		for _, c := range r.Closed {
			cells := row(&r, ui.Shown(r.Name), ui.Shown(c.Owner), ui.Shown(c.Host), ui.Number(c.PID), ui.Shown(c.Program), "-", ui.Since(c.Since), ui.Number(c.Fence), ui.Number(r.QueueLength), "-", "-", "-")
			t.Row(append(cells[:len(cells)-1], closed(&c))...)
		}
		if len(r.Holders)+len(r.Closed) == 0 {
			t.Row(row(&r, ui.Shown(r.Name), "-", "-", "-", "-", "-", "-", "-", ui.Number(r.QueueLength), "-", "-", "-")...)
		}
	}
	return t.Flush()
}

// atOnce returns how many processes may hold a lock at the same time. A shared lock has no limit.
func atOnce(r *conclave.Resource, h conclave.Holder) string {
	if h.Shared {
		return "-"
	}
	return ui.Number(max(r.Limit, 1))
}
