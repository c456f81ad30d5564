package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/bench/competitor"
	load "github.com/conclave-io/conclave/internal/cli/bench"
)

const (
	// quiet is the time to wait without changes before a measurement.
	quiet = 5 * time.Second
	// window is the duration of a measurement of processor time and bytes.
	window = 20 * time.Second
)

// expense is what the servers use while clients only renew.
type expense struct {
	Sessions    int     `json:"sessions"`
	Connections int     `json:"connections"`
	TTL         float64 `json:"ttl_s"`
	// Renewals is the number of answered renewals per second. Refused is the total number of
	// answers other than OK.
	Renewals float64 `json:"renewals_per_s"`
	Refused  int64   `json:"refused"`
	// Leader and Others are processor times in percent of one core.
	Leader float64 `json:"leader_cpu_percent"`
	Others float64 `json:"others_cpu_percent"`
	// Bytes is the number of bytes that all servers read and wrote per second, on sockets and
	// files.
	Bytes float64 `json:"bytes_per_s"`
}

// idle compares a cluster without clients with one that has many idle sessions.
func idle(ctx context.Context, b *bench, c *competitor.Conclave, leader int) (section, error) {
	without, err := spent(ctx, c, leader)
	if err != nil {
		return section{}, err
	}
	f, err := launch(ctx, c.Addresses[leader-1], b.sessions, b.connections, competitor.TTL, false)
	if err != nil {
		return section{}, err
	}
	renewing, stop := context.WithCancel(ctx)
	var keeping errgroup.Group
	keeping.Go(func() error { return f.renew(renewing) })
	var before, after int64
	var with expense
	if err = pause(ctx, quiet); err == nil {
		before = f.renewals.Load()
		with, err = spent(ctx, c, leader)
		after = f.renewals.Load()
	}
	stop()
	if err := errors.Join(err, keeping.Wait(), f.close()); err != nil {
		return section{}, err
	}
	with.Sessions, with.Connections, with.TTL = b.sessions, b.connections, competitor.TTL.Seconds()
	with.Renewals, with.Refused = float64(after-before)/window.Seconds(), f.refused.Load()
	return section{idleTable([]expense{without, with}), []expense{without, with}}, nil
}

// spent measures what the servers use during a window.
func spent(ctx context.Context, c *competitor.Conclave, leader int) (expense, error) {
	pids := c.PIDs()
	before, err := usedByEach(pids)
	if err != nil {
		return expense{}, err
	}
	began := time.Now()
	if err := pause(ctx, window); err != nil {
		return expense{}, err
	}
	after, err := usedByEach(pids)
	if err != nil {
		return expense{}, err
	}
	took := time.Since(began)
	var e expense
	for i := range pids {
		percent := 100 * float64(after[i].CPU-before[i].CPU) / float64(took)
		if i == leader-1 {
			e.Leader = percent
		} else {
			e.Others += percent
		}
		e.Bytes += float64(after[i].Bytes-before[i].Bytes) / took.Seconds()
	}
	return e, nil
}

func idleTable(all []expense) string {
	var rows [][]string
	for _, e := range all {
		what := "no sessions"
		if e.Sessions > 0 {
			what = fmt.Sprintf("%d sessions over %s, TTL %g s", e.Sessions, plural(e.Connections, "connection"), e.TTL)
		}
		rows = append(rows, []string{what, digits(e.Renewals), fmt.Sprint(e.Refused), digits(e.Leader), digits(e.Others), digits(e.Bytes / 1e3)})
	}
	return table([]string{"", "renewals/s", "refused", "leader, % of a core", "two others, % of a core", "all three, kB/s read and written"}, rows)
}

// stall is how the end of many sessions affected other clients.
type stall struct {
	Sessions int `json:"sessions"`
	// Before and While are the longest operations of other clients, in ms. An operation is an
	// acquire and a release. Before covers the 6 s that ended one second before the sessions were
	// due. While covers the 6 s after they were due.
	Before float64 `json:"longest_before_ms"`
	While  float64 `json:"longest_while_ms"`
	// Gone is the time from when the sessions were due until all had ended, in ms.
	Gone float64 `json:"gone_after_ms"`
}

// expiryTTL is the TTL of the sessions that expire. It is long enough to open them all.
const expiryTTL = 20 * time.Second

// span is the length of the measurement before the moment, and of the one after it.
const span = 6 * time.Second

// expiry ends many sessions at the same moment, each with a lock. It measures how this affects
// eight other clients.
func expiry(ctx context.Context, b *bench, c *competitor.Conclave, leader int) (section, error) {
	f, err := launch(ctx, c.Addresses[leader-1], b.sessions, b.connections, expiryTTL, true)
	if err != nil {
		return section{}, err
	}
	defer f.close()
	watch, err := conclave.Dial(ctx, c.Config())
	if err != nil {
		return section{}, err
	}
	defer watch.Close()
	lockers, closeAll, err := c.Lockers(ctx, load.Uncontended, 8, 1)
	if err != nil {
		return section{}, err
	}
	defer closeAll()
	if err := f.all(renewal); err != nil { // from now on, all have the same time to live
		return section{}, err
	}
	due := time.Now().Add(expiryTTL)
	others, stop := context.WithCancel(ctx)
	moment := due.Add(-time.Second)
	longest := watchOthers(others, lockers, moment)
	gone, err := whenGone(ctx, watch, due)
	if err == nil {
		err = pause(ctx, time.Until(moment.Add(span)))
	}
	stop()
	before, while := longest()
	if err != nil {
		return section{}, err
	}
	s := stall{b.sessions, before, while, gone}
	return section{table(
		[]string{"", "longest operation of others before, ms", "and from then on, ms", "all gone after, ms"},
		[][]string{{fmt.Sprintf("%d sessions end, each with a lock", s.Sessions), digits(s.Before), digits(s.While), digits(s.Gone)}},
	), s}, nil
}

