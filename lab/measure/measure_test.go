package measure

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/internal/test/longrun"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// largestWhole is up to how many processes a run over whole rounds costs little.
const largestWhole = 100

// long says that there is time for whole rounds of a thousand processes.
var long = os.Getenv("LONG") != ""

// sizes are the numbers of processes up to 50 that formulas are compared at: each up to 12, and then
// some at which logarithms and square roots are rounded up, down, or not at all. With LONG set, it is each.
func sizes() []int {
	var sizes []int
	for n := 2; n <= 50; n++ {
		if n <= 12 || long || slices.Contains([]int{16, 17, 25, 31, 32, 33, 50}, n) {
			sizes = append(sizes, n)
		}
	}
	return sizes
}

// TestMeasuredIsTheory measures every algorithm for mutual exclusion, in every setting
// that its formulas cover, and fails if a figure differs from its formula. Beyond the sizes up to
// 50 it uses 100, and 1000 with short windows. With LONG set, no window is short.
func TestMeasuredIsTheory(t *testing.T) {
	sizes := sizes()
	if !testing.Short() {
		sizes = append(sizes, 100, 1000)
	}
	for _, spec := range Mutex(algorithm.All) {
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			for _, n := range sizes {
				check(t, spec, n)
			}
		})
	}
}

func check(t *testing.T, spec *process.Spec, n int) {
	t.Helper()
	began := time.Now()
	brief := n > largestWhole && !long
	rows, err := Costs(spec, n, brief)
	if err != nil {
		t.Fatal(err)
	}
	if n > largestWhole {
		note(t, rows, time.Since(began))
	}
	for _, complaint := range outside(rows) {
		if brief && spec.Needs.Topology != process.Tree {
			window := limit(sim.Idle, n, true)
			complaint += fmt.Sprintf("; measured in the first %d entries after %d, not in whole rounds", window.Entries, window.Warmup)
		}
		t.Error(complaint)
	}
	for _, mode := range spec.Modes() {
		if !stated(spec, mode) {
			t.Errorf("the Spec says nothing of messages per entry in mode %q", mode)
		}
	}
}

// note says what was measured, for the report of a long run.
func note(t *testing.T, rows []Row, took time.Duration) {
	t.Helper()
	figures := []longrun.Figure{{Name: "formulas compared", Value: float64(len(rows))}}
	for _, regime := range []string{"idle", "saturated"} {
		at := slices.IndexFunc(rows, func(r Row) bool {
			return r.Metric == MessagesPerEntry && r.Regime == regime && r.Mode == "" && r.Setting == ""
		})
		if at >= 0 { // redlock states its costs for a number of servers only
			figures = append(figures, longrun.Figure{Name: "messages per entry, " + regime, Value: rows[at].Measured})
		}
	}
	figures = append(figures, longrun.Figure{Name: "seconds", Value: took.Seconds()})
	if err := longrun.Note(fmt.Sprintf("%s, N = %d", rows[0].Algorithm, rows[0].N), figures...); err != nil {
		t.Error(err)
	}
}

// outside complains about every row that is not what its theory says.
func outside(rows []Row) []string {
	var complaints []string
	for i := range rows {
		if r := &rows[i]; !r.Within() {
			complaints = append(complaints, fmt.Sprintf("N = %d, %s, mode %q, %s: %s is %v, theory %s = %s",
				r.N, r.Regime, r.Mode, r.Setting, r.Metric, r.Measured, r.Formula(), r.expected()))
		}
	}
	return complaints
}

func stated(spec *process.Spec, mode string) bool {
	return anyCost(spec, mode, func(c *process.Cost) bool {
		return c.Metric == process.MessagesPerEntry && (c.Exact != nil || c.Lo != nil)
	})
}

