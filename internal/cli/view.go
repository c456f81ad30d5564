package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
)

func newView(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "view",
		Short: "Show which servers guard locks by algorithms",
		Long: `Show which servers guard locks by algorithms: the epoch, which changes with the members;
each member, what is left of the lease of its seat, and how long locks paused when the epoch
began; who coordinates, if that was elected;
and what guards which prefix.`,
		Example: "  conclave view\n  conclave view --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				v, err := client.Homes(ctx)
				if err != nil {
					return err
				}
				shown := viewView{v.Epoch, v.Coordinator, seatsJSON(v.Members), seatsJSON(v.Others), guardsJSON(v.Guards)}
				return a.print(shown, func(w io.Writer) error { return writeView(w, &v) })
			})
		},
	}
	a.addJSON(cmd)
	return cmd
}

type viewView struct {
	Epoch       uint64      `json:"epoch"`
	Coordinator uint64      `json:"coordinator"`
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
	fmt.Fprint(w, "\n\n")
	if err := writeSeats(w, v); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return writeGuards(w, v.Guards)
}
