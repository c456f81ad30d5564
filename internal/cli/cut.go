package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
)

func newCut(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cut [PREFIX]",
		Short: "Record one consistent state of algorithms that guard locks",
		Long: `Record a consistent cut through the locks that start with PREFIX and that algorithms
guard: the state of the machine of each lock at each server, and the messages between them.
The servers record it with the algorithm of Chandy and Lamport, while the locks go on. It is a
state that the run could have been in: every message whose receipt is in it was sent in it.

State shows the fields of each machine under the names of the paper. If the algorithm
has one token, a line says whether the cut has exactly one. A cut lies within one epoch: if
the servers that take part change meanwhile, it is tried again up to five times.`,
		Example: "  conclave cut reports/\n  conclave cut reports/daily --json",
		Args:    atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				cut, err := client.Cut(ctx, strings.Join(args, ""))
				if err != nil {
					return err
				}
				return a.print(cutJSON(&cut), func(w io.Writer) error { return writeCut(w, &cut) })
			})
		},
	}
	a.addJSON(cmd)
	return cmd
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
	// Tokens is how many there are, of an algorithm that promises one.
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

func cutJSON(cut *conclave.Cut) cutView {
	view := cutView{cut.Epoch, cut.Members, []cutLockView{}}
	for i := range cut.Locks {
		l := &cut.Locks[i]
		lock := cutLockView{Name: l.Name, Algorithm: l.Algorithm, Messages: []cutMessageView{}, Wrong: l.Wrong}
		for _, m := range l.Machines {
			machine := cutMachineView{m.Server, m.Made, []cutFieldView{}, m.Holder}
			for _, f := range m.State {
				machine.State = append(machine.State, cutFieldView(f))
			}
			lock.Machines = append(lock.Machines, machine)
		}
		for _, m := range l.Messages {
			lock.Messages = append(lock.Messages, cutMessageView(m))
		}
		if l.OneToken {
			lock.Tokens = &l.Tokens
		}
		view.Locks = append(view.Locks, lock)
	}
	return view
}

func writeCut(w io.Writer, cut *conclave.Cut) error {
	fmt.Fprintf(w, "epoch %d, %d members, %d locks\n", cut.Epoch, len(cut.Members), len(cut.Locks))
	if len(cut.Locks) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	machines, lanes := newTable(w, "LOCK", "ALGORITHM", "MEMBER", "HOLDER", "STATE"), newTable(w, "LOCK", "FROM", "TO", "MESSAGE")
	for i := range cut.Locks {
		l := &cut.Locks[i]
		for _, m := range l.Machines {
			machines.row(shown(l.Name), l.Algorithm, fmt.Sprint(m.Server), orDash(shortID(m.Holder)), stateText(&m))
		}
		for _, m := range l.Messages {
			lanes.row(shown(l.Name), fmt.Sprint(m.From), fmt.Sprint(m.To), shown(m.Text))
		}
	}
	if err := machines.flush(); err != nil {
		return err
	}
	if len(lanes.rows) > 1 {
		fmt.Fprintln(w, "\nMessages on their way:")
		if err := lanes.flush(); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(w, "\nNo message was on its way.")
	}
	_, err := fmt.Fprint(w, "\n", tokensText(cut))
	return err
}

// stateText is the state of a machine: each field by the name that it has in the paper.
func stateText(m *conclave.CutMachine) string {
	var parts []string
	for _, f := range m.State {
		parts = append(parts, shown(f.Name+"="+f.Value))
	}
	if !m.Made {
		parts = append(parts, "(initial)")
	}
	return strings.Join(parts, " ")
}

// tokensText says of the locks whose algorithms have one token whether there is exactly
// one, and what else is wrong.
func tokensText(cut *conclave.Cut) string {
	var text strings.Builder
	judged := 0
	for i := range cut.Locks {
		switch l := &cut.Locks[i]; {
		case l.Wrong != "":
			fmt.Fprintf(&text, "WRONG: %s: %s\n", shown(l.Name), shown(l.Wrong))
		case l.OneToken && l.Tokens != 1:
			fmt.Fprintf(&text, "WRONG: %s: %d tokens, not one\n", shown(l.Name), l.Tokens)
		case l.OneToken:
			judged++
		}
	}
	if judged > 0 {
		fmt.Fprintf(&text, "Locks whose algorithm has a token, with exactly one in the cut: %d.\n", judged)
	}
	return text.String()
}
