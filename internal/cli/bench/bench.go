// Package bench measures a cluster from its users' point of view: the time to acquire, the
// throughput, and the time to hand a lock from one holder to the next. In the same run it
// measures how long the machine itself takes for a write to disk and for a round trip.
// Absolute figures of a busy machine say little; ratios do.
//
// The load uses locks only through functions, so the same load can be applied to other
// services for comparison.
package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/conclave-io/conclave"
)

// The workloads.
const (
	// Uncontended gives every client a lock of its own.
	Uncontended = "uncontended"
	// Contended lets all clients contend for one lock.
	Contended = "contended"
	// Shared lets all clients share one lock, as readers do: nobody waits.
	Shared = "shared"
	// Semaphore lets all clients contend for one lock with a limit.
	Semaphore = "semaphore"
)

// Workloads are the names of all workloads.
var Workloads = []string{Uncontended, Contended, Shared, Semaphore}

// Config configures a run.
type Config struct {
	// Client configures the connection to the cluster.
	Client conclave.Config
	// Workload is one of Workloads.
	Workload string
	// Clients is the number of concurrent clients in this process that acquire and release.
	Clients int
	// Connections is the number of connections, with a session each, that they share [1].
	Connections int
	// Limit is the number of holders under Semaphore; other workloads ignore it.
	Limit int
	// Duration is how long to load the cluster.
	Duration time.Duration
	// Binary is the conclave binary, which also measures the disk.
	Binary string
	// Dir is where to measure the disk: a directory on the same disk as the servers' data.
	Dir string

	// glance is how long each measurement of the machine takes; there are two of each [1 s].
	glance time.Duration
}

// maxClients bounds the clients in one process: each is a goroutine with two histograms.
const maxClients = 10000

// Validate checks a configuration. Its errors name the flags of conclave bench.
func (c *Config) Validate() error {
	switch {
	case !slices.Contains(Workloads, c.Workload):
		return fmt.Errorf("--workload: %q: must be uncontended, contended, shared or semaphore", c.Workload)
	case c.Clients < 1 || c.Clients > maxClients:
		return fmt.Errorf("--clients: %d: must be between 1 and %d", c.Clients, maxClients)
	case c.Connections < 1 || c.Connections > c.Clients:
		return fmt.Errorf("--connections: %d: must be between 1 and %d, the number of clients", c.Connections, c.Clients)
	case c.Workload == Semaphore && (c.Limit < 1 || c.Limit > conclave.MaxLimit):
		return fmt.Errorf("--limit: %d: must be between 1 and %d", c.Limit, conclave.MaxLimit)
	case c.Duration <= 0 || c.Duration > 24*time.Hour:
		return fmt.Errorf("--seconds: %v: must be above 0s and at most 24h0m0s", c.Duration)
	}
	return nil
}

// Run measures. The disk and the round trip are measured before and after the load and their
// medians averaged, so that a change in the speed of the machine is visible. If a server dies
// under the load, there may be no server for the round trip afterwards; then the measurement
// before is used alone.
func Run(ctx context.Context, cfg Config) (Report, error) {
	if err := cfg.Validate(); err != nil {
		return Report{}, err
	}
	if cfg.glance == 0 {
		cfg.glance = time.Second
	}
	before, err := measureMachine(ctx, cfg)
	if err != nil {
		return Report{}, err
	}
	figures, err := loadCluster(ctx, cfg)
	if err != nil {
		return Report{}, err
	}
	r := summarize(cfg, figures)
	after, err := measureMachine(ctx, cfg)
	if ctx.Err() != nil {
		return Report{}, ctx.Err()
	}
	if err != nil {
		r.Remark = fmt.Sprintf("the machine was measured only before the load: %v", err)
		after = before
	}
	r.FdatasyncMSP50 = round((before.fdatasync + after.fdatasync) / 2)
	r.RPCMSP50 = round((before.rpc + after.rpc) / 2)
	return r, nil
}

// loadCluster applies the load to a cluster over the configured number of connections.
func loadCluster(ctx context.Context, cfg Config) (Figures, error) {
	connections, err := Connect(ctx, cfg.Client, cfg.Connections)
	defer func() {
		for _, c := range connections {
			c.Close()
		}
	}()
	if err != nil {
		return Figures{}, err
	}
	l := Load{Workload: cfg.Workload, Limit: cfg.Limit, Duration: cfg.Duration}
	for i := range cfg.Clients {
		l.Clients = append(l.Clients, LockerOf(connections[i%len(connections)], cfg.Workload, cfg.Limit))
	}
	return l.Run(ctx)
}

// Connect opens connections with a session each, and waits until the sessions are open, before
// anything is measured.
func Connect(ctx context.Context, cfg conclave.Config, n int) ([]*conclave.Client, error) {
	var connections []*conclave.Client
	for i := range n {
		each := cfg
		each.Program = fmt.Sprint("bench ", i+1)
		c, err := conclave.Dial(ctx, each)
		if err != nil {
			return connections, err
		}
		connections = append(connections, c)
		if err := ready(ctx, c); err != nil {
			return connections, err
		}
	}
	return connections, nil
}

