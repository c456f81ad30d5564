package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
)

func newWhy(a *app) *cobra.Command {
	var of resourceKind
	cmd := &cobra.Command{
		Use:   "why NAME",
		Short: "Explain a lock: who holds it, who waits, how the last holds ended",
		Long: `Explain why a lock, or with --election an election, is as it is: who holds it, since
when, and whether they are asked to leave; who waits, in the order in which they
will get it, or at each server in that order if an algorithm guards it; what its holders wait for while they keep it, if they say so; and how the
last 16 holds ended, the newest first.

A name that nobody holds, and of which no hold is remembered, is as good as any
other: it is said, and the exit status is 0.`,
		Example: `  conclave why nightly-report
  conclave why scheduler --election
  conclave why nightly-report --json`,
		Args:              oneName,
		ValidArgsFunction: a.completeNames(&of),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				x, err := of.explain(ctx, client, args[0])
				if err != nil {
					return err
				}
				waits, more, err := client.Waits(ctx)
				if err != nil { // as from servers of an older release
					a.say("what its holders wait for is unknown: %s", oneLine(err.Error()))
				}
				g := waitGraph{waits, more}
				return a.print(explanationJSON(args[0], x, g.of(of.election, &x.Resource)), func(w io.Writer) error {
					return of.tell(w, args[0], x, g)
				})
			})
		},
	}
	of.register(cmd, "explain an election, not a lock")
	a.addJSON(cmd)
	return cmd
}

// resourceKind tells apart what a name is the name of.
type resourceKind struct{ election bool }

func (k *resourceKind) register(cmd *cobra.Command, usage string) {
	cmd.Flags().BoolVar(&k.election, "election", false, usage)
}

func (k resourceKind) String() string {
	if k.election {
		return "election"
	}
	return "lock"
}

func (k resourceKind) explain(ctx context.Context, client *conclave.Client, name string) (conclave.Explanation, error) {
	if k.election {
		return client.ExplainElection(ctx, name)
	}
	return client.Explain(ctx, name)
}

func (k resourceKind) listAll(ctx context.Context, client *conclave.Client, prefix string) ([]conclave.Resource, error) {
	if k.election {
		return client.ListElections(ctx, prefix)
	}
	return client.List(ctx, prefix)
}

type explanationView struct {
	Name string `json:"name"`
	// Held is absent if nobody holds, as far as those of Homes know that answer.
	Held *resourceView `json:"held,omitempty"`
	Past []endedView   `json:"past"`
	// Waits are its holders that wait for something else while they keep it.
	Waits []waitingView `json:"waits"`
	// Algorithm guards it between the servers, with all names of the prefix.
	Algorithm string            `json:"algorithm,omitempty"`
	Prefix    string            `json:"prefix,omitempty"`
	Homes     []conclave.AtHome `json:"homes,omitempty"`
}

