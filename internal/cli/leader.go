package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
)

const leaderHelp = `Print who leads the election NAME, in one line of fields with tabs between: first the
value that the leader published (see conclave elect --value), then its process, its
fence and since when it leads.

Exit status: 0 if somebody leads, and 1 if nobody does. With --watch a line is
printed now and at every change, "-" if nobody leads, until Ctrl-C.

Who leads can be asked to leave (conclave release NAME --election --force); the best
candidate follows, by --priority of conclave elect and then in the order of arrival.
To choose another is up to a program that leads itself (Leadership.Transfer in Go).`

func newLeader(a *app) *cobra.Command {
	watch := false
	cmd := &cobra.Command{
		Use:   "leader NAME",
		Short: "Print who leads an election",
		Long:  leaderHelp,
		Example: `  conclave leader scheduler
  curl "http://$(conclave leader scheduler | cut -f1)/jobs"
  conclave leader scheduler --watch --json`,
		Args:              oneName,
		ValidArgsFunction: a.completeNames(&resourceKind{election: true}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if watch {
				return a.follow(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
					return a.watchLeader(ctx, client, args[0])
				})
			}
			return a.ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				return a.printLeader(ctx, client, args[0])
			})
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "go on, with a line for each change")
	a.addJSON(cmd)
	cmd.Flags().Lookup("json").Usage = "print one JSON value on standard output, with --watch one on each line"
	return cmd
}

// observationView is one observation; At is absent of what was asked once.
type observationView struct {
	At      *time.Time  `json:"at,omitempty"`
	Name    string      `json:"name"`
	Elected bool        `json:"elected"`
	Leader  *holderView `json:"leader,omitempty"`
}

func observationJSON(o conclave.Observation) observationView {
	v := observationView{Name: o.Name, Elected: o.Elected}
	if o.Elected {
		v.Leader = &resourceJSON(&conclave.Resource{Holders: []conclave.Holder{o.Leader}}).Holders[0]
	}
	return v
}

// printLeader asks the cluster, not one server that may lag.
func (a *app) printLeader(ctx context.Context, client *conclave.Client, name string) error {
	x, err := client.ExplainElection(ctx, name)
	if err != nil {
		return err
	}
	o := conclave.Observation{Name: name, Elected: len(x.Resource.Holders) > 0}
	if !o.Elected {
		if a.json {
			err = a.print(observationJSON(o), nil)
		}
		return errors.Join(err, failure(StatusNo, "nobody leads election %q", name))
	}
	o.Leader = x.Resource.Holders[0]
	return a.print(observationJSON(o), func(w io.Writer) error {
		_, err := fmt.Fprintln(w, leaderLine(o))
		return err
	})
}

func (a *app) watchLeader(ctx context.Context, client *conclave.Client, name string) error {
	seen, err := client.Observe(ctx, name)
	if err != nil {
		return err
	}
	for o := range seen {
		view, at := observationJSON(o), time.Now()
		view.At = &at
		if err := a.line(view, leaderLine(o)); err != nil {
			return err
		}
	}
	return nil
}

func leaderLine(o conclave.Observation) string {
	if !o.Elected {
		return "-\tnobody leads"
	}
	l := o.Leader
	return fmt.Sprintf("%s\t%s\tfence %d\tsince %s", shown(string(l.Value)), party(l.Owner, l.Program, l.PID, l.Host), l.Fence, l.Since.Format(time.RFC3339))
}
