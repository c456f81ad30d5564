package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/bench/holders"
)

// paced is a load with a fixed rate, which does not depend on the servers. Some sessions acquire
// and release a lock each, and others are only renewed. A latency starts when the request is due.
type paced struct {
	lanes []*pacedLane
	stop  context.CancelFunc
	ends  errgroup.Group
}

// pacedLane is one stream of requests.
type pacedLane struct {
	stream *holders.Stream
	wake   chan struct{}

	mu      sync.Mutex
	out     []*api.Request
	workers map[string]*worker // by session
	idle    []*worker          // those that may acquire
	renewed []*worker          // those that are renewed, in this order
	waiting []time.Time        // when the acquires were due for which no worker is idle yet
	closed  bool               // a worker acquires again as soon as it has released
	latencies
}

// worker is a session with at most one unanswered request.
type worker struct {
	*holders.Session
	lock string    // "" if it is only renewed
	due  time.Time // when the unanswered request was due, or zero
}

// latencies are the times from when requests were due to their answers, in ns.
type latencies struct {
	acquires, renewals *hdrhistogram.Histogram
}

func newLatencies() latencies {
	of := func() *hdrhistogram.Histogram { return hdrhistogram.New(1e3, 600e9, 3) }
	return latencies{of(), of()}
}

func (l latencies) merge(other latencies) {
	l.acquires.Merge(other.acquires)
	l.renewals.Merge(other.renewals)
}

const (
	// pacedLanes is the minimum number of streams.
	pacedLanes = 16
	// pacedClients is the approximate number of sessions in the measurement of the
	// highest rate. pacedWorkers is the number of sessions for a fixed rate. There are
	// enough sessions that a due request never waits for an idle one.
	pacedClients = 128
	pacedWorkers = 4096
)

// startPaced opens the sessions that acquire, and attaches all sessions.
func startPaced(ctx context.Context, leader string, renewed []*holders.Session) (*paced, error) {
	ctx, stop := context.WithCancel(ctx)
	p := &paced{stop: stop}
	lanes := max(pacedLanes, (len(renewed)+pacedWorkers)/holders.MaxSessions+1)
	for n := range lanes {
		stream, err := holders.Attach(ctx, leader)
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		l := &pacedLane{stream: stream, wake: make(chan struct{}, 1), workers: make(map[string]*worker), latencies: newLatencies()}
		p.lanes = append(p.lanes, l)
		for i := n; i < len(renewed); i += lanes {
			w := &worker{Session: renewed[i]}
			l.workers[string(w.Secret)] = w
			l.renewed = append(l.renewed, w)
		}
		for i := n; i < pacedWorkers; i += lanes {
			w := &worker{Session: &holders.Session{Secret: make([]byte, 16)}, lock: fmt.Sprint("paced-", i)}
			rand.Read(w.Secret)
			l.workers[string(w.Secret)] = w
			l.open(w)
		}
		p.ends.Go(func() error { return l.send(ctx) })
		p.ends.Go(func() error { return l.receive(ctx) })
	}
	return p, nil
}

// close ends the load, and returns an error if it failed. The sessions expire.
func (p *paced) close() error {
	p.stop()
	err := p.ends.Wait()
	for _, l := range p.lanes {
		err = errors.Join(err, l.stream.Close())
	}
	return err
}

// take returns the latencies since the previous call.
func (p *paced) take() latencies {
	sum := newLatencies()
	for _, l := range p.lanes {
		l.mu.Lock()
		sum.merge(l.latencies)
		l.latencies = newLatencies()
		l.mu.Unlock()
	}
	return sum
}

// highest returns the number of acquires per second if some sessions send their next request as
// soon as they have an answer.
func (p *paced) highest(ctx context.Context, d time.Duration) (float64, error) {
	now := time.Now()
	for _, l := range p.lanes {
		l.mu.Lock()
		l.closed = true
		for range max(1, pacedClients/len(p.lanes)) {
			l.acquire(now)
		}
		l.mu.Unlock()
	}
	if err := pause(ctx, time.Second); err != nil { // until all sessions are active
		return 0, err
	}
	p.take()
	began := time.Now()
	if err := pause(ctx, d); err != nil {
		return 0, err
	}
	rate := float64(p.take().acquires.TotalCount()) / time.Since(began).Seconds()
	for _, l := range p.lanes {
		l.mu.Lock()
		l.closed = false
		l.mu.Unlock()
	}
	return rate, nil
}

