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
