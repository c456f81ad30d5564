package measure

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// The metrics of an election. Time is in units of D. It ends when the last live process knows the
// leader.
const (
	Messages = "messages"
	Time     = "time"
)

// electionRegimes are the regimes in which elections are measured.
var electionRegimes = []process.Regime{process.OneStarter, process.AllStart, process.Worst}

// Elections returns the election algorithms that are correct and are not part of a stack.
func Elections(all []*process.Spec) []*process.Spec {
	var chosen []*process.Spec
	for _, s := range all {
		terminates := slices.ContainsFunc(s.Claims.Properties, func(c process.Claim) bool {
			return c.Property == process.LeaderTermination && !c.Fails
		})
		if s.Family == process.Election && s.Layers == nil && terminates {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

// Election measures one election of n processes in each regime.
//
//   - One starter: the mean over all starters. If there are many, the mean over the worst, the
//     middle and the best one.
//   - All start: on a ring of rising labels. If the order of the ring matters, the mean over
//     many rings.
//   - Worst: the worst case, if the Spec gives its cost.
//
// It returns an error if the algorithm cannot run with n processes, or elected the wrong one.
func Election(spec *process.Spec, n int) ([]Row, error) {
	var rows []Row
	for _, regime := range electionRegimes {
		if regime == process.Worst && !claimsWorst(spec) {
			continue
		}
		more, err := electionIn(spec, n, regime)
		if err != nil {
			return nil, fmt.Errorf("%s with n = %d, %s: %w", spec.Name, n, regime, err)
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// claimsWorst reports whether the Spec gives the cost of the worst case. If it only gives bounds
// for all cases, it is not known which order of the labels is the worst.
func claimsWorst(spec *process.Spec) bool {
	return slices.ContainsFunc(spec.Claims.Costs, func(c process.Cost) bool { return c.Regime == process.Worst })
}

func electionIn(spec *process.Spec, n int, regime process.Regime) ([]Row, error) {
	if n < 2 {
		return nil, fmt.Errorf("processes: %d: must be at least 2 for an election", n)
	}
	ballots := ballots(spec, n, regime)
	messages := sample{metric: process.MessagesPerElection, name: Messages}
	times := sample{metric: process.ElectionTime, name: Time}
	for i := range ballots {
		result, err := ballots[i].run()
		if err != nil {
			return nil, err
		}
		messages.add(float64(result.Sent(process.Protocol)), ballots[i].params())
		times.add(ballots[i].duration(result), ballots[i].params())
	}
	// If every ring of the size is tried, the mean is exact.
	exhaustive := n <= largestExhausted
	return []Row{messages.row(spec, n, regime, exhaustive), times.row(spec, n, regime, exhaustive)}, nil
}

// sample has the values of one figure in all runs.
type sample struct {
	metric process.Metric
	name   string
	values []float64
	params []process.Params
}

func (s *sample) add(value float64, p process.Params) {
	s.values, s.params = append(s.values, value), append(s.params, p)
}

// row compares the mean with the formula. If the formula is exact and a run deviates from it, the
// row shows that run.
func (s *sample) row(spec *process.Spec, n int, regime process.Regime, exhaustive bool) Row {
	r := Row{Algorithm: spec.Name, N: n, Regime: regime.String(), Metric: s.name, slack: slackIdle}
	r.Measured = mean(s.values)
	for i := range spec.Claims.Costs {
		if c := &spec.Claims.Costs[i]; c.Metric == s.metric && c.Regime == regime {
			r.Cost = c
			s.compare(&r, exhaustive)
			break
		}
	}
	return r
}

func (s *sample) compare(r *Row, exhaustive bool) {
	c := r.Cost
	for i := range slices.Backward(s.params) { // so that the bounds of the first run stay
		if s.bound(r, i); !r.between(s.values[i]) {
			r.Measured, r.slack = s.values[i], 0
			return
		}
	}
	formula := c.Exact
	switch {
	case formula == nil && c.Mean == nil:
		return
	case formula == nil:
		formula = c.Mean
		if !exhaustive {
			r.slack = 4 * s.standardError() / r.Measured
		}
	}
	var theory []float64
	for i, p := range s.params {
		theory = append(theory, formula.Eval(p))
		if c.Exact != nil && s.values[i] != theory[i] {
			r.Measured, r.Theory, r.slack = s.values[i], &theory[i], 0
			return
		}
	}
	m := mean(theory)
	r.Theory = &m
}

// bound sets one or both bounds of one run. No cost is below 0.
func (s *sample) bound(r *Row, run int) {
	lo, hi := r.Cost.Lo, r.Cost.Hi
	least := 0.0
	if lo != nil {
		least = lo.Eval(s.params[run])
		r.Least = &least
	}
	if hi != nil {
		r.Bounds = &[2]float64{least, hi.Eval(s.params[run])}
	}
}

// between reports whether a figure lies between the bounds.
func (r *Row) between(v float64) bool {
	return (r.Least == nil || *r.Least <= v) && (r.Bounds == nil || r.Bounds[0] <= v && v <= r.Bounds[1])
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// standardError returns the standard error of the mean.
func (s *sample) standardError() float64 {
	m, squares, n := mean(s.values), 0.0, float64(len(s.values))
	for _, v := range s.values {
		squares += (v - m) * (v - m)
	}
	return math.Sqrt(squares / (n - 1) / n)
}

// duration returns how long an election took, in D.
func (b *ballot) duration(result *sim.Result) float64 {
	last := process.Duration(0)
	for _, l := range result.Leaders {
		last = max(last, l.At)
	}
	return float64(last-called) / float64(result.D)
}

const electionIntro = `# What the elections cost, measured

This page compares measurements of every election in the simulator with the formulas of its Spec and with
the figures of the lecture documents. Every message takes exactly D.

- *one-starter*: the mean over every process that may start.
- *all-start*: all start at once; if the arrangement of the labels matters, the mean over many rings.
- *worst*: the worst arrangement and the worst starters, if the algorithm names them. Otherwise the bounds
  of all-start hold for every arrangement.

Messages do not include acknowledgements. Time counts until the last process that is up knows who leads.
\* marks a wrong figure of a document; the reasons are below. With the bully, the highest of the N processes
is down. On a ring, all are up. A tree is binary. In elections by load, the order of the loads is the reverse
of that of the labels.

` + "`make elections`" + ` writes this file. A test fails if it differs from what the simulator measures.

`

// ElectionsMarkdown writes the report of elections for the documentation.
func ElectionsMarkdown(w io.Writer, rows []Row) error { return markdown(w, electionIntro, rows) }

// ballot is one measured election. It names processes by their quality, from 0 to n-1, where the
// best candidate is n-1. In an election by label the quality is the rank. In an election by load it
// is the reverse of the rank.
type ballot struct {
	spec     *process.Spec
	order    []int // of the ring, in the direction of sending
	starters []int
	highest  bool // is up
}

// The largest numbers of processes for which all starters are tried, all rings are tried, and all
// claims of the Spec are checked.
const (
	largestStarted   = 50
	largestExhausted = 8
	largestWatched   = 20
)

// rings is the number of random rings that are tried if there are too many to try all.
const rings = 100

// called is when elections start. The processes learn their loads before.
const called = process.Millisecond

// ballots returns the elections of a regime.
func ballots(spec *process.Spec, n int, regime process.Regime) []ballot {
	usual := ballot{spec: spec, order: count(n), highest: !losesHighest(spec)}
	up := n
	if !usual.highest {
		up--
	}
	usual.starters = count(up)
	switch {
	case regime == process.OneStarter:
		return usual.eachStarter(up)
	case regime == process.Worst:
		return []ballot{usual.worst()}
	case random(spec):
		return usual.eachRing(n)
	}
	return []ballot{usual}
}

// losesHighest reports whether an election is measured as the bully is: the highest process
// has crashed, and the others look for another leader.
func losesHighest(spec *process.Spec) bool {
	return spec.Needs.Topology != process.RingTopology && !spec.Needs.Load && spec.Survives(process.CrashSpecial, spec.Modes()[0])
}

// worst returns the election that costs the most according to the Spec.
func (b ballot) worst() ballot {
	var a process.Arrangement
	if of := b.spec.Claims.Worst; of != nil {
		a = of(len(b.order))
	}
	if a.Ring != nil {
		b.order = a.Ring
	}
	if a.Starters != nil {
		b.starters = a.Starters
	}
	return b
}

// random reports whether the cost depends on the order of the ring if all processes start.
func random(spec *process.Spec) bool {
	return slices.ContainsFunc(spec.Claims.Costs, func(c process.Cost) bool { return c.Regime == process.AllStart && c.Exact == nil })
}

func count(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func (b ballot) eachStarter(up int) []ballot {
	starters := count(up)
	if up > largestStarted {
		starters = []int{0, up / 2, up - 1}
	}
	var all []ballot
	for _, s := range starters {
		b.starters = []int{s}
		all = append(all, b)
	}
	return all
}

// eachRing returns the election on every ring, or on random rings if there are too many.
func (b ballot) eachRing(n int) []ballot {
	var all []ballot
	add := func(order []int) {
		b.order = slices.Clone(order)
		all = append(all, b)
	}
	if n <= largestExhausted {
		permutations(count(n), 1, add) // rotations are the same ring
		return all
	}
	dice := rand.New(rand.NewPCG(3, uint64(n)))
	for range rings {
		add(dice.Perm(n))
	}
	return all
}

func permutations(order []int, from int, add func([]int)) {
	if from == len(order) {
		add(order)
	}
	for i := from; i < len(order); i++ {
		order[from], order[i] = order[i], order[from]
		permutations(order, from+1, add)
		order[from], order[i] = order[i], order[from]
	}
}

// id returns the process with a quality.
func (b *ballot) id(quality int) process.ID {
	if b.spec.Needs.Load {
		return process.ID(len(b.order) - 1 - quality)
	}
	return process.ID(quality)
}

func (b *ballot) config() sim.Config {
	n := len(b.order)
	ring := make([]process.ID, n)
	for i, quality := range b.order {
		ring[i] = b.id(quality)
	}
	cfg := sim.Config{
		Spec:    b.spec,
		Process: process.Config{N: n, Delay: process.Millisecond, Topology: process.Topology{Successor: process.Ring(ring...)}},
		Limit:   sim.Limit{Events: 1 << 40},
	}
	if n > largestWatched {
		cfg.Judges = []sim.Judge{sim.LeaderAgreement}
	}
	for quality := range n {
		if b.spec.Needs.Load {
			cfg.Workload.Commands = append(cfg.Workload.Commands,
				sim.Command{Kind: process.Load, Process: b.id(quality), Value: int64(n - quality)})
		}
	}
	for _, quality := range b.starters {
		cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{Kind: process.Campaign, Process: b.id(quality), At: called})
	}
	if !b.highest {
		cfg.Faults = []sim.Fault{{Kind: sim.Crash, Process: b.id(n - 1)}}
	}
	return cfg
}

// run runs the election, and checks that all live processes follow the best one.
func (b *ballot) run() (*sim.Result, error) {
	result, err := sim.Run(b.config())
	if err != nil {
		return nil, err
	}
	if len(result.Violations) > 0 {
		return nil, fmt.Errorf("%v", result.Violations[0])
	}
	best := b.id(b.live() - 1)
	for p := range process.ID(len(b.order)) {
		if !b.highest && p == b.id(len(b.order)-1) {
			continue
		}
		if result.Leaders == nil || result.Leaders[p].Leader != best {
			return nil, fmt.Errorf("process %d does not follow %d: %s", p+1, best+1, result.Reason)
		}
	}
	return result, nil
}

func (b *ballot) live() int {
	if b.highest {
		return len(b.order)
	}
	return len(b.order) - 1
}

// params returns the parameters of the formulas for the first starter.
func (b *ballot) params() process.Params {
	n := len(b.order)
	from, to := slices.Index(b.order, b.starters[0]), slices.Index(b.order, n-1)
	return process.Params{
		N: n, Live: b.live(), Rank: b.starters[0] + 1, Starters: len(b.starters), Distance: (to - from + n) % n,
	}
}
