package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/alike"
)

const leaderHelp = `The output is one line of fields separated by tabs: the value that the leader published (conclave
elect --value), its process, its fence, and since when it leads. With --watch, the command prints
a line now and at each change, "-" while nobody leads, until Ctrl-C.

To replace a leader, ask it to leave with conclave release NAME --election --force. The next
leader is the candidate with the highest --priority, and of equal ones the first to arrive. Only
the leader itself can choose its successor (Leadership.Transfer in Go).`

// NewLeader returns the command leader.
func NewLeader(a *connect.App) *cobra.Command {
	watch := false
	cmd := &cobra.Command{
		Use:   "leader NAME",
		Short: "Print who leads an election",
		Long:  leaderHelp,
		Example: `  conclave leader scheduler
  curl "http://$(conclave leader scheduler | cut -f1)/jobs"
  conclave leader scheduler --watch --json`,
		Annotations:       ui.Statuses("0 a process leads", "1 nobody leads"),
		Args:              oneName,
		ValidArgsFunction: completeNames(a, &ResourceClass{Election: true}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if watch {
				return a.Follow(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
					return watchLeader(a, ctx, client, args[0])
				})
			}
			return a.Ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				return printLeader(a, ctx, client, args[0])
			})
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "print a line for each change, until Ctrl-C")
	a.WithJSON(cmd)
	cmd.Flags().Lookup("json").Usage = "print one JSON value on standard output; with --watch one per line"
	return cmd
}

// printLeader asks the cluster, not a single server that may lag behind.
func printLeader(a *connect.App, ctx context.Context, client *conclave.Client, name string) error {
	x, err := client.ExplainElection(ctx, name)
	if err != nil {
		return err
	}
	o := conclave.Observation{Name: name, Elected: len(x.Resource.Holders) > 0}
	if !o.Elected {
		if a.JSON {
			err = a.Print(forms.ElectionOf(o), nil)
		}
		return errors.Join(err, ui.Failure(ui.StatusNo, "election %s: nobody leads", alike.Quoted(name)))
	}
	o.Leader = x.Resource.Holders[0]
	return a.PrintLine(forms.ElectionOf(o), leaderLine(o))
}

func watchLeader(a *connect.App, ctx context.Context, client *conclave.Client, name string) error {
	seen, err := client.Observe(ctx, name)
	if err != nil {
		return err
	}
	for o := range seen {
		view, at := forms.ElectionOf(o), time.Now()
		view.At = &at
		if err := printEvent(a, view, leaderLine(o)); err != nil {
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
	return fmt.Sprintf("%s\t%s\tfence %d\tsince %s", ui.Shown(string(l.Value)), ui.Party(l.Owner, l.Program, l.PID, l.Host), l.Fence, l.Since.Format(time.RFC3339))
}
