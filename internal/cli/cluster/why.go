package cluster

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/cluster/keeps"
	"github.com/conclave-io/conclave/internal/cli/guard"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/alike"
)

// NewWhy returns the command why.
func NewWhy(a *connect.App) *cobra.Command {
	var of ResourceClass
	cmd := &cobra.Command{
		Use:   "why NAME",
		Short: "Explain who holds a lock, who waits, and how past holds ended",
		Long: `The output shows
  - the holders of the lock NAME, since when they hold it, and whether they were asked to leave
  - the waiters, in the order in which they will get it; if an algorithm guards the lock, the
    number of waiters at each server
  - what the holders themselves wait for, if they report it
  - how the last 16 holds ended, the newest first
  - which processes on this machine run under the holders: the command, or what it has left when it
    exited. Only their user and root can see them

If nobody holds NAME and no hold is remembered, why says so and exits with 0. If a lock that is held
has a name that looks the same and consists of other characters, why shows it.`,
		Example: `  conclave why nightly-report
  conclave why scheduler --election
  conclave why nightly-report --json`,
		Args:              oneName,
		ValidArgsFunction: completeNames(a, &of),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				x, err := of.explain(ctx, client, args[0])
				if err != nil {
					return err
				}
				waits, more, err := client.Waits(ctx)
				if err != nil { // for example because the servers run an older release
					a.Say("warning: unknown what its holders wait for: %s", ui.OneLine(err.Error()))
				}
				g, blocked := waitGraph{waits, more}, of.Blocked(ctx, client, args[0], x.Held)
				form := forms.ExplanationOf(args[0], x, blocked, g.of(of.Election, &x.Resource))
				here := of.here(client.Cluster(), args[0], x.Resource.Holders)
				form.Here = ui.Each(here, under.form)
				return a.Print(form, func(w io.Writer) error {
					if err := of.tell(w, args[0], x, blocked, g); err != nil {
						return err
					}
					if err := tellHere(w, here); err != nil {
						return err
					}
					return of.tellAlike(ctx, w, client, args[0])
				})
			})
		},
	}
	of.register(cmd, "explain an election instead of a lock")
	return a.WithJSON(cmd)
}

// ResourceClass is the class of a resource: lock or election.
type ResourceClass struct{ Election bool }

// Blocked says why nobody gets a lock that is not held, if the reason is a change of its guard, or
// returns "". It ignores errors.
func (k ResourceClass) Blocked(ctx context.Context, client *conclave.Client, name string, held bool) string {
	if held || k.Election {
		return ""
	}
	v, err := admin.New(client).View(ctx)
	if err != nil {
		return ""
	}
	return blockedBy(v.Guards, name)
}

func (k *ResourceClass) register(cmd *cobra.Command, usage string) {
	cmd.Flags().BoolVar(&k.Election, "election", false, usage)
}

// either returns the word for a lock, or that for an election.
func (k ResourceClass) either(lock, election string) string {
	if k.Election {
		return election
	}
	return lock
}

func (k ResourceClass) String() string { return k.either("lock", "election") }

// The words for what a holder does, for a resource that has one, and for the holder.
func (k ResourceClass) has() string { return k.either("holds", "leads") }

// Taken returns the word for a resource that has a holder.
func (k ResourceClass) Taken() string  { return k.either("held", "led") }
func (k ResourceClass) leaves() string { return k.either("holder", "leader") }

// Revoke returns the method that asks holders to leave.
func (k ResourceClass) Revoke(client *conclave.Client) func(ctx context.Context, name, reason string, options ...admin.RevokeOption) (uint64, error) {
	if k.Election {
		return admin.New(client).RevokeElection
	}
	return admin.New(client).Revoke
}

func (k ResourceClass) explain(ctx context.Context, client *conclave.Client, name string) (conclave.Explanation, error) {
	if k.Election {
		return client.ExplainElection(ctx, name)
	}
	return client.Explain(ctx, name)
}

// ListAll returns what is held, and the servers that did not answer.
func (k ResourceClass) ListAll(ctx context.Context, client *conclave.Client, prefix string) (known []conclave.Resource, silent []uint64, err error) {
	if k.Election {
		known, err = client.ListElections(ctx, prefix)
		return known, nil, err
	}
	return client.ListKnown(ctx, prefix)
}

