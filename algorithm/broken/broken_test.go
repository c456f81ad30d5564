package broken_test

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/broken"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

// The simulator finds every mistake within its bounds, and nothing in the same runs of
// the original.
func TestChanceFindsEveryMistake(t *testing.T) {
	const seeds = 20_000
	for _, v := range broken.Variants {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); ; seed++ {
				if seed > seeds {
					t.Fatalf("no run of %d breaks %s", seeds, v.Breaks)
				}
				if text := violation(t, &v, v.Of, seed); text != "" {
					t.Fatalf("seed %d: the original %s: %s", seed, v.Of.Name, text)
				}
				if violation(t, &v, v.Spec, seed) != "" {
					return
				}
			}
		})
	}
}

// violation runs one schedule within the bounds of a variant. It returns the violation if
// the variant is meant to have it.
func violation(t *testing.T, v *broken.Variant, spec *process.Spec, seed uint64) string {
	t.Helper()
	cfg := within(v, spec, seed)
	judge := sim.JudgeOf(v.Breaks)
	switch v.Breaks {
	case process.AtMostK:
		judge = sim.AtMost(2)
	}
	cfg.Judges = []sim.Judge{judge}
	result, err := sim.Run(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Violations) == 0 {
		return ""
	}
	found := result.Violations[0]
	if found.Property != v.Breaks {
		t.Fatalf("seed %d: %s breaks %s", seed, spec.Name, found)
	}
	return found.String()
}

// within draws a run within the bounds of a variant.
func within(v *broken.Variant, spec *process.Spec, seed uint64) sim.Config {
	const d = process.Millisecond
	r := rand.New(rand.NewPCG(seed, 6))
	b := v.Bounds
	cfg := sim.Config{Spec: spec, Seed: seed, Limit: sim.Limit{Events: 50_000}}
	cfg.Process = process.Config{N: b.N, Options: b.Options, Delay: d, Section: d}
	if spec.Needs.Topology == process.Quorums {
		cfg.Process.Topology.Quorums = process.VotingSets(b.N)
	}
	cfg.Links.Delay = delays(spec)[r.IntN(len(delays(spec)))]
	if b.Duplicates > 0 {
		cfg.Links.Duplicate = 0.2
	}
	for range b.Crashes {
		crash := sim.Fault{Kind: sim.CrashInStep, Process: process.ID(r.IntN(b.N)), Step: 1 + r.Uint64N(6), Effects: r.IntN(3)}
		if b.Restarts > 0 {
			crash.For = d
		}
		cfg.Faults = append(cfg.Faults, crash)
	}
	if b.Corrupt {
		corrupt(&cfg, b, r)
		return cfg
	}
	cfg.Traitors = b.Traitors
	cfg.Workload.Commands = asks(b, spec, r)
	return cfg
}

// corrupt begins a run in a state that a fault may leave.
func corrupt(cfg *sim.Config, b broken.Bounds, r *rand.Rand) {
	c := cfg.Spec.Corruption
	cfg.Limit.Until = 2000 * process.Millisecond
	for p := range process.ID(b.N) {
		states := c.States(p, &cfg.Process)
		cfg.Faults = append(cfg.Faults, sim.Fault{Kind: sim.Corrupt, Process: p, State: r.IntN(len(states))})
		for q := range process.ID(b.N) {
			messages := c.Messages(p, q, &cfg.Process)
			for k := 0; q != p && len(messages) > 0 && k < b.InFlight; k++ {
				m := messages[r.IntN(len(messages))]
				cfg.Faults = append(cfg.Faults, sim.Fault{Kind: sim.Forge, From: p, To: q,
					Message: cfg.Spec.Messages[m.Type-1].Name, Value: m.Value})
			}
		}
	}
}

// delays are those that an algorithm allows. Only without synchrony may they be long.
func delays(spec *process.Spec) []sim.Delay {
	const d = process.Millisecond
	if spec.Needs.Synchrony {
		return []sim.Delay{sim.Constant(d), sim.Uniform(1, d)}
	}
	return []sim.Delay{sim.Constant(d), sim.Uniform(1, d), sim.Exponential(0, d), sim.Exponential(0, 5*d)}
}

