package client_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/test/clienttest"
)

// TestNobodyHoldsTooLong draws schedules of delays, losses, stops, kills and changes of
// leader. The handles of a session must end before the servers end the session, and no
// two handles of a lock may be valid at the same time.
func TestNobodyHoldsTooLong(t *testing.T) {
	seeds := 25
	if testing.Short() {
		seeds = 5
	}
	var entries, expiries int
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, x := holdTooLong(t, rand.New(rand.NewPCG(uint64(seed), 7)))
				entries, expiries = entries+e, expiries+x
			})
		})
	}
	if entries < 20*seeds || expiries < seeds/2 {
		t.Errorf("%d entries and %d expiries in %d schedules: nothing was tested", entries, expiries, seeds)
	}
}

// witness knows all handles and watches over them.
type witness struct {
	t       *testing.T
	mu      sync.Mutex
	handles []*conclave.Lock
	expired int
}

func (w *witness) onExpired(st *clienttest.State, secret string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expired++
	for _, l := range w.handles {
		if st.Secret(l.Kept().Fence) == secret && l.Context().Err() == nil {
			w.t.Errorf("lock held by session %x when it expired", secret)
		}
	}
}

func (w *witness) entered(l *conclave.Lock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.handles {
		if l.Context().Err() == nil && o.Context().Err() == nil {
			w.t.Errorf("fences %d and %d are good at once", o.Kept().Fence, l.Kept().Fence)
		}
	}
	w.handles = append(w.handles, l)
}

func holdTooLong(t *testing.T, rnd *rand.Rand) (entries, expiries int) {
	cl := clienttest.New(t, 3)
	ttl := 100*time.Millisecond + time.Duration(rnd.Int64N(int64(3*time.Second)))
	w := &witness{t: t}
	cl.OnExpired(w.onExpired)
	ctx, cancel := context.WithTimeout(t.Context(), 40*ttl)
	defer cancel()
	var group sync.WaitGroup
	for range 3 {
		c := cl.Connect(func(cfg *conclave.Config) { cfg.TTL = ttl })
		group.Go(func() { work(ctx, w, c, ttl) })
	}
	group.Go(func() { torment(ctx, cl, rnd, ttl) })
	group.Wait()
	return len(w.handles), w.expired
}

// work takes turns under one lock, and sometimes overstays.
func work(ctx context.Context, w *witness, c *conclave.Client, ttl time.Duration) {
	for turn := 1; ctx.Err() == nil; turn++ {
		l, err := c.Lock(ctx, "x")
		if err != nil {
			continue
		}
		w.entered(l)
		stay := ttl / 20
		if turn%8 == 0 {
			stay = 3 * ttl
		}
		select {
		case <-time.After(stay):
		case <-l.Context().Done():
		case <-ctx.Done():
		}
		_ = l.Unlock(ctx)
	}
}

// torment changes the faults every now and then, and heals all in the end.
func torment(ctx context.Context, cl *clienttest.Cluster, rnd *rand.Rand, ttl time.Duration) {
	fault := func() func(*api.Reply) time.Duration {
		longest, loss, draw := rnd.Int64N(int64(2*ttl))+1, rnd.IntN(30), rand.New(rand.NewPCG(rnd.Uint64(), 1))
		return func(*api.Reply) time.Duration {
			if draw.IntN(100) < loss {
				return -1
			}
			return time.Duration(draw.Int64N(longest))
		}
	}
	for ctx.Err() == nil {
		s := cl.Servers[rnd.IntN(3)]
		switch rnd.IntN(4) {
		case 0:
			s.Stop()
		case 1:
			s.Kill()
		case 2:
			cl.Delay(fault())
		}
		if rnd.IntN(2) == 0 {
			cl.Lead(rnd.IntN(4) - 1)
		}
		time.Sleep(time.Duration(rnd.Int64N(int64(3 * ttl))))
		cl.Heal(s)
	}
}
