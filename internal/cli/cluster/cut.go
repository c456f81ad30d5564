package cluster

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// NewCut returns the command cut.
func NewCut(a *connect.App) *cobra.Command {
	return a.WithJSON(&cobra.Command{
		Use:   "cut [PREFIX]",
		Short: "Record a consistent global state of locks that algorithms guard",
		Long: `The state covers the locks whose names start with PREFIX (default: all) and that an algorithm
guards. It has the state of each lock's algorithm at each server, and the messages in transit.
The servers record it with the algorithm of Chandy and Lamport while the locks stay in use. The
cut is consistent: if it contains the receipt of a message, it also contains the sending.

The column STATE shows the fields under their names in the paper. If the algorithm has one token,
a line says whether the cut contains exactly one. If the servers that take part change during the
recording, the command tries again, up to five times.`,
		Example: `  conclave cut
  conclave cut reports/
  conclave cut reports/daily --json`,
		Args: ui.AtMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				cut, err := admin.New(client).Cut(ctx, strings.Join(args, ""))
				if err != nil {
					return err
				}
				return a.Print(forms.CutOf(cut), func(w io.Writer) error { return writeCut(w, &cut) })
			})
		},
	})
}

func writeCut(w io.Writer, cut *admin.Cut) error {
	fmt.Fprintf(w, "epoch %d, %d members, %d locks\n", cut.Epoch, len(cut.Members), len(cut.Locks))
	if len(cut.Locks) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	machines, lanes := ui.NewTable(w, "LOCK", "ALGORITHM", "MEMBER", "HOLDER", "STATE"), ui.NewTable(w, "LOCK", "FROM", "TO", "MESSAGE")
	for i := range cut.Locks {
		l := &cut.Locks[i]
		for _, m := range l.Machines {
			machines.Row(ui.Shown(l.Name), l.Algorithm, fmt.Sprint(m.Server), ui.OrDash(ui.ShortID(m.Holder)), stateText(&m))
		}
		for _, m := range l.Messages {
			lanes.Row(ui.Shown(l.Name), fmt.Sprint(m.From), fmt.Sprint(m.To), ui.Shown(m.Text))
		}
	}
	if err := machines.Flush(); err != nil {
		return err
	}
	if len(lanes.Rows) > 1 {
		fmt.Fprintln(w, "\nMessages in transit:")
		if err := lanes.Flush(); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(w, "\nNo message was in transit.")
	}
	_, err := fmt.Fprint(w, "\n", tokensText(cut))
	return err
}

// stateText returns the state of a machine, each field under its name in the paper.
func stateText(m *admin.CutMachine) string {
	var parts []string
	for _, f := range m.State {
		parts = append(parts, ui.Shown(f.Name+"="+f.Value))
	}
	if !m.Made {
		parts = append(parts, "(initial)")
	}
	return strings.Join(parts, " ")
}

// tokensText reports whether each lock whose algorithm has one token has exactly one, and other
// errors of the cut.
func tokensText(cut *admin.Cut) string {
	var text strings.Builder
	judged := 0
	for i := range cut.Locks {
		switch l := &cut.Locks[i]; {
		case l.Wrong != "":
			fmt.Fprintf(&text, "WRONG: %s: %s\n", ui.Shown(l.Name), ui.Shown(l.Wrong))
		case l.OneToken && l.Tokens != 1:
			fmt.Fprintf(&text, "WRONG: %s: %d tokens: expected exactly one\n", ui.Shown(l.Name), l.Tokens)
		case l.OneToken:
			judged++
		}
	}
	if judged > 0 {
		fmt.Fprintf(&text, "Locks with exactly one token, as their algorithm promises: %d.\n", judged)
	}
	return text.String()
}
