package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// parting is how long the last release of a client may take after the end.
	parting = 5 * time.Second
	// breath is the pause after a failed operation. It protects a cluster that refuses
	// everything from being called as fast as it can refuse.
	breath = 10 * time.Millisecond
)

// Locker waits for the lock with a name and returns the function that releases it.
type Locker func(ctx context.Context, name string) (Release, error)

// Release releases a lock.
type Release func(ctx context.Context) error

// Load is a set of clients that acquire and release again and again. Each starts the next
// operation when the last one has ended.
type Load struct {
	// Workload is one of Workloads. It determines which names are locked. The creator of the
	// Clients must make sure that they lock in the right mode.
	Workload string
	// Clients are the clients, one function for each.
	Clients []Locker
	// Limit is how many hold at a time under Semaphore.
	Limit int
	// Duration is how long it takes.
	Duration time.Duration
}

// Figures is what a load measured, in nanoseconds.
type Figures struct {
	Acquires, Handoffs *hdrhistogram.Histogram
	// Entries are the acquires of each client.
	Entries []int64
	// Done counts the operations that succeeded, acquire and release.
	Done int64
	// Failed counts those that did not, and Failure says why the last did not.
	Failed  int64
	Failure error
	Took    time.Duration
}

// client is one that acquires and releases.
type client struct {
	lock     Locker
	name     string
	acquires *hdrhistogram.Histogram
	handoffs *hdrhistogram.Histogram
	passing  *passing // nil if nobody waits for anybody
	entries  int64
	done     int64
	failed   int64
	failure  error
}

// Run applies the load. An operation that fails is counted and does not end the run, since a
// server may die meanwhile. Run fails only if no operation succeeds.
func (l Load) Run(ctx context.Context) (Figures, error) {
	timed, cancel := context.WithTimeout(ctx, l.Duration)
	defer cancel()
	// What is held at the end is released anyway.
	giving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	context.AfterFunc(timed, func() { time.AfterFunc(parting, stop) })
	clients := l.clients()
	var running sync.WaitGroup
	began := time.Now()
	for _, c := range clients {
		running.Go(func() { c.run(timed, giving) })
	}
	running.Wait()
	f := gather(clients, time.Since(began))
	switch {
	case ctx.Err() != nil:
		return f, ctx.Err()
	case f.Done == 0 && f.Failure != nil:
		return f, fmt.Errorf("no operation succeeded in %v: %w", l.Duration, f.Failure)
	case f.Done == 0:
		return f, fmt.Errorf("no operation ended within %v", l.Duration)
	}
	return f, nil
}

func (l Load) clients() []*client {
	run := time.Now().UnixNano()
	var handover *passing
	if limit := l.holders(); limit > 0 && len(l.Clients) > limit {
		handover = newPassing(limit)
	}
	var clients []*client
	for i, lock := range l.Clients {
		name := fmt.Sprintf("bench-%d", run)
		if l.Workload == Uncontended {
			name = fmt.Sprintf("bench-%d-%d", run, i)
		}
		clients = append(clients, &client{
			lock: lock, name: name, passing: handover, acquires: histogram(), handoffs: histogram(),
		})
	}
	return clients
}

// holders is the number of holders of the single lock, or 0 if nobody waits.
func (l Load) holders() int {
	switch l.Workload {
	case Contended:
		return 1
	case Semaphore:
		return l.Limit
	}
	return 0
}

// histogram holds 1 us to 10 min with 3 digits.
func histogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1e3, 600e9, 3)
}

func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(int64(d), 1e3), 600e9))
}

// run acquires until ctx ends, and releases until giving does.
func (c *client) run(ctx, giving context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		release, err := c.lock(ctx, c.name)
		if err != nil {
			if ctx.Err() == nil {
				c.fail(ctx, err)
			}
			continue
		}
		now := time.Now()
		c.enter(began, now)
		if err := c.leave(giving, release); err != nil {
			c.fail(ctx, err)
		}
	}
}

func (c *client) enter(began, now time.Time) {
	c.entries++
	record(c.acquires, now.Sub(began))
	if c.passing == nil {
		return
	}
	if d, waited := c.passing.taken(began, now); waited {
		record(c.handoffs, d)
	}
}

func (c *client) leave(ctx context.Context, release Release) error {
	now := time.Now()
	if c.passing != nil {
		c.passing.given(now)
	}
	err := release(ctx)
	switch {
	case err == nil:
		c.done++
	case c.passing != nil:
		c.passing.forget(now)
	}
	return err
}

func (c *client) fail(ctx context.Context, err error) {
	c.failed++
	c.failure = err
	select {
	case <-time.After(breath):
	case <-ctx.Done():
	}
}

// passing pairs each grant with the release that made room for it. Room is used in the order in
// which it was made, so that is the oldest release that no grant has used. A lock that lets several
// in begins with as much room, which nobody has released.
type passing struct {
	mu   sync.Mutex
	room []time.Time // zero where nobody was before
}

func newPassing(limit int) *passing { return &passing{room: make([]time.Time, limit)} }

// given notes that release was called at a time.
func (p *passing) given(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.room = append(p.room, at)
}

// taken returns how long after the release the next holder had the lock, if it waited. A client
// that finds the lock free was handed nothing.
func (p *passing) taken(began, now time.Time) (handoff time.Duration, waited bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.room) == 0 {
		return 0, false // of a session that expired: nobody called release
	}
	released := p.room[0]
	p.room = p.room[1:]
	return now.Sub(released), !released.IsZero() && began.Before(released)
}

// forget removes a release that failed.
func (p *passing) forget(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.room, at); i >= 0 {
		p.room = slices.Delete(p.room, i, i+1)
	}
}

func gather(clients []*client, took time.Duration) Figures {
	f := Figures{Acquires: histogram(), Handoffs: histogram(), Took: took}
	for _, c := range clients {
		f.Acquires.Merge(c.acquires)
		f.Handoffs.Merge(c.handoffs)
		f.Entries = append(f.Entries, c.entries)
		f.Done += c.done
		f.Failed += c.failed
		if c.failure != nil {
			f.Failure = c.failure
		}
	}
	return f
}

// Rate is the operations per second.
func (f Figures) Rate() float64 { return round(float64(f.Done) / f.Took.Seconds()) }

// Acquire returns a quantile of the time to acquire in ms, or nil.
func (f Figures) Acquire(q float64) *float64 { return quantile(f.Acquires, q) }

// Handoff returns a quantile of the time from the call of release until the next holder has the
// lock, in ms, or nil if nobody waited.
func (f Figures) Handoff(q float64) *float64 { return quantile(f.Handoffs, q) }

// MaxMin returns the entries of the client with the most, divided by those of the client with the
// least, or nil for one client. No entries count as one.
func (f Figures) MaxMin() *float64 {
	if len(f.Entries) < 2 {
		return nil
	}
	ratio := round(float64(slices.Max(f.Entries)) / float64(max(slices.Min(f.Entries), 1)))
	return &ratio
}

func quantile(h *hdrhistogram.Histogram, q float64) *float64 {
	if h.TotalCount() == 0 {
		return nil
	}
	v := round(float64(h.ValueAtQuantile(q)) / 1e6)
	return &v
}

// round keeps a microsecond of a millisecond.
func round(v float64) float64 { return math.Round(v*1000) / 1000 }
