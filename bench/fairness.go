package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	load "github.com/conclave-io/conclave/internal/bench"
	"github.com/conclave-io/conclave/service/api"

	"github.com/conclave-io/conclave/bench/competitor"
)

// neighbours are sessions that load the cluster beside the client that is measured.
type neighbours struct {
	Sessions int `json:"sessions"`
	// Window is how many requests each keeps unanswered. With 2 a session does
	// what a well-behaved client does: it acquires and releases again and again.
	Window int `json:"window"`
	// Elsewhere says that they load another cluster on the same machine: what the
	// client notices of them is the share of the processors that they take.
	Elsewhere bool `json:"elsewhere"`
}

// mostUnanswered is how many requests a session may have unanswered.
const mostUnanswered = 1024

// The first is what all are compared with, and each other one with the same neighbours
// elsewhere, which follow it.
var neighbourhoods = []neighbours{
	{}, {64, 2, false}, {64, 2, true}, {1, mostUnanswered, false}, {1, mostUnanswered, true}, {64, mostUnanswered, false}, {64, mostUnanswered, true},
}

func (n neighbours) String() string {
	text := plural(n.Sessions, "session")
	switch {
	case n.Sessions == 0:
		return "nobody"
	case n.Window == mostUnanswered:
		text += " with a full window"
	default:
		text += ", one lock at a time"
	}
	if n.Elsewhere {
		text += ", of another cluster"
	}
	return text
}

// turnBeside is what one client got in one turn beside some neighbours.
type turnBeside struct {
	neighbours
	Round  int      `json:"round"`
	Rate   float64  `json:"ops_per_s"`
	P50    *float64 `json:"acquire_ms_p50"`
	P99    *float64 `json:"acquire_ms_p99"`
	Failed int64    `json:"failed"`
	// Others is what the neighbours were answered, in requests per second, and
	// Exhausted how many of these answers were refusals of a full queue.
	Others    float64 `json:"neighbours_requests_per_s"`
	Exhausted float64 `json:"neighbours_exhausted_per_s"`
}

// fairness measures what one client that acquires and releases a lock of its own
// notices of its neighbours. Each neighbourhood has its turn in every round, so that
// what the machine does meanwhile meets them all alike. Where the machine has no
// processors to spare, the neighbours slow the client down even if they use another
// cluster, so a second one tells how much of it is the machine.
func fairness(ctx context.Context, b *bench) (section, error) {
	var clusters [2]*competitor.Conclave // the client's, and the other
	var leaders [2]string
	for i := range clusters {
		c, leader, err := b.startConclave(ctx)
		if err != nil {
			return section{}, err
		}
		defer c.Stop()
		clusters[i], leaders[i] = c, c.Addresses[leader-1]
	}
	var turns []turnBeside
	for round := range b.rounds {
		for _, n := range neighbourhoods {
			leader := leaders[0]
			if n.Elsewhere {
				leader = leaders[1]
			}
			t, err := b.beside(ctx, clusters[0], leader, n)
			if err != nil {
				return section{}, fmt.Errorf("beside %v: %w", n, err)
			}
			t.Round = round + 1
			turns = append(turns, t)
			fmt.Fprintf(os.Stderr, "  round %d, beside %v: p50 %.2f ms, p99 %.2f ms, the neighbours %.0f/s\n", t.Round, n, *t.P50, *t.P99, t.Others)
		}
	}
	return section{fairnessTable(turns), turns}, nil
}

// beside gives the client one turn beside neighbours.
func (b *bench) beside(ctx context.Context, c *competitor.Conclave, leader string, n neighbours) (turnBeside, error) {
	lockers, closeAll, err := c.Lockers(ctx, load.Uncontended, 1, 1)
	if err != nil {
		return turnBeside{}, err
	}
	defer closeAll()
	loading, stop := context.WithCancel(ctx)
	defer stop()
	crowd, err := settleIn(loading, leader, n)
	if err != nil {
		return turnBeside{}, err
	}
	if err := pause(ctx, time.Second); err != nil { // the load has begun
		return turnBeside{}, errors.Join(err, crowd.leave(stop))
	}
	answered, exhausted := crowd.answered.Load(), crowd.exhausted.Load()
	f, err := load.Load{Workload: load.Uncontended, Clients: lockers, Duration: time.Duration(b.seconds) * time.Second}.Run(ctx)
	took := f.Took.Seconds()
	t := turnBeside{
		neighbours: n, Rate: f.Rate(), P50: f.Acquire(50), P99: f.Acquire(99), Failed: f.Failed,
		Others: float64(crowd.answered.Load()-answered) / took, Exhausted: float64(crowd.exhausted.Load()-exhausted) / took,
	}
	return t, errors.Join(err, crowd.leave(stop))
}