// TestEveryCostIsMeasured: also those of the broken algorithms, and of the
// stacks, whose heartbeats keep them from large runs.
func TestEveryCostIsMeasured(t *testing.T) {
	for _, spec := range algorithm.All {
		if spec.Family != process.Mutex {
			continue
		}
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			for _, complaint := range complaints(spec, 2, 5, 7) {
				t.Error(complaint)
			}
		})
	}
}

// complaints measures at some sizes and returns the figures that differ from the Spec.
func complaints(spec *process.Spec, sizes ...int) []string {
	var found []string
	measured := map[*process.Cost]bool{}
	for _, n := range sizes {
		rows, err := Costs(spec, n, false)
		if err != nil {
			return []string{err.Error()}
		}
		for i := range rows {
			measured[rows[i].Cost] = true
		}
		found = append(found, outside(rows)...)
	}
	for i := range spec.Claims.Costs {
		if c := &spec.Claims.Costs[i]; !measured[c] {
			found = append(found, fmt.Sprintf("nobody measures %s, %s, mode %q, %q", c.Metric, c.Regime, c.Mode, c.When))
		}
	}
	return found
}

// TestWrongFormulasAreSeen changes every formula of every algorithm, one at a
// time, and each must be complained about.
func TestWrongFormulasAreSeen(t *testing.T) {
	for _, spec := range Mutex(algorithm.All) {
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			if right := complaints(spec, 7); right != nil {
				t.Fatal(right)
			}
			for i := range spec.Claims.Costs {
				for what, wrong := range wrongs(&spec.Claims.Costs[i]) {
					doctored := withCost(spec, i, wrong)
					if complaints(doctored, 7) == nil {
						t.Errorf("nobody complains about cost %d, %s, with %s", i, wrong.Metric, what)
					}
				}
			}
		})
	}
}

// wrongs returns wrong variants of a Cost: an exact figure or a mean that is wrong by a
// half, and bounds that exclude the true figures.
func wrongs(c *process.Cost) map[string]process.Cost {
	all := map[string]process.Cost{}
	for name, f := range map[string]struct {
		of *process.Formula
		by float64
		to func(*process.Cost, *process.Formula)
	}{
		"more":            {c.Exact, 0.5, func(c *process.Cost, f *process.Formula) { c.Exact = f }},
		"less":            {c.Exact, -0.5, func(c *process.Cost, f *process.Formula) { c.Exact = f }},
		"a larger mean":   {c.Mean, 0.5, func(c *process.Cost, f *process.Formula) { c.Mean = f }},
		"a smaller mean":  {c.Mean, -0.5, func(c *process.Cost, f *process.Formula) { c.Mean = f }},
		"a high least":    {c.Lo, 1000, func(c *process.Cost, f *process.Formula) { c.Lo = f }},
		"a low largest":   {c.Hi, -1000, func(c *process.Cost, f *process.Formula) { c.Hi = f }},
		"another measure": {c.Exact, 0, func(c *process.Cost, _ *process.Formula) { c.Metric = process.ElectionTime }},
	} {
		if f.of == nil {
			continue
		}
		wrong := *c
		f.to(&wrong, &process.Formula{Text: "wrong", Eval: func(p process.Params) float64 { return f.of.Eval(p) + f.by }})
		all[name] = wrong
	}
	return all
}

func withCost(spec *process.Spec, i int, c process.Cost) *process.Spec {
	doctored := *spec
	doctored.Claims.Costs = append([]process.Cost{}, spec.Claims.Costs...)
	doctored.Claims.Costs[i] = c
	return &doctored
}

// chatty sends one message more for each entry than its algorithm.
type chatty struct {
	process.Machine
	more process.Message
	to   process.ID
}

func (m *chatty) Step(ev *process.Event, fx *process.Effects) {
	m.Machine.Step(ev, fx)
	if ev.Kind == process.Release {
		fx.Send(m.to, m.more)
	}
}

