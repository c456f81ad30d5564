package simtest_test

import (
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/algorithm/stack/recovering"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/sim/simtest"
	"github.com/conclave-io/conclave/process"
)

var watchful = []*process.Spec{recovering.BullyHeartbeat, recovering.BullyReliable, recovering.BullyPhi, recovering.BullySwim}

// TestElectionsOverDetectors runs the election over each detector under the faults
// that it claims to survive.
func TestElectionsOverDetectors(t *testing.T) {
	for _, spec := range watchful {
		for _, n := range []int{1, 2, 5} {
			t.Run(fmt.Sprintf("%s/n=%d", spec.Name, n), func(t *testing.T) {
				t.Parallel()
				simtest.Plan{Spec: spec, Process: process.Config{N: n}}.Run(t)
			})
		}
	}
}

// TestLeaderIsReplaced: processes ask only for the first election. After the leader
// crashes, all live processes soon follow the next one. After it restarts, all follow it
// again.
func TestLeaderIsReplaced(t *testing.T) {
	for _, spec := range watchful {
		for _, back := range []process.Duration{0, 600} {
			run := sim.Config{
				Spec: spec, Process: process.Config{N: 4}, Limit: sim.Limit{Until: 1200 * process.Millisecond},
				Workload: sim.Workload{Commands: []sim.Command{{Kind: process.Campaign}}},
				Faults:   []sim.Fault{{At: 100 * process.Millisecond, Kind: sim.Crash, Process: 3, For: back * process.Millisecond}},
			}
			r, err := sim.Run(run)
			if err != nil {
				t.Fatal(err)
			}
			want := process.ID(2)
			if back > 0 {
				want = 3
			}
			for p, l := range r.Leaders {
				if l.Leader != want && (p < 3 || back > 0) {
					t.Errorf("%s, back after %d D: %d follows %d, want %d", spec.Name, back, p, l.Leader, want)
				}
			}
			if len(r.Leaders) != 4 || len(r.Violations) > 0 {
				t.Errorf("%s: leaders %v, violations %v", spec.Name, r.Leaders, r.Violations)
			}
		}
	}
}

// TestTokenIsMadeAnew: the holder crashes inside, over either detector that says
// Fail, and the others enter.
func TestTokenIsMadeAnew(t *testing.T) {
	for _, spec := range []*process.Spec{recovering.TokenRingRecovering, recovering.TokenRingSwim, recovering.CentralRecovering, recovering.CentralSwim} {
		for holder := range process.ID(5) {
			at := func(ms int) process.Duration { return process.Duration(ms) * process.Millisecond }
			r, err := sim.Run(sim.Config{
				Spec: spec, Process: process.Config{N: 5}, Seed: uint64(holder), Limit: sim.Limit{Until: at(2000)},
				Workload: sim.Workload{Section: sim.Constant(at(2)), Commands: []sim.Command{
					{At: at(50), Kind: process.Acquire, Process: holder},
					{At: at(60), Kind: process.Acquire, Process: (holder + 1) % 5},
					{At: at(60), Kind: process.Acquire, Process: (holder + 2) % 5},
				}},
				Faults: []sim.Fault{{At: at(51), Kind: sim.Crash, Process: holder}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if r.Entries < 2 || r.Waiting > 0 || len(r.Violations) > 0 {
				t.Errorf("%s, %d crashed: %d entries, %d wait, %v", spec.Name, holder, r.Entries, r.Waiting, r.Violations)
			}
		}
	}
}
