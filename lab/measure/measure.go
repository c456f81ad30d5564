// Package measure measures the costs of algorithms in the simulator. It compares them with the
// formulas of the Spec and with the figures of the lecture documents.
//
// Every message takes exactly D, and processing takes no time, as the formulas assume. In the
// idle regime the processes enter in turn, each when the system is quiet. In the saturated regime
// each process asks again as soon as it has left. A critical section takes 2 D, so that all
// requests arrive during it. Its length is not a property of the algorithm, so throughput is
// given without it, as 1/SD.
//
// Some formulas hold only in one mode, for certain requesters, or on certain trees. [Costs] runs
// an algorithm in every setting for which it has a formula, and compares each formula with the
// measured figure. [Algorithm] does so for the usual setting.
package measure

import (
	"fmt"
	"math"
	"slices"

	"github.com/conclave-io/conclave/algorithm/mutex/lease"
	"github.com/conclave-io/conclave/algorithm/mutex/majority"
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

// Row is one figure of one algorithm. Delays are in units of D, throughput is in entries per D.
// Jain's index of fairness is 1 if all processes entered equally often.
type Row struct {
	Algorithm string `json:"algorithm"`
	N         int    `json:"n"`
	Regime    string `json:"regime"`
	// Mode and Setting are empty for the default mode and the usual setting.
	Mode    string `json:"mode,omitempty"`
	Setting string `json:"setting,omitempty"`
	Metric  string `json:"metric"`
	// Theory is the value of the Spec's formula. It is set if the formula is exact, or gives
	// the expected value of a random figure.
	Theory *float64 `json:"theory"`
	// Bounds are the smallest and the largest value by the Spec, if it has both.
	Bounds   *[2]float64 `json:"bounds"`
	Measured float64     `json:"measured"`

	// Least is the smallest value by the Spec, if it has no largest.
	Least *float64 `json:"-"`
	// Cost is the entry of the Spec for this figure, or nil.
	Cost *process.Cost `json:"-"`

	slack float64 // the relative deviation that is allowed
}

// Within reports whether the figure agrees with Theory, or lies between the bounds. It returns
// true if the Row has neither.
func (r *Row) Within() bool {
	near := r.slack * max(1, math.Abs(r.Measured))
	switch {
	case r.Theory != nil:
		return math.Abs(r.Measured-*r.Theory) <= near
	case r.Bounds != nil:
		return r.Bounds[0]-near <= r.Measured && r.Measured <= r.Bounds[1]+near
	case r.Least != nil:
		return *r.Least-near <= r.Measured
	}
	return true
}

// Algorithm measures one algorithm for mutual exclusion with n processes, idle and saturated. If
// the Spec gives a figure only as the mean over all requesters, the requesters are random. It
// returns an error if the algorithm cannot run with n processes, or broke one of its claims.
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

// drawn returns the same run with random requesters, or nil if the Spec has no formula for them.
func (s *subject) drawn() (*subject, error) {
	by := s.setting
	if by.regime != sim.Idle || !hasMean(s.spec, by.mode) || s.config.Process.N < 2 {
		return nil, nil
	}
	by.name, by.drawn = byLot, true
	return run(s.spec, s.config.Process.N, by, false)
}

// instead returns the row with random requesters, if the Spec gives only the mean of the figure.
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

// Costs measures every cost that a Spec gives, with n processes. For every setting it returns one
// row for each figure and each Cost of it. With brief it measures only a few entries of each run.
// That is enough for all figures except fairness, and runs of more than 100 processes would take
// too long without it.
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

// figure is the measured value of one metric. If each entry has a value of its own, it also has the
// extremes.
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
	if r.Sync.Count > 0 { // a process waited for another one
		figures = append(figures, each(SyncDelay, r.Sync))
	}
	// A single process enters again at once: without sections, its throughput is infinite.
	if throughput := s.withoutSections(r.Throughput()); !math.IsInf(throughput, 0) {
		figures = append(figures, overall(Throughput, throughput))
	}
	return append(figures, overall(Jain, r.Jain()))
}

// withoutSections returns the throughput that would result if critical sections took no time. A
// cycle is a synchronization delay and a section. With k units of the resource, k cycles run in
// parallel.
func (s *subject) withoutSections(throughput float64) float64 {
	k := float64(max(1, s.units()))
	return k / (k/throughput - section)
}

// The relative deviations that are allowed.
const (
	// slackIdle allows only rounding: every entry is measured to its end.
	slackIdle = 1e-9
	// slackSaturated is for a figure that is the same for every entry, if the window is not a
	// whole number of rounds.
	slackSaturated = 2e-3
	// slackDrawn is for the mean of a random figure.
	slackDrawn = 3e-2
)

// slackEnds is for a figure that differs between entries: the ends of the window may change it by
// the cost of one entry.
func (s *subject) slackEnds() float64 { return max(slackSaturated, 1/float64(s.result.Entries)) }

// subject is a run and its result.
type subject struct {
	spec    *process.Spec
	setting setting
	config  sim.Config
	result  *sim.Result
}

var metrics = map[string]process.Metric{
	MessagesPerEntry: process.MessagesPerEntry,
	ClientDelay:      process.ClientDelay,
	SyncDelay:        process.SyncDelay,
	Throughput:       process.Throughput,
}

var regimes = map[sim.Regime]process.Regime{sim.Idle: process.Idle, sim.Saturated: process.Saturated}