type endedView struct {
	Fence   uint64    `json:"fence,string"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	Host    string    `json:"host"`
	PID     int64     `json:"pid"`
	Program string    `json:"program"`
	How     string    `json:"how"`
	Reason  string    `json:"reason,omitempty"`
	By      string    `json:"by,omitempty"`
	Owner   string    `json:"owner,omitempty"`
}

func explanationJSON(name string, x conclave.Explanation, waits []waitingView) explanationView {
	v := explanationView{Name: name, Past: []endedView{}, Waits: waits, Algorithm: x.Algorithm, Prefix: x.Prefix, Homes: x.Homes}
	if x.Held {
		held := resourceJSON(&x.Resource)
		v.Held = &held
	}
	for _, p := range x.Past {
		v.Past = append(v.Past, endedView(p))
	}
	return v
}

// tell writes an explanation for people.
func (k resourceKind) tell(w io.Writer, name string, x conclave.Explanation, g waitGraph) error {
	if away := silent(x.Homes); !x.Held && away != "" {
		fmt.Fprintf(w, "%s %q: unknown whether it is free: %s not answer; a client there may hold it until the lease of its server ends\n", k, name, away)
	} else if !x.Held {
		memory := "; its last holds:"
		if len(x.Past) == 0 {
			memory = ", and no hold of it is remembered"
		}
		if _, err := fmt.Fprintf(w, "nobody %s %s %q%s\n", k.has(), k, name, memory); err != nil {
			return err
		}
	} else if err := k.tellHeld(w, name, &x.Resource); err != nil {
		return err
	}
	g.tellChain(w, k.election, &x.Resource)
	if x.Algorithm != "" {
		tellHomes(w, x)
	}
	if len(x.Past) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := newTable(w, "PAST FENCE", ownerColumn, "HOST", "PID", "PROGRAM", "ENDED", "HELD FOR", "HOW")
	for _, p := range x.Past {
		t.row(number(p.Fence), shown(p.Owner), shown(p.Host), number(p.PID), shown(p.Program), since(p.Until), span(p.Since, p.Until), howEnded(p))
	}
	return t.flush()
}

// silent names the servers that say nothing, with "does" or "do", or returns nothing.
func silent(homes []conclave.AtHome) string {
	var names []string
	for _, h := range homes {
		if h.Problem != "" {
			names = append(names, number(h.Server))
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "server " + names[0] + " does"
	}
	return "servers " + strings.Join(names, " and ") + " do"
}

// tellHomes says what guards a lock that is not agreement, and where its clients are.
func tellHomes(w io.Writer, x conclave.Explanation) {
	fmt.Fprintf(w, "guarded by %s, as are all locks that start with %q; each server says what it knows\n", x.Algorithm, x.Prefix)
	for _, h := range x.Homes {
		switch {
		case h.Problem != "":
			fmt.Fprintf(w, "  server %d does not answer: %s\n", h.Server, shown(h.Problem))
		case h.Held:
			fmt.Fprintf(w, "  server %d: a client of it holds it; %d wait there\n", h.Server, h.QueueLength)
		default:
			fmt.Fprintf(w, "  server %d: %d wait there\n", h.Server, h.QueueLength)
		}
	}
}

func (k resourceKind) has() string {
	if k.election {
		return "leads"
	}
	return "holds"
}

func (k resourceKind) tellHeld(w io.Writer, name string, r *conclave.Resource) error {
	limit := ""
	if r.Limit > 1 {
		limit = fmt.Sprintf(" of %d", r.Limit)
	}
	verb := "held"
	if k.election {
		verb = "led"
	}
	waiting := "nobody waits"
	if r.QueueLength > 0 {
		waiting = fmt.Sprintf("%d waiting", r.QueueLength)
	}
	fmt.Fprintf(w, "%s %q is %s by %d%s, %s\n\n", k, name, verb, len(r.Holders), limit, waiting)
	t := newTable(w, k.head("HOLDER FENCE", ownerColumn, "HOST", "PID", "PROGRAM", "SESSION", "SINCE", "ASKED TO LEAVE")...)
	for _, h := range r.Holders {
		t.row(k.row(h.Shared, h.Priority, h.Value, number(h.Fence), shown(h.Owner), shown(h.Host), number(h.PID), shown(h.Program), shortID(h.Session), since(h.Since), asked(h))...)
	}
	if err := t.flush(); err != nil || len(r.Waiters) == 0 {
		return err
	}
	fmt.Fprintln(w)
	t = newTable(w, k.head("QUEUE", ownerColumn, "HOST", "PID", "PROGRAM", "SESSION", "SINCE")...)
	for i, q := range r.Waiters {
		t.row(k.row(q.Shared, q.Priority, q.Value, number(uint32(i+1)), shown(q.Owner), shown(q.Host), number(q.PID), shown(q.Program), shortID(q.Session), since(q.Since))...)
	}
	if err := t.flush(); err != nil {
		return err
	}
	if more := int(r.QueueLength) - len(r.Waiters); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
	return nil
}

// head and row put what only locks, or only elections, have after the rest.
func (k resourceKind) head(columns ...string) []string {
	if k.election {
		return append(columns, "PRIORITY", "VALUE")
	}
	return append(columns, "SHARED")
}

func (k resourceKind) row(shared bool, priority int64, value []byte, cells ...string) []string {
	if k.election {
		return append(cells, number(priority), shown(string(value)))
	}
	return append(cells, yes(shared))
}

// asked says whether and why a holder is asked to leave.
func asked(h conclave.Holder) string {
	switch {
	case !h.Revoked:
		return "no"
	case h.Reason == "":
		return "yes"
	}
	return "yes: " + shown(h.Reason)
}

// howEnded says how a hold ended.
func howEnded(p conclave.Ended) string {
	text := shown(p.How)
	switch p.How {
	case "closed":
		text = "closed with its session"
	case "expired":
		text = "its session was not renewed in time"
	case "dropped":
		text = "taken away: it did not leave in time"
	}
	if p.Reason != "" {
		text += ", asked to leave: " + shown(p.Reason)
	}
	if p.By != "" {
		text += ", by " + shown(p.By)
	}
	return text
}

// span tells how long something took, in a precision that people read.
func span(from, to time.Time) string {
	d := max(to.Sub(from), 0)
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