// run makes acquires and renewals due at the given rates per second, until ctx is cancelled.
func (p *paced) run(ctx context.Context, acquires, renewals float64) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	var acquired, renewed int
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		past := time.Since(began)
		for ; float64(acquired) < past.Seconds()*acquires; acquired++ {
			p.lanes[acquired%len(p.lanes)].due(dueAt(began, acquired, acquires), (*pacedLane).acquire)
		}
		for ; float64(renewed) < past.Seconds()*renewals; renewed++ {
			p.lanes[renewed%len(p.lanes)].due(dueAt(began, renewed, renewals), (*pacedLane).renew)
		}
	}
}

// dueAt returns when the n-th request is due, at a rate per second.
func dueAt(began time.Time, n int, rate float64) time.Time {
	return began.Add(time.Duration(float64(n) / rate * 1e9))
}

func (l *pacedLane) due(at time.Time, ask func(*pacedLane, time.Time)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ask(l, at)
}

// ask puts a request into the queue. The caller holds the mutex. This also applies to all methods
// below except send and receive.
func (l *pacedLane) ask(w *worker, due time.Time, r *api.Request) {
	w.due = due
	l.out = append(l.out, r)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *pacedLane) open(w *worker) {
	r := w.Request()
	r.Op = &api.Request_Open{Open: &api.Open{TtlNs: int64(10 * time.Minute), Host: "bench", Pid: 1, Program: "paced"}}
	l.ask(w, time.Now(), r)
}

// acquire makes the next idle worker acquire its lock.
func (l *pacedLane) acquire(due time.Time) {
	if len(l.idle) == 0 {
		l.waiting = append(l.waiting, due)
		return
	}
	w := l.idle[0]
	l.idle = l.idle[1:]
	r := w.Request()
	r.Op = &api.Request_Acquire{Acquire: &api.Acquire{Name: w.lock}}
	l.ask(w, due, r)
}

// renew renews the next session, unless its last renewal has no answer yet.
func (l *pacedLane) renew(due time.Time) {
	w := l.renewed[0]
	l.renewed = append(l.renewed[1:], w)
	if w.due.IsZero() {
		l.ask(w, due, w.Renewal())
	}
}

func (l *pacedLane) send(ctx context.Context) error {
	for {
		select {
		case <-l.wake:
		case <-ctx.Done():
			return nil
		}
		l.mu.Lock()
		out := l.out
		l.out = nil
		l.mu.Unlock()
		for len(out) > 0 {
			n := min(len(out), 256)
			if err := l.stream.Send(&api.ClientFrame{Requests: out[:n]}); err != nil {
				return nil // receive returns the cause
			}
			out = out[n:]
		}
	}
}

func (l *pacedLane) receive(ctx context.Context) error {
	for {
		replies, err := l.stream.Take()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		now := time.Now()
		l.mu.Lock()
		for _, r := range replies {
			err = errors.Join(err, l.answered(r, now))
		}
		l.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

func (l *pacedLane) answered(r *api.Reply, now time.Time) error {
	w := l.workers[string(r.GetSession())]
	if r.GetCode() != api.Code_CODE_OK {
		return fmt.Errorf("a session was answered %v: %s", r.GetCode(), r.GetMessage())
	}
	took := min(max(int64(now.Sub(w.due)), 1e3), 600e9)
	w.Answered, w.due = r.GetSequence(), time.Time{}
	switch {
	case w.lock == "":
		return l.renewals.RecordValue(took)
	case r.GetFence() != 0:
		release := w.Request()
		release.Op = &api.Request_Release{Release: &api.Release{Hold: r.GetSequence()}}
		l.ask(w, now, release)
		return l.acquires.RecordValue(took)
	}
	l.idle = append(l.idle, w)
	switch {
	case len(l.waiting) > 0:
		due := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.acquire(due)
	case l.closed:
		l.acquire(now)
	}
	return nil
}
