package measure

import (
	"flag"
	"fmt"
	"io"
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
	"github.com/conclave-io/conclave/internal/gen/splice"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

var updateClocks = flag.Bool("update-clocks", false, "write the table of docs/clocks.md")

// TestClocksPage fails when the table is not what the simulator measures.
func TestClocksPage(t *testing.T) {
	rows, err := clocks(10)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Messages != r.Theory || r.Error > r.Bound || r.Least < r.Most && r.Error == 0 {
			t.Errorf("measured %+v", r)
		}
	}
	var table strings.Builder
	if err := clocksMarkdown(&table, rows); err != nil {
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

// clockRow is how well an algorithm synchronizes clocks. Times are in D.
type clockRow struct {
	Algorithm string
	N         int
	Tree      string // ntp: the tree along which the time spreads
	Least     float64
	Most      float64 // of the delays
	Messages  float64 // per interval
	Theory    float64
	Error     float64 // the largest error measured
	Bound     float64
}

// clockSetting is a configuration of processes whose clocks start with errors.
type clockSetting struct {
	spec        *process.Spec
	n           int
	tree        string
	least, most process.Duration
}

// The errors of the clocks, and the time during which they are measured. Measuring starts when the
// initial errors no longer matter.
const (
	clockInterval = 100 * process.Millisecond
	clockDrift    = 50                     // parts per million
	clocksSettled = 59 * clockInterval / 2 // in the middle between rounds
	clocksWatched = 30 * clockInterval
)

// clocks measures the algorithms that synchronize clocks, with delays of different ranges.
func clocks(n int) ([]clockRow, error) {
	const d = process.Millisecond
	var rows []clockRow
	for _, delay := range [][2]process.Duration{{d, d}, {d / 2, d}, {d / 10, d}} {
		for _, s := range []clockSetting{
			{spec: cristian.Spec}, {spec: berkeley.Spec}, {spec: ntp.Spec, tree: "star"}, {spec: ntp.Spec, tree: "binary"},
		} {
			s.n, s.least, s.most = n, delay[0], delay[1]
			row, err := s.measure()
			if err != nil {
				return nil, fmt.Errorf("%s with n = %d: %w", s.spec.Name, n, err)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (s *clockSetting) config() sim.Config {
	cfg := sim.Config{
		Spec: s.spec, Seed: 1,
		Process: process.Config{N: s.n, Delay: process.Millisecond},
		Links:   sim.Links{Link: sim.Link{Delay: sim.Uniform(s.least, s.most)}},
		Limit:   sim.Limit{Until: clocksSettled + clocksWatched - 1},
	}
	if s.tree == "binary" {
		cfg.Process.Topology.Parent = process.BinaryTree(s.n)
	} else {
		cfg.Process.Topology.Parent = process.Star(s.n)
	}
	for p := range s.n {
		sign := 1 - 2*(p%2)
		cfg.Clocks = append(cfg.Clocks, sim.Clock{Offset: process.Duration(sign*(p%7)) * process.Millisecond, Drift: sign * clockDrift})
	}
	cfg.Clocks[0] = sim.Clock{}
	return cfg
}

// measure runs a setting, and compares the clocks after each event of its second half. It also
// checks the claims of the algorithm.
func (s *clockSetting) measure() (clockRow, error) {
	row := clockRow{
		Algorithm: s.spec.Name, N: s.n, Tree: s.tree,
		Least: clockD(s.least), Most: clockD(s.most),
	}
	w, err := sim.New(s.config())
	if err != nil {
		return row, err
	}
	before := uint64(0)
	for w.Step() {
		if w.Now() < clocksSettled {
			before = w.Result().Sent(process.Protocol)
			continue
		}
		row.Error = max(row.Error, clockD(s.worst(w)))
	}
	result := w.Result()
	if len(result.Violations) > 0 {
		return row, fmt.Errorf("%v", result.Violations[0])
	}
	row.Messages = float64(result.Sent(process.Protocol)-before) * float64(clockInterval) / float64(clocksWatched)
	option := func(name string) int { return s.spec.Number(&process.Config{}, name, 0) }
	params := process.Params{
		N: s.n, MinDelay: row.Least, MaxDelay: row.Most, Distance: s.depth(),
		Drift: clockDrift / 1e6, Slew: sim.SlewRate / 1e6, Interval: clockD(clockInterval),
		Limit: float64(option("limit")), Exchanges: option("burst") + option("samples"),
	}
	row.Theory = s.spec.Claims.Costs[0].Exact.Eval(params)
	row.Bound = s.spec.Claims.Properties[0].Bound.Eval(params)
	return row, nil
}

func clockD(t process.Duration) float64 { return float64(t) / float64(process.Millisecond) }

// worst returns the largest difference between a clock and that of process 0. With an elected
// master it returns the largest difference between any two clocks.
func (s *clockSetting) worst(w *sim.World) process.Duration {
	lo, hi := w.Clock(0), w.Clock(0)
	for p := range process.ID(s.n) {
		lo, hi = min(lo, w.Clock(p)), max(hi, w.Clock(p))
	}
	if s.spec.Needs.Elector {
		return hi - lo
	}
	return max(hi-w.Clock(0), w.Clock(0)-lo)
}

// depth returns the largest number of hops that the time travels.
func (s *clockSetting) depth() int {
	if s.tree != "binary" {
		return 1
	}
	hops := 0
	for p := s.n - 1; p > 0; p = (p - 1) / 2 {
		hops++
	}
	return hops
}

// clocksMarkdown writes the table.
func clocksMarkdown(w io.Writer, rows []clockRow) error {
	if _, err := fmt.Fprint(w, "| algorithm | processes | delay, D | messages per interval | by the formula | worst error, D | bound, D |\n|---|---|---|---|---|---|---|\n"); err != nil {
		return err
	}
	for _, r := range rows {
		name := r.Algorithm
		if r.Tree != "" {
			name += ", " + r.Tree
		}
		delay := fmt.Sprintf("%g to %g", r.Least, r.Most)
		if r.Least == r.Most {
			delay = fmt.Sprintf("%g", r.Most)
		}
		if _, err := fmt.Fprintf(w, "| %s | %d | %s | %g | %g | %.3f | %.3f |\n",
			name, r.N, delay, r.Messages, r.Theory, r.Error, r.Bound); err != nil {
			return err
		}
	}
	return nil
}