// tell writes an explanation for people. Blocked is why nobody gets it, or "".
func (k ResourceClass) tell(w io.Writer, name string, x conclave.Explanation, blocked string, g waitGraph) error {
	if away := NoAnswer(silentHomes(x.Homes)); !x.Held && away != "" {
		fmt.Fprintf(w, "%s %s: unknown whether it is free: %s\n", k, alike.Quoted(name), away)
	} else if !x.Held {
		if err := k.tellFree(w, name, &x, blocked); err != nil {
			return err
		}
	} else if err := k.tellHeld(w, name, &x.Resource); err != nil {
		return err
	}
	if err := tellClosed(w, &x.Resource); err != nil {
		return err
	}
	g.tellChain(w, k.Election, &x.Resource)
	if x.Algorithm != "" {
		tellHomes(w, x)
	}
	if len(x.Past) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := ui.NewTable(w, "PAST FENCE", ui.OwnerColumn, "HOST", "PID", "PROGRAM", "ENDED", "HELD FOR", "HOW")
	for _, p := range x.Past {
		t.Row(ui.Number(p.Fence), ui.Shown(p.Owner), ui.Shown(p.Host), ui.Number(p.PID), ui.Shown(p.Program), ui.Since(p.Until), span(p.Since, p.Until), howEnded(p))
	}
	return t.Flush()
}

// under are the processes of this machine that run under a hold.
type under struct {
	fence     uint64
	processes []guard.Process
}

func (u under) form() forms.Running {
	return forms.Running{Fence: jsonform.Uint64(u.fence), Processes: ui.Each(u.processes, func(p guard.Process) forms.Process { return forms.Process(p) })}
}

// here returns what runs on this machine under holders.
func (k ResourceClass) here(cluster, name string, holders []conclave.Holder) (found []under) {
	running := keeps.Under(cluster, k.Election, name)
	for _, h := range holders {
		if processes := running[h.Fence]; len(processes) > 0 {
			found = append(found, under{h.Fence, processes})
		}
	}
	return found
}

func tellHere(w io.Writer, found []under) (err error) {
	for _, u := range found {
		runs := "run"
		if len(u.processes) == 1 {
			runs = "runs"
		}
		_, err = fmt.Fprintf(w, "\non this machine, %s %s under fence %d\n", keeps.List(u.processes), runs, u.fence)
	}
	return err
}

// tellFree describes what nobody holds. While the guard of a lock changes, it can have waiters.
func (k ResourceClass) tellFree(w io.Writer, name string, x *conclave.Explanation, blocked string) error {
	text := fmt.Sprintf("%s %s: nobody %s it", k, alike.Quoted(name), k.has())
	if x.Resource.QueueLength > 0 {
		text += fmt.Sprintf(", %d waiting", x.Resource.QueueLength)
	}
	if len(x.Past) == 0 {
		text += ", and no past hold is remembered"
	}
	if blocked != "" {
		text += "; " + blocked
	}
	if _, err := fmt.Fprintln(w, text); err != nil {
		return err
	}
	return k.tellQueue(w, &x.Resource)
}

func silentHomes(homes []conclave.AtHome) (servers []uint64) {
	for _, h := range homes {
		if h.Problem != "" {
			servers = append(servers, h.Server)
		}
	}
	return servers
}

// NoAnswer says that servers that guard locks do not answer, and what that means. It returns "" if
// there are none.
func NoAnswer(servers []uint64) string {
	const meaning = " not answer; a lock that a client there holds is free when the lease of the server has ended"
	names := ui.Each(servers, ui.Number[uint64])
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "server " + names[0] + " does" + meaning
	}
	return "servers " + strings.Join(names, " and ") + " do" + meaning
}

// tellHomes describes the algorithm that guards a lock, and where the clients of the lock are.
func tellHomes(w io.Writer, x conclave.Explanation) {
	fmt.Fprintf(w, "guarded by %s, like all locks that start with %q; the servers report:\n", x.Algorithm, x.Prefix)
	for _, h := range x.Homes {
		switch {
		case h.Problem != "":
			fmt.Fprintf(w, "  server %d does not answer: %s\n", h.Server, ui.Shown(h.Problem))
		case h.Held:
			fmt.Fprintf(w, "  server %d: one of its clients holds the lock, %d wait\n", h.Server, h.QueueLength)
		default:
			fmt.Fprintf(w, "  server %d: %d wait\n", h.Server, h.QueueLength)
		}
	}
}

