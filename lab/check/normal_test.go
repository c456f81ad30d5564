package check

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	flawed "github.com/conclave-io/conclave/algorithm/broken"
	"github.com/conclave-io/conclave/process"
)

// exactly returns a Spec whose states are not normalised.
func exactly(spec *process.Spec) *process.Spec {
	exact := *spec
	exact.Normal = nil
	for i := range exact.Layers {
		exact.Layers = slices.Clone(exact.Layers)
		exact.Layers[i] = exactly(exact.Layers[i])
	}
	return &exact
}

// ways returns the steps from a state as sorted texts, each with the normal form of the
// next state or with what it breaks. If there are no steps, it returns what is wrong.
func ways(w *worker, v []uint32) []string {
	var all []string
	if wrong := w.expand(v, w.printOfState(v)); wrong != nil {
		all = append(all, wrong.String())
	}
	for i, next := range w.found {
		f := next.print
		if next.broken == nil {
			f = w.normalPrint(i)
		}
		if next.broken != nil {
			f = print{}
		}
		a := next.action
		all = append(all, fmt.Sprint(a.kind, a.proc, a.stop, a.slot, f, next.broken))
	}
	slices.Sort(all)
	return all
}

// TestNormalForms: from a state and from its normal form, the same steps lead to states
// with the same normal forms, and break the same promises. So the normal form can
// represent the state.
func TestNormalForms(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      int
		change func(c *Config)
	}{
		{"token-ring", 3, nil},
		{"token-ring", 3, func(c *Config) { c.Crashes = 1 }},
		{"token-ring", 4, func(c *Config) { c.Crashes, c.Requesters = 1, []process.ID{1} }},
		{"token-ring", 3, func(c *Config) { c.Duplicates, c.Unordered = 2, true }},
		{"token-ring", 3, func(c *Config) {
			c.Process.Options, c.Drops, c.Crashes = []process.OptionValue{{Name: "mode", Value: "acks"}}, 1, 1
		}},
		{"token-ring", 3, func(c *Config) { c.Suspicions, c.Timing = 1, AnyTime }},
		{"token-ring-accepts-copies", 2, func(c *Config) { c.Duplicates, c.Entries = 1, 2 }},
		{"token-ring-recovering", 3, func(c *Config) { c.Crashes = 1 }},
		{"central-recovering", 2, func(c *Config) { c.Crashes, c.Timing = 1, AnyTime }},
		{"central-recovering", 2, func(c *Config) { c.Duplicates, c.Unordered, c.Timing = 1, true, AnyTime }},
		{"central-swim", 3, func(c *Config) { c.Crashes = 1 }},
		{"central-swim", 3, func(c *Config) { c.Duplicates, c.Unordered, c.Timing = 1, true, AnyTime }},
		{"ricart-agrawala-token", 3, func(c *Config) { c.Entries = 2 }},
		{"ricart-agrawala-token", 3, func(c *Config) { c.Entries, c.Unordered, c.Duplicates = 2, true, 1 }},
		{"ricart-agrawala-token", 3, func(c *Config) { c.Entries, c.Crashes, c.Drops = 2, 1, 1 }},
		{"ricart-agrawala-token", 3, func(c *Config) {
			c.Process.Options, c.Timing, c.Entries = []process.OptionValue{{Name: "retry", Value: "1"}}, AnyTime, 2
		}},
		{"ricart-agrawala-token-no-tick", 3, func(c *Config) { c.Entries = 2 }},
		{"ricart-agrawala-token-gives-while-inside", 3, func(c *Config) { c.Entries = 2 }},
	} {
		cfg := Config{Spec: algorithm.Find(c.name), Process: process.Config{N: c.n}}
		if c.change != nil {
			c.change(&cfg)
		}
		t.Run(c.name+" "+cfg.Bounds(), func(t *testing.T) {
			if err := cfg.Validate(); err != nil {
				t.Fatal(err)
			}
			if changed := commutes(t, cfg.withDefaults(), 1500); changed == 0 {
				t.Error("no state has another normal form: this tests nothing")
			}
		})
	}
}

// commutes visits some states without using normal forms, and returns how many differ
// from their normal form.
func commutes(t *testing.T, cfg Config, states int) (changed int) {
	w := newWorker(newSpace(&cfg))
	if w.normal == nil {
		t.Fatal("there is nothing to normalise")
	}
	queue, seen := w.roots(), map[print]bool{}
	for i := 0; i < len(queue) && i < states; i++ {
		v := queue[i]
		normal := slices.Clone(v)
		w.normal.normalize(normal, print{})
		if !slices.Equal(v, normal) {
			changed++
			if a, b := ways(w, v), ways(w, normal); !slices.Equal(a, b) {
				t.Fatalf("state %d can go on by\n%v\nand its normal form by\n%v", i, a, b)
			}
		}
		// The normal form stays away here, so that numbers grow.
		keep := w.normal
		w.normal = nil
		w.expand(v, w.printOfState(v))
		w.normal = keep
		for k, next := range w.found {
			if next.broken == nil && !seen[next.print] {
				seen[next.print] = true
				queue = append(queue, slices.Clone(w.successor(k)))
			}
		}
	}
	return changed
}

