package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/internal/cli/cluster"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/demo"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

const demoHelp = `The demo starts three servers and eight workers, each in its own process. The workers contend
for one lock, and write to a file when they enter and leave. The demo kills the leader with
SIGKILL three times and restarts it, and kills one worker that holds the lock. Then it reads the
file: no two workers may have been inside at the same time, and every fence must be larger than
the previous one. This takes half a minute.

With --membership, the demo does not kill workers. It restarts every server in turn, kills one
and replaces it with a new one, and removes the leader from the cluster. No worker may lose its
session.

With --algorithm, an algorithm guards the lock between the servers, without log and leader. If
the demo kills the server to which the holder is connected, the holder loses the lock, and is
told before the next worker enters.

With --scenario deadlock, two programs take two locks in opposite order. The call that completes
the deadlock fails with an error that names the cycle, and the other program continues. This
takes a few seconds.`

// NewDemo returns the command demo.
func NewDemo(a *connect.App) *cobra.Command {
	var (
		dir        string
		membership bool
		scenario   string
		algorithm  string
	)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show that a lock stays safe while servers are killed",
		Long:  demoHelp,
		Annotations: ui.Statuses("0 the lock stayed safe", "125 the lock was not safe, the demo failed, or its arguments are invalid",
			"130 interrupted by Ctrl-C"),
		Example: `  conclave demo
  conclave demo --membership
  conclave demo --scenario deadlock
  conclave demo --json`,
		Args: ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			known := cluster.Guards()
			switch {
			case algorithm != "" && !slices.Contains(known, algorithm):
				return fmt.Errorf("--algorithm: %.40q: expected one of %s", algorithm, strings.Join(known, ", "))
			case !cmd.Flags().Changed("scenario"):
				return runDemo(a, dir, membership, strings.TrimPrefix(algorithm, cluster.Agreement))
			case scenario != "deadlock":
				return ui.Failure(ui.StatusError, "--scenario: %.40q: expected deadlock", scenario)
			}
			return runDeadlockDemo(a, dir)
		},
	}
	cmd.Flags().StringVar(&scenario, "scenario", "", "show another scenario: deadlock")
	cmd.Flags().StringVar(&dir, "dir", "", "keep data, logs and the workers' file in this `directory` (default: a temporary one)")
	cmd.Flags().BoolVar(&membership, "membership", false, "restart, replace and remove servers instead of killing them")
	cmd.Flags().StringVar(&algorithm, "algorithm", "", "guard the lock with this `algorithm`, such as suzuki-kasami")
	a.WithJSON(cmd)
	cmd.MarkFlagsMutuallyExclusive("scenario", "membership", "algorithm")
	return cmd
}

func runDemo(a *connect.App, dir string, membership bool, algorithm string) error {
	var report demo.Report
	err := ui.OnThisMachine(dir, "conclave-demo-", func(ctx context.Context, binary, dir string) (err error) {
		report, err = demo.Run(ctx, demo.Config{Binary: binary, Dir: dir, Progress: a.Stderr, Membership: membership, Algorithm: algorithm})
		return err
	})
	if err == nil {
		err = printReport(a.App, report, report.Text())
	}
	if err == nil && !report.Good() {
		err = ui.Failure(ui.StatusError, "the lock was not safe: %d overlaps, %d fence regressions%s", report.Overlaps, report.FenceRegressions, report.Lost())
	}
	return err
}

func runDeadlockDemo(a *connect.App, dir string) error {
	var report demo.DeadlockReport
	err := ui.OnThisMachine(dir, "conclave-demo-", func(ctx context.Context, binary, dir string) (err error) {
		report, err = demo.RunDeadlock(ctx, demo.Config{Binary: binary, Dir: dir, Progress: a.Stderr})
		return err
	})
	if err == nil {
		err = printReport(a.App, report, report.Text())
	}
	if err == nil && !report.Good() {
		err = ui.Failure(ui.StatusError, "the deadlock was not resolved: refused %q, continued %q", report.Refused, report.WentOn)
	}
	return err
}

func printReport(a *ui.App, report any, text string) error {
	if a.JSON {
		return json.NewEncoder(a.Stdout).Encode(report)
	}
	_, err := fmt.Fprint(a.Stdout, text)
	return err
}

// NewDemoWorker is the hidden command with which demo runs a worker.
func NewDemoWorker(a *connect.App) *cobra.Command {
	var number int
	var path string
	cmd := &cobra.Command{
		Use:    demo.WorkerCommand,
		Hidden: true,
		Args:   ui.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := ui.UntilSignal()
			defer stop()
			return demo.Worker(ctx, a.Client.Servers, number, path)
		},
	}
	cmd.Flags().IntVar(&number, "number", 0, "the worker's number")
	cmd.Flags().StringVar(&path, "file", "", "the workers' file")
	return cmd
}

// NewDemoProgram is the hidden command with which the deadlock demo runs a program.
func NewDemoProgram(a *connect.App) *cobra.Command {
	var name, first, second string
	cmd := &cobra.Command{
		Use:    demo.DeadlockCommand,
		Hidden: true,
		Args:   ui.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := ui.UntilSignal()
			defer stop()
			return demo.Program(ctx, a.Client.Servers, name, first, second, os.Stdin, a.Stdout)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the program's name")
	cmd.Flags().StringVar(&first, "first", "", "the lock that it takes first")
	cmd.Flags().StringVar(&second, "second", "", "the lock that it takes second")
	return cmd
}
