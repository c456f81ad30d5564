package check_test

import (
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// crashed allows the given numbers of crashes and timeouts.
func crashed(crashes, timeouts int) func(c *check.Config) {
	return func(c *check.Config) { c.Crashes, c.Timeouts = crashes, timeouts }
}

func told(by process.DetectorKind) func(c *check.Config) {
	return func(c *check.Config) { c.Crashes, c.Timeouts, c.Detector = 1, 3, by }
}

// single asks whether two lead at once.
func single(timing check.Timing) func(c *check.Config) {
	return func(c *check.Config) {
		c.Properties, c.Timing = []process.Property{process.SingleLeader}, timing
	}
}

// agree checks that all follow one leader in the end, although timers run out too soon.
func agree(c *check.Config) {
	c.Properties, c.Timing, c.Timeouts = []process.Property{process.LeaderTermination}, check.AnyTime, 2
}

// assertions checks what the algorithm asserts of itself, and no more.
func assertions(c *check.Config) {
	c.Properties, c.Crashes, c.Timeouts = []process.Property{}, 1, 2
	c.Process.Options = []process.OptionValue{{Name: "prefix", Value: "1"}}
}

// elections are the rows of docs/verification.md within smaller bounds.
var elections = []bounds{
	{name: "chang-roberts", n: 4, entries: 1, states: 1063, transitions: 2618, depth: 42},
	{name: "chang-roberts-repaired", n: 3, entries: 1, states: 21419, transitions: 79322, depth: 45},
	{name: "chang-roberts-repaired", n: 3, entries: 1, change: crashed(1, 2), states: 54319, transitions: 246145, depth: 51},
	{name: "le-lann", n: 4, entries: 1, states: 4476, transitions: 15128, depth: 68},
	{name: "le-lann", n: 2, entries: 1, change: unordered, broken: process.LeaderValidity, states: 11, transitions: 14, depth: 3},
	{name: "hirschberg-sinclair", n: 3, entries: 1, states: 14993, transitions: 45256, depth: 57},
	{name: "hirschberg-sinclair", n: 2, entries: 1, change: unordered, states: 3166, transitions: 11798, depth: 21},
	{name: "hirschberg-sinclair", n: 2, entries: 1, change: duplicated, states: 353, transitions: 741, depth: 25},
	{name: "peterson", n: 5, entries: 1, states: 12436, transitions: 48275, depth: 105},
	{name: "peterson", n: 3, entries: 1, change: unordered, broken: process.LeaderValidity, states: 54, transitions: 87, depth: 4},
	{name: "franklin", n: 3, entries: 1, states: 5100, transitions: 16156, depth: 39},
	{name: "ring-list", n: 3, entries: 1, states: 129349, transitions: 486300, depth: 39},
	{name: "ring-list", n: 2, entries: 1, change: crashed(1, 3), states: 768, transitions: 1495, depth: 21},
	{name: "ring-active-list", n: 3, entries: 1, states: 47729, transitions: 209418, depth: 57},
	{name: "by-load", n: 3, entries: 1, states: 129349, transitions: 486300, depth: 39},
	{name: "by-load", n: 2, entries: 1, change: crashed(1, 3), states: 768, transitions: 1495, depth: 21},
	{name: "by-load-ring", n: 4, entries: 1, states: 1063, transitions: 2618, depth: 42},
	{name: "by-load-bully", n: 3, entries: 1, change: crashed(1, 2), states: 49858, transitions: 152260, depth: 31},
	{name: "bully", n: 3, entries: 1, change: crashed(1, 3), states: 38184, transitions: 117618, depth: 33},
	{name: "bully", n: 3, entries: 1, change: crashed(2, 3), states: 48143, transitions: 214132, depth: 33},
	{name: "bully", n: 3, entries: 1, change: told(process.ReliableDetector), states: 69906, transitions: 204746, depth: 31},
	{name: "bully", n: 3, entries: 1, change: told(process.UnreliableDetector), states: 177282, transitions: 664570, depth: 35},
	{name: "bully", n: 3, entries: 1, change: single(check.Synchronous), states: 4560, transitions: 12185, depth: 19},
	{name: "bully", n: 3, entries: 1, change: single(check.AnyTime), broken: process.SingleLeader, states: 43, transitions: 65, depth: 3},
	{name: "bully", n: 2, entries: 1, change: agree, states: 76, transitions: 110, depth: 10},
	{name: "super-peer", n: 4, entries: 1, change: assertions, states: 16824, transitions: 56814, depth: 25},
}

func TestElections(t *testing.T) {
	for _, b := range elections {
		cfg := b.config(t)
		cfg.Workers = 1
		t.Run(b.name+" "+cfg.Bounds(), func(t *testing.T) {
			r, err := check.Run(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if !breaks(r, b.broken) {
				t.Errorf("%s: %v", r.Verdict, r.Broken)
			}
			if r.Broken != nil {
				replayed(t, r)
			}
			if r.States != b.states || r.Transitions != b.transitions || r.Depth != b.depth {
				t.Errorf("states: %d, transitions: %d, depth: %d", r.States, r.Transitions, r.Depth)
			}
		})
	}
}

// caller elects the last process when it is asked, and itself when it is asked again.
type caller struct {
	self, last process.ID
	deaf       bool // to all calls but the first
	asked      bool
}

func (m *caller) Step(ev *process.Event, fx *process.Effects) {
	switch {
	case ev.Kind == process.Campaign && !m.asked:
		m.asked = true
		fx.Elect(m.last, process.MakeTerm(1, m.last))
		fx.Broadcast(process.Message{Type: 1, Term: process.MakeTerm(1, m.last)})
	case ev.Kind == process.Campaign && !m.deaf:
		fx.Elect(m.self, process.MakeTerm(2, m.self))
	case ev.Kind == process.Deliver:
		fx.Elect(m.last, ev.Message.Term)
	}
}

func (m *caller) Fields(f *process.Fields) { f.Bool("asked", &m.asked) }

func callers(deaf bool) *process.Spec {
	return &process.Spec{
		Name: "caller", Family: process.Election,
		Messages: []process.MessageSpec{{Name: "LEADER", Fields: []process.FieldUse{{Field: process.FieldTerm, Symbol: "term"}}}},
		New: func(self process.ID, c *process.Config) process.Machine {
			return &caller{self: self, last: process.ID(c.N - 1), deaf: deaf}
		},
	}
}

// A process that follows a crashed leader is asked for another leader, or is told of the
// crash by a detector. If it does nothing, it breaks its promise. The simulator reports
// the same.
func TestFollowersOfTheDeadAreAsked(t *testing.T) {
	for _, test := range []struct {
		deaf     bool
		detector process.DetectorKind
		want     string
	}{
		{false, process.NoDetector, ""},
		{true, process.NoDetector, "1 was asked to replace its leader 2, which crashed, and did nothing"},
		{true, process.UnreliableDetector, "1 was asked to replace its leader 2, which crashed, and did nothing"},
		{true, process.ReliableDetector, "1 was told that its leader 2 crashed, and still follows it"},
	} {
		c := check.Config{
			Spec: callers(test.deaf), Process: process.Config{N: 2}, Requesters: []process.ID{0}, Crashes: 1, Detector: test.detector,
			Properties: []process.Property{process.LeaderTermination}, Workers: 1,
		}
		r, err := check.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(r); got != test.want {
			t.Errorf("deaf %v, detector %d: %q, want %q", test.deaf, test.detector, got, test.want)
		}
	}
}

func text(r *check.Result) string {
	if r.Broken == nil {
		return ""
	}
	return r.Broken.Text
}

// saver tells the others one by one that it leads, and only then asks for a Save. The
// others believe it, and answer no calls.
type saver struct{ self process.ID }

func (m *saver) Step(ev *process.Event, fx *process.Effects) {
	switch {
	case ev.Kind == process.Campaign && m.self == 0:
		fx.Send(1, process.Message{Type: 1})
		fx.Send(2, process.Message{Type: 1})
		fx.Elect(0, process.MakeTerm(1, 0))
		fx.Save()
	case ev.Kind == process.Deliver:
		fx.Elect(0, process.MakeTerm(1, 0))
	}
}

func (m *saver) Fields(*process.Fields) {}

// The messages that a process sent before a Save leave after the Save, one at a time. A
// crash may happen in between.
func TestCrashBetweenSendsBeforeTheSave(t *testing.T) {
	spec := *callers(false)
	spec.New = func(self process.ID, _ *process.Config) process.Machine { return &saver{self} }
	r, err := check.Run(t.Context(), check.Config{
		Spec: &spec, Process: process.Config{N: 3}, Requesters: []process.ID{0}, Crashes: 1,
		Properties: []process.Property{process.LeaderTermination}, Workers: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := text(r), "3 has not elected a leader"; got != want || len(r.Path.Steps) != 2 {
		t.Errorf("%q, want %q", got, want)
	}
}

// An election that needs no detector can get one. Then it needs no call to start. It gets
// the same detector as a Spec that asks for one.
func TestDetectorBelowAnElection(t *testing.T) {
	c := check.Config{Spec: algorithm.Find("bully"), Process: process.Config{N: 2}, Crashes: 1, Timeouts: 3}
	for _, kind := range []process.DetectorKind{process.NoDetector, process.ReliableDetector} {
		c.Detector = kind
		r, err := check.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if noticed := !slices.Contains(r.Unreached, "B9"); r.Verdict != check.Proved || noticed != (kind == process.ReliableDetector) {
			t.Errorf("detector %d: %s, B9 applied: %v", kind, r.Verdict, noticed)
		}
	}
	c.Spec, c.Detector = algorithm.Find("ricart-agrawala"), process.UnreliableDetector
	if _, err := check.Run(t.Context(), c); err == nil {
		t.Error("ricart-agrawala gets an unreliable detector")
	}
}
