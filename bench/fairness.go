package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/bench/competitor"
	load "github.com/conclave-io/conclave/internal/cli/bench"
)

// neighbours are sessions that load the cluster during a measurement of one client.
type neighbours struct {
	Sessions int `json:"sessions"`
	// Window is the number of unanswered requests that each session keeps. With 2, a session
	// acquires and releases one lock at a time, as a well-behaved client does.
	Window int `json:"window"`
	// Elsewhere means that they load another cluster on the same machine. Then they compete with
	// the client only for processor time.
	Elsewhere bool `json:"elsewhere"`
}

// mostUnanswered is the maximum number of unanswered requests of a session.
const mostUnanswered = 1024

// The results of all others are compared with those of the first. Each entry with Elsewhere false
// is also compared with the next one, which has the same neighbours on the other cluster.
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

// turnBeside is the result of one turn of the client, with one set of neighbours.
type turnBeside struct {
	neighbours
	Round  int      `json:"round"`
	Rate   float64  `json:"ops_per_s"`
	P50    *float64 `json:"acquire_ms_p50"`
	P99    *float64 `json:"acquire_ms_p99"`
	Failed int64    `json:"failed"`
	// Others is the number of answers to the neighbours per second. Exhausted is how many of these
	// answers refused a request because a queue was full.
	Others    float64 `json:"neighbours_requests_per_s"`
	Exhausted float64 `json:"neighbours_exhausted_per_s"`
}

// fairness measures how much neighbours slow down a client that acquires and releases its own lock.
// Each set of neighbours has a turn in every round, so that other load on the machine affects all
// of them equally. On a machine without spare processors, neighbours slow the client down even if
// they use another cluster. So a second cluster measures this part of the effect.
func fairness(ctx context.Context, b *bench) (section, error) {
	var clusters [2]*competitor.Conclave // the one that the client uses, and the other one
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

// beside runs one turn of the client with the given neighbours.
func (b *bench) beside(ctx context.Context, c *competitor.Conclave, leader string, n neighbours) (turnBeside, error) {
	lockers, closeAll, err := c.Lockers(ctx, load.Uncontended, 1, 1)
	if err != nil {
		return turnBeside{}, err
	}
	defer closeAll()
	loading, stop := context.WithCancel(ctx)
	defer stop()
	running, err := startNeighbours(loading, leader, n)
	if err != nil {
		return turnBeside{}, err
	}
	if err := pause(ctx, time.Second); err != nil { // until the neighbours are at full load
		return turnBeside{}, errors.Join(err, running.end(stop))
	}
	answered, exhausted := running.answered.Load(), running.exhausted.Load()
	f, err := load.Load{Workload: load.Uncontended, Clients: lockers, Duration: time.Duration(b.seconds) * time.Second}.Run(ctx)
	took := f.Took.Seconds()
	t := turnBeside{
		neighbours: n, Rate: f.Rate(), P50: f.Acquire(50), P99: f.Acquire(99), Failed: f.Failed,
		Others: float64(running.answered.Load()-answered) / took, Exhausted: float64(running.exhausted.Load()-exhausted) / took,
	}
	return t, errors.Join(err, running.end(stop))
}

// runningNeighbours are neighbours with their connections.
type runningNeighbours struct {
	streams             *fleet
	working             errgroup.Group
	answered, exhausted atomic.Int64
}

// startNeighbours opens the sessions of the neighbours, each over its own connection. They acquire and
// release until ctx is cancelled.
func startNeighbours(ctx context.Context, leader string, n neighbours) (*runningNeighbours, error) {
	c := &runningNeighbours{streams: &fleet{}}
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

// end stops the neighbours. Their sessions expire.
func (c *runningNeighbours) end(stop context.CancelFunc) error {
	stop()
	return errors.Join(c.working.Wait(), c.streams.close())
}

// work keeps the window of a session full with pairs of acquire and release. No other session uses
// these names. When the server has answered one pair, work sends another.
func (c *runningNeighbours) work(ctx context.Context, s *stream, window int) error {
	m := s.sessions[0]
	first := m.sequence + 1
	low, done := first, make(map[uint64]bool, window)
	for ctx.Err() == nil {
		frame := &api.ClientFrame{}
		for m.sequence+2 < low+uint64(window) && len(frame.Requests) < 256 || m.sequence+1 == low {
			frame.Requests = append(frame.Requests, pair(m, low)...)
		}
		if len(frame.Requests) > 0 {
			if err := s.Send(frame); err != nil {
				break // Take returns the cause
			}
		}
		replies, err := s.Take()
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("a neighbour: %w", err)
		}
		for _, r := range replies {
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

// pair returns the requests to acquire a lock and to release it.
func pair(m *member, low uint64) []*api.Request {
	acquire := m.request()
	acquire.Low, acquire.Op = low, &api.Request_Acquire{Acquire: &api.Acquire{Name: fmt.Sprintf("bench-%x-%d", m.id, m.sequence%8)}}
	release := m.request()
	release.Low, release.Op = low, &api.Request_Release{Release: &api.Release{Hold: acquire.Sequence}}
	return []*api.Request{acquire, release}
}

// fairnessTable computes ratios within a round. So the spread of a ratio does not include changes
// in the speed of the machine.
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
