package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/lab/measure"
)

// guardRun measures one lock under one guard.
type guardRun struct {
	*guardsBench
	prefix string // empty: agreement
	name   string
	askers []*conclave.Client
	rows   []measure.Row // what the messages should be, idle and saturated

	// epoch is the newest one that was seen, and began the one in which the messages are counted.
	epoch, began uint64
	// sessions are those that held or waited while the messages were counted, if saturated.
	sessions map[string]bool

	messages           []float64
	acquires, handoffs []time.Duration
}

// both measures in both regimes.
func (r *guardRun) both(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := r.undisturbed(ctx, r.idle); err != nil {
		return err
	}
	return r.undisturbed(ctx, r.saturated)
}

// attempts bounds how often a regime is measured.
const attempts = 3

// undisturbed measures a regime, and again if something happened meanwhile that the formulas do not
// count: an epoch began, so that the members asked again, or a session ended while it waited, so that
// its home gave the next grant back. A machine that is busy can keep servers and clients from renewing
// their leases in time.
func (r *guardRun) undisturbed(ctx context.Context, regime func(context.Context) error) error {
	before := *r
	for attempt := 1; ; attempt++ {
		r.sessions = make(map[string]bool)
		if err := regime(ctx); err != nil || r.epoch == r.began && len(r.sessions) <= len(r.askers) || attempt == attempts {
			return err
		}
		fmt.Fprintf(r.Progress, "epochs %d to %d and %d sessions of %d clients were measured: measured again\n", r.began, r.epoch, len(r.sessions), len(r.askers))
		r.messages, r.acquires, r.handoffs = before.messages, before.acquires, before.handoffs
	}
}

func (r *guardRun) times(guard string) GuardsTime {
	fmt.Fprintf(r.Progress, "%s: measured\n", guard)
	t := GuardsTime{Guard: guard, AcquireMS: middle(r.acquires), HandoffMS: middle(r.handoffs)}
	t.RoundTrips = round(t.AcquireMS / r.report.PingMS)
	return t
}

// idle has the clients enter in turn, each when all is quiet: once before it is measured.
func (r *guardRun) idle(ctx context.Context) error {
	var from uint64
	for round := range r.Rounds + 1 {
		for _, c := range r.askers {
			sent, err := r.quiet(ctx, measure.Idle)
			if err != nil {
				return err
			}
			if round == 1 && c == r.askers[0] {
				from, r.began = sent, r.epoch
			}
			began := time.Now()
			held, err := c.Lock(ctx, r.name)
			if err != nil {
				return err
			}
			if took := time.Since(began); round > 0 {
				r.acquires = append(r.acquires, took)
			}
			if err := held.Unlock(ctx); err != nil {
				return err
			}
		}
	}
	return r.count(ctx, measure.Idle, from)
}

// count records the messages per entry since sent messages had been sent.
func (r *guardRun) count(ctx context.Context, regime int, from uint64) error {
	sent, err := r.quiet(ctx, regime)
	r.messages = append(r.messages, float64(sent-from)/float64(r.Rounds*len(r.askers)))
	return err
}

// restless is how long a home may take to become quiet if nothing says that it does: a
// token that is always on its way, or voters that are asked again and again.
const restless = 50 * time.Millisecond

// quiet waits until no message of the algorithm is on its way, and returns how many were
// sent: none is if two looks one after the other find the same number at each home, and
// all acknowledged. It does not wait for algorithms whose messages no formula counts.
func (r *guardRun) quiet(ctx context.Context, regime int) (sent uint64, err error) {
	if r.prefix == "" {
		return 0, nil
	}
	bounded := r.rows[regime].Theory == nil && r.rows[regime].Bounds == nil
	began := time.Now()
	var before []uint64
	err = Until(ctx, "no message is on its way", func() (bool, error) {
		v, err := admin.New(r.Control).Homes(ctx)
		if err != nil {
			return false, err
		}
		r.epoch = v.Epoch
		rest := len(v.Members) == r.GuardsConfig.Servers
		var now []uint64
		sent = 0
		for _, m := range v.Members {
			if m.Home == nil {
				return false, errors.New(m.Problem)
			}
			for _, lane := range m.Home.Lanes {
				rest = rest && lane.Unacknowledged == 0
			}
			for _, n := range m.Home.Namespaces {
				if n.Prefix == r.prefix {
					now, sent = append(now, n.Messages+n.Others), sent+n.Messages
				}
			}
		}
		same := slices.Equal(before, now)
		before = now
		return rest && same || bounded && time.Since(began) > restless, nil
	})
	return sent, r.orDied(err)
}

// entry is a client that has the lock.
type entry struct {
	at    time.Time
	err   error
	leave chan struct{} // closed to have it leave
}

// saturated has all clients ask again at once after leaving. Each stays inside until all
// others have asked and all is quiet.
func (r *guardRun) saturated(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	entered := make(chan entry)
	var asking sync.WaitGroup
	for _, c := range r.askers {
		asking.Go(func() {
			for r.enter(ctx, c, entered) {
			}
		})
	}
	err := r.turns(ctx, entered)
	cancel()
	asking.Wait()
	return err
}

// enter enters once and leaves when it is told to. It reports whether to continue.
func (r *guardRun) enter(ctx context.Context, c *conclave.Client, entered chan<- entry) bool {
	held, err := c.Lock(ctx, r.name)
	e := entry{time.Now(), err, make(chan struct{})}
	select {
	case entered <- e:
	case <-ctx.Done():
	}
	if err != nil {
		return false
	}
	select {
	case <-e.leave:
	case <-ctx.Done():
	}
	return held.Unlock(context.WithoutCancel(ctx)) == nil && ctx.Err() == nil
}

// turns has those inside leave one after the other, the first two rounds unmeasured.
func (r *guardRun) turns(ctx context.Context, entered <-chan entry) error {
	var (
		inside []entry
		from   uint64
		left   time.Time
	)
	for turn := 0; ; turn++ {
		for settled := false; !settled; {
			select {
			case e := <-entered:
				if e.err != nil {
					return e.err
				}
				if inside = append(inside, e); !left.IsZero() && turn > 2*len(r.askers) {
					r.handoffs = append(r.handoffs, e.at.Sub(left))
				}
				left = time.Time{}
				continue
			default:
			}
			all, err := r.settled(ctx, len(inside))
			if err != nil {
				return err
			}
			settled = all && left.IsZero() // else whom it was handed to comes first
		}
		sent, err := r.quiet(ctx, measure.Saturated)
		switch {
		case err != nil:
			return err
		case turn == 2*len(r.askers):
			from, r.began, r.sessions = sent, r.epoch, make(map[string]bool)
		case turn == (2+r.Rounds)*len(r.askers):
			return r.count(ctx, measure.Saturated, from)
		}
		left = time.Now()
		close(inside[0].leave)
		inside = inside[1:]
	}
}

// settled reports whether all who are not inside wait.
func (r *guardRun) settled(ctx context.Context, inside int) (bool, error) {
	x, err := r.Control.Explain(ctx, r.name)
	if err != nil {
		return false, err
	}
	for _, h := range x.Resource.Holders {
		r.sessions[h.Session] = true
	}
	for _, w := range x.Resource.Waiters {
		r.sessions[w.Session] = true
	}
	waiting := int(x.Resource.QueueLength)
	if r.prefix != "" {
		waiting = 0
		for _, h := range x.Homes {
			waiting += int(h.QueueLength)
		}
	}
	return inside > 0 && inside+waiting == len(r.askers), nil
}
