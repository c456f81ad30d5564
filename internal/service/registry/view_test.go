package registry

import (
	"slices"
	"testing"
)

// Pages that are asked for one after the other show everything once, in order.
func TestListPages(t *testing.T) {
	r := New()
	applyAll(r, open("a"))
	for i, name := range []string{"x/3", "w", "x/1", "x/2", "y", "x/", "x"} {
		applyAll(r, acquire("a", uint64(i)+1, name))
	}
	applyAll(r, Command{Op: OpAcquire, Session: sessionNamed("a"), Sequence: 50, Name: "x/9", Class: Election})
	want := []string{"x/", "x/1", "x/2", "x/3"}
	for size := 1; size <= 5; size++ {
		var got []string
		after := ""
		for more := true; more && len(got) <= len(want); {
			var page []Resource
			page, more = r.List(Lock, "x/", after, size, 0)
			if len(page) == 0 || len(page) > size {
				t.Fatalf("a page of %d has %d", size, len(page))
			}
			for _, res := range page {
				got = append(got, res.Name)
			}
			after = page[len(page)-1].Name
		}
		if !slices.Equal(got, want) {
			t.Errorf("in pages of %d: %q, want %q", size, got, want)
		}
	}
}

func TestSessionPages(t *testing.T) {
	r := New()
	applyAll(r, open("c"), open("a"), open("d"), open("b"))
	for size := 1; size <= 5; size++ {
		got := ""
		var after SessionID
		for more := true; more && len(got) <= 4; {
			var page []Session
			page, more = r.Sessions(after, size)
			if len(page) == 0 || len(page) > size {
				t.Fatalf("a page of %d has %d", size, len(page))
			}
			for _, s := range page {
				got += sessionName(s.ID)
			}
			after = page[len(page)-1].ID
		}
		if got != "abcd" {
			t.Errorf("in pages of %d: %q, want abcd", size, got)
		}
	}
	if page, more := r.Sessions(sessionNamed("bb"), 9); len(page) != 2 || more {
		t.Errorf("after an id that is not there: %d sessions, more %v", len(page), more)
	}
}

// A long queue is shown in part, and its whole length told.
func TestListShowsFirstWaiters(t *testing.T) {
	r := New()
	applyAll(r, open("a"))
	for sequence := range uint64(6) {
		applyAll(r, acquire("a", sequence+1, "n"))
	}
	for _, most := range []int{0, 1, 4, 5, 100} {
		page, _ := r.List(Lock, "", "", 1, most)
		res := page[0]
		if res.QueueLength != 5 || len(res.Waiters) != min(most, 5) {
			t.Errorf("at most %d waiters: %d of %d are shown", most, len(res.Waiters), res.QueueLength)
		}
		for i, waiter := range res.Waiters {
			if waiter.Sequence != uint64(i)+2 {
				t.Errorf("waiter %d is request %d", i, waiter.Sequence)
			}
		}
	}
}

func TestMember(t *testing.T) {
	r := New()
	if _, known := r.Member(2); known {
		t.Error("a server is known before it was recorded")
	}
	applyAll(r, Command{Op: OpMember, Member: &Member{ID: 2, UID: 7}})
	r = throughSnapshot(t, r)
	if m, known := r.Member(2); !known || m != (Member{ID: 2, UID: 7}) {
		t.Errorf("server 2 is %+v, known %v", m, known)
	}
}

// The last request that fits into a queue is accepted, and the next one is refused. The
// refusal is stored like any answer, and remains after there is room.
func TestQueueIsBounded(t *testing.T) {
	r := New()
	applyAll(r, open("a"), acquire("a", 1, "n"))
	res := r.resources.get(key{Lock, "n"})
	// A real queue of this length takes seconds: only its length counts here.
	res.gather().queue = slices.Repeat([]*claim{{extras: plain}}, MaxQueue-1)
	fx := applyAll(r, acquire("a", 2, "n"), acquire("a", 3, "n"))
	if last := fx.Outcomes[0].Result; last.Code != Queued || last.Ahead != MaxQueue-1 {
		t.Errorf("the last place: %+v", last)
	}
	if over := fx.Outcomes[1].Result; over.Code != Exhausted || over.Message == "" {
		t.Errorf("one too many: %+v", over)
	}
	if len(res.queue()) != MaxQueue || r.sessions[sessionNamed("a")].claims.len() != 2 {
		t.Error("the refused request left a claim")
	}
	res.crowd.queue = res.crowd.queue[MaxQueue-1:]
	fx = applyAll(r, acquire("a", 3, "n"))
	if again := fx.Outcomes[0].Result; again.Code != Exhausted {
		t.Errorf("sent again: %+v", again)
	}
	throughSnapshot(t, r)
}

// Reading a list allocates about as much for a thousand locks as for one.
func TestVisitMakesNoGarbage(t *testing.T) {
	v := withLocks(1000).Freeze()
	seen := 0
	allocations := testing.AllocsPerRun(10, func() {
		seen = 0
		v.Visit(Lock, "", "", 0, func(res *Resource) bool {
			if len(res.Holders) == 1 {
				seen++
			}
			return true
		})
	})
	if seen != 1000 || allocations > 20 {
		t.Errorf("%d locks seen with %v allocations", seen, allocations)
	}
}
