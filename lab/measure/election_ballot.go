package measure

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

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
