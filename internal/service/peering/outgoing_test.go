package peering

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

type outgoing = Outgoing[uint64, string]

func TestOutgoingBounds(t *testing.T) {
	o := NewOutgoing[uint64, string](Bounds{Messages: 3, Bytes: 1000, Notes: 2})
	expect := func(what string, taken, want bool) {
		t.Helper()
		if taken != want {
			t.Errorf("%s: taken %t, want %t", what, taken, want)
		}
	}
	expect("not connected", o.Offer(1, 1), false)
	o.Connected(true)
	expect("a large one into the empty queue", o.Offer(2, 5000), true)
	expect("one behind it", o.Offer(3, 1), false)
	if item, more := o.Next(); item.Message != 2 || more {
		t.Errorf("the next is %v, more %t", item, more)
	}
	expect("as many bytes as allowed", o.Offer(4, 600) && o.Offer(5, 400), true)
	expect("one byte more", o.Offer(6, 1), false)
	o.Next()
	expect("in place of one that left", o.Offer(7, 599) && o.Offer(8, 1), true)
	expect("one message more", o.Offer(9, 0), false)
}

// What is to be said of this server goes first, then notes, then messages.
func TestOutgoingOrder(t *testing.T) {
	o := NewOutgoing[uint64, string](Bounds{Messages: 9, Bytes: 9, Notes: 2})
	o.Introduce()
	o.Note("while there is no connection")
	if item, more := o.Next(); item.Kind != Nothing || more {
		t.Errorf("without a connection it sends %v, more %t", item, more)
	}
	o.Connected(true)
	o.Offer(1, 1)
	for _, note := range []string{"a", "b", "too many"} {
		o.Note(note)
	}
	var got []string
	for item, more := o.Next(); item.Kind != Nothing; item, more = o.Next() {
		got = append(got, fmt.Sprint(item.Kind, item.Note, item.Message, more))
	}
	if want := []string{fmt.Sprint(Introduction, "", 0, true), fmt.Sprint(Note, "a", 0, true), fmt.Sprint(Note, "b", 0, true), fmt.Sprint(Message, "", 1, false)}; !slices.Equal(got, want) {
		t.Errorf("it sends %q, want %q", got, want)
	}
}

// TestOutgoing gives it random inputs. Messages leave in order, once, and on the
// connection for which they were queued. All others are dropped, and only for a reason.
// Every loss is reported, at a limited rate.
func TestOutgoing(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		x := &played{t: t, seed: seed, bounds: Bounds{Messages: 1 + rng.IntN(200), Bytes: 1 + rng.IntN(4000), Notes: 2, Quiet: 50}, last: -1000}
		x.out = NewOutgoing[uint64, string](x.bounds)
		for range 3000 {
			x.now += rng.Int64N(4)
			x.step(rng)
		}
	}
}

// played is an Outgoing beside what it must do.
type played struct {
	t      *testing.T
	seed   uint64
	bounds Bounds
	out    outgoing
	now    int64
	up     bool
	given  uint64
	waits  []entry
	bytes  int
	lost   bool
	last   int64 // when a loss was reported
}

type entry struct {
	message uint64
	size    int
}

func (x *played) step(rng *rand.Rand) {
	switch n := rng.IntN(300); {
	case n == 0:
		x.lost = x.lost || len(x.waits) > 0 || x.up
		x.up = !x.up
		x.out.Connected(x.up)
		x.waits, x.bytes = nil, 0
	case n < 170:
		x.given++
		size := rng.IntN(60)
		room := x.up && len(x.waits) < x.bounds.Messages && (len(x.waits) == 0 || x.bytes+size <= x.bounds.Bytes)
		if taken := x.out.Offer(x.given, size); taken != room {
			x.t.Fatalf("seed %d: a message of %d bytes is taken: %t, with %d of %d bytes waiting", x.seed, size, taken, len(x.waits), x.bytes)
		}
		if room {
			x.waits, x.bytes = append(x.waits, entry{x.given, size}), x.bytes+size
		} else {
			x.lost = true
		}
	case n < 270:
		item, more := x.out.Next()
		if len(x.waits) == 0 && item.Kind != Nothing || len(x.waits) > 0 && item.Message != x.waits[0].message {
			x.t.Fatalf("seed %d: %v is sent while %v wait", x.seed, item, x.waits)
		}
		if len(x.waits) > 0 {
			x.bytes -= x.waits[0].size
			x.waits = x.waits[1:]
		}
		if more != (len(x.waits) > 0) {
			x.t.Fatalf("seed %d: more waits: %t, with %v waiting", x.seed, more, x.waits)
		}
	default:
		tell, wait := x.out.Report(x.now)
		if due := x.lost && x.now-x.last >= x.bounds.Quiet; tell != due || (wait > 0) != (x.lost && !due) {
			x.t.Fatalf("seed %d: at %d it reports %t, or waits %d; the last was at %d, and messages were lost: %t", x.seed, x.now, tell, wait, x.last, x.lost)
		}
		if tell {
			x.lost, x.last = false, x.now
		}
	}
}

// If three snapshots are offered at once, two are sent, one after the other. The result
// of each is reported once, and as a success only if the peer confirmed it.
func TestShipping(t *testing.T) {
	var s Shipping[string]
	if _, ok := s.Begin(); ok {
		t.Error("nothing is sent first")
	}
	if !s.Offer("first") {
		t.Error("the first is dropped")
	}
	if m, ok := s.Begin(); !ok || m != "first" {
		t.Errorf("%q is sent first", m)
	}
	if !s.Offer("second") || s.Offer("third") {
		t.Error("beside the first not one waits")
	}
	if m, ok := s.Begin(); ok {
		t.Errorf("%q is sent beside the first", m)
	}
	s.Taken()
	if !s.End() {
		t.Error("the first was not taken")
	}
	if m, ok := s.Begin(); !ok || m != "second" || s.End() {
		t.Errorf("%q is sent second, or was taken", m)
	}
	if _, ok := s.Begin(); ok {
		t.Error("one is sent after the last")
	}
}

func TestArrival(t *testing.T) {
	if empty := NewArrival(0); !empty.Whole() {
		t.Error("of an empty snapshot something is missing")
	}
	a := NewArrival(5)
	for _, part := range []string{"ab", "c"} {
		if err := a.Add([]byte(part)); err != nil || a.Whole() {
			t.Errorf("after %q: %v, whole %t", part, err, a.Whole())
		}
	}
	for _, part := range []string{"", "def"} {
		if err := a.Add([]byte(part)); err == nil {
			t.Errorf("the part %q is taken", part)
		}
	}
	if err := a.Add([]byte("de")); err != nil || !a.Whole() || string(a.Data()) != "abcde" {
		t.Errorf("%v, whole %t: %q", err, a.Whole(), a.Data())
	}
	if CheckSnapshot(5, 5) != nil || CheckSnapshot(6, 5) == nil {
		t.Error("the bound is another")
	}
}
