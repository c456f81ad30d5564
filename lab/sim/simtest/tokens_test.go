package simtest_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm/mutex/naimitrehel"
	"github.com/conclave-io/conclave/algorithm/mutex/raymond"
	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawalatoken"
	"github.com/conclave-io/conclave/algorithm/mutex/suzukikasami"
	"github.com/conclave-io/conclave/algorithm/mutex/tokenring"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// formula returns what a Spec says a cost is exactly, the first time that it does.
func formula(t *testing.T, spec *process.Spec, metric process.Metric, regime process.Regime) *process.Formula {
	t.Helper()
	for _, c := range spec.Claims.Costs {
		if c.Metric == metric && c.Regime == regime && c.Exact != nil {
			return c.Exact
		}
	}
	t.Fatalf("%s claims no exact %s for %s", spec.Name, metric, regime)
	return nil
}

// TestTokensUnderSaturation: for short and long critical sections, the costs of a token
// equal the Spec, and all processes have it equally often.
func TestTokensUnderSaturation(t *testing.T) {
	for _, spec := range []*process.Spec{raymond.Spec, suzukikasami.Spec, ricartagrawalatoken.Spec, tokenring.Spec} {
		for _, mode := range spec.Modes() {
			for shape, tree := range shapes(spec) {
				t.Run(spec.Name+mode+shape, func(t *testing.T) {
					t.Parallel()
					for n := 2; n <= 30; n++ {
						for _, section := range []process.Duration{ms / 4, ms, 5 * ms} {
							cfg := sim.Config{Spec: spec, Process: process.Config{N: n, Delay: ms}}
							if mode != "" {
								cfg.Process.Options = []process.OptionValue{{Name: "mode", Value: mode}}
							}
							cfg.Process.Topology = process.Topology{Parent: tree(n), Coordinator: process.ID(n / 2)}
							cfg.Workload = sim.Workload{Regime: sim.Saturated, Section: sim.Constant(section)}
							saturate(t, cfg)
						}
					}
				})
			}
		}
	}
}

// shapes are the trees on which an algorithm is run, if it needs one.
func shapes(spec *process.Spec) map[string]func(int) []process.ID {
	if spec.Needs.Topology == process.Tree {
		return map[string]func(int) []process.ID{"/binary": process.BinaryTree, "/star": process.Star, "/line": process.Line}
	}
	return map[string]func(int) []process.ID{"": func(int) []process.ID { return nil }}
}

// saturate measures four rounds after a warm-up of three. The ends of the window may add
// an error of one delay, and of the messages of one entry.
func saturate(t *testing.T, cfg sim.Config) {
	t.Helper()
	n := cfg.Process.N
	cfg.Limit = sim.Limit{Warmup: 3 * n, Entries: 4 * n, Events: 100_000}
	result, err := sim.Run(cfg)
	if err != nil {
		t.Fatal(err)
	}
	what := fmt.Sprintf("n=%d, section %v", n, cfg.Workload.Section.Mean())
	if len(result.Violations) > 0 || result.Entries != 4*n {
		t.Fatalf("%s: %v, ended by %s after %d entries", what, result.Violations, result.Reason, result.Entries)
	}
	params := process.Params{N: n}
	each := formula(t, cfg.Spec, process.MessagesPerEntry, process.Saturated).Eval(params)
	if off := float64(result.Sent(process.Protocol)) - each*float64(4*n); off > each || -off > each {
		t.Errorf("%s: %v messages for an entry, want %v", what, result.MessagesPerEntry(), each)
	}
	delay := formula(t, cfg.Spec, process.SyncDelay, process.Saturated).Eval(params)
	if off := (result.Sync.Mean - delay) * float64(4*n); off > 1e-6 || -off > 1e-6 {
		t.Errorf("%s: synchronization delay is %v, want %v", what, result.Sync.Mean, delay)
	}
	if slices.Min(result.PerClient) < 3 || slices.Max(result.PerClient) > 5 {
		t.Errorf("%s: the clients entered %v times in four rounds", what, result.PerClient)
	}
}

// TestPathReversalInTurn: processes that enter in turn see every length of a path. In
// N+1 rounds, after which all pointers are as before, the mean cost is (4N-2)/(N+1). It
// does not matter whether they ask when all is quiet or while the others wait.
func TestPathReversalInTurn(t *testing.T) {
	for n := 2; n <= 30; n++ {
		for _, regime := range []sim.Regime{sim.Idle, sim.Saturated} {
			result, err := sim.Run(sim.Config{
				Spec: naimitrehel.Spec, Process: process.Config{N: n, Delay: ms},
				Workload: sim.Workload{Regime: regime, Section: sim.Constant(ms)},
				Limit:    sim.Limit{Warmup: 4 * n, Entries: n * (n + 1), Events: 1_000_000},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := result.Sent(process.Protocol), uint64(n*(4*n-2)); got != want {
				t.Errorf("n=%d, %s: %d messages in %d entries, want %d", n, regime, got, result.Entries, want)
			}
		}
	}
}

// TestTokenRingDelays asks at every process for every position of the token. The longest
// delay is that of a process which the token has just left.
func TestTokenRingDelays(t *testing.T) {
	for n := 2; n <= 16; n++ {
		waits := map[float64]bool{}
		for p := range process.ID(n) {
			for place := range n {
				result, err := sim.Run(sim.Config{
					Spec: tokenring.Spec, Process: process.Config{N: n, Delay: ms, Section: 1},
					Workload: sim.Workload{Commands: []sim.Command{{At: process.Duration(n+place) * ms, Process: p, Kind: process.Acquire}}},
					Limit:    sim.Limit{Entries: 1, Events: 10_000},
				})
				if err != nil || result.Entries != 1 {
					t.Fatalf("n=%d: %d entries, error %v", n, result.Entries, err)
				}
				waits[result.Wait.Max] = true
			}
		}
		for d := 1; d <= n; d++ {
			if !waits[float64(d)] {
				t.Errorf("n=%d: nobody waits for %d D", n, d)
			}
		}
		if len(waits) != n {
			t.Errorf("n=%d: the delays are %v, want 1 to %d", n, waits, n)
		}
	}
}
