// Package bench measures a cluster as its users feel it: how long it takes to
// acquire, how much it carries, how a lock is handed from one to the next. In
// the same run it measures what the machine itself takes for a write to disk
// and for a round trip, since absolute figures of a busy machine say little:
// ratios do.
package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/conclave-io/conclave"
)

// The workloads.
const (
	// Uncontended gives every client a lock of its own.
	Uncontended = "uncontended"
	// Contended lets all clients contend for one lock.
	Contended = "contended"
)

// Workloads are the names of all workloads.
var Workloads = []string{Uncontended, Contended}

// Config says what to run.
type Config struct {
	// Client says how to reach the cluster.
	Client conclave.Config
	// Workload is one of Workloads.
	Workload string
	// Clients is how many acquire and release at the same time, in this process.
	Clients int
	// Connections is how many connections and sessions they share [1].
	Connections int
	// Duration is how long to load the cluster.
	Duration time.Duration
	// Binary is the conclave binary, which also measures the disk.
	Binary string
	// Dir is where to measure the disk: one that the servers' data shares.
	Dir string
}

// Validate reports what is wrong with a configuration.
func (c *Config) Validate() error {
	switch {
	case !slices.Contains(Workloads, c.Workload):
		return fmt.Errorf("unknown workload %q: there are %v", c.Workload, Workloads)
	case c.Clients < 1:
		return fmt.Errorf("%d clients: give 1 or more", c.Clients)
	case c.Connections < 1 || c.Connections > c.Clients:
		return fmt.Errorf("%d connections for %d clients: give 1 to %d", c.Connections, c.Clients, c.Clients)
	case c.Duration <= 0:
		return fmt.Errorf("a duration of %v: give more than zero", c.Duration)
	}
	return nil
}

// Report is what was measured. One operation is an acquire and a release.
type Report struct {
	Workload    string `json:"workload"`
	Clients     int    `json:"clients"`
	Connections int    `json:"connections"`

	OpsPerSecond  float64 `json:"ops_per_s"`
	AcquireMSP50  float64 `json:"acquire_ms_p50"`
	AcquireMSP99  float64 `json:"acquire_ms_p99"`
	AcquireMSP999 float64 `json:"acquire_ms_p999"`
	// HandoffMSP50 and HandoffMSP99 are quantiles of the time from the call of
	// release to the moment at which the next holder has the lock; 0 if nobody
	// waits.
	HandoffMSP50 float64 `json:"handoff_ms_p50"`
	HandoffMSP99 float64 `json:"handoff_ms_p99"`
	// MaxMinEntries is the entries of the client that got most over those of
	// the client that got least.
	MaxMinEntries float64 `json:"max_min_entries"`

	// FdatasyncMSP50 is the median of appending 4 KiB to a file and syncing it,
	// done by three processes at once, as three servers on one machine do it.
	FdatasyncMSP50 float64 `json:"fdatasync_ms_p50"`
	// RPCMSP50 is the median round trip of an empty call to the leader.
	RPCMSP50 float64 `json:"rpc_ms_p50"`
}

// Run measures. The disk and the round trip are measured before and after the
// load and their medians averaged, so that a machine which changes its pace
// meanwhile shows.
func Run(ctx context.Context, cfg Config) (Report, error) {
	if err := cfg.Validate(); err != nil {
		return Report{}, err
	}
	before, err := measureMachine(ctx, cfg)
	if err != nil {
		return Report{}, err
	}
	r, err := load(ctx, cfg)
	if err != nil {
		return Report{}, err
	}
	after, err := measureMachine(ctx, cfg)
	if err != nil {
		return Report{}, err
	}
	r.FdatasyncMSP50 = round((before.fdatasync + after.fdatasync) / 2)
	r.RPCMSP50 = round((before.rpc + after.rpc) / 2)
	return r, nil
}

// client is one that acquires and releases.
type client struct {
	*conclave.Client
	lock     string
	acquires *hdrhistogram.Histogram // ns
	handoffs *hdrhistogram.Histogram // ns
	entries  int64
	released *int64 // when the lock that all contend for was last given back; guarded by it
}

