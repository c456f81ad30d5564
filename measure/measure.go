// Package measure sets what an algorithm costs in the simulator beside what its
// Spec, and the lecture documents, say that it costs.
//
// Every message takes exactly D and processing takes no time, which is what the
// formulas assume. In the idle regime the processes enter in turn, each when the
// system is quiet; saturated, everyone asks again at once after leaving. A
// critical section takes 2 D, long enough for all requests to arrive meanwhile;
// throughput is given without it, as 1/SD, since it says nothing of an algorithm.
package measure

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/conclave-io/conclave/algorithm/mutex/majority"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/sim"
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
	Metric    string `json:"metric"`
	// Theory is the figure by the formula of the Spec, if that is exact.
	Theory *float64 `json:"theory"`
	// Bounds are the least and the largest figure by the Spec, if it has both.
	Bounds   *[2]float64 `json:"bounds"`
	Measured float64     `json:"measured"`

	// Cost is what the Spec says, nil if nothing.
	Cost *process.Cost `json:"-"`
}

// slack is what the end of a window that is not a whole number of rounds may
// make of a figure.
const slack = 2e-3

// section is the length of a critical section, in D.
const section = 2

// Within reports whether the figure is what theory says, or lies between the
// bounds. A row without either is.
func (r *Row) Within() bool {
	near := slack * max(1, abs(r.Measured))
	if r.Theory != nil {
		return abs(r.Measured-*r.Theory) <= near
	}
	if r.Bounds != nil {
		return r.Bounds[0]-near <= r.Measured && r.Measured <= r.Bounds[1]+near
	}
	return true
}

func abs(v float64) float64 { return max(v, -v) }

// Algorithm measures one algorithm with n processes, idle and saturated. It must
// be one for mutual exclusion. An error says that it cannot be run like this, or
// broke one of its claims.
func Algorithm(spec *process.Spec, n int) ([]Row, error) {
	var rows []Row
	for _, regime := range []sim.Regime{sim.Idle, sim.Saturated} {
		figures, err := run(spec, n, regime)
		if err != nil {
			return nil, fmt.Errorf("%s with n = %d, %s: %w", spec.Name, n, regime, err)
		}
		rows = append(rows, figures...)
	}
	return rows, nil
}

func run(spec *process.Spec, n int, regime sim.Regime) ([]Row, error) {
	cfg := configure(spec, n, regime)
	result, err := sim.Run(cfg)
	if err != nil {
		return nil, err
	}
	if len(result.Violations) > 0 {
		return nil, fmt.Errorf("%v", result.Violations[0])
	}
	if result.Entries < cfg.Limit.Entries {
		return nil, fmt.Errorf("only %d of %d entries were completed: %s", result.Entries, cfg.Limit.Entries, result.Reason)
	}
	s := subject{spec: spec, config: &cfg, regime: regime}
	rows := []Row{s.row(MessagesPerEntry, result.MessagesPerEntry())}
	if regime == sim.Idle {
		return append(rows, s.row(ClientDelay, result.Wait.Mean)), nil
	}
	if result.Sync.Count > 0 { // somebody waited for somebody else
		rows = append(rows, s.row(SyncDelay, result.Sync.Mean))
	}
	return append(rows, s.row(Throughput, s.withoutSections(result.Throughput())), s.row(Jain, result.Jain())), nil
}

// withoutSections is what a throughput would be if critical sections took no
// time: a cycle is a synchronization delay and a section, and with k units of
// the resource k cycles run at once.
func (s *subject) withoutSections(throughput float64) float64 {
	k := float64(max(1, s.units()))
	return k / (k/throughput - section)
}

// units is how many may be inside, 0 for an algorithm that has no such option.
func (s *subject) units() int {
	k, err := strconv.Atoi(option(s.spec, "k"))
	if err != nil {
		return 0
	}
	return k
}

// rounds is how often everyone enters in a run: once and again when idle, where
// every round is like the other.
func rounds(regime sim.Regime, n int) (warmup, measured int) {
	if regime == sim.Idle {
		return n, 2 * n
	}
	// Long enough that the ends of the window do not show; the more there are,
	// the less it takes.
	return 2 * n, n * max(1, min(1000/n, 20))
}

func configure(spec *process.Spec, n int, regime sim.Regime) sim.Config {
	clients := requesters(spec, n)
	warmup, measured := rounds(regime, len(clients))
	return sim.Config{
		Spec:    spec,
		Process: process.Config{N: n, Topology: topology(spec, n), Delay: process.Millisecond},
		Workload: sim.Workload{
			Regime: regime, Clients: clients, Section: sim.Constant(section * process.Millisecond),
		},
		Limit: sim.Limit{Warmup: warmup, Entries: measured},
	}
}

