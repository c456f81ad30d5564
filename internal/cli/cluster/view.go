package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// NewView returns the command view.
func NewView(a *connect.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "view [COMMAND]",
		Short: "Show which servers guard locks by algorithms",
		Long: `These servers are the members of a view. Each change of the members starts a new epoch. The output
shows the epoch; each member, with the rest of its lease and how long its locks paused when the epoch
began; the elected coordinator; the members that others suspect; the last changes of the epoch with
their reasons; and the guard of each prefix.

  LEASE LEFT   the rest of its lease; if it ends, its clients have lost their locks before
  PART         open: it grants locks; waits for 2: server 2 has not answered in this epoch; out: it
               has not begun this epoch; lapsed: its lease is over; waits: it takes part from the
               next epoch on
  NAMES        locks for which it runs an algorithm now
  LANES        how many of its connections to the other members are up
  DOUBTS       the members that it suspects

The members can run a failure detector and an election; see conclave view set. If more than half of the
others suspect a member, it is not renewed, and leaves the view when its lease ends. The elected member
coordinates the locks of namespaces with the option coordinator=elected, from the next epoch on.`,
		Example: `  conclave view
  conclave view --json
  conclave view set swim+bully
  conclave view elect`,
		Args: ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.Show(a, cmd, (*admin.Admin).Homes, func(v admin.View) error {
				return a.Print(forms.ViewOf(v), func(w io.Writer) error { return writeView(w, &v) })
			})
		},
	}
	a.WithJSON(cmd)
	cmd.AddCommand(newViewSet(a), newViewElect(a))
	return cmd
}

// noWatch stands for no detector and no election.
const noWatch = "none"

const viewSetHelp = `STACK is a failure detector, + and an election that uses it, such as swim+bully; or none. All members of
the view run it.

  detectors   heartbeat, reliable, phi-accrual, swim
  elections   bully, chang-roberts, chang-roberts-repaired, le-lann, hirschberg-sinclair, peterson,
              ring-list, ring-active-list, by-load, by-load-ring, by-load-bully

The change takes effect at once, with a new epoch. The members elect a coordinator when there is none, when
the coordinator has left, and when the stack changes. Elections by load are repeated every 30 s. Nothing
runs while no algorithm guards a lock.

The option delay is the bound of one message delay in microseconds (default 50000). conclave algorithms
NAME lists the other options.`

func newViewSet(a *connect.App) *cobra.Command {
	var (
		options []string
		reason  string
	)
	cmd := &cobra.Command{
		Use: "set STACK", Short: "Set the failure detector and the election of the members",
		Long: viewSetHelp,
		Example: `  conclave view set swim+bully
  conclave view set phi-accrual+by-load --option delay=20000 --reason "the least busy leads"
  conclave view set none`,
		Args: ui.Takes("STACK"),
		RunE: func(cmd *cobra.Command, args []string) error {
			use := admin.Use{Algorithm: args[0], Options: strings.Join(slices.Sorted(slices.Values(options)), ",")}
			switch args[0] {
			case "": // often a variable that is not set
				return errors.New("STACK: is empty; to run no stack, give " + noWatch)
			case noWatch:
				use.Algorithm = ""
			}
			return a.Ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				return admin.New(client).SetFailureDetector(ctx, use, reason)
			})
		},
	}
	cmd.Flags().StringSliceVar(&options, "option", nil, "set an option of the stack, as `name=value`; may be repeated")
	cmd.Flags().StringVar(&reason, "reason", "", "the reason, for the audit log")
	return cmd
}

func newViewElect(a *connect.App) *cobra.Command {
	return &cobra.Command{
		Use: "elect", Short: "Make the members elect a coordinator now",
		Long: `The command prints the members that take part. If they elect another member, a new epoch begins, and
conclave view shows the new coordinator.`,
		Example: `  conclave view elect
  conclave view elect --timeout 2s
  conclave view`,
		Args: ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return connect.Show(a, cmd, (*admin.Admin).CallElection, func(members []uint64) error {
				_, err := fmt.Fprintf(a.Stdout, "servers %s elect a coordinator; `conclave view` shows the result\n", strings.Trim(fmt.Sprint(members), "[]"))
				return err
			})
		},
	}
}