func (k ResourceClass) tellHeld(w io.Writer, name string, r *conclave.Resource) error {
	limit := ""
	if r.Limit > 1 {
		limit = fmt.Sprintf(" of %d", r.Limit)
	}
	waiting := "nobody waits"
	if r.QueueLength > 0 {
		waiting = fmt.Sprintf("%d waiting", r.QueueLength)
	}
	fmt.Fprintf(w, "%s %s is %s by %d%s, %s\n\n", k, alike.Quoted(name), k.Taken(), len(r.Holders), limit, waiting)
	t := ui.NewTable(w, k.head("HOLDER FENCE", ui.OwnerColumn, "HOST", "PID", "PROGRAM", "SESSION", "SINCE", "ASKED TO LEAVE")...)
	for _, h := range r.Holders {
		t.Row(k.row(h.Shared, h.Priority, h.Value, ui.Number(h.Fence), ui.Shown(h.Owner), ui.Shown(h.Host), ui.Number(h.PID), ui.Shown(h.Program), ui.ShortID(h.Session), ui.Since(h.Since), asked(h))...)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return k.tellQueue(w, r)
}

func (k ResourceClass) tellQueue(w io.Writer, r *conclave.Resource) error {
	if len(r.Waiters) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := ui.NewTable(w, k.head("QUEUE", ui.OwnerColumn, "HOST", "PID", "PROGRAM", "SESSION", "SINCE")...)
	for i, q := range r.Waiters {
		place := ui.Number(uint32(i + 1))
		if r.Guard != "" {
			place = "-" // the algorithm decides who is next
		}
		t.Row(k.row(q.Shared, q.Priority, q.Value, place, ui.Shown(q.Owner), ui.Shown(q.Host), ui.Number(q.PID), ui.Shown(q.Program), ui.ShortID(q.Session), ui.Since(q.Since))...)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if more := int(r.QueueLength) - len(r.Waiters); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
	return nil
}

// head and row add the columns that only locks, or only elections, have.
func (k ResourceClass) head(columns ...string) []string {
	if k.Election {
		return append(columns, "PRIORITY", "VALUE")
	}
	return append(columns, "SHARED")
}

func (k ResourceClass) row(shared bool, priority int64, value []byte, cells ...string) []string {
	if k.Election {
		return append(cells, ui.Number(priority), ui.Shown(string(value)))
	}
	return append(cells, ui.Yes(shared))
}

// asked describes whether and why a holder was asked to leave.
func asked(h conclave.Holder) string {
	switch {
	case !h.Revoked:
		return "no"
	case h.Reason == "":
		return "yes"
	}
	return "yes: " + ui.Shown(h.Reason)
}

func howEnded(p conclave.Ended) string {
	text := ui.Shown(p.How)
	switch p.How {
	case "closed":
		text = "session closed"
	case "expired":
		text = "session not renewed in time"
	case "dropped":
		text = "dropped: it did not leave in time"
	}
	if p.Reason != "" {
		text += ", asked to leave: " + ui.Shown(p.Reason)
	}
	if p.By != "" {
		text += ", by " + ui.Shown(p.By)
	}
	return text
}

// span returns the time between two moments, rounded for people.
func span(from, to time.Time) string {
	d := max(to.Sub(from), 0)
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// oneName takes exactly one name of a lock or an election.
func oneName(cmd *cobra.Command, args []string) error {
	if err := ui.Takes("NAME")(cmd, args); err != nil {
		return err
	}
	return conclave.ValidateName(args[0])
}

// completionTimeout bounds the wait after the Tab key.
const completionTimeout = time.Second

// completeNames completes the name of what is held now. It completes nothing if the cluster
// does not answer in time.
func completeNames(a *connect.App, of *ResourceClass) func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return func(_ *cobra.Command, args []string, begun string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		if len(args) == 0 {
			a.Client.Timeout = min(a.Client.Timeout, ui.Duration(completionTimeout))
			// An error cannot be shown here.
			_ = a.Ask(context.Background(), func(ctx context.Context, client *conclave.Client) error {
				held, _, err := of.ListAll(ctx, client, begun)
				for _, r := range held {
					names = append(names, cobra.Completion(r.Name))
				}
				return err
			})
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// By describes a holder, as the end of a sentence.
func By(h conclave.Holder) string {
	if h.Fence == 0 {
		return ""
	}
	return fmt.Sprintf(" by %s since %s, fence %d", ui.Party(h.Owner, h.Program, h.PID, h.Host), h.Since.Format(time.RFC3339), h.Fence)
}

// tellAlike shows what has a name that looks the same. It ignores errors.
func (k ResourceClass) tellAlike(ctx context.Context, w io.Writer, client *conclave.Client, name string) (err error) {
	for _, other := range alike.OtherForms(name) {
		if x, failed := k.explain(ctx, client, other); failed == nil && (x.Held || x.Resource.QueueLength > 0) {
			_, err = fmt.Fprintf(w, "\n%s looks the same, and is another %s: %s by %d, %d waiting\n", alike.Quoted(other), k, k.Taken(), len(x.Resource.Holders), x.Resource.QueueLength)
		}
	}
	return err
}
