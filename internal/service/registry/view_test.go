package registry

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/service/version"
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
			page, more = r.Freeze().List(Lock, "x/", after, size, 0)
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
			page, more = r.Freeze().Sessions(after, size)
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
	if page, more := r.Freeze().Sessions(sessionNamed("bb"), 9); len(page) != 2 || more {
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
		page, _ := r.Freeze().List(Lock, "", "", 1, most)
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

// Rank is compared with sorting everything.
func TestRankIsAsSortedInFull(t *testing.T) {
	r := withSessions(60)
	draw := rand.New(rand.NewPCG(1, 1))
	for i := range 60 {
		name := fmt.Sprintf("%c/%d", 'a'+draw.IntN(2), draw.IntN(25))
		batch := Batch{Wall: draw.Int64N(30), Commands: []Command{{Op: OpAcquire, Session: numbered(i), Sequence: 2, Name: name, Shared: draw.IntN(3) == 0}}}
		r.Apply(uint64(i)+2, &batch, new(Effects))
	}
	for _, order := range []Order{ByQueue, ByAge} {
		for _, prefix := range []string{"", "a/", "b/1", "none"} {
			want, _ := r.Freeze().List(Lock, prefix, "", 1000, 1)
			slices.SortStableFunc(want, func(a, b Resource) int {
				if order == ByQueue {
					return cmp.Compare(b.QueueLength, a.QueueLength)
				}
				return cmp.Compare(oldest(a), oldest(b))
			})
			for _, limit := range []int{1, 7, len(want), 1000} {
				got, more, ok := r.Freeze().Rank(Lock, prefix, order, limit, 1)
				n := min(limit, len(want))
				if !ok || more != (len(want) > limit) || fmt.Sprint(got) != fmt.Sprint(want[:n]) {
					t.Fatalf("order %d, prefix %q, limit %d: got %d, more %v, ok %v; want %d", order, prefix, limit, len(got), more, ok, n)
				}
			}
		}
	}
}

// While a guard changes, a lock can have waiters and no holder. Every read describes it.
func TestReadsOfALockWithoutHolder(t *testing.T) {
	r := atLevel(version.Guarded)
	for _, name := range []string{"a", "b"} {
		applyAll(r, Command{Op: OpOpen, Session: sessionNamed(name), Sequence: 1, TTL: 1e9})
	}
	fx := applyAll(r, acquire("a", 2, "live/held"), acquire("b", 2, "kept"), guard("live/", "raymond"))
	waits := acquire("b", 3, "live/new")
	waits.Keeps = []Kept{{Name: "kept", Fence: fx.Outcomes[1].Result.Fence}}
	applyAll(r, waits)
	v := r.Freeze()
	for order, want := range map[Order]string{ByQueue: "[live/new kept live/held]", ByAge: "[kept live/held live/new]"} {
		list, _, ok := v.Rank(Lock, "", order, 10, 10)
		var names []string
		for _, res := range list {
			names = append(names, res.Name)
		}
		if !ok || fmt.Sprint(names) != want {
			t.Errorf("order %d: %v, expected %s", order, names, want)
		}
	}
	if res, known, _ := v.Explain(Lock, "live/new", 10); !known || len(res.Holders) != 0 || len(res.Waiters) != 1 {
		t.Errorf("explained as %+v, known %v", res, known)
	}
	if waits, _ := v.Waits(10); len(waits) != 1 || len(waits[0].Holders) != 0 || waits[0].HolderCount != 0 {
		t.Errorf("waits %+v", waits)
	}
	if list, _ := v.List(Lock, "live/", "", 10, 10); len(list) != 2 || (&Home{r}).HeldBy("live/new") != "" {
		t.Errorf("listed as %+v, held by %q", list, (&Home{r}).HeldBy("live/new"))
	}
	refused := Command{Op: OpRevoke, Session: sessionNamed("a"), Sequence: 4, Name: "live/new"}
	if code := applyAll(r, refused).Outcomes[0].Result.Code; code != NotFound {
		t.Errorf("a revocation: code %d", code)
	}
	again := Command{Op: OpAcquire, Session: sessionNamed("a"), Sequence: 5, Name: "live/new", Try: true}
	for range 2 { // the second time from the answers
		if result := applyAll(r, again).Outcomes[0].Result; result.Code != Held || result.Holder != nil {
			t.Errorf("a try: %+v", result)
		}
	}
	another := acquire("a", 6, "live/new")
	another.Limit = 2
	if code := applyAll(r, another).Outcomes[0].Result.Code; code != Invalid {
		t.Errorf("another limit: code %d", code)
	}
	if _, err := Decode(r.Freeze().Encode()); err != nil {
		t.Error(err)
	}
}

// oldest returns since when a resource has been held.
func oldest(r Resource) int64 {
	return slices.MinFunc(r.Holders, func(a, b Holder) int { return cmp.Compare(a.Since, b.Since) }).Since
}

// Rank does not look at more than it is meant to.
func TestRankRefusesTooMany(t *testing.T) {
	v := New().Freeze()
	holder := &claim{session: &session{party: new(party)}, extras: new(extras)}
	var all []*resource
	for i := range MaxRanked + 1 {
		all = append(all, &resource{class: Lock, name: fmt.Sprintf("%07d", i), one: [1]*claim{holder}})
	}
	v.names.Fill(all)
	if list, _, ok := v.Rank(Lock, "", ByAge, 10, 1); ok {
		t.Errorf("got %d of %d", len(list), len(all))
	}
	v.names.Fill(all[:MaxRanked])
	if list, more, ok := v.Rank(Lock, "", ByAge, 10, 1); !ok || !more || len(list) != 10 || !strings.HasSuffix(list[9].Name, "9") {
		t.Errorf("got %d, more %v, ok %v", len(list), more, ok)
	}
}
