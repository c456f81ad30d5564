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
				return a.Print(cutView{cut.Epoch, cut.Members, ui.Each(cut.Locks, cutLockJSON)}, func(w io.Writer) error { return writeCut(w, &cut) })
			})
		},
	})
}

type cutView struct {
	Epoch   uint64        `json:"epoch"`
	Members []uint64      `json:"members"`
	Locks   []cutLockView `json:"locks"`
}

type cutLockView struct {
	Name      string           `json:"name"`
	Algorithm string           `json:"algorithm"`
	Machines  []cutMachineView `json:"machines"`
	Messages  []cutMessageView `json:"messages"`
	// Tokens counts the tokens, if the algorithm promises exactly one.
	Tokens *int   `json:"tokens,omitempty"`
	Wrong  string `json:"wrong,omitempty"`
}

type cutMachineView struct {
	Server uint64         `json:"server"`
	Made   bool           `json:"made"`
	State  []cutFieldView `json:"state"`
	Holder string         `json:"holder,omitempty"`
}

type cutFieldView struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type cutMessageView struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	Text string `json:"text"`
}

func cutLockJSON(l admin.CutLock) cutLockView {
	v := cutLockView{
		Name: l.Name, Algorithm: l.Algorithm, Wrong: l.Wrong,
		Machines: ui.Each(l.Machines, func(m admin.CutMachine) cutMachineView {
			state := ui.Each(m.State, func(f admin.CutField) cutFieldView { return cutFieldView(f) })
			return cutMachineView{m.Server, m.Made, state, m.Holder}
		}),
		Messages: ui.Each(l.Messages, func(m admin.CutMessage) cutMessageView { return cutMessageView(m) }),
	}
	if l.OneToken {
		v.Tokens = &l.Tokens
	}
	return v
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
