package simtest

import (
	"math/rand/v2"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

const d = process.Millisecond

// drawLinks draws delays that D bounds, unless the algorithm does not care.
func (s *schedule) drawLinks(r *rand.Rand) {
	needs := s.plan.Spec.Needs
	delays := []sim.Delay{sim.Constant(d), sim.Uniform(d/10, d), sim.Uniform(1, d)}
	if !needs.Synchrony {
		delays = append(delays, sim.Exponential(d/10, d), sim.Exponential(0, d))
	}
	l := &s.cfg.Links.Link
	if s.cfg.Process.Delay = d; needs.Causal {
		l.Delay = sim.Constant(d) // equal delays everywhere keep happened-before
		return
	}
	l.Delay = delays[r.IntN(len(delays))]
	l.Unordered = !needs.FIFO && r.IntN(2) == 0
	if s.survives(process.Reorder) && !needs.FIFO && !needs.Synchrony {
		l.Reorder = []float64{0, 0, 0.2}[r.IntN(3)]
	}
	if s.survives(process.Duplication) && !needs.NoDuplication {
		l.Duplicate = []float64{0, 0.1, 0.3}[r.IntN(3)]
	}
	if s.survives(process.Loss) && !needs.Reliable {
		l.Drop = []float64{0, 0.05, 0.2}[r.IntN(3)]
	}
}

// drawLoad draws which processes ask, and when: all of them all the time, all of them
// from time to time, or by a finite list of commands.
func (s *schedule) drawLoad(r *rand.Rand) {
	n := s.cfg.Process.N
	load := &s.cfg.Workload
	load.Section = []sim.Delay{sim.Constant(1), sim.Constant(2 * d), sim.Uniform(1, 5*d)}[r.IntN(3)]
	s.cfg.Process.Section = max(1, load.Section.Mean())
	s.cfg.Limit = sim.Limit{Entries: 10 * n, Events: uint64(20_000 * (n + 1))}
	family := s.plan.Spec.Top().Family
	if family.Locks() && !s.plan.Spec.Has(process.Detector) {
		switch r.IntN(3) {
		case 0:
			load.Regime = sim.Saturated
			return
		case 1:
			load.Regime, load.Think = sim.Loaded, sim.Exponential(0, process.Duration(r.IntN(4*n)+1)*d)
			return
		}
	}
	s.cfg.Limit = sim.Limit{Events: uint64(4_000 * (n + 1))} // a token may go round forever
	if s.plan.Spec.Has(process.Detector) {
		// A detector never falls silent. The commands end after 20(N+1) D, and
		// what they ask for must be done long before the run is over.
		s.cfg.Limit = sim.Limit{Until: process.Duration(200*(n+1)) * d}
	}
	if family == process.Detector {
		load.Regime = sim.Listed
		return
	}
	span := process.Duration((n+1)*[]int{20, 1}[r.IntN(2)]) * d // spread out, or all at once
	if s.plan.Spec.Family == process.Agreement && s.plan.Spec.Needs.Synchrony {
		for p := range process.ID(n) { // rounds begin together
			load.Commands = append(load.Commands, sim.Command{Process: p, Kind: process.Propose, Value: r.Int64N(100)})
		}
		return
	}
	if family == process.Transaction {
		s.drawVotes(r, span/10)
		return
	}
	for range 4*n + r.IntN(8*n) {
		load.Commands = append(load.Commands, s.drawCommand(r, span))
	}
}

// drawVotes lets all processes vote, at once or over a span of time. In half of the
// schedules, all vote yes.
func (s *schedule) drawVotes(r *rand.Rand, span process.Duration) {
	no, together := r.IntN(2), r.IntN(2) == 0
	for p := range process.ID(s.cfg.Process.N) {
		c := sim.Command{Process: p, Kind: process.Propose, Value: process.Commit}
		if r.IntN(3) < no {
			c.Value = process.Abort
		}
		if !together {
			c.At = process.Duration(r.Int64N(int64(span)))
		}
		s.cfg.Workload.Commands = append(s.cfg.Workload.Commands, c)
	}
}

func (s *schedule) drawCommand(r *rand.Rand, span process.Duration) sim.Command {
	n := s.cfg.Process.N
	c := sim.Command{Process: process.ID(r.IntN(n)), At: process.Duration(r.Int64N(int64(span)))}
	switch s.plan.Spec.Top().Family {
	case process.Mutex, process.Deadlock:
		c.Kind = []process.Kind{process.Acquire, process.Acquire, process.Acquire, process.Release, process.Cancel}[r.IntN(5)]
	case process.Election:
		c.Kind = process.Campaign
	case process.GlobalState:
		c.Kind = process.Record
	case process.ClockSync:
		c.Kind, c.Value = process.Propose, r.Int64N(int64(n+2))-1 // to whom; also everybody or nobody
	default:
		c.Kind, c.Value = process.Propose, r.Int64N(100)
	}
	return c
}

func (s *schedule) drawPauses(r *rand.Rand) {
	for range r.IntN(3) {
		s.cfg.Faults = append(s.cfg.Faults, sim.Fault{
			Kind: sim.Pause, Process: process.ID(r.IntN(s.cfg.Process.N)),
			At: process.Duration(r.Int64N(100 * int64(d))), For: process.Duration(1 + r.Int64N(50*int64(d))),
		})
	}
}
