package measure

import (
	"math"
	"slices"
	"strconv"

	"github.com/conclave-io/conclave/algorithm/mutex/lease"
	"github.com/conclave-io/conclave/algorithm/mutex/majority"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// By how much of itself a figure may be off.
const (
	// slackIdle is for rounding alone: every entry is counted to its end.
	slackIdle = 1e-9
	// slackSaturated is what the end of a window that is not a whole number of
	// rounds may make of a figure that is the same for every entry.
	slackSaturated = 2e-3
	// slackDrawn is what chance may make of a mean.
	slackDrawn = 3e-2
)

// slackEnds is what the ends of the window may make of a figure that differs from
// entry to entry: what one of the entries costs.
func (s *subject) slackEnds() float64 { return max(slackSaturated, 1/float64(s.result.Entries)) }

// subject is a run, and what it came to.
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

// row sets a figure beside a Cost, or beside nothing.
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

// compare fills in what the Cost says, and how exactly the figure must meet it.
func (r *Row) compare(s *subject, f figure) {
	c := r.Cost
	if c == nil || r.N < 2 {
		return // the formulas are of two processes or more
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

// outermost is the figure of the entry that is out of bounds, or the mean if none
// is.
func outermost(f figure, bounds *[2]float64) float64 {
	switch {
	case f.least < bounds[0]:
		return f.least
	case f.most > bounds[1]:
		return f.most
	}
	return f.mean
}

// costs returns everything that the Spec says of a metric in this setting.
func (s *subject) costs(metric process.Metric) []*process.Cost {
	var found []*process.Cost
	for i := range s.spec.Claims.Costs {
		if c := &s.spec.Claims.Costs[i]; c.Metric == metric && s.setting.shows(c) {
			found = append(found, c)
		}
	}
	return found
}

// best finds the Cost that says most of a metric, or nil: what it says of the
// regime itself comes before what it says of any load, and the exact before the
// bounded.
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

// units is how many may be inside, 0 for an algorithm that has no such option.
func (s *subject) units() int { return units(s.spec, &s.config.Process) }

func units(spec *process.Spec, c *process.Config) int {
	k, err := strconv.Atoi(c.Option("k", option(spec, "k")))
	if err != nil {
		return 0
	}
	return k
}

// mean evaluates a formula for each entry and returns the mean: voting sets differ
// in size where the number of processes is not the right one, and distances on
// any tree.
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

// evaluate takes a number of polls that is a mean, and not whole, for what it is:
// formulas are linear in it.
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

// ofPolls reports whether a formula speaks of the polls for an entry.
func ofPolls(f *process.Formula) bool {
	return f.Eval(process.Params{N: 2, Polls: 1}) != f.Eval(process.Params{N: 2, Polls: 2})
}

// polls is how many requests were sent for an entry.
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

// distance is how many hops of the tree lie between a requester and the one
// before it, where the token is.
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
