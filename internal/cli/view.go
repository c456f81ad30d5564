package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
)

func newView(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "view",
		Short: "Show which servers guard locks by algorithms",
		Long: `Show which servers guard locks by algorithms: the epoch, which changes with the members;
each member, what is left of the lease of its seat, and how long locks paused when the epoch
began; who coordinates, if that was elected; whom the members doubt; the last changes of the
epoch, and why; and what guards which prefix.

The members can run a failure detector and an election, which conclave view set sets. Whom more
than half of the others doubt loses its seat when its lease is over. The elected member
coordinates the locks of namespaces with the option coordinator=elected from the next epoch on.`,
		Example: `  conclave view
  conclave view --json
  conclave view set swim+bully
  conclave view elect`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				v, err := client.Homes(ctx)
				if err != nil {
					return err
				}
				shown := viewView{v.Epoch, v.Coordinator, v.Watch.Algorithm, v.Watch.Options, seatsJSON(v.Members), seatsJSON(v.Others), guardsJSON(v.Guards)}
				return a.print(shown, func(w io.Writer) error { return writeView(w, &v) })
			})
		},
	}
	a.addJSON(cmd)
	cmd.AddCommand(newViewSet(a), newViewElect(a))
	return cmd
}

// noWatch is what commands call the absence of a detector and an election.
const noWatch = "none"

const viewSetHelp = `Set what all members of the view run among themselves: a failure detector, and an election
over it, with a plus between their names; or none.

  detectors   heartbeat, reliable, phi-accrual, swim
  elections   bully, chang-roberts, chang-roberts-repaired, le-lann, hirschberg-sinclair, peterson,
              ring-list, ring-active-list, by-load, by-load-ring, by-load-bully

It changes at once, with a next epoch. Members elect a coordinator when there is none, when the
elected one is gone, and when the stack changes; elections by load are repeated each 30 s. Nothing
runs while no algorithm guards a lock.

The option delay is the bound of one message delay in microseconds, 50000 if it is not set.
Others are those of the algorithms: see conclave algorithms.`

func newViewSet(a *app) *cobra.Command {
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
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%s: %d arguments: give one stack such as swim+bully, or none", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			use := conclave.Use{Algorithm: args[0], Options: strings.Join(slices.Sorted(slices.Values(options)), ",")}
			if args[0] == noWatch {
				use.Algorithm = ""
			}
			return a.ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				return client.SetWatch(ctx, use, reason)
			})
		},
	}
	cmd.Flags().StringSliceVar(&options, "option", nil, "an option of the stack, name=value; may be given again")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for people who read the audit log")
	return cmd
}

func newViewElect(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "elect", Short: "Have the members elect a coordinator",
		Long: `Have the members of the view elect a coordinator now, and print which of them do. The result
counts from the next epoch on, which begins if another member is elected: see conclave view.`,
		Example: "  conclave view elect",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				members, err := client.CallElection(ctx)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(a.stdout, "servers %s elect a coordinator; conclave view shows it\n", strings.Trim(fmt.Sprint(members), "[]"))
				return err
			})
		},
	}
}

type viewView struct {
	Epoch       uint64      `json:"epoch"`
	Coordinator uint64      `json:"coordinator"`
	Watch       string      `json:"watch,omitempty"`
	Options     string      `json:"watch_options,omitempty"`
	Members     []seatView  `json:"members"`
	Others      []seatView  `json:"others"`
	Guards      []guardView `json:"guards"`
}

type seatView struct {
	Seat      string    `json:"seat"`
	Server    uint64    `json:"server"`
	Address   string    `json:"client_address"`
	Remaining string    `json:"remaining"`
	Home      *homeView `json:"home,omitempty"`
	Problem   string    `json:"problem,omitempty"`
}

func seatsJSON(seats []conclave.Seat) []seatView {
	list := []seatView{}
	for _, s := range seats {
		list = append(list, seatView{s.ID, s.Server, s.Address, s.Remaining.String(), homeJSON(s.Home), s.Problem})
	}
	return list
}

func writeView(w io.Writer, v *conclave.View) error {
	if len(v.Guards) == 0 {
		_, err := fmt.Fprintln(w, "agreement guards all locks: see conclave namespace set")
		return err
	}
	fmt.Fprintf(w, "epoch %d, %d members", v.Epoch, len(v.Members))
	if v.Coordinator != 0 {
		fmt.Fprintf(w, ", coordinator %d", v.Coordinator)
	}
	if v.Watch.Algorithm != "" {
		fmt.Fprintf(w, ", watched by %s", strings.TrimSpace(v.Watch.Algorithm+" "+v.Watch.Options))
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
func writeStarts(w io.Writer, v *conclave.View) error {
	starts := startsOf(v)
	if len(starts) == 0 {
		return nil
	}
	t := newTable(w, "EPOCH", "SINCE", "WHY")
	for _, s := range starts[max(len(starts)-fewStarts, 0):] {
		t.row(number(s.Epoch), s.At.Local().Format(time.DateTime), shown(s.Why))
	}
	if err := t.flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// startsOf returns the latest epochs, by number, as the first member that saw each did.
func startsOf(v *conclave.View) (starts []conclave.ViewStart) {
	for _, m := range v.Members {
		if m.Home == nil {
			continue
		}
		for _, s := range m.Home.Starts {
			at, found := slices.BinarySearchFunc(starts, s.Epoch, func(o conclave.ViewStart, epoch uint64) int { return cmp.Compare(o.Epoch, epoch) })
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
