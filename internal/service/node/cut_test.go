package node

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/guarded/home"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// TestCutsUnderLoad: while clients take locks and other epochs begin, each cut that any
// node asks for has one token of each lock.
func TestCutsUnderLoad(t *testing.T) {
	t.Parallel()
	c := guardedCluster(t, 3)
	if _, err := c.nodes[1].Home().Cut(c.ctx, ""); err != home.ErrNotMember {
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
		cut, err := c.nodes[uint64(round%3)+1].Home().Cut(c.ctx, "")
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
	c := guardedCluster(t, 3)
	c.guard("a/", view.Use{Algorithm: "suzuki-kasami"})
	c.members(3)
	sent := func() uint64 { return c.nodes[1].Home().Status().Messages }
	before := sent()
	if _, err := c.nodes[1].Home().Cut(c.ctx, "a/"); err != nil {
		t.Fatal(err)
	}
	takes := sent() - before
	if takes == 0 {
		t.Fatal("a cut takes no messages")
	}
	goOn := standStill(t, c.nodes[2].Home())
	before = sent()
	for range 20 {
		ctx, cancel := context.WithTimeout(c.ctx, 5*time.Millisecond)
		if cut, err := c.nodes[1].Home().Cut(ctx, "a/"); err == nil {
			t.Errorf("a member stands still, and there is %+v", cut)
		}
		cancel()
	}
	if more := sent() - before; more > takes {
		t.Errorf("%d messages for cuts were sent while one was under way, which takes %d", more, takes)
	}
	goOn()
}

// standStill makes a home do nothing until the function that it returns is called: a client of it
// does not take its reply.
func standStill(t *testing.T, h *home.Home) (goOn func()) {
	s := stalled{stands: make(chan struct{}), released: make(chan struct{})}
	conn, err := h.Connect(s)
	if err != nil {
		t.Fatal(err)
	}
	go conn.Submit(t.Context(), []registry.Command{{Op: registry.OpRenew, Session: registry.SessionID{9}, Sequence: 1}})
	<-s.stands
	return func() { close(s.released) }
}

// stalled is a client that takes no reply before it is released.
type stalled struct{ stands, released chan struct{} }

func (s stalled) Deliver([]Reply) {
	close(s.stands)
	<-s.released
}

func (s stalled) Depose() {}