// row compares a figure with a Cost, which may be nil.
func (s *subject) row(f figure, c *process.Cost) Row {
	r := Row{
		Algorithm: s.spec.Name, N: s.config.Process.N, Regime: s.setting.regime.String(), Setting: s.setting.name,
		Metric: f.metric, Measured: f.mean, Cost: c, slack: slackIdle,
	}
	if s.setting.mode != option(s.spec, "mode") {
		r.Mode = s.setting.mode
	}
	r.compare(s, f)
	return r
}

// compare sets the values of the Cost and the deviation that is allowed.
func (r *Row) compare(s *subject, f figure) {
	c := r.Cost
	if c == nil || r.N < 2 {
		return // the formulas hold for two or more processes
	}
	if s.setting.regime == sim.Saturated {
		if r.slack = slackSaturated; c.Exact == nil || ofPolls(c.Exact) {
			r.slack = s.slackEnds()
		}
	}
	switch {
	case s.setting.drawn:
		r.Theory, r.slack = s.mean(c.Mean), slackDrawn
	case c.Exact != nil:
		r.Theory = s.mean(c.Exact)
	case c.Lo != nil && c.Hi != nil:
		r.Bounds = &[2]float64{*s.mean(c.Lo), *s.mean(c.Hi)}
		r.Measured = outermost(f, r.Bounds)
	case c.Lo != nil:
		r.Least, r.Measured = s.mean(c.Lo), f.least
	}
}

// outermost returns the figure of an entry that is out of bounds, or the mean if there is none.
func outermost(f figure, bounds *[2]float64) float64 {
	switch {
	case f.least < bounds[0]:
		return f.least
	case f.most > bounds[1]:
		return f.most
	}
	return f.mean
}

// costs returns all Costs of the Spec for a metric in this setting.
func (s *subject) costs(metric process.Metric) []*process.Cost {
	var found []*process.Cost
	for i := range s.spec.Claims.Costs {
		if c := &s.spec.Claims.Costs[i]; c.Metric == metric && s.setting.shows(c) {
			found = append(found, c)
		}
	}
	return found
}

// best returns the most specific Cost for a metric, or nil. It prefers a Cost for the regime to one
// for any load, and an exact Cost to bounds.
func (s *subject) best(metric process.Metric) *process.Cost {
	var best *process.Cost
	for _, c := range s.costs(metric) {
		if best == nil || rank(c) > rank(best) {
			best = c
		}
	}
	return best
}

func rank(c *process.Cost) int {
	rank := 0
	if c.Regime != process.AnyLoad {
		rank += 2
	}
	if c.Exact != nil {
		rank++
	}
	return rank
}

// units returns how many processes may be inside. It is 0 for an algorithm without such an option.
func (s *subject) units() int { return s.spec.Number(&s.config.Process, "k", 0) }

// mean evaluates a formula for each entry and returns the mean. The size of a voting set may depend
// on the process, and so does the distance on a tree.
func (s *subject) mean(f *process.Formula) *float64 {
	sum, entries := 0.0, 0
	clients := slices.Compact(slices.Sorted(slices.Values(s.config.Workload.Clients)))
	for i, entered := range s.result.PerClient {
		if entered > 0 {
			sum += float64(entered) * s.evaluate(f, clients[i])
			entries += entered
		}
	}
	mean := sum / float64(entries)
	return &mean
}

// evaluate accepts a mean number of polls that is not an integer, because formulas are linear in the
// number of polls.
func (s *subject) evaluate(f *process.Formula, p process.ID) float64 {
	params := s.params(p)
	polls, rest := math.Modf(s.polls())
	params.Polls = int(polls)
	value := f.Eval(params)
	if rest == 0 {
		return value
	}
	params.Polls++
	return value + rest*(f.Eval(params)-value)
}

// ofPolls reports whether a formula depends on the polls of an entry.
func ofPolls(f *process.Formula) bool {
	return f.Eval(process.Params{N: 2, Polls: 1}) != f.Eval(process.Params{N: 2, Polls: 2})
}

// polls returns the number of requests sent for an entry.
func (s *subject) polls() float64 {
	for _, m := range s.result.Messages {
		if m.Name == "REQUEST" {
			return float64(m.Sent) / float64(s.result.Entries)
		}
	}
	return 1
}

func (s *subject) params(p process.ID) process.Params {
	n := s.config.Process.N
	params := process.Params{N: n, Live: n, K: s.units(), Rank: int(p) + 1, Distance: s.distance(p)}
	if sets := s.config.Process.Topology.Quorums; sets != nil {
		params.K = len(sets[p])
	}
	switch s.spec.Name {
	case majority.Spec.Name:
		params.Replicas, params.M = majority.Sizes(&s.config.Process)
	case lease.Redlock.Name:
		params.Replicas = lease.Servers(&s.config.Process)
	}
	return params
}

// distance returns the number of hops on the tree between a requester and the previous one, which
// has the token.
func (s *subject) distance(p process.ID) int {
	parent := s.config.Process.Topology.Parent
	if parent == nil {
		return 0
	}
	clients := s.config.Workload.Clients
	q := clients[(slices.Index(clients, p)+len(clients)-1)%len(clients)]
	hops := 0
	for above, below := depth(parent, p), depth(parent, q); p != q; hops++ {
		if above > below {
			p, above = parent[p], above-1
		} else {
			q, below = parent[q], below-1
		}
	}
	return hops
}

func depth(parent []process.ID, p process.ID) int {
	edges := 0
	for ; parent[p] != process.None; p = parent[p] {
		edges++
	}
	return edges
}