func writeView(w io.Writer, v *admin.View) error {
	if len(v.Guards) == 0 {
		_, err := fmt.Fprintln(w, "agreement guards all locks; see `conclave namespace set`")
		return err
	}
	fmt.Fprintf(w, "epoch %d, %d members", v.Epoch, len(v.Members))
	if v.Coordinator != 0 {
		fmt.Fprintf(w, ", coordinator %d", v.Coordinator)
	}
	if v.FailureDetector.Algorithm != "" {
		fmt.Fprintf(w, ", watched by %s", strings.TrimSpace(v.FailureDetector.Algorithm+" "+v.FailureDetector.Options))
	}
	fmt.Fprint(w, "\n\n")
	if err := writeSeats(w, v); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := writeStarts(w, v); err != nil {
		return err
	}
	return writeGuards(w, v.Guards)
}

// fewStarts is how many changes of the epoch are shown.
const fewStarts = 5

// writeStarts shows the last changes of the epoch.
func writeStarts(w io.Writer, v *admin.View) error {
	starts := startsOf(v)
	if len(starts) == 0 {
		return nil
	}
	t := ui.NewTable(w, "EPOCH", "SINCE", "WHY")
	for _, s := range starts[max(len(starts)-fewStarts, 0):] {
		t.Row(ui.Number(s.Epoch), s.At.Local().Format(time.DateTime), ui.Shown(s.Why))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// startsOf returns the latest epochs in order. Each has the time at which the first member saw it.
func startsOf(v *admin.View) (starts []admin.ViewStart) {
	for _, m := range v.Members {
		if m.Home == nil {
			continue
		}
		for _, s := range m.Home.Starts {
			at, found := slices.BinarySearchFunc(starts, s.Epoch, func(o admin.ViewStart, epoch uint64) int { return cmp.Compare(o.Epoch, epoch) })
			switch {
			case !found:
				starts = slices.Insert(starts, at, s)
			case s.At.Before(starts[at].At):
				starts[at] = s
			}
		}
	}
	return starts
}

// writeSeats shows the servers that take part, and those that wait to take part.
func writeSeats(w io.Writer, v *admin.View) error {
	t := ui.NewTable(w, "SERVER", "ADDRESS", "SEAT", "LEASE LEFT", "PART", "CLIENTS", "NAMES", "LAST PAUSE", "LANES", "DOUBTS")
	for _, s := range v.Members {
		part, clients, names, paused, lanes, doubts := "no answer", "-", "-", "-", "-", "-"
		if h := s.Home; h != nil {
			part, clients, names, paused, lanes = partOf(h), ui.Number(h.Sessions), ui.Number(h.Names), h.Paused.Round(10*time.Microsecond).String(), lanesOf(h)
			if h.Detector != nil && len(h.Detector.Suspected) > 0 {
				doubts = strings.Trim(fmt.Sprint(h.Detector.Suspected), "[]")
			}
		}
		t.Row(ui.Number(s.Server), ui.Shown(s.Address), ui.ShortID(s.ID), s.Remaining.Round(time.Millisecond).String(), ui.Shown(part), clients, names, paused, lanes, doubts)
	}
	for _, s := range v.Others {
		t.Row(ui.Number(s.Server), ui.Shown(s.Address), ui.ShortID(s.ID), s.Remaining.Round(time.Millisecond).String(), "waits", "-", "-", "-", "-", "-")
	}
	return t.Flush()
}

// partOf describes the state of a member.
func partOf(h *admin.Home) string {
	switch {
	case h.State == "OPEN" && h.Remaining == 0:
		return "lapsed"
	case h.State == "RESUMING":
		return "waits for " + strings.Trim(fmt.Sprint(h.Missing), "[]")
	}
	return strings.ToLower(h.State)
}

// lanesOf says how many of the connections to other members are up.
func lanesOf(h *admin.Home) string {
	up := 0
	for _, l := range h.Lanes {
		if l.Up {
			up++
		}
	}
	return fmt.Sprintf("%d of %d", up, len(h.Lanes))
}

// perNamespace adds up the counters of the members for each prefix.
func perNamespace(v *admin.View) (sums []admin.Namespace) {
	for _, s := range v.Members {
		if s.Home == nil {
			continue
		}
		for _, n := range s.Home.Namespaces {
			at := slices.IndexFunc(sums, func(sum admin.Namespace) bool { return sum.Prefix == n.Prefix })
			if at < 0 {
				sums = append(sums, n)
				continue
			}
			sum := &sums[at]
			sum.Names = max(sum.Names, n.Names)
			sum.Entries, sum.Messages, sum.Others = sum.Entries+n.Entries, sum.Messages+n.Messages, sum.Others+n.Others
			sum.Waited += n.Waited
		}
	}
	return sums
}