// asks lets each client ask as often as the bounds allow, in bursts that overlap more or
// less.
func asks(b broken.Bounds, spec *process.Spec, r *rand.Rand) []sim.Command {
	const d = process.Millisecond
	clients := b.Clients
	for p := process.ID(0); len(b.Clients) == 0 && int(p) < b.N; p++ {
		clients = append(clients, p)
	}
	kind := process.Acquire
	switch spec.Family {
	case process.Election:
		kind = process.Campaign
	case process.Agreement:
		return proposals(b, spec, clients, r)
	case process.Transaction:
		return votes(clients)
	}
	var commands []sim.Command
	for _, p := range clients {
		at := process.Duration(0)
		for range b.Entries {
			at += process.Duration(r.IntN(3)) * d * process.Duration(1+r.IntN(8))
			commands = append(commands, sim.Command{At: at, Process: p, Kind: kind, Hold: 1 + process.Duration(r.Int64N(int64(3*d)))})
			if b.AnyTime || b.Restarts > 0 {
				commands[len(commands)-1].Hold *= 100
			}
			at += 2 * d
		}
	}
	for range b.Cancels {
		commands = append(commands, sim.Command{
			At: process.Duration(r.Int64N(int64(8 * d))), Process: clients[r.IntN(len(clients))], Kind: process.Cancel,
		})
	}
	return commands
}

// proposals are all made at once. Each has its own value or, if values have names, one of
// these.
func proposals(b broken.Bounds, spec *process.Spec, clients []process.ID, r *rand.Rand) []sim.Command {
	var commands []sim.Command
	for k := range b.Entries {
		for _, p := range clients {
			value := int64(k*b.N + int(p) + 1)
			if spec.Values != nil {
				value = r.Int64N(int64(len(spec.Values)))
			}
			commands = append(commands, sim.Command{Process: p, Kind: process.Propose, Value: value})
		}
	}
	return commands
}

// votes are all yes, and all at once.
func votes(clients []process.ID) []sim.Command {
	var commands []sim.Command
	for _, p := range clients {
		commands = append(commands, sim.Command{Process: p, Kind: process.Propose, Value: process.Commit})
	}
	return commands
}

// Variants keep the contract of machines. The test does not check the claims that a
// variant breaks.
func TestConform(t *testing.T) {
	for _, v := range broken.Variants {
		t.Run(v.Name, func(t *testing.T) {
			if v.New == nil { // it is printed somewhere, and says itself what it breaks
				processtest.Conform(t, v.Spec)
				return
			}
			modest := *v.Spec
			modest.Claims = process.Claims{Properties: []process.Claim{{Property: v.Breaks, Fails: true}}}
			modest.Invariant = nil
			processtest.ConformBriefly(t, &modest)
		})
	}
}

func TestScripts(t *testing.T) {
	folders, err := filepath.Glob("testdata/scripts/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("there are %d folders of scripts: %v", len(folders), err)
	}
	for _, folder := range folders {
		v := broken.Find(filepath.Base(folder))
		if v == nil {
			t.Fatalf("%s is named after no variant", folder)
		}
		t.Run(v.Name, func(t *testing.T) { processtest.Script(t, v.Spec, folder) })
	}
}

// Every algorithm has as many variants as it should, with everything said of them.
func TestVariants(t *testing.T) {
	count := map[string]int{}
	for _, v := range broken.Variants {
		count[v.Of.Name]++
		if v.Mistake == "" || v.Tempting == "" || v.Wrong == "" || v.Breaks == "" || v.Bounds.N == 0 || v.Bounds.Entries == 0 {
			t.Errorf("%s lacks something: %+v", v.Name, v)
		}
		if !strings.HasPrefix(v.Name, v.Of.Name+"-") || v.Spec.Name != v.Name {
			t.Errorf("%s of %s has a Spec called %s", v.Name, v.Of.Name, v.Spec.Name)
		}
		if broken.Find(v.Name).Spec != v.Spec {
			t.Errorf("%s is not found", v.Name)
		}
	}
	if broken.Find("lamport") != nil {
		t.Error("lamport is a variant")
	}
}
