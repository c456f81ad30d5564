package sim_test

import (
	"slices"
	"testing"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// notes runs n NOTEs from 0 to 1, one each period, over the given links.
func notes(t *testing.T, n int, period process.Duration, links sim.Links, faults ...sim.Fault) *arrivals {
	t.Helper()
	var a arrivals
	var w *sim.World
	cfg := sim.Config{
		Spec: a.spec(&w), Process: process.Config{N: 3}, Seed: 7, Links: links, Faults: faults,
		Workload: sim.Workload{Commands: loads(0, every(period, n)...)},
	}
	finish(t, cfg, &w)
	return &a
}

// finish steps a run to its end; w is set before the first step.
func finish(t *testing.T, cfg sim.Config, w **sim.World) *sim.Result {
	t.Helper()
	world, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if w != nil {
		*w = world
	}
	for world.Step() {
	}
	return world.Result()
}

func link(l sim.Link) sim.Links { return sim.Links{Link: l} }

func TestConstantDelay(t *testing.T) {
	a := notes(t, 3, ms, link(sim.Link{Delay: sim.Constant(5 * ms)}))
	if want := []process.Duration{6 * ms, 7 * ms, 8 * ms}; !slices.Equal(a.times, want) {
		t.Errorf("messages arrive at %v, want %v", a.times, want)
	}
}

func TestListedDelays(t *testing.T) {
	a := notes(t, 3, ms, link(sim.Link{Delay: sim.List(9*ms, 2*ms), Unordered: true}))
	if want := []uint64{2, 1, 3}; !slices.Equal(a.seqs, want) {
		t.Errorf("messages arrive as %v, want %v", a.seqs, want)
	}
	if want := []process.Duration{4 * ms, 10 * ms, 12 * ms}; !slices.Equal(a.times, want) {
		t.Errorf("messages arrive at %v, want %v", a.times, want)
	}
}

// An ordered link keeps the order whatever the delays; an unordered one does not.
func TestOrder(t *testing.T) {
	for _, delay := range []sim.Delay{sim.Uniform(1, 20*ms), sim.Exponential(0, 10*ms), sim.List(20*ms, 1*ms)} {
		ordered := notes(t, 200, ms, link(sim.Link{Delay: delay}))
		if len(ordered.seqs) != 200 || !slices.IsSorted(ordered.seqs) || !slices.IsSorted(ordered.times) {
			t.Errorf("%v: an ordered link delivers %v", delay, ordered.seqs)
		}
		free := notes(t, 200, ms, link(sim.Link{Delay: delay, Unordered: true}))
		if len(free.seqs) != 200 || slices.IsSorted(free.seqs) {
			t.Errorf("%v: an unordered link delivers %d in order", delay, len(free.seqs))
		}
	}
}

func TestDrop(t *testing.T) {
	a := notes(t, 1000, ms, link(sim.Link{Drop: 0.3}))
	if n := len(a.seqs); n < 600 || n > 800 {
		t.Errorf("%d of 1000 arrive at a loss of 0.3", n)
	}
	if a := notes(t, 100, ms, link(sim.Link{Drop: 1})); len(a.seqs) != 0 {
		t.Errorf("%d arrive at a loss of 1", len(a.seqs))
	}
}

func TestDuplicate(t *testing.T) {
	a := notes(t, 1000, ms, link(sim.Link{Duplicate: 0.3}))
	if n := len(a.seqs); n < 1200 || n > 1400 {
		t.Errorf("%d arrive of 1000 sent, at a probability of 0.3 to arrive twice", n)
	}
	if !slices.IsSorted(a.seqs) {
		t.Error("an ordered link delivers copies out of order")
	}
}

func TestReorder(t *testing.T) {
	a := notes(t, 1000, ms/4, link(sim.Link{Reorder: 0.1}))
	late := 0
	for i := 1; i < len(a.seqs); i++ {
		if a.seqs[i] < a.seqs[i-1] {
			late++
		}
	}
	if len(a.seqs) != 1000 || late < 20 || late > 100 {
		t.Errorf("%d of %d messages come after a later one, about 70 of 1000 should", late, len(a.seqs))
	}
}

func TestOverrides(t *testing.T) {
	links := sim.Links{
		Link: sim.Link{Delay: sim.Constant(ms)},
		Overrides: []sim.Override{
			{From: 0, To: 1, Link: sim.Link{Delay: sim.Constant(2 * ms)}},
			{From: process.None, To: 1, Link: sim.Link{Drop: 1}},
			{From: process.None, To: 2, Link: sim.Link{Delay: sim.Constant(3 * ms)}},
		},
	}
	var w *sim.World
	got := map[process.ID]process.Duration{}
	cfg := sim.Config{
		Process: process.Config{N: 4}, Links: links, Workload: sim.Workload{Commands: loads(0, 0)},
		Spec: probeSpec(func(m *probe, ev *process.Event, fx *process.Effects) {
			switch ev.Kind {
			case process.Load:
				fx.Broadcast(process.Message{Type: note})
			case process.Deliver:
				got[m.self] = w.Now()
			}
		}),
	}
	finish(t, cfg, &w)
	if got[1] != 2*ms || got[2] != 3*ms || got[3] != ms {
		t.Errorf("messages arrive at %v, want 1: 2 ms, 2: 3 ms, 3: 1 ms", got)
	}
}

func TestPartition(t *testing.T) {
	// Sent at 1, 2, ... 10 ms, on the way for 1.5 ms: those are lost that are
	// sent, or would arrive, from 4 to 7 ms.
	for _, test := range []struct {
		name  string
		fault sim.Fault
		want  []uint64
	}{
		{"both ways", sim.Fault{Side: []process.ID{1}}, []uint64{1, 2, 7, 8, 9, 10}},
		{"out of the receiver", sim.Fault{Side: []process.ID{1}, OneWay: true}, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{"out of the sender", sim.Fault{Side: []process.ID{0}, OneWay: true}, []uint64{1, 2, 7, 8, 9, 10}},
		{"same side", sim.Fault{Side: []process.ID{0, 1}}, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{"others", sim.Fault{Side: []process.ID{2}}, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
	} {
		test.fault.Kind, test.fault.At, test.fault.For = sim.Partition, 4*ms, 3*ms
		a := notes(t, 10, ms, link(sim.Link{Delay: sim.Constant(3 * ms / 2)}), test.fault)
		if !slices.Equal(a.seqs, test.want) {
			t.Errorf("%s: %v arrive, want %v", test.name, a.seqs, test.want)
		}
	}
	a := notes(t, 5, ms, sim.Links{}, sim.Fault{Kind: sim.Partition, Side: []process.ID{0}}, sim.Fault{Kind: sim.Heal, At: 3*ms - 1})
	if want := []uint64{3, 4, 5}; !slices.Equal(a.seqs, want) {
		t.Errorf("healed just before 3 ms: %v arrive, want %v", a.seqs, want)
	}
}

func TestLose(t *testing.T) {
	a := notes(t, 6, ms, sim.Links{},
		sim.Fault{Kind: sim.Lose, At: 2 * ms, Message: "NOTE", Count: 2, From: process.None, To: process.None},
		sim.Fault{Kind: sim.Lose, At: 5 * ms, Message: "REQUEST", From: process.None, To: process.None},
		sim.Fault{Kind: sim.Lose, At: 6 * ms, From: 0, To: 1},
	)
	if want := []uint64{1, 4, 5}; !slices.Equal(a.seqs, want) {
		t.Errorf("%v arrive, want %v", a.seqs, want)
	}
	a = notes(t, 6, ms, sim.Links{},
		sim.Fault{Kind: sim.Lose, Skip: 1, From: process.None, To: process.None},
		sim.Fault{Kind: sim.Lose, Skip: 2, Count: 2, From: process.None, To: process.None},
	)
	if want := []uint64{1, 5, 6}; !slices.Equal(a.seqs, want) {
		t.Errorf("some are skipped: %v arrive, want %v", a.seqs, want)
	}
}

// A delayed message keeps its position on a FIFO link, but not on other links. Delays add
// up.
func TestSlow(t *testing.T) {
	third := sim.Fault{Kind: sim.Slow, At: 3 * ms, By: 2 * ms, From: 0, To: 1}
	delay := sim.Link{Delay: sim.Constant(ms)}
	loose := sim.Link{Delay: sim.Constant(ms), Unordered: true}
	for _, test := range []struct {
		name   string
		link   sim.Link
		faults []sim.Fault
		seqs   []uint64
		times  []process.Duration
	}{
		{"in order", delay, []sim.Fault{third}, []uint64{1, 2, 3, 4, 5}, []process.Duration{2, 3, 6, 6, 6}},
		{"overtaken", loose, []sim.Fault{third}, []uint64{1, 2, 4, 3, 5}, []process.Duration{2, 3, 5, 6, 6}},
		{"twice", loose, []sim.Fault{third, {Kind: sim.Slow, At: 3 * ms, By: 5 * ms, From: 0, To: process.None}},
			[]uint64{1, 2, 4, 5, 3}, []process.Duration{2, 3, 5, 6, 11}},
		{"the next two", loose, []sim.Fault{{Kind: sim.Slow, Skip: 1, Count: 2, By: 3 * ms, From: process.None, To: process.None}},
			[]uint64{1, 4, 2, 5, 3}, []process.Duration{2, 5, 6, 6, 7}},
		{"of another name", delay, []sim.Fault{{Kind: sim.Slow, Message: "REQUEST", By: 3 * ms, From: process.None, To: process.None}},
			[]uint64{1, 2, 3, 4, 5}, []process.Duration{2, 3, 4, 5, 6}},
	} {
		a := notes(t, 5, ms, link(test.link), test.faults...)
		for i := range test.times {
			test.times[i] *= ms
		}
		if !slices.Equal(a.seqs, test.seqs) || !slices.Equal(a.times, test.times) {
			t.Errorf("%s: %v arrive at %v, want %v at %v", test.name, a.seqs, a.times, test.seqs, test.times)
		}
	}
	a := notes(t, 2, ms, link(delay), sim.Fault{Kind: sim.Slow, By: -1000 * ms, From: process.None, To: process.None})
	if want := []process.Duration{ms + 1, 3 * ms}; !slices.Equal(a.times, want) {
		t.Errorf("a message that is early arrives at %v, want %v", a.times, want)
	}
}
