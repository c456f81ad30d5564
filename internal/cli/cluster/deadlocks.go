package cluster

import (
	"context"
	"fmt"
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

const deadlocksHelp = `A process that waits for a lock or an election while it keeps another one is a link of a chain.
A chain that is a cycle is a deadlock. Each chain shown ends with a holder that does not wait, or
that does not report what it keeps. No chain is a cycle, because the servers refuse the request
that would close one: its program gets the error DEADLOCK, and conclave lock exits with 125.

A program reports what it keeps with each request. In Go, these are the holds whose Context is a
parent of the call's context. A conclave lock that runs under another conclave lock keeps that
lock. Processes that keep nothing while they wait are not shown.`

// NewDeadlocks returns the command deadlocks.
func NewDeadlocks(a *connect.App) *cobra.Command {
	var dot, svg bool
	cmd := &cobra.Command{
		Use:   "deadlocks",
		Short: "Show who waits for a lock while keeping another",
		Long:  deadlocksHelp,
		Example: `  conclave deadlocks
  conclave deadlocks --json
  conclave deadlocks --svg > waits.svg
  conclave deadlocks --dot | dot -Tpng -o waits.png`,
		Args: ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				waits, more, err := client.Waits(ctx)
				if err != nil {
					return err
				}
				g := waitGraph{waits, more}
				switch {
				case dot:
					return g.drawDOT(a.Stdout)
				case svg:
					return g.drawSVG(a.Stdout)
				}
				return a.Print(g.view(), g.tell)
			})
		},
	}
	cmd.Flags().BoolVar(&dot, "dot", false, "print a graph in the format DOT, for Graphviz")
	cmd.Flags().BoolVar(&svg, "svg", false, "print an SVG picture")
	a.WithJSON(cmd)
	cmd.MarkFlagsMutuallyExclusive("dot", "svg", "json")
	return cmd
}

// waitGraph is the processes that wait while they keep a hold.
type waitGraph struct {
	waits []conclave.Waiting
	more  bool // the server left some out
}

func (g waitGraph) view() any {
	return map[string]any{"waits": ui.Each(g.waits, forms.WaitingOf), "more": g.more}
}

// of returns the waits of the holders of a resource.
func (g waitGraph) of(election bool, r *conclave.Resource) []forms.Waiting {
	views := []forms.Waiting{}
	for i := range g.waits {
		for _, h := range r.Holders {
			if slices.Contains(g.keepers(election, r.Name, h.Fence), i) {
				views = append(views, forms.WaitingOf(g.waits[i]))
			}
		}
	}
	return views
}

// tell writes the chains for people. Chains start at processes that nobody waits for.
func (g waitGraph) tell(w io.Writer) error {
	if len(g.waits) == 0 {
		_, err := fmt.Fprintln(w, "no process waits while it keeps a lock or an election")
		return err
	}
	shownWaits := make([]bool, len(g.waits))
	for pass := range 2 {
		for i := range g.waits {
			if shownWaits[i] || pass == 0 && len(g.dependents(i)) > 0 {
				continue
			}
			fmt.Fprintf(w, "%s\n", waiterText(&g.waits[i]))
			g.chain(w, i, 1, shownWaits)
		}
	}
	if g.more {
		fmt.Fprintln(w, "more waits are not shown")
	}
	return nil
}

// chain writes the holders that a waiting process waits for, and what these wait for.
func (g waitGraph) chain(w io.Writer, at, depth int, told []bool) {
	told[at] = true
	wait := &g.waits[at]
	for _, h := range wait.Holders {
		fmt.Fprintf(w, "%s%s\n", strings.Repeat("  ", depth), g.holderText(wait.Election, wait.Name, &h))
		for _, next := range g.keepers(wait.Election, wait.Name, h.Fence) {
			if told[next] {
				fmt.Fprintf(w, "%s%s, as above\n", strings.Repeat("  ", depth+1), waiterText(&g.waits[next]))
				continue
			}
			fmt.Fprintf(w, "%s%s\n", strings.Repeat("  ", depth+1), waiterText(&g.waits[next]))
			g.chain(w, next, depth+2, told)
		}
	}
	if n := wait.HolderCount - len(wait.Holders); n > 0 {
		fmt.Fprintf(w, "%sand %d other holders\n", strings.Repeat("  ", depth), n)
	}
}

// tellChain writes what the holders of a resource wait for.
func (g waitGraph) tellChain(w io.Writer, election bool, r *conclave.Resource) {
	told := make([]bool, len(g.waits))
	first := true
	for _, h := range r.Holders {
		for _, i := range g.keepers(election, r.Name, h.Fence) {
			if first {
				fmt.Fprintf(w, "\nITS HOLDERS WAIT\n")
				first = false
			}
			if !told[i] {
				fmt.Fprintf(w, "fence %d: %s\n", h.Fence, waiterText(&g.waits[i]))
				g.chain(w, i, 1, told)
			}
		}
	}
}

func waiterText(w *conclave.Waiting) string {
	return fmt.Sprintf("%s waits for %s, since %s", ui.Party(w.Waiter.Owner, w.Waiter.Program, w.Waiter.PID, w.Waiter.Host), title(w.Election, w.Name), ui.Since(w.Waiter.Since))
}

func (g waitGraph) holderText(election bool, name string, h *conclave.Holder) string {
	text := fmt.Sprintf("held by %s, fence %d", ui.Party(h.Owner, h.Program, h.PID, h.Host), h.Fence)
	switch {
	case h.Revoked:
		text += ", which is asked to leave"
	case len(g.keepers(election, name, h.Fence)) > 0:
		text += ", which waits itself"
	}
	return text
}

// title names a lock or an election in a sentence.
func title(election bool, name string) string {
	return fmt.Sprintf("%s %s", ResourceClass{election}, alike.Quoted(name))
}

// keepers returns the indexes of the waits that keep a hold.
func (g waitGraph) keepers(election bool, name string, fence uint64) (found []int) {
	k := conclave.Kept{Election: election, Name: name, Fence: fence}
	for i := range g.waits {
		if slices.Contains(g.waits[i].Keeps, k) {
			found = append(found, i)
		}
	}
	return found
}

// dependents returns the indexes of the waits for a hold that the wait at an index keeps.
func (g waitGraph) dependents(at int) (found []int) {
	for i := range g.waits {
		for _, h := range g.waits[i].Holders {
			if slices.Contains(g.keepers(g.waits[i].Election, g.waits[i].Name, h.Fence), at) {
				found = append(found, i)
			}
		}
	}
	return found
}
