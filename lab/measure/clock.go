package measure

import (
	"fmt"
	"io"
	"strconv"

	"github.com/conclave-io/conclave/algorithm/clock/berkeley"
	"github.com/conclave-io/conclave/algorithm/clock/cristian"
	"github.com/conclave-io/conclave/algorithm/clock/ntp"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// ClockRow is how well an algorithm synchronizes clocks. Times are in D.
type ClockRow struct {
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

// Clocks measures the algorithms that synchronize clocks, with delays of different ranges.
func Clocks(n int) ([]ClockRow, error) {
	const d = process.Millisecond
	var rows []ClockRow
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
func (s *clockSetting) measure() (ClockRow, error) {
	row := ClockRow{
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
	params := process.Params{
		N: s.n, MinDelay: row.Least, MaxDelay: row.Most, Distance: s.depth(),
		Drift: clockDrift / 1e6, Slew: sim.SlewRate / 1e6, Interval: clockD(clockInterval),
		Limit: float64(s.option("limit")), Exchanges: s.option("burst") + s.option("samples"),
	}
	row.Theory = s.spec.Claims.Costs[0].Exact.Eval(params)
	row.Bound = s.spec.Claims.Properties[0].Bound.Eval(params)
	return row, nil
}

// option returns the default of a numeric option, or 0 if there is no option of that name.
func (s *clockSetting) option(name string) int {
	for _, o := range s.spec.Options {
		if o.Name == name {
			n, err := strconv.Atoi(o.Default)
			process.Assert(err == nil, "the default of a numeric option is a number")
			return n
		}
	}
	return 0
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

// ClocksMarkdown writes the table.
func ClocksMarkdown(w io.Writer, rows []ClockRow) error {
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
