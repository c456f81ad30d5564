package scenario_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// everyMutex runs a test for each algorithm for mutual exclusion that is not
// known to get stuck.
func everyMutex(t *testing.T, test func(t *testing.T, spec *process.Spec)) {
	for _, spec := range algorithm.All {
		top := spec.Layer(uint8(spec.Depth() - 1))
		if top.Family == process.Mutex && !broken(spec) {
			t.Run(spec.Name, func(t *testing.T) { test(t, spec) })
		}
	}
}

// play runs a configuration until the given number of entries is complete. It watches all
// promises, and returns the outcome.
func play(t *testing.T, cfg sim.Config, entries int) *scenario.Outcome {
	t.Helper()
	cfg.Limit = sim.Limit{Entries: entries, Events: 200_000}
	s, err := scenario.New(t.Name(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	if !o.Met() {
		t.Fatalf("%q", o.Unmet)
	}
	if o.Result.Entries != entries {
		t.Fatalf("%d entries, want %d; ended by %s with %d waiting", o.Result.Entries, entries, o.Result.Reason, o.Result.Waiting)
	}
	return o
}

// configOf returns an algorithm with n processes and no clients yet. Leases last longer
// than any client stays.
func configOf(spec *process.Spec, n int) sim.Config {
	cfg := sim.Config{Spec: spec, Process: process.Config{N: n}}
	if slices.ContainsFunc(spec.AllOptions(), func(o process.Option) bool { return o.Name == "ttl" }) {
		cfg.Process.Options = []process.OptionValue{{Name: "ttl", Value: "2000"}}
	}
	return cfg
}

// A single process, on a ring of one, enters at once and sends no message to itself.
func TestAlone(t *testing.T) {
	everyMutex(t, func(t *testing.T, spec *process.Spec) {
		cfg := configOf(spec, 1)
		cfg.Process.Labels = []process.Label{42}
		cfg.Process.Topology.Successor = process.Ring(0)
		cfg.Workload.Regime = sim.Saturated
		o := play(t, cfg, 10)
		if sent := o.Result.Sent(process.Protocol); sent > 0 {
			t.Errorf("%d protocol messages, but there is nobody to send to", sent)
		}
	})
}

// All processes ask at once, and all enter once before any has entered often. Their
// numbers are not squares, powers or sizes of planes.
func TestEveryoneAtOnce(t *testing.T) {
	everyMutex(t, func(t *testing.T, spec *process.Spec) {
		for _, n := range []int{2, 3, 5, 8, 11, 14} {
			cfg := configOf(spec, n)
			for p := range n {
				cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{Process: process.ID(p), Kind: process.Acquire})
			}
			o := play(t, cfg, n)
			seen := process.NewSet(n)
			for _, p := range o.Order {
				seen.Add(p)
			}
			if seen.Len() != n {
				t.Errorf("n = %d: the entries are %v", n, o.Order)
			}
		}
	})
}

// Without an election, the labels change nothing, whether they have gaps, fall or are
// large.
func TestLabelsWithGaps(t *testing.T) {
	everyMutex(t, func(t *testing.T, spec *process.Spec) {
		if spec.Depth() > 1 {
			t.Skip("the labels decide who leads")
		}
		cfg := configOf(spec, 4)
		cfg.Workload.Regime = sim.Saturated
		dense := play(t, cfg, 12)
		cfg.Process.Labels = []process.Label{900, 7, 1 << 40, 0}
		gaps := play(t, cfg, 12)
		if fmt.Sprint(dense.Order) != fmt.Sprint(gaps.Order) || dense.Result.Events != gaps.Result.Events {
			t.Errorf("entries %v in %d events, with gaps %v in %d", dense.Order, dense.Result.Events, gaps.Order, gaps.Result.Events)
		}
	})
}

// Stacks with labels with gaps elect by them and let everyone in.
func TestStacksWithGaps(t *testing.T) {
	everyMutex(t, func(t *testing.T, spec *process.Spec) {
		cfg := configOf(spec, 4)
		cfg.Process.Labels = []process.Label{900, 7, 1 << 40, 0}
		cfg.Workload.Regime = sim.Saturated
		play(t, cfg, 12)
	})
}

// A request while the client waits or is inside, and a release or a withdrawal while it
// does not, are refused, and have no effect.
func TestOddCommands(t *testing.T) {
	everyMutex(t, func(t *testing.T, spec *process.Spec) {
		const d = process.Millisecond
		cfg := configOf(spec, 5)
		command := func(at process.Duration, kind process.Kind, hold process.Duration) {
			cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{At: at * d, Process: 1, Kind: kind, Hold: hold})
		}
		command(50, process.Release, 0)   // not inside
		command(51, process.Cancel, 0)    // not waiting
		command(100, process.Acquire, -1) // enters and stays
		command(100, process.Acquire, 0)  // waiting, or inside already
		command(900, process.Acquire, 0)  // inside
		command(901, process.Cancel, 0)   // not waiting any more
		command(950, process.Release, 0)
		command(951, process.Release, 0) // not inside any more
		command(1000, process.Acquire, d)
		o := play(t, cfg, 2)
		if o.Result.Refused != 6 {
			t.Errorf("%d commands were refused, want 6", o.Result.Refused)
		}
		if len(o.Order) != 2 || o.Order[0] != 1 || o.Order[1] != 1 {
			t.Errorf("the entries are %v, want two of the one client", o.Order)
		}
	})
}

// Elections and detectors run alone and with gaps as well.
func TestOthersWithGaps(t *testing.T) {
	for _, spec := range algorithm.All {
		if !electsTheBest(spec) && spec.Family != process.Detector {
			continue
		}
		t.Run(spec.Name, func(t *testing.T) {
			for _, labels := range [][]process.Label{{42}, {900, 7, 1 << 40, 0}} {
				cfg := configOf(spec, len(labels))
				cfg.Process.Labels = labels
				cfg.Limit.Until = 500 * process.Millisecond
				if spec.Family == process.Election {
					cfg.Workload.Commands = []sim.Command{{At: process.Millisecond, Kind: process.Campaign}}
				}
				checkAlike(t, cfg)
			}
		})
	}
}

// electsTheBest leaves out elections of many leaders, and one that is broken.
func electsTheBest(spec *process.Spec) bool {
	return spec.Family == process.Election && slices.ContainsFunc(spec.Claims.Properties, func(c process.Claim) bool {
		return c.Property == process.LeaderValidity && !c.Fails
	})
}

// checkAlike runs an election or a detector in which nobody crashes.
func checkAlike(t *testing.T, cfg sim.Config) {
	t.Helper()
	s, err := scenario.New(t.Name(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Run()
	if err != nil || !o.Met() {
		t.Fatalf("%v %q", err, o.Unmet)
	}
	highest := process.ID(0)
	for p, label := range cfg.Process.Labels {
		if label > cfg.Process.Label(highest) {
			highest = process.ID(p)
		}
	}
	for _, l := range o.Result.Leaders {
		if l.Leader != highest {
			t.Errorf("%d elects %d, want %d", l.Process, l.Leader, highest)
		}
	}
	if cfg.Spec.Family == process.Election && len(o.Result.Leaders) != len(cfg.Process.Labels) {
		t.Errorf("%d have a leader, want %d", len(o.Result.Leaders), len(cfg.Process.Labels))
	}
}