// crowd is neighbours at work.
type crowd struct {
	streams             *fleet
	working             errgroup.Group
	answered, exhausted atomic.Int64
}

// settleIn opens the neighbours' sessions, each over a connection of its own, and
// has them acquire and release until ctx ends.
func settleIn(ctx context.Context, leader string, n neighbours) (*crowd, error) {
	c := &crowd{streams: &fleet{}}
	if n.Sessions == 0 {
		return c, nil
	}
	var err error
	if c.streams, err = launch(ctx, leader, n.Sessions, n.Sessions, time.Minute, false); err != nil {
		return nil, err
	}
	for _, s := range c.streams.streams {
		c.working.Go(func() error { return c.work(ctx, s, n.Window) })
	}
	return c, nil
}

// leave stops the neighbours. Their sessions end by themselves.
func (c *crowd) leave(stop context.CancelFunc) error {
	stop()
	return errors.Join(c.working.Wait(), c.streams.close())
}

// work keeps a session's window full: acquire and release, in pairs, of names that
// nobody else wants. A pair is sent when another is answered.
func (c *crowd) work(ctx context.Context, s *stream, window int) error {
	m := s.sessions[0]
	first := m.sequence + 1
	low, done := first, make(map[uint64]bool, window)
	for ctx.Err() == nil {
		frame := &api.ClientFrame{}
		for m.sequence+2 < low+uint64(window) && len(frame.Requests) < 256 || m.sequence+1 == low {
			frame.Requests = append(frame.Requests, pair(m, low)...)
		}
		if len(frame.Requests) > 0 {
			if err := s.attached.Send(frame); err != nil {
				break // so says Recv, and why
			}
		}
		answer, err := s.attached.Recv()
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("a neighbour: %w", err)
		}
		if f := answer.GetFarewell(); f != nil {
			return fmt.Errorf("a neighbour was sent away: %v: %s", f.GetCode(), f.GetMessage())
		}
		for _, r := range answer.GetReplies() {
			if r.GetCode() == api.Code_CODE_EXHAUSTED {
				c.exhausted.Add(1)
			}
			done[r.GetSequence()] = true
			c.answered.Add(1)
		}
		for ; done[low]; low++ {
			delete(done, low)
		}
	}
	return nil
}

// pair acquires a lock and releases it.
func pair(m *member, low uint64) []*api.Request {
	acquire := m.request()
	acquire.Low, acquire.Op = low, &api.Request_Acquire{Acquire: &api.Acquire{Name: fmt.Sprintf("bench-%x-%d", m.id, m.sequence%8)}}
	release := m.request()
	release.Low, release.Op = low, &api.Request_Release{Release: &api.Release{Hold: acquire.Sequence}}
	return []*api.Request{acquire, release}
}

// fairnessTable compares within a round, so that the spread of a ratio is not that
// of the machine.
func fairnessTable(turns []turnBeside) string {
	var rows [][]string
	for at, n := range neighbourhoods {
		var rates, p50, p99, overNobody, overElsewhere, others, exhausted []float64
		var failed int64
		for i, t := range turns {
			if t.neighbours != n {
				continue
			}
			round := turns[i-i%len(neighbourhoods):]
			rates, others, exhausted = append(rates, t.Rate), append(others, t.Others), append(exhausted, t.Exhausted)
			p50, p99 = grow(p50, t.P50), grow(p99, t.P99)
			overNobody = append(overNobody, *t.P99 / *round[0].P99)
			if n.Sessions > 0 && !n.Elsewhere {
				overElsewhere = append(overElsewhere, *t.P99 / *round[at+1].P99)
			}
			failed += t.Failed
		}
		row := []string{n.String(), middle(rates), middle(p50), spreadOf(p99).String(), spreadOf(overNobody).String(), "", middle(others), middle(exhausted), fmt.Sprint(failed)}
		if len(overElsewhere) > 0 {
			row[5] = spreadOf(overElsewhere).String()
		}
		rows = append(rows, row)
	}
	return table([]string{"beside", "operations/s", "acquire p50, ms", "p99, ms", "times that beside nobody", "times that beside the same elsewhere", "neighbours' requests/s", "refused/s", "failed"}, rows)
}