// ready waits for a leader, for as long as an election may take.
func ready(ctx context.Context, c *conclave.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return c.Ready(ctx)
}

// LockerOf adapts a client of Conclave for use in a Load.
func LockerOf(c *conclave.Client, workload string, limit int) Locker {
	var options []conclave.LockOption
	switch workload {
	case Shared:
		options = append(options, conclave.Shared())
	case Semaphore:
		options = append(options, conclave.Limit(uint32(limit)))
	}
	return func(ctx context.Context, name string) (Release, error) {
		lock, err := c.Lock(ctx, name, options...)
		if err != nil {
			return nil, err
		}
		return lock.Unlock, nil
	}
}

// Report is the result of a run. One operation is an acquire and a release. Fields that do not
// apply to a workload are nil, and null in JSON.
type Report struct {
	Workload    string `json:"workload"`
	Clients     int    `json:"clients"`
	Connections int    `json:"connections"`

	OpsPerSecond  float64  `json:"ops_per_s"`
	AcquireMSP50  *float64 `json:"acquire_ms_p50"`
	AcquireMSP99  *float64 `json:"acquire_ms_p99"`
	AcquireMSP999 *float64 `json:"acquire_ms_p999"`
	// HandoffMSP50 and HandoffMSP99 are quantiles of the time from the call of release until the
	// next holder, who waited, has the lock.
	HandoffMSP50 *float64 `json:"handoff_ms_p50"`
	HandoffMSP99 *float64 `json:"handoff_ms_p99"`
	// MaxMinEntries is the number of entries of the client with the most, divided by that of the
	// client with the least.
	MaxMinEntries *float64 `json:"max_min_entries"`

	// FdatasyncMSP50 is the median of appending 4 KiB to a file and syncing it,
	// done by three processes at once, as three servers on one machine do it.
	FdatasyncMSP50 float64 `json:"fdatasync_ms_p50"`
	// RPCMSP50 is the median round trip of an empty call to the leader.
	RPCMSP50 float64 `json:"rpc_ms_p50"`

	// Failed is how many operations failed, of as many as were tried; Failure is
	// why the last did.
	Failed, Tried int64 `json:"-"`
	Failure       error `json:"-"`
	// Remark says what else could not be measured properly.
	Remark string `json:"-"`
}

func summarize(cfg Config, f Figures) Report {
	return Report{
		Workload: cfg.Workload, Clients: cfg.Clients, Connections: cfg.Connections,
		OpsPerSecond: f.Rate(),
		AcquireMSP50: f.Acquire(50), AcquireMSP99: f.Acquire(99), AcquireMSP999: f.Acquire(99.9),
		HandoffMSP50: f.Handoff(50), HandoffMSP99: f.Handoff(99),
		MaxMinEntries: f.MaxMin(),
		Failed:        f.Failed, Tried: f.Done + f.Failed, Failure: f.Failure,
	}
}

// Warnings returns what readers of the figures should know: nothing, if all operations
// succeeded.
func (r *Report) Warnings() string {
	var b strings.Builder
	if r.Failed > 0 {
		fmt.Fprintf(&b, "%d of %d operations failed; the last said: %v\n", r.Failed, r.Tried, r.Failure)
	}
	if r.Remark != "" {
		fmt.Fprintln(&b, r.Remark)
	}
	return b.String()
}

// Text returns the report as text.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d clients over %d connections\n", r.Workload, r.Clients, r.Connections)
	fmt.Fprintf(&b, "acquire + release   %.0f per second\n", r.OpsPerSecond)
	fmt.Fprintf(&b, "acquire             p50 %s, p99 %s, p99.9 %s\n", ms(r.AcquireMSP50), ms(r.AcquireMSP99), ms(r.AcquireMSP999))
	if r.HandoffMSP50 != nil {
		fmt.Fprintf(&b, "hand-off            p50 %s, p99 %s\n", ms(r.HandoffMSP50), ms(r.HandoffMSP99))
	}
	if r.MaxMinEntries != nil {
		fmt.Fprintf(&b, "most/least entries  %.3f\n", *r.MaxMinEntries)
	}
	fmt.Fprintf(&b, "this machine        fdatasync %.3f ms (three at once), round trip of an empty call %.3f ms\n", r.FdatasyncMSP50, r.RPCMSP50)
	if ratio := r.Ratio(); ratio > 0 {
		fmt.Fprintf(&b, "acquire p50         %.2f times (fdatasync + round trip)\n", ratio)
	}
	return b.String()
}

func ms(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f ms", *v)
}

// Ratio is the median time to acquire, divided by the least time of any service that writes each
// grant to disk: one write and one round trip. It is 0 if there is none.
func (r *Report) Ratio() float64 {
	if r.AcquireMSP50 == nil || r.FdatasyncMSP50+r.RPCMSP50 == 0 {
		return 0
	}
	return *r.AcquireMSP50 / (r.FdatasyncMSP50 + r.RPCMSP50)
}
