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

func newDemo(a *app) *cobra.Command {
	var (
		dir        string
		membership bool
	)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See programs take turns under a lock while servers are killed under them",
		Long: `Demo starts three servers and eight workers, each a process of its own. The
workers contend for one lock and write down when they enter and leave. The
leader is killed with SIGKILL three times and started again, and one worker is
killed while it holds the lock. Then the file is read back: no two workers may
have been inside together, and every fence must be larger than the one before.

With --membership nothing happens to the workers; instead all servers are restarted
one after the other, one is killed and replaced by a new one, and the leader is
removed from the cluster. No worker may lose its session.

It takes half a minute, and exits with 0 only if the lock kept its word.`,
		Example: `  conclave demo
  conclave demo --membership
  conclave demo --json`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return a.demo(dir, membership) },
	}
	cmd.Flags().StringVar(&dir, "dir", "", "keep data, logs and the workers' file in this directory (default: a temporary one)")
	cmd.Flags().BoolVar(&membership, "membership", false, "restart, replace and remove servers instead of killing them")
	a.addJSON(cmd)
	return cmd
}

func (a *app) demo(dir string, membership bool) error {
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
	report, err := demo.Run(ctx, demo.Config{Binary: binary, Dir: dir, Progress: a.stderr, Membership: membership})
	if err != nil {
		return err
	}
	if a.json {
		err = json.NewEncoder(a.stdout).Encode(report)
	} else {
		_, err = fmt.Fprint(a.stdout, report.Text())
	}
	if err == nil && !report.Good() {
		err = failure(StatusError, "the lock did not keep its word: %d overlaps, %d fence regressions%s", report.Overlaps, report.FenceRegressions, report.Lost())
	}
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
