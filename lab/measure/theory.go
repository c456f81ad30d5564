package measure

import (
	"math"
	"slices"

	"github.com/conclave-io/conclave/algorithm/mutex/lease"
	"github.com/conclave-io/conclave/algorithm/mutex/majority"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

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