// watchOthers runs clients that acquire and release until ctx is cancelled. The function that it
// returns then waits for them. It returns the longest operation that ended in the span before the
// moment, and the longest that ended later.
func watchOthers(ctx context.Context, lockers []load.Locker, moment time.Time) func() (before, while float64) {
	var mu sync.Mutex
	var longest [2]time.Duration
	var others sync.WaitGroup
	for i, lock := range lockers {
		name := fmt.Sprint("bench-other-", i)
		others.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				release, err := lock(ctx, name)
				if err != nil || release(context.WithoutCancel(ctx)) != nil {
					continue
				}
				now := time.Now()
				if now.Before(moment.Add(-span)) {
					continue
				}
				late := 0
				if now.After(moment) {
					late = 1
				}
				mu.Lock()
				longest[late] = max(longest[late], now.Sub(began))
				mu.Unlock()
			}
		})
	}
	return func() (float64, float64) {
		others.Wait()
		return inMS(longest[0]), inMS(longest[1])
	}
}

// whenGone returns how many ms after the moment only the sessions of this process were left. Those
// belong to the clients that continue.
func whenGone(ctx context.Context, watch *conclave.Client, due time.Time) (float64, error) {
	ctx, cancel := context.WithDeadline(ctx, due.Add(time.Minute))
	defer cancel()
	for {
		status, err := admin.New(watch).Status(ctx)
		if err != nil {
			return 0, err
		}
		if status.Sessions <= 1 {
			return inMS(time.Since(due)), nil
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return 0, fmt.Errorf("%d sessions are left a minute after they were due", status.Sessions)
		}
	}
}

// heap is the memory that held locks use on all servers of a service.
type heap struct {
	Service string  `json:"service"`
	Locks   int     `json:"locks"`
	Before  int64   `json:"before_bytes"`
	After   int64   `json:"after_bytes"`
	Each    float64 `json:"bytes_per_lock"`
}

// memory holds many locks with names of 24 bytes in one session.
func memory(ctx context.Context, b *bench) (section, error) {
	var heaps []heap
	var rows [][]string
	for _, name := range b.services {
		if name != "conclave" && name != "etcd" && name != "zookeeper" {
			continue // the locks of Redis would expire during the measurement
		}
		s, err := b.start(ctx, name)
		if errors.Is(err, competitor.ErrAbsent) {
			continue
		}
		if err != nil {
			return section{}, err
		}
		h, err := b.weigh(ctx, s)
		_ = s.Stop()
		if err != nil {
			return section{}, fmt.Errorf("%s: %w", name, err)
		}
		h.Service = name
		heaps = append(heaps, h)
		rows = append(rows, []string{name, fmt.Sprint(h.Locks), digits(float64(h.Before) / 1e6), digits(float64(h.After) / 1e6), digits(h.Each)})
	}
	return section{table([]string{"", "held locks", "before, MB", "after, MB", "bytes for each lock"}, rows), heaps}, nil
}

func (b *bench) weigh(ctx context.Context, s competitor.Service) (heap, error) {
	lockers, closeAll, err := s.Lockers(ctx, load.Uncontended, 1, 1)
	if err != nil {
		return heap{}, err
	}
	defer closeAll()
	if err := pause(ctx, quiet); err != nil {
		return heap{}, err
	}
	h := heap{Locks: b.locks}
	if h.Before, err = residentBytes(s.PIDs()); err != nil {
		return heap{}, err
	}
	if err := holdAll(ctx, lockers[0], b.locks); err != nil {
		return heap{}, err
	}
	if err := pause(ctx, time.Duration(b.rest)*time.Second); err != nil {
		return heap{}, err
	}
	if h.After, err = residentBytes(s.PIDs()); err != nil {
		return heap{}, err
	}
	h.Each = float64(h.After-h.Before) / float64(b.locks)
	return h, stillHeld(ctx, s, b.locks)
}

// lockName returns a name of 24 bytes.
func lockName(i int) string { return fmt.Sprintf("bench-lock-%013d", i) }

// stillHeld fails if another client can acquire one of the locks. If the session had been lost, its
// memory would be free.
func stillHeld(ctx context.Context, s competitor.Service, locks int) error {
	lockers, closeAll, err := s.Lockers(ctx, load.Uncontended, 1, 1)
	if err != nil {
		return err
	}
	defer closeAll()
	for _, i := range []int{0, locks / 2, locks - 1} {
		once, cancel := context.WithTimeout(ctx, attempt)
		_, err := lockers[0](once, lockName(i))
		cancel()
		if err == nil {
			return fmt.Errorf("lock %s was free again", lockName(i))
		}
	}
	return nil
}

// holdAll acquires many locks with 128 goroutines, and keeps them.
func holdAll(ctx context.Context, lock load.Locker, locks int) error {
	const hands = 128
	var acquiring errgroup.Group
	for hand := range hands {
		acquiring.Go(func() (err error) {
			for i := hand; i < locks && err == nil; i += hands {
				_, err = lock(ctx, lockName(i))
			}
			return err
		})
	}
	return acquiring.Wait()
}