// requesters are those for whom the formulas hold: a coordinator asks itself
// without a message, so it asks for nothing here, unless there is nobody else.
func requesters(spec *process.Spec, n int) []process.ID {
	first := process.ID(0)
	if spec.Needs.Topology == process.Centre && n > 1 {
		first = 1
	}
	if spec == majority.Spec && n > 1 {
		replicas, _ := majority.Sizes(&process.Config{N: n})
		first = process.ID(replicas)
	}
	var clients []process.ID
	for p := first; p < process.ID(n); p++ {
		clients = append(clients, p)
	}
	return clients
}

// topology is the one that the documents have in mind: a star for a tree, as
// its formulas assume.
func topology(spec *process.Spec, n int) process.Topology {
	switch spec.Needs.Topology {
	case process.Tree:
		return process.Topology{Parent: process.Star(n)}
	case process.Quorums:
		return process.Topology{Quorums: process.VotingSets(n)}
	}
	return process.Topology{}
}

// subject is what a figure is about.
type subject struct {
	spec   *process.Spec
	config *sim.Config
	regime sim.Regime
}

var metrics = map[string]process.Metric{
	MessagesPerEntry: process.MessagesPerEntry,
	ClientDelay:      process.ClientDelay,
	SyncDelay:        process.SyncDelay,
	Throughput:       process.Throughput,
}

var regimes = map[sim.Regime]process.Regime{sim.Idle: process.Idle, sim.Saturated: process.Saturated}

func (s *subject) row(metric string, measured float64) Row {
	r := Row{Algorithm: s.spec.Name, N: s.config.Process.N, Regime: s.regime.String(), Metric: metric, Measured: measured}
	r.Cost = s.cost(metrics[metric])
	if r.Cost == nil {
		return r
	}
	if r.Cost.Exact != nil {
		theory := s.mean(r.Cost.Exact)
		r.Theory = &theory
	}
	if r.Cost.Lo != nil && r.Cost.Hi != nil {
		r.Bounds = &[2]float64{s.mean(r.Cost.Lo), s.mean(r.Cost.Hi)}
	}
	return r
}

// cost finds what the Spec says of a metric in this regime and the default mode:
// what it says of the regime itself comes before what it says of any load.
func (s *subject) cost(metric process.Metric) *process.Cost {
	var found *process.Cost
	for i := range s.spec.Claims.Costs {
		c := &s.spec.Claims.Costs[i]
		if c.Metric != metric || c.Mode != "" && c.Mode != s.mode() {
			continue
		}
		switch {
		case c.Regime == regimes[s.regime] && better(c, found, regimes[s.regime]):
			found = c
		case c.Regime == process.AnyLoad && found == nil:
			found = c
		}
	}
	return found
}

// better prefers the regime itself to any load, and the exact to the bounded.
func better(c, found *process.Cost, regime process.Regime) bool {
	return found == nil || found.Regime != regime || found.Exact == nil && c.Exact != nil
}

func (s *subject) mode() string { return option(s.spec, "mode") }

// option returns the default of an option, or "".
func option(spec *process.Spec, name string) string {
	for _, o := range spec.AllOptions() {
		if o.Name == name {
			return o.Default
		}
	}
	return ""
}

// mean evaluates a formula for each requester and returns the mean: voting sets
// differ in size where the number of processes is not the right one.
func (s *subject) mean(f *process.Formula) float64 {
	sum := 0.0
	for _, p := range s.config.Workload.Clients {
		sum += f.Eval(s.params(p))
	}
	return sum / float64(len(s.config.Workload.Clients))
}

func (s *subject) params(p process.ID) process.Params {
	n := s.config.Process.N
	params := process.Params{N: n, Live: n, Rank: int(p) + 1, Polls: 1, Distance: s.distance(p)}
	params.K = s.units()
	if sets := s.config.Process.Topology.Quorums; sets != nil {
		params.K = len(sets[p])
	}
	if s.spec == majority.Spec {
		params.Replicas, params.M = majority.Sizes(&s.config.Process)
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
	before := clients[(int(p)+len(clients)-1)%len(clients)]
	hops := 0
	for seen := path(parent, p); ; hops++ {
		if up := slices.Index(seen, before); up >= 0 {
			return hops + up
		}
		before = parent[before]
	}
}

// path returns a process and all above it.
func path(parent []process.ID, p process.ID) []process.ID {
	var nodes []process.ID
	for ; p != process.None; p = parent[p] {
		nodes = append(nodes, p)
	}
	return nodes
}