// TestNormalVerdicts: with and without normal forms, the same promises break after
// equally many steps. With them, proofs need fewer states.
func TestNormalVerdicts(t *testing.T) {
	var configs []Config
	for _, v := range flawed.Variants {
		if v.Spec.Normal == nil {
			continue
		}
		cfg := Config{Spec: v.Spec, Process: process.Config{N: v.Bounds.N, Options: v.Bounds.Options},
			Entries: v.Bounds.Entries, Requesters: v.Bounds.Clients, Duplicates: v.Bounds.Duplicates, Crashes: v.Bounds.Crashes}
		if v.Bounds.Traitors != nil {
			cfg.Traitors = [][]process.ID{v.Bounds.Traitors}
		}
		if v.Bounds.AnyTime {
			cfg.Timing = AnyTime
		}
		configs = append(configs, cfg)
	}
	configs = append(configs, Config{
		Spec: algorithm.Find("central-recovering"), Process: process.Config{N: 2}, Crashes: 1, Timeouts: 5,
	})
	if len(configs) < 5 {
		t.Fatalf("only %d broken variants have normal forms", len(configs))
	}
	for n := 2; n <= 3; n++ {
		cfg := Config{Spec: algorithm.Find("ricart-agrawala-token"), Process: process.Config{N: n}, Entries: 4 - n}
		configs = append(configs, cfg)
		cfg.Crashes = 1
		configs = append(configs, cfg)
		cfg.Crashes, cfg.Drops = 0, 1
		configs = append(configs, cfg)
	}
	for _, cfg := range configs {
		t.Run(cfg.Spec.Name+" "+cfg.Bounds(), func(t *testing.T) {
			cfg.Workers = 1
			with := result(t, cfg)
			cfg.Spec = exactly(cfg.Spec)
			without := result(t, cfg)
			if with.Verdict != without.Verdict || with.Verdict == Violated && (with.Depth != without.Depth || *with.Broken != *without.Broken) {
				t.Errorf("with normal forms %s %v in %d steps, without %s %v in %d",
					with.Verdict, with.Broken, with.Depth, without.Verdict, without.Broken, without.Depth)
			}
			if with.Verdict == Proved && with.States >= without.States {
				t.Errorf("%d states, without normal forms %d", with.States, without.States)
			}
		})
	}
}

func result(t *testing.T, cfg Config) *Result {
	t.Helper()
	r, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestStampsByOrder: if clocks count what arrives, only the order of stamps is left, and
// only the requests determine it.
func TestStampsByOrder(t *testing.T) {
	r := result(t, Config{Spec: algorithm.Find("ricart-agrawala-token"), Process: process.Config{N: 3}, Entries: 2})
	if r.Verdict != Proved || r.States != 26348 || r.Transitions != 78470 {
		t.Errorf("%s %v, %d states, %d transitions", r.Verdict, r.Broken, r.States, r.Transitions)
	}
}

// TestEndlessCirculation: a token that circulates forever has finitely many states, also
// with a crash and the takeover after it, and no process waits forever.
func TestEndlessCirculation(t *testing.T) {
	for _, c := range []struct {
		n, crashes int
		states     uint64
	}{{3, 0, 251}, {5, 0, 11607}, {3, 1, 25577}} {
		cfg := Config{Spec: algorithm.Find("token-ring"), Process: process.Config{N: c.n}, Crashes: c.crashes, Liveness: true, MaxStates: 100_000}
		r := result(t, cfg)
		if r.Verdict != Proved || r.States != c.states {
			t.Errorf("%s: %s %v, %d states", cfg.Bounds(), r.Verdict, r.Broken, r.States)
		}
	}
}

// countingRing is a token that counts its hops and passes process 1 by.
type countingRing struct {
	self, n process.ID
	waits   bool
	hop     uint64
}

func (m *countingRing) Step(ev *process.Event, fx *process.Effects) {
	switch {
	case ev.Kind == process.Start && m.self != 0:
		return
	case ev.Kind == process.Acquire:
		m.waits = true
		return
	case ev.Kind == process.Deliver:
		m.hop = ev.Message.Seq
		if m.waits && m.self != 1 {
			m.waits = false
			fx.Grant(1)
			return
		}
	}
	m.hop++
	fx.Send((m.self+1)%m.n, process.Message{Type: 1, Seq: m.hop})
}

func (m *countingRing) Fields(f *process.Fields) {
	f.Bool("waits", &m.waits)
	f.Uint("hop", &m.hop)
}

// TestLoopOfNormalForms: the search finds and shows an infinite run whose states never
// repeat, because their numbers grow. The run has the original numbers.
func TestLoopOfNormalForms(t *testing.T) {
	spec := &process.Spec{
		Name: "counting-ring", Family: process.Mutex,
		Messages: []process.MessageSpec{{Name: "TOKEN", Fields: []process.FieldUse{{Field: process.FieldSeq, Symbol: "h"}}}},
		New: func(self process.ID, c *process.Config) process.Machine {
			return &countingRing{self: self, n: process.ID(c.N)}
		},
		Normal: &process.Normal{
			State:   func(m process.Machine, visit func(uint64, *uint64)) { visit(0, &m.(*countingRing).hop) },
			Message: func(m *process.Message, visit func(uint64, *uint64)) { visit(0, &m.Seq) },
		},
	}
	r := result(t, Config{
		Spec: spec, Process: process.Config{N: 3}, Liveness: true, MaxStates: 10_000,
		Properties: []process.Property{process.MutualExclusion, process.Progress},
	})
	if r.Verdict != Violated || r.Broken.Property != process.Progress || r.Broken.Process != 1 {
		t.Fatalf("%s, %v, %d states", r.Verdict, r.Broken, r.States)
	}
	hop := uint64(0)
	for _, s := range r.Path.Steps {
		if s.Message == nil {
			continue
		}
		if s.Message.Seq != hop+1 {
			t.Errorf("hop %d comes after %d", s.Message.Seq, hop)
		}
		hop = s.Message.Seq
	}
	if hop < 3 {
		t.Errorf("the loop has %d hops", hop)
	}
}
