package simtest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/algorithm/mutex/tokenring"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/sim/simtest"
	"github.com/conclave-io/conclave/process"
)

// usurper is the worst election that an algorithm may have below it: every process that
// is asked for an election wins it some time later, even if others win theirs meanwhile.
// A few times, a process leads that nobody asked. Only the winner hears of it. Later
// rounds are higher: that is all an election promises.
type usurper struct {
	self  process.ID
	round *uint64 // of all processes
	coups uint64
}

const (
	coupTimer process.Timer = iota + 1
	callTimer
)

func (m *usurper) Step(ev *process.Event, fx *process.Effects) {
	switch {
	case ev.Kind == process.Start, ev.Kind == process.Restart:
		fx.Arm(coupTimer, ms, 40*ms)
	case ev.Kind == process.Campaign:
		fx.Arm(callTimer, 1, 10*ms)
	case ev.Kind == process.Fire:
		*m.round++
		fx.Elect(m.self, process.MakeTerm(*m.round, m.self))
		if m.coups++; ev.Timer == coupTimer && m.coups < 4 {
			fx.Arm(coupTimer, ms, 40*ms)
		}
	}
}

func (m *usurper) Fields(f *process.Fields) { f.Uint("coups", &m.coups) }

// counting is a machine that counts which rules were applied.
type counting struct {
	process.Machine
	rules []int
}

func (m *counting) Step(ev *process.Event, fx *process.Effects) {
	from := fx.Len()
	m.Machine.Step(ev, fx)
	for i := from; i < fx.Len(); i++ {
		if e := fx.At(i); e.Kind == process.EffectRule {
			m.rules[e.Rule-1]++
		}
	}
}

// usurpers win whenever they like, each with a round of its own.
func usurpers() *process.Spec {
	round := uint64(0)
	return &process.Spec{
		Name: "usurper", Title: "Usurper", Paper: "none", Family: process.Election, Timers: []string{"coup", "call"},
		New: func(self process.ID, _ *process.Config) process.Machine { return &usurper{self: self, round: &round} },
	}
}

// overUsurpers puts the token ring over usurpers. It keeps the claims that are not about
// runs without a takeover.
func overUsurpers(rules []int) *process.Spec {
	ring := *tokenring.Spec
	ring.New = func(self process.ID, c *process.Config) process.Machine {
		return &counting{tokenring.Spec.New(self, c), rules}
	}
	spec := process.Compose("token-ring-usurped", "Token ring over usurpers", usurpers(), &ring)
	spec.Claims.Properties = []process.Claim{
		{Property: process.MutualExclusion}, {Property: process.FencesGrow}, {Property: process.Progress},
		{Property: process.OneToken}, // until the first of them
	}
	return spec
}

// TestTakeovers lets the token ring take over again and again: rivals win at once.
// Processes hear late of a crash, because the detector or they themselves are slow, and
// they suspect any process. Nobody waits forever, and each rule is applied but the one
// that only a wrong detector needs.
func TestTakeovers(t *testing.T) {
	rules := make([]int, len(tokenring.Spec.Rules))
	for n := 1; n <= 5; n++ {
		plan := simtest.Plan{Spec: overUsurpers(rules), Process: process.Config{N: n}, Impure: true}
		plan.Adjust = func(cfg *sim.Config, seed uint64) {
			r := rand.New(rand.NewPCG(seed, 3))
			cfg.Process.Options = append(cfg.Process.Options, option("delta", r.IntN(2)))
			usurp(cfg, r)
		}
		plan.Judges = []sim.Judge{everyoneEnters}
		plan.Run(t)
	}
	for i, rule := range tokenring.Spec.Rules {
		if never := rule.Name == "T4"; never != (rules[i] == 0) {
			t.Errorf("rule %s was applied %d times", rule.Name, rules[i])
		}
	}
}

// TestOrderEndsWithTheTerm lets central coordinators be deposed by rivals of the layer
// below. The order of requests holds only within a term, and nobody outside the stack
// sees the end of a term. There are no wrong suspicions, because a coordinator would not
// ask a suspected process whether it may still enter in the previous term.
func TestOrderEndsWithTheTerm(t *testing.T) {
	for n := 2; n <= 5; n++ {
		spec := process.Compose("central-usurped", "Central coordinator over usurpers", usurpers(), central.Spec)
		spec.Claims.Properties = central.Spec.Claims.Properties
		plan := simtest.Plan{Spec: spec, Process: process.Config{N: n}, Impure: true}
		plan.Adjust = func(cfg *sim.Config, seed uint64) {
			usurp(cfg, rand.New(rand.NewPCG(seed, 3)))
			cfg.Workload.Commands = slices.DeleteFunc(cfg.Workload.Commands, func(c sim.Command) bool { return c.Kind == process.Suspect })
		}
		plan.Run(t)
	}
}

func usurp(cfg *sim.Config, r *rand.Rand) {
	n := cfg.Process.N
	cfg.Oracle.Detect = process.Duration(1+r.IntN(20)) * ms
	cfg.Limit = sim.Limit{Until: 3000 * ms}
	load := &cfg.Workload
	if load.Regime != sim.Listed { // so that it ends
		load.Regime, load.Think = sim.Listed, sim.Delay{}
	}
	moment := func() process.Duration { return process.Duration(r.IntN(100 * int(ms))) }
	someone := func() process.ID { return process.ID(r.IntN(n)) }
	for range 10 * n {
		load.Commands = append(load.Commands, sim.Command{At: moment(), Process: someone(), Kind: process.Acquire})
	}
	for range r.IntN(4) {
		load.Commands = append(load.Commands, sim.Command{At: moment(), Process: someone(), Kind: process.Suspect, Peer: someone()})
		cfg.Faults = append(cfg.Faults, sim.Fault{Kind: sim.Pause, At: moment(), Process: someone(), For: process.Duration(1+r.IntN(40)) * ms})
	}
}

// everyoneEnters judges the end of a run whose last request was long ago.
func everyoneEnters(w *sim.World) sim.Watcher {
	return sim.Watcher{
		Name: "everyone enters", Watch: func(*sim.Observation) string { return "" },
		End: func() string {
			for p := range process.ID(w.Config().N) {
				if reason, _ := w.Ended(); reason != sim.Violated && w.Status(p).Waiting {
					return fmt.Sprintf("%s still waits at %d D", w.Config().Text(p), w.Now()/ms)
				}
			}
			return ""
		},
	}
}
