package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/internal/demo"
)

const demoHelp = `Demo starts three servers and eight workers, each a process of its own. The
workers contend for one lock and write down when they enter and leave. The
leader is killed with SIGKILL three times and started again, and one worker is
killed while it holds the lock. Then the file is read back: no two workers may
have been inside together, and every fence must be larger than the one before.

With --membership nothing happens to the workers; instead all servers are restarted
one after the other, one is killed and replaced by a new one, and the leader is
removed from the cluster. No worker may lose its session.

With --algorithm an algorithm guards the lock between the servers, without their log and
leader. A worker loses the lock if the server is killed that it is attached to, and knows
that before the next one enters.

With --scenario deadlock two programs take two locks in opposite order. The call that
completes the deadlock fails with an error that names the cycle, and the other program
goes on. This takes seconds.

The others take half a minute. The exit status is 0 only if the lock kept its word.`

func newDemo(a *app) *cobra.Command {
	var (
		dir        string
		membership bool
		scenario   string
		algorithm  string
	)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See programs take turns under a lock while servers are killed under them",
		Long:  demoHelp,
		Example: `  conclave demo
  conclave demo --membership
  conclave demo --scenario deadlock
  conclave demo --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case algorithm != "" && (membership || scenario != ""):
				return failure(StatusError, "--algorithm: cannot be combined with --membership or --scenario")
			case !cmd.Flags().Changed("scenario"):
				return a.demo(dir, membership, algorithm)
			case membership:
				return failure(StatusError, "--scenario and --membership: give one of them")
			case scenario != "deadlock":
				return failure(StatusError, "--scenario: %.40q: must be deadlock", scenario)
			}
			return a.demoDeadlock(dir)
		},
	}
	cmd.Flags().StringVar(&scenario, "scenario", "", "play another one: deadlock")
	cmd.Flags().StringVar(&dir, "dir", "", "keep data, logs and the workers' file in this directory (default: a temporary one)")
	cmd.Flags().BoolVar(&membership, "membership", false, "restart, replace and remove servers instead of killing them")
	cmd.Flags().StringVar(&algorithm, "algorithm", "", "have this algorithm guard the lock between the servers, such as suzuki-kasami")
	a.addJSON(cmd)
	return cmd
}

func (a *app) demo(dir string, membership bool, algorithm string) error {
	var report demo.Report
	err := a.staged(dir, func(ctx context.Context, cfg demo.Config) (err error) {
		cfg.Membership, cfg.Algorithm = membership, algorithm
		report, err = demo.Run(ctx, cfg)
		return err
	})
	if err == nil {
		err = a.printReport(report, report.Text())
	}
	if err == nil && !report.Good() {
		err = failure(StatusError, "the lock did not keep its word: %d overlaps, %d fence regressions%s", report.Overlaps, report.FenceRegressions, report.Lost())
	}
	return err
}

func (a *app) demoDeadlock(dir string) error {
	var report demo.DeadlockReport
	err := a.staged(dir, func(ctx context.Context, cfg demo.Config) (err error) {
		report, err = demo.RunDeadlock(ctx, cfg)
		return err
	})
	if err == nil {
		err = a.printReport(report, report.Text())
	}
	if err == nil && !report.Good() {
		err = failure(StatusError, "the deadlock was not resolved: refused: %q: went on: %q", report.Refused, report.WentOn)
	}
	return err
}

// staged has a demo played in a directory.
func (a *app) staged(dir string, play func(context.Context, demo.Config) error) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	dir, clear, err := workDir(dir, "conclave-demo-")
	if err != nil {
		return err
	}
	defer clear()
	return play(ctx, demo.Config{Binary: binary, Dir: dir, Progress: a.stderr})
}

func (a *app) printReport(report any, text string) error {
	if a.json {
		return json.NewEncoder(a.stdout).Encode(report)
	}
	_, err := fmt.Fprint(a.stdout, text)
	return err
}

// workDir returns dir, made if need be, or a temporary directory if it is
// empty, which the function returned removes.
func workDir(dir, pattern string) (string, func(), error) {
	if dir != "" {
		return dir, func() {}, os.MkdirAll(dir, 0o700)
	}
	dir, err := os.MkdirTemp("", pattern)
	return dir, func() { os.RemoveAll(dir) }, err
}

// newDemoWorker is the hidden command by which demo runs a worker.
func newDemoWorker(a *app) *cobra.Command {
	var number int
	var path string
	cmd := &cobra.Command{
		Use:    demo.WorkerCommand,
		Hidden: true,
		Args:   noArguments,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return demo.Worker(ctx, a.client.servers, number, path)
		},
	}
	cmd.Flags().IntVar(&number, "number", 0, "the worker's number")
	cmd.Flags().StringVar(&path, "file", "", "the workers' file")
	return cmd
}

// newDemoProgram is the hidden command by which the demo of a deadlock runs a program.
func newDemoProgram(a *app) *cobra.Command {
	var name, first, second string
	cmd := &cobra.Command{
		Use:    demo.DeadlockCommand,
		Hidden: true,
		Args:   noArguments,
		RunE: func(*cobra.Command, []string) error {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			return demo.Program(ctx, a.client.servers, name, first, second, os.Stdin, a.stdout)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "the program's name")
	cmd.Flags().StringVar(&first, "first", "", "the lock that it takes first")
	cmd.Flags().StringVar(&second, "second", "", "the lock that it takes then")
	return cmd
}
