package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

const (
	minInterval = 100 * time.Millisecond
	maxInterval = time.Hour
	// topShare bounds the load on the servers: the pause between two rounds of questions is at
	// least topShare times as long as a round. A cluster with very many locks is asked less often.
	topShare = 4
)

// NewTop returns the command top.
func NewTop(a *connect.App) *cobra.Command {
	t := &top{app: a, interval: ui.Duration(time.Second)}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show servers, rates and the longest queues live",
		Long: `The screen is updated every --interval. It shows
  - totals, and grants and log entries per second, without locks that algorithms guard
  - each server with its role and its LAG: committed log entries that are not on its disk
  - each prefix that an algorithm guards, with entries per second, messages per entry, and
    WAIT, the mean time from the request to the algorithm to the entry
  - the locks with the longest queues, with holder, age of the hold, and fence

Press q to quit. With --once, the command prints one screen and exits. The output can be a pipe, and
the rates are those of one --interval.`,
		Example: `  conclave top
  conclave top --elections --interval 5s
  conclave top --once | head -20`,
		Args: ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if i := time.Duration(t.interval); i < minInterval || i > maxInterval {
				return ui.Failure(ui.StatusError, "--interval: %v: must be between %v and %v", i, minInterval, maxInterval)
			}
			if !t.once && !ui.IsTerminal(os.Stdout) {
				return errors.New("standard output: not a terminal; use `conclave top --once` to print one screen")
			}
			return a.Follow(cmd.Context(), t.run)
		},
	}
	cmd.Flags().Var(&t.interval, "interval", "time between two updates, 100ms to 1h")
	cmd.Flags().BoolVar(&t.once, "once", false, "print one screen and exit")
	cmd.Flags().BoolVar(&t.of.Election, "elections", false, "show elections instead of locks")
	return cmd
}

// top shows a cluster and updates the screen.
type top struct {
	app      *connect.App
	of       ResourceClass
	interval ui.Duration
	once     bool
}

// sample is the state of the cluster at one time, or the error of asking for it.
type sample struct {
	at        time.Time
	status    admin.Status
	resources []conclave.Resource
	view      admin.View // empty if no server answers
	err       error
}

func (t *top) run(ctx context.Context, client *conclave.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	samples := make(chan sample)
	defer func() { // the sampler ends before its client is closed
		cancel()
		for range samples {
		}
	}()
	go t.sample(ctx, client, samples)
	view := &topView{of: t.of, interval: time.Duration(t.interval)}
	if !t.once {
		return t.live(samples, view)
	}
	for range 2 {
		s := <-samples
		if s.err != nil {
			return s.err
		}
		view.take(s)
	}
	_, err := fmt.Fprintln(t.app.Stdout, strings.Join(view.lines(0, ui.DefaultHeight), "\n"))
	return err
}

// sample asks the cluster until ctx ends.
func (t *top) sample(ctx context.Context, client *conclave.Client, out chan<- sample) {
	defer close(out)
	for {
		s := t.look(ctx, client)
		select {
		case out <- s:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(max(time.Duration(t.interval)-time.Since(s.at), topShare*time.Since(s.at))):
		case <-ctx.Done():
			return
		}
	}
}

func (t *top) look(ctx context.Context, client *conclave.Client) sample {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(t.app.Client.Timeout))
	defer cancel()
	s := sample{at: time.Now()}
	if s.status, s.err = admin.New(client).Status(ctx); s.err == nil {
		s.resources, _, s.err = t.of.ListAll(ctx, client, "")
	}
	if s.err == nil {
		s.view = seatsOf(ctx, client, s.status.Leader)
	}
	return s
}

// live draws on the terminal until the user quits.
func (t *top) live(samples <-chan sample, view *topView) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, append(ui.TopSignals, ui.Passed...)...)
	defer signal.Stop(signals)
	c, err := ui.OpenConsole(os.Stdin, os.Stdout)
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		if err := c.Draw(view.lines); err != nil {
			return err
		}
		select {
		case s := <-samples:
			view.take(s)
		case key := <-c.Keys:
			if key == 'q' || key == 'Q' || key == ctrlC {
				return nil
			}
		case sig := <-signals:
			if ui.Ending(sig) {
				t.app.Status = ui.SignalStatus(sig)
				return nil
			}
		}
	}
}

const ctrlC = 3
