// Package measure sets what an algorithm costs in the simulator beside what its
// Spec, and the lecture documents, say that it costs.
//
// Every message takes exactly D and processing takes no time, which is what the
// formulas assume. In the idle regime the processes enter in turn, each when the
// system is quiet; saturated, everyone asks again at once after leaving. A
// critical section takes 2 D, long enough for all requests to arrive meanwhile;
// throughput is given without it, as 1/SD, since it says nothing of an algorithm.
//
// A formula may hold in one mode only, or among certain requesters, or on certain
// trees. [Costs] runs an algorithm in every setting that its formulas speak of and
// sets each of them beside what it came to; [Algorithm] does so for the usual one.
package measure

import (
	"fmt"
	"math"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// The metrics of a row. They are the names in tables and JSON.
const (
	MessagesPerEntry = "messages_per_entry"
	ClientDelay      = "client_delay"
	SyncDelay        = "sync_delay"
	Throughput       = "throughput"
	Jain             = "jain"
)

// Row is one figure of one algorithm. Delays are in units of D, throughput in
// entries per D; Jain's index of fairness is 1 if all entered equally often.
type Row struct {
	Algorithm string `json:"algorithm"`
	N         int    `json:"n"`
	Regime    string `json:"regime"`
	// Mode and Setting are empty for the default mode and the usual setting.
	Mode    string `json:"mode,omitempty"`
	Setting string `json:"setting,omitempty"`
	Metric  string `json:"metric"`
	// Theory is the figure by the formula of the Spec, if that is exact, or if
	// it is the expectation of a figure that chance decides.
	Theory *float64 `json:"theory"`
	// Bounds are the least and the largest figure by the Spec, if it has both.
	Bounds   *[2]float64 `json:"bounds"`
	Measured float64     `json:"measured"`

	// Least is the least figure by the Spec, if it has no largest.
	Least *float64 `json:"-"`
	// Cost is what the Spec says, nil if nothing.
	Cost *process.Cost `json:"-"`

	slack float64 // by how much of itself the figure may be off
}

// Within reports whether the figure is what theory says, or lies between the
// bounds. A row without any is.
func (r *Row) Within() bool {
	near := r.slack * max(1, abs(r.Measured))
	switch {
	case r.Theory != nil:
		return abs(r.Measured-*r.Theory) <= near
	case r.Bounds != nil:
		return r.Bounds[0]-near <= r.Measured && r.Measured <= r.Bounds[1]+near
	case r.Least != nil:
		return *r.Least-near <= r.Measured
	}
	return true
}

func abs(v float64) float64 { return max(v, -v) }

// Algorithm measures one algorithm with n processes, idle and saturated. It must
// be one for mutual exclusion. A figure without an exact claim in the Spec, but the
// mean over all requesters, is that of requesters drawn by lot. An error says that it cannot be run
// like this, or broke one of its claims.
func Algorithm(spec *process.Spec, n int) ([]Row, error) {
	var rows []Row
	for _, regime := range []sim.Regime{sim.Idle, sim.Saturated} {
		usual := setting{mode: option(spec, "mode"), regime: regime}
		s, err := run(spec, n, usual, false)
		if err != nil {
			return nil, err
		}
		drawn, err := s.drawn()
		if err != nil {
			return nil, err
		}
		for _, f := range s.figures() {
			row := s.row(f, s.best(metrics[f.metric]))
			if drawn != nil {
				row = drawn.instead(row)
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// drawn is the same run with requesters drawn by lot, or nil if the Spec says nothing of
// them.
func (s *subject) drawn() (*subject, error) {
	by := s.setting
	if by.regime != sim.Idle || !hasMean(s.spec, by.mode) || s.config.Process.N < 2 {
		return nil, nil
	}
	by.name, by.drawn = byLot, true
	return run(s.spec, s.config.Process.N, by, false)
}

// instead returns the row of the same figure, if the mean is all that the Spec says of it.
func (s *subject) instead(row Row) Row {
	c := s.best(metrics[row.Metric])
	if c == nil || row.Cost != nil && row.Cost.Exact != nil {
		return row
	}
	for _, f := range s.figures() {
		if f.metric == row.Metric {
			return s.row(f, c)
		}
	}
	return row
}

// Costs measures everything that a Spec says of its costs with n processes: in
// every setting, a row for each figure and each Cost that speaks of it. Brief
// looks at few entries of each run, in which the figures show but for their
// fairness; a run in which more than a hundred take part costs too much otherwise.
func Costs(spec *process.Spec, n int, brief bool) ([]Row, error) {
	var rows []Row
	for _, setting := range settings(spec, n) {
		s, err := run(spec, n, setting, brief)
		if err != nil {
			return nil, err
		}
		for _, f := range s.figures() {
			for _, c := range s.costs(metrics[f.metric]) {
				rows = append(rows, s.row(f, c))
			}
		}
	}
	return rows, nil
}

func run(spec *process.Spec, n int, setting setting, brief bool) (*subject, error) {
	s := &subject{spec: spec, setting: setting, config: setting.configure(spec, n, brief)}
	if err := s.run(); err != nil {
		return nil, fmt.Errorf("%s with n = %d, %s: %w", spec.Name, n, setting.describe(), err)
	}
	return s, nil
}

func (s *subject) run() error {
	result, err := sim.Run(s.config)
	if err != nil {
		return err
	}
	if len(result.Violations) > 0 {
		return fmt.Errorf("%v", result.Violations[0])
	}
	if want := s.config.Limit.Entries; result.Entries < want {
		return fmt.Errorf("only %d of %d entries were completed: %s", result.Entries, want, result.Reason)
	}
	s.result = result
	return nil
}

// figure is what was measured of one metric, and its extremes where each entry
// has a figure of its own.
type figure struct {
	metric      string
	mean        float64
	least, most float64
}

func (s *subject) figures() []figure {
	r := s.result
	each := func(metric string, of sim.Summary) figure { return figure{metric, of.Mean, of.Min, of.Max} }
	overall := func(metric string, v float64) figure { return figure{metric, v, v, v} }
	figures := []figure{overall(MessagesPerEntry, r.MessagesPerEntry())}
	if s.setting.regime == sim.Idle {
		return append(figures, each(ClientDelay, r.Wait))
	}
	if r.Sync.Count > 0 { // somebody waited for somebody else
		figures = append(figures, each(SyncDelay, r.Sync))
	}
	// One process alone enters again at once: without sections it would do nothing else.
	if throughput := s.withoutSections(r.Throughput()); !math.IsInf(throughput, 0) {
		figures = append(figures, overall(Throughput, throughput))
	}
	return append(figures, overall(Jain, r.Jain()))
}

// withoutSections is what a throughput would be if critical sections took no
// time: a cycle is a synchronization delay and a section, and with k units of
// the resource k cycles run at once.
func (s *subject) withoutSections(throughput float64) float64 {
	k := float64(max(1, s.units()))
	return k / (k/throughput - section)
}