// TestOneMessageTooManyIsSeen: at every size, an implementation that differs from its
// formula by a single message is found.
func TestOneMessageTooManyIsSeen(t *testing.T) {
	const reply = 2 // to a request that is long over: it is ignored
	original := algorithm.Find("ricart-agrawala")
	spec := *original
	spec.New = func(self process.ID, c *process.Config) process.Machine {
		return &chatty{original.New(self, c), process.Message{Type: reply}, (self + 1) % process.ID(c.N)}
	}
	for _, n := range []int{2, 10, 100, 300} {
		rows, err := Costs(&spec, n, n > largestWhole)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			r := &rows[i]
			if exact := r.Metric == MessagesPerEntry && r.Cost.Exact != nil; exact && (r.Regime == "idle" || n <= largestWhole) && r.Within() {
				t.Errorf("N = %d, %s, mode %q: %v messages per entry pass for %v", n, r.Regime, r.Mode, r.Measured, *r.Theory)
			}
		}
	}
}

// TestBoundsHoldForEachEntry: a mean between the bounds does not excuse an entry
// beyond them.
func TestBoundsHoldForEachEntry(t *testing.T) {
	s, err := run(algorithm.Find("maekawa"), 7, setting{regime: sim.Saturated}, false)
	if err != nil {
		t.Fatal(err)
	}
	c := s.best(process.SyncDelay) // from 1 to 2
	for _, test := range []struct {
		f    figure
		want bool
	}{
		{figure{SyncDelay, 1.5, 1, 2}, true},
		{figure{SyncDelay, 1.5, 1, 3}, false},
		{figure{SyncDelay, 1.5, 0, 2}, false},
	} {
		if r := s.row(test.f, c); r.Within() != test.want {
			t.Errorf("%v is within %v: %v", test.f, *r.Bounds, !test.want)
		}
	}
}

func TestRowOutsideItsTheoryIsSeen(t *testing.T) {
	theory := 3.0
	for _, c := range []struct {
		row  Row
		want bool
	}{
		{Row{Measured: 3, Theory: &theory}, true},
		{Row{Measured: 3.1, Theory: &theory}, false},
		{Row{Measured: 2.9, Theory: &theory}, false},
		{Row{Measured: 3.1, Theory: &theory, slack: 0.1}, true},
		{Row{Measured: 2, Bounds: &[2]float64{0, 2}}, true},
		{Row{Measured: 2.1, Bounds: &[2]float64{0, 2}}, false},
		{Row{Measured: 3, Least: &theory}, true},
		{Row{Measured: 2.9, Least: &theory}, false},
		{Row{Measured: 7}, true},
	} {
		if got := c.row.Within(); got != c.want {
			t.Errorf("%+v: within is %v", c.row, got)
		}
	}
}

func TestReports(t *testing.T) {
	spec := algorithm.Find("ricart-agrawala")
	rows, err := Algorithm(spec, 4)
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"text":     func(b *bytes.Buffer) error { return Text(b, rows) },
		"markdown": func(b *bytes.Buffer) error { return Markdown(b, rows) },
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"ricart-agrawala", "2(N-1)", fmt.Sprint(2 * 3), "Synchronization delay", "Lamport's algorithm"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s lacks %q:\n%s", name, want, out.String())
			}
		}
	}
}

// TestDistance counts hops from the process before, where the token comes from.
func TestDistance(t *testing.T) {
	for _, c := range []struct {
		parent []process.ID
		want   []int
	}{
		{process.Star(4), []int{1, 1, 2, 2}}, // from 3 to the centre, from the centre to 1, ...
		{process.Line(4), []int{3, 1, 1, 1}},
		{process.BinaryTree(4), []int{2, 1, 2, 3}},
	} {
		s := subject{config: sim.Config{
			Process:  process.Config{N: 4, Topology: process.Topology{Parent: c.parent}},
			Workload: sim.Workload{Clients: []process.ID{0, 1, 2, 3}},
		}}
		for p, want := range c.want {
			if got := s.distance(process.ID(p)); got != want {
				t.Errorf("tree %v: %d hops to process %d, want %d", c.parent, got, p, want)
			}
		}
	}
}