func load(ctx context.Context, cfg Config) (Report, error) {
	connections, err := connect(ctx, cfg)
	defer func() {
		for _, c := range connections {
			c.Close()
		}
	}()
	if err != nil {
		return Report{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.Duration)
	defer cancel()
	clients := newClients(cfg, connections)
	failures := make(chan error, len(clients))
	var running sync.WaitGroup
	began := time.Now()
	for _, c := range clients {
		running.Go(func() {
			if err := c.run(ctx); err != nil {
				failures <- err
				cancel()
			}
		})
	}
	running.Wait()
	took := time.Since(began)
	select {
	case err := <-failures:
		return Report{}, err
	default:
		return summarize(cfg, clients, took), nil
	}
}

func connect(ctx context.Context, cfg Config) ([]*conclave.Client, error) {
	var connections []*conclave.Client
	for i := range cfg.Connections {
		each := cfg.Client
		each.Program = fmt.Sprint("bench ", i+1)
		c, err := conclave.Dial(ctx, each)
		if err != nil {
			return connections, err
		}
		connections = append(connections, c)
	}
	return connections, nil
}

func newClients(cfg Config, connections []*conclave.Client) []*client {
	released := new(int64)
	run := time.Now().UnixNano()
	var clients []*client
	for i := range cfg.Clients {
		c := &client{
			Client: connections[i%len(connections)], lock: fmt.Sprintf("bench-%d-%d", run, i),
			acquires: histogram(), handoffs: histogram(),
		}
		if cfg.Workload == Contended {
			c.lock, c.released = fmt.Sprintf("bench-%d", run), released
		}
		clients = append(clients, c)
	}
	return clients
}

// histogram holds 1 us to 10 min with 3 digits.
func histogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1e3, 600e9, 3)
}

// run acquires and releases until ctx ends.
func (c *client) run(ctx context.Context) error {
	for ctx.Err() == nil {
		began := time.Now()
		held, err := c.Lock(ctx, c.lock)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		now := time.Now()
		c.note(now.Sub(began), now)
		if c.released != nil {
			*c.released = time.Now().UnixNano()
		}
		// A lock that is held when time is up is given back all the same.
		if err := held.Unlock(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// note records an acquire that took d and ended now. The lock itself guards
// released: only its holder reads or writes it.
func (c *client) note(d time.Duration, now time.Time) {
	c.entries++
	_ = c.acquires.RecordValue(min(int64(d), 600e9))
	if c.released == nil || *c.released == 0 {
		return
	}
	_ = c.handoffs.RecordValue(max(now.UnixNano()-*c.released, 1e3))
}

func summarize(cfg Config, clients []*client, took time.Duration) Report {
	acquires, handoffs := histogram(), histogram()
	most, least, total := int64(0), int64(math.MaxInt64), int64(0)
	for _, c := range clients {
		acquires.Merge(c.acquires)
		handoffs.Merge(c.handoffs)
		most, least, total = max(most, c.entries), min(least, c.entries), total+c.entries
	}
	return Report{
		Workload: cfg.Workload, Clients: cfg.Clients, Connections: cfg.Connections,
		OpsPerSecond: round(float64(total) / took.Seconds()),
		AcquireMSP50: quantile(acquires, 50), AcquireMSP99: quantile(acquires, 99), AcquireMSP999: quantile(acquires, 99.9),
		HandoffMSP50: quantile(handoffs, 50), HandoffMSP99: quantile(handoffs, 99),
		MaxMinEntries: round(float64(most) / float64(max(least, 1))),
	}
}

func quantile(h *hdrhistogram.Histogram, q float64) float64 {
	if h.TotalCount() == 0 {
		return 0
	}
	return round(float64(h.ValueAtQuantile(q)) / 1e6)
}

// round keeps a microsecond of a millisecond.
func round(v float64) float64 { return math.Round(v*1000) / 1000 }

// errNothing says that a measurement has no values.
var errNothing = errors.New("nothing was measured")
