package measure

import (
	"flag"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/clock/berkeley"
	"github.com/conclave-io/conclave/algorithm/clock/cristian"
	clocklamport "github.com/conclave-io/conclave/algorithm/clock/lamport"
	"github.com/conclave-io/conclave/algorithm/clock/ntp"
	"github.com/conclave-io/conclave/algorithm/clock/vector"
	"github.com/conclave-io/conclave/algorithm/globalstate"
	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawala"
	"github.com/conclave-io/conclave/algorithm/stack"
	"github.com/conclave-io/conclave/internal/splice"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

var updateClocks = flag.Bool("update-clocks", false, "write the table of docs/clocks.md")

// TestClocksPage fails when the table is not what the simulator measures.
func TestClocksPage(t *testing.T) {
	rows, err := Clocks(10)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Messages != r.Theory || r.Error > r.Bound || r.Least < r.Most && r.Error == 0 {
			t.Errorf("measured %+v", r)
		}
	}
	var table strings.Builder
	if err := ClocksMarkdown(&table, rows); err != nil {
		t.Fatal(err)
	}
	same, err := splice.File("../../docs/clocks.md", "clocks", table.String(), *updateClocks)
	if err != nil {
		t.Fatal(err)
	}
	if !same {
		t.Errorf("the table of docs/clocks.md is not what is measured now; run go test ./lab/measure -run ClocksPage -update-clocks")
	}
}

// sizesOfClocks are those at which messages are counted.
func sizesOfClocks() []int {
	var sizes []int
	for n := 2; n <= 50; n++ {
		sizes = append(sizes, n)
	}
	return append(sizes, 100)
}

// TestMessagesOfClocks counts the messages of rounds when all have the time.
func TestMessagesOfClocks(t *testing.T) {
	for _, spec := range []*process.Spec{cristian.Spec, berkeley.Spec, ntp.Spec} {
		for _, n := range sizesOfClocks() {
			sent := func(rounds int) uint64 {
				cfg := sim.Config{
					Spec: spec, Process: process.Config{N: n, Topology: process.Topology{Parent: process.Star(n)}},
					Limit: sim.Limit{Until: process.Duration(rounds)*clockInterval - 1},
				}
				result, err := sim.Run(cfg)
				if err != nil || len(result.Violations) > 0 {
					t.Fatal(err, result.Violations)
				}
				return result.Sent(process.Protocol)
			}
			want := spec.Claims.Costs[0].Exact.Eval(process.Params{N: n})
			if got := sent(3) - sent(2); float64(got) != want {
				t.Errorf("%s, N = %d: %d messages in a round, want %v", spec.Name, n, got, want)
			}
		}
	}
}

// TestMessagesOfARecording counts the markers and parts of one global state.
func TestMessagesOfARecording(t *testing.T) {
	for _, n := range append(sizesOfClocks(), 1) {
		result, err := sim.Run(sim.Config{
			Spec: globalstate.Spec, Process: process.Config{N: n},
			Workload: sim.Workload{Commands: []sim.Command{{Kind: process.Record, Process: process.ID(n / 2)}}},
		})
		if err != nil || len(result.Violations) > 0 || len(result.GlobalStates) != 1 {
			t.Fatal(err, result.Violations, len(result.GlobalStates))
		}
		want := globalstate.Spec.Claims.Costs[0].Exact.Eval(process.Params{N: n})
		if got := result.Sent(process.Protocol); float64(got) != want {
			t.Errorf("N = %d: %d messages, want %v", n, got, want)
		}
		if n > 2 && clockD(result.GlobalStates[0].At) != 3 {
			t.Errorf("N = %d: the state is known after %v D, want 3", n, clockD(result.GlobalStates[0].At))
		}
	}
}

// TestLogicalClocksCostNoMessages: a lock over a clock sends as many messages as
// without it, and enters in the same order and time.
func TestLogicalClocksCostNoMessages(t *testing.T) {
	lock := ricartagrawala.Spec
	for _, clock := range []*process.Spec{clocklamport.Spec, vector.Spec} {
		over, err := stack.Over(lock, clock)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{2, 3, 10, 50} {
			alone, err := sim.Run(saturated(lock, n))
			if err != nil {
				t.Fatal(err)
			}
			stacked, err := sim.Run(saturated(over, n))
			if err != nil || len(stacked.Violations) > 0 {
				t.Fatal(err, stacked.Violations)
			}
			if alone.Sent(process.Protocol) != stacked.Sent(process.Protocol) || alone.Time != stacked.Time || alone.Entries != stacked.Entries {
				t.Errorf("over %s, N = %d: %d messages for %d entries until %d, alone %d for %d until %d", clock.Name, n,
					stacked.Sent(process.Protocol), stacked.Entries, stacked.Time, alone.Sent(process.Protocol), alone.Entries, alone.Time)
			}
		}
	}
}

func saturated(spec *process.Spec, n int) sim.Config {
	return sim.Config{
		Spec: spec, Process: process.Config{N: n}, Limit: sim.Limit{Entries: 3 * n},
		Workload: sim.Workload{Regime: sim.Saturated, Section: sim.Constant(process.Millisecond)},
	}
}
