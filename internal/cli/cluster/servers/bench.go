package servers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/bench"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/local"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// NewBench returns the command bench.
func NewBench(a *connect.App) *cobra.Command {
	run := benchRun{App: a, workload: bench.Uncontended, clients: 1, connections: 1, limit: 4, seconds: seconds(10 * time.Second)}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the throughput and latency of a cluster",
		Long: `Clients acquire and release locks for the time of --seconds. The result is the number of
operations per second, and how long they took. To make machines comparable, the same run
measures two costs of the machine: a write to disk by three processes at once, and the round
trip of an empty call. Compare ratios, not milliseconds.

  uncontended  each client has its own lock
  contended    all clients want one lock
  shared       all clients share one lock, as readers do
  semaphore    all clients want one lock with the limit --limit

A server may die meanwhile. Failed operations are counted, and reported on standard error.`,
		Example: `  conclave bench --cluster 3
  conclave bench --cluster 3 --workload contended --clients 64 --seconds 10 --json
  conclave bench --cluster 3 --workload semaphore --limit 8 --clients 64
  conclave bench --servers db1:7400,db2:7400,db3:7400 --clients 128 --connections 16`,
		Args: ui.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("limit") && run.workload != bench.Semaphore {
				return fmt.Errorf("--limit: requires --workload %s", bench.Semaphore)
			}
			return run.run(cmd.Flags().Changed("servers"))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&run.workload, "workload", run.workload, "what the clients do: "+ui.OrList(bench.Workloads))
	flags.IntVar(&run.clients, "clients", run.clients, "how many clients work at the same time")
	flags.IntVar(&run.connections, "connections", run.connections, "how many connections the clients share")
	flags.IntVar(&run.limit, "limit", run.limit, "how many clients hold the lock at the same time, with --workload semaphore")
	flags.Var(&run.seconds, "seconds", "how long to measure: a number of seconds, or a duration such as 2m")
	flags.IntVar(&run.cluster, "cluster", 0, "start this many servers on this machine and measure them")
	flags.StringVar(&run.dir, "dir", "", "`directory` for the disk measurement, and for the data of --cluster (default: a temporary one)")
	return a.WithJSON(cmd)
}

// longest bounds --seconds.
const longest = 24 * time.Hour

// seconds is a duration that may also be written as a number of seconds.
type seconds time.Duration

func (s *seconds) String() string { return time.Duration(*s).String() }

func (s *seconds) Type() string { return "seconds" }

func (s *seconds) Set(text string) error {
	if number, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(number) <= longest.Seconds() {
		*s = seconds(number * float64(time.Second))
		return nil
	}
	return (*ui.Duration)(s).Set(text)
}

type benchRun struct {
	*connect.App
	workload             string
	clients, connections int
	limit                int
	seconds              seconds
	cluster              int
	dir                  string
}

func (b *benchRun) run(servers bool) error {
	if load := time.Duration(b.seconds); load <= 0 || load > longest {
		return fmt.Errorf("--seconds: %v: must be above 0s and at most %v", load, longest)
	}
	return ui.OnThisMachine(b.dir, "conclave-bench-", func(ctx context.Context, binary, dir string) error {
		return b.load(ctx, servers, binary, dir)
	})
}

// load measures the cluster of --servers, or one that it starts.
func (b *benchRun) load(ctx context.Context, servers bool, binary, dir string) (err error) {
	cfg := bench.Config{
		Workload: b.workload, Clients: b.clients, Connections: b.connections, Limit: b.limit,
		Duration: time.Duration(b.seconds), Binary: binary, Dir: dir,
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	switch {
	case b.cluster != 0 && servers:
		return ui.Exclude("--cluster", "--servers")
	case b.cluster < 0:
		return fmt.Errorf("--cluster: %d: must be at least 1", b.cluster)
	case b.cluster == 0:
		if cfg.Client, err = b.Client.Config(); err != nil {
			return err
		}
		return b.measure(ctx, cfg)
	}
	cluster, err := local.Start(local.Config{Binary: binary, Dir: dir, Servers: b.cluster})
	if err != nil {
		return err
	}
	cfg.Client = conclave.Config{Servers: cluster.Addresses()}
	return errors.Join(b.measure(ctx, cfg), cluster.Stop())
}

func (b *benchRun) measure(ctx context.Context, cfg bench.Config) error {
	report, err := bench.Run(ctx, cfg)
	if err != nil {
		return err
	}
	fmt.Fprint(b.Stderr, report.Warnings())
	return printReport(b.App.App, report, report.Text())
}

// NewDiskBench is the hidden command with which bench measures the disk.
func NewDiskBench(a *ui.App) *cobra.Command {
	var dir string
	var length ui.Duration
	cmd := &cobra.Command{
		Use:    bench.DiskCommand,
		Hidden: true,
		Args:   ui.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			median, err := bench.Disk(dir, time.Duration(length))
			if err == nil {
				_, err = fmt.Fprintln(a.Stdout, median)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "directory to write to")
	cmd.Flags().Var(&length, "for", "how long to measure")
	return cmd
}
