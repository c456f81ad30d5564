package check_test

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// automaton is a random machine. A table gives its effects for each state and event. It
// enters when the table says so, whether others are inside or not.
type automaton struct {
	self  process.ID
	table *[automatonStates][automatonEvents]reaction
	state uint64
	sends uint64 // how many more messages it may send, so that all comes to an end
	waits bool

	alarm  bool // its timer runs out once
	passes bool // it sends one message for one that it receives, and so forever
}

type reaction struct {
	next  uint64
	grant bool
	sends []automatonSend
}

type automatonSend struct {
	to      process.ID
	message process.Type
}

const (
	automata        = 3 // processes
	automatonStates = 3
	automatonTypes  = 2
	automatonEvents = 3 + automata*automatonTypes // Acquire, Release, Fire, a message of a type from somebody
)

func (m *automaton) Step(ev *process.Event, fx *process.Effects) {
	event := 0
	switch ev.Kind {
	case process.Start:
		if m.alarm {
			fx.Arm(1, process.Millisecond, process.Millisecond)
		}
		if m.passes && m.self == 0 {
			fx.Send(1, process.Message{Type: 1})
		}
		return
	case process.Fire:
		event = 2
	case process.Acquire:
		m.waits = true
	case process.Release:
		event = 1
	case process.Deliver:
		event = 3 + int(ev.Message.From)*automatonTypes + int(ev.Message.Type) - 1
	default:
		return
	}
	r := &m.table[m.state][event]
	m.state = r.next
	for _, s := range r.sends {
		switch {
		case m.passes && ev.Kind == process.Deliver:
			fx.Send(s.to, process.Message{Type: s.message})
		case !m.passes && m.sends > 0:
			m.sends--
			fx.Send(s.to, process.Message{Type: s.message})
		}
		if m.passes {
			break
		}
	}
	if r.grant && m.waits {
		m.waits = false
		fx.Grant(1)
	}
}

func (m *automaton) Fields(f *process.Fields) {
	f.Uint("state", &m.state)
	f.Uint("sends", &m.sends)
	f.Bool("waits", &m.waits)
}

// randomAutomata returns an algorithm that nobody has thought of.
func randomAutomata(r *rand.Rand) *process.Spec {
	var tables [automata][automatonStates][automatonEvents]reaction
	rare, ring := 2+r.IntN(20), r.IntN(2) == 0
	for p := range tables {
		for s := range automatonStates {
			for e := range automatonEvents {
				does := &tables[p][s][e]
				does.next, does.grant = r.Uint64N(automatonStates), r.IntN(rare) == 0
				for range r.IntN(3) {
					to := process.ID((p + 1 + r.IntN(automata-1)) % automata)
					if ring {
						to = process.ID((p + 1) % automata)
					}
					does.sends = append(does.sends, automatonSend{to, process.Type(1 + r.IntN(automatonTypes))})
				}
			}
		}
	}
	most, alarm, passes := r.Uint64N(4), r.IntN(2) == 0, r.IntN(4) == 0
	return &process.Spec{
		Name: "automata", Family: process.Mutex, Messages: []process.MessageSpec{{Name: "A"}, {Name: "B"}}, Timers: []string{"alarm"},
		New: func(self process.ID, _ *process.Config) process.Machine {
			return &automaton{self: self, table: &tables[self], sends: most, alarm: alarm, passes: passes}
		},
	}
}

// wholeAndReduced makes a search without reduction and with it.
func wholeAndReduced(t *testing.T, cfg check.Config) (whole, less *check.Result) {
	t.Helper()
	var results [2]*check.Result
	for i, reduction := range []check.Reduction{check.NoReduction, check.PartialOrder} {
		cfg.Reduce = reduction
		var err error
		if results[i], err = check.Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	return results[0], results[1]
}

// TestReductionOfAnything: on random algorithms, the reduced search finds the same
// violations as the complete one, and each process reaches the same states.
func TestReductionOfAnything(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	verdicts := map[check.Verdict]int{}
	states, left := uint64(0), uint64(0)
	seeds := 500
	if os.Getenv("LONG") != "" {
		seeds = 10_000
	}
	for i := range seeds {
		spec := randomAutomata(r)
		for _, p := range []process.Property{process.MutualExclusion, process.Progress} {
			cfg := check.Config{
				Spec: spec, Process: process.Config{N: automata}, Entries: 1 + i%2, Unordered: i%3 == 0,
				Properties: []process.Property{p}, Workers: 1, MaxStates: 3_000,
			}
			cfg.Requesters = [][]process.ID{nil, {0}, {1}, {0, 2}}[i/4%4]
			cfg.Timing = []check.Timing{check.Never, check.Never, check.Synchronous, check.AnyTime}[i%4]
			whole, less := wholeAndReduced(t, cfg)
			verdicts[whole.Verdict]++
			if whole.Verdict == check.Bounded || less.Verdict == check.Bounded {
				continue
			}
			if less.Verdict != whole.Verdict {
				t.Fatalf("%d, %s: %s, reduced %s (%d and %d states)", i, p, whole.Verdict, less.Verdict, whole.States, less.States)
			}
			if whole.Verdict == check.Proved && less.Locals != whole.Locals {
				t.Fatalf("%d, %s: processes come into %d states, reduced %d", i, p, whole.Locals, less.Locals)
			}
			if whole.Verdict == check.Proved {
				states, left = states+whole.States, left+less.States
			}
		}
	}
	t.Logf("%v; of %d states %d are left", verdicts, states, left)
	if verdicts[check.Proved] < 100 || verdicts[check.Violated] < 100 || left > states*19/20 {
		t.Errorf("that is no test: %v, of %d states %d are left", verdicts, states, left)
	}
}

// circling are two processes that send each other a message forever, and a third whose
// request is granted twice.
type circling struct{ self process.ID }

func (m *circling) Step(ev *process.Event, fx *process.Effects) {
	switch {
	case ev.Kind == process.Start && m.self == 0, ev.Kind == process.Deliver:
		fx.Send(1-m.self, process.Message{Type: 1})
	case ev.Kind == process.Acquire:
		fx.Grant(1)
		fx.Grant(2)
	}
}

func (m *circling) Fields(*process.Fields) {}

// TestReductionPutsNobodyOff: an endless sequence of steps does not hide what other
// processes can do.
func TestReductionPutsNobodyOff(t *testing.T) {
	r, err := check.Run(t.Context(), check.Config{
		Spec: &process.Spec{
			Name: "circling", Family: process.Mutex, Messages: []process.MessageSpec{{Name: "A"}},
			New: func(self process.ID, _ *process.Config) process.Machine { return &circling{self} },
		},
		Process: process.Config{N: 3}, Requesters: []process.ID{2}, Timing: check.Never, Reduce: check.PartialOrder,
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != check.Violated {
		t.Errorf("%s, but a grant comes that nobody waits for", r.Verdict)
	}
}
