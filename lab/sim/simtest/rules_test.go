package simtest_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/algorithm/clock/cristian"
	"github.com/conclave-io/conclave/algorithm/election/superpeer"
	"github.com/conclave-io/conclave/algorithm/globalstate"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// ruleSink takes the rules that a run applies off those that are left.
type ruleSink map[string]bool

func (s ruleSink) Write(r *trace.Record) error {
	for _, rule := range r.Rules {
		delete(s, rule)
	}
	return nil
}

// talker tells everybody when its client says so.
type talker struct{}

func (talker) Step(ev *process.Event, fx *process.Effects) {
	if ev.Kind == process.Propose {
		fx.Broadcast(process.Message{Type: 1})
	}
}

func (talker) Fields(*process.Fields) {}

var talkers = &process.Spec{
	Name: "talker", Title: "Talker", Paper: "none", Family: process.Multicast, Messages: []process.MessageSpec{{Name: "TALK"}},
	New: func(process.ID, *process.Config) process.Machine { return talker{} },
}

// TestEveryRule: each rule of each algorithm that the model checker cannot search is
// applied in some schedule with all kinds of faults. The tests of the checker cover the
// rules of the other algorithms.
func TestEveryRule(t *testing.T) {
	for _, spec := range algorithm.All {
		if (spec.Family == process.Mutex || spec.Family == process.Election || spec.Family == process.Transaction) && spec != superpeer.Spec {
			continue
		}
		t.Run(spec.Name, func(t *testing.T) {
			left := ruleSink{}
			for _, rule := range spec.Rules {
				left[rule.Name] = true
			}
			all := len(left)
			if spec == globalstate.Spec {
				spec = process.Compose("recorded", "Talkers over a recorder", spec, talkers) // it records their messages
			}
			seed := uint64(0)
			for ; len(left) > 0 && seed < 300; seed++ {
				if _, err := sim.Run(rough(spec, seed, left)); err != nil {
					t.Fatal(err)
				}
			}
			if t.Logf("%d rules in %d schedules", all, seed); len(left) > 0 {
				t.Errorf("no schedule applies %q", slices.Sorted(maps.Keys(left)))
			}
		})
	}
}

// rough draws a run in which everything goes wrong and nobody judges.
func rough(spec *process.Spec, seed uint64, sink sim.Sink) sim.Config {
	r := rand.New(rand.NewPCG(seed, 12))
	n := 2 + r.IntN(7)
	at := func() process.Duration { return process.Duration(r.Int64N(int64(400 * ms))) }
	cfg := sim.Config{
		Spec: spec, Process: process.Config{N: n}, Seed: seed, Judges: []sim.Judge{}, Trace: sink,
		Limit: sim.Limit{Until: 800 * ms, Events: 20_000},
	}
	if options := combinations(spec); len(options) > 0 {
		cfg.Process.Options = options[int(seed)%len(options)]
	}
	if spec == superpeer.Spec {
		cfg.Process.Labels = identifiers(r, n, 5)
		cfg.Process.Options = []process.OptionValue{option("bits", 5), option("prefix", r.IntN(3)), option("cap", 1+r.IntN(n))}
	}
	if spec.Needs.Topology == process.Tree {
		cfg.Process.Topology.Parent = process.BinaryTree(n)
	}
	cfg.Links.Delay = []sim.Delay{sim.Uniform(1, ms), sim.Exponential(0, 5*ms), sim.Constant(ms)}[r.IntN(3)]
	cfg.Links.Drop, cfg.Links.Duplicate, cfg.Links.Unordered = float64(r.IntN(3))/10, float64(r.IntN(3))/10, r.IntN(2) == 0
	for range n {
		cfg.Clocks = append(cfg.Clocks, sim.Clock{Offset: process.Duration(r.Int64N(int64(6 * ms))), Drift: r.IntN(401) - 200})
	}
	for range 4 {
		cfg.Faults = append(cfg.Faults,
			sim.Fault{At: at(), Kind: sim.Crash, Process: process.ID(r.IntN(n)), For: ms << r.IntN(8) / 8},
			sim.Fault{At: at(), Kind: sim.Pause, Process: process.ID(r.IntN(n)), For: 1 + process.Duration(r.Int64N(int64(100*ms)))})
	}
	for range 40 {
		kind := []process.Kind{process.Propose, process.Record, process.Propose, process.Leave}[r.IntN(4)]
		cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{At: at(), Process: process.ID(r.IntN(n)), Kind: kind, Value: r.Int64N(100)})
	}
	for i := 0; i < 10 && spec.Family == process.Agreement && spec.Needs.Elector; i++ { // different ones believe that they lead
		cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{
			At: at(), Process: process.ID(r.IntN(n)), Kind: process.Elected, Peer: process.ID(r.IntN(n)), Term: process.MakeTerm(uint64(i+1), 0),
		})
	}
	return cfg
}

// combinations are the options that lead to other rules.
func combinations(spec *process.Spec) (all [][]process.OptionValue) {
	if spec == cristian.Spec {
		all = append(all, []process.OptionValue{option("samples", 3)})
	}
	for _, o := range spec.AllOptions() {
		for _, value := range o.Values {
			all = append(all, []process.OptionValue{{Name: o.Name, Value: value}})
		}
	}
	return all
}
