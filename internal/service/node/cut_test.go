package node

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/host"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// TestCutsUnderLoad: while clients take locks and other epochs begin, each cut that any
// node asks for has one token of each lock.
func TestCutsUnderLoad(t *testing.T) {
	t.Parallel()
	c := liveCluster(t, 3)
	if _, err := c.nodes[1].Cut(c.ctx, ""); err != ErrNotMember {
		t.Errorf("a node without a seat says %v", err)
	}
	tokens := []string{"suzuki-kasami", "raymond", "naimi-trehel", "singhal"}
	for _, name := range tokens {
		if r := c.guard(name+"/", view.Use{Algorithm: name}); r.Code != registry.OK {
			t.Fatalf("%s: code %d: %s", name, r.Code, r.Message)
		}
	}
	c.members(3)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for _, name := range tokens {
		for id := range uint64(3) {
			x := c.tenant(id + 1)
			all.Go(func() {
				renewed := time.Now()
				for {
					select {
					case <-stop:
						return
					default:
					}
					if time.Since(renewed) > 100*time.Millisecond { // do renews only while it waits
						renewed = time.Now()
						x.renew()
					}
					hold, _ := x.lock(name + "/lock")
					x.release(hold)
				}
			})
		}
	}
	cuts, locks, moving := 0, 0, 0
	for round := range 90 {
		if round%30 == 15 { // another epoch, sooner or later
			c.guard("more/", view.Use{Algorithm: []string{"central", "lamport"}[round/30%2]})
		}
		cut, err := c.nodes[uint64(round%3)+1].Cut(c.ctx, "")
		if err != nil {
			t.Errorf("no cut: %v", err)
			break
		}
		cuts++
		for _, n := range cut.Names {
			locks++
			moving += len(n.Messages)
			if !n.OneToken || n.Tokens != 1 || n.Wrong != "" || len(n.Machines) != len(cut.Members) {
				t.Errorf("the cut has %+v", n)
			}
		}
	}
	close(stop)
	all.Wait()
	t.Logf("%d cuts with %d locks and %d messages on their way", cuts, locks, moving)
	if locks < 2*cuts || moving == 0 {
		t.Errorf("%d cuts have %d locks and %d messages: they do not test much", cuts, locks, moving)
	}
}

// TestOneCutAtATime: while a member does not answer, callers that ask for cuts and do not
// wait start no second cut. Otherwise cuts would pile up at all members.
func TestOneCutAtATime(t *testing.T) {
	t.Parallel()
	c := liveCluster(t, 3)
	c.guard("a/", view.Use{Algorithm: "suzuki-kasami"})
	c.members(3)
	stands := c.nodes[2].live
	stands.mu.Lock()
	for range 20 {
		ctx, cancel := context.WithTimeout(c.ctx, 5*time.Millisecond)
		if cut, err := c.nodes[1].Cut(ctx, "a/"); err == nil {
			t.Errorf("a member stands still, and there is %+v", cut)
		}
		cancel()
	}
	var number uint64
	c.nodes[1].live.with(func(h *host.Host, now int64) { number, _ = h.Cut(now, "a/") })
	stands.mu.Unlock()
	if number != 2 {
		t.Errorf("%d cuts were begun while the first was under way", number-2)
	}
}
