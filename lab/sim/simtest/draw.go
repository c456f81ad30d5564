package simtest

import (
	"math/rand/v2"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
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

// crash happens after a number of events, or as soon after that as there is a
// process that may crash.
type crash struct {
	after   uint64
	rank    int           // where to begin looking for one
	wanted  process.Fault // what kind of crash it should be, if that can be had soon
	inStep  bool
	effects int
	down    process.Duration // 0: for good
}

// crashDelay is how many events a crash waits at most for an event of the wanted kind.
const crashDelay = 100

// drawCrashes draws up to half of the processes, as far as some may crash.
func (s *schedule) drawCrashes(r *rand.Rand) {
	n, events := s.cfg.Process.N, 60
	if s.plan.Spec.Top().Family == process.Transaction {
		events = 8 // there is only one
	}
	for range r.IntN((n-1)/2 + 1) {
		c := crash{after: r.Uint64N(uint64(events * n)), rank: r.IntN(n), effects: r.IntN(n + 3)}
		c.wanted = process.CrashBystander + process.Fault(r.IntN(int(process.CrashAny-process.CrashBystander)+1))
		if !s.survives(c.wanted) {
			c.wanted = process.CrashAny
		}
		c.inStep = r.IntN(2) == 0 && s.survives(process.CrashAny) // whatever it does
		if s.survives(process.AmnesiaRestart) && r.IntN(4) > 0 {
			c.down = process.Duration(1 + r.Int64N(40*int64(d)))
		}
		s.crashes = append(s.crashes, c)
	}
}

// survives reports whether the algorithm claims to survive a fault in the mode of
// the schedule.
func (s *schedule) survives(fault process.Fault) bool { return s.plan.Spec.Survives(fault, s.mode) }

// mayCrash reports whether the algorithm survives a crash of q now.
func (s *schedule) mayCrash(w *sim.World, q process.ID) bool {
	status := w.Status(q)
	switch {
	case status.Down, s.plan.MayCrash != nil && !s.plan.MayCrash(w, q):
		return false
	case !s.survives(process.CrashSpecial) && s.isSpecial(w, q):
		return false
	case status.Inside:
		return s.survives(process.CrashHolder)
	case status.Waiting || s.seen.withdrawn.Has(q):
		return s.survives(process.CrashWaiter)
	}
	return s.survives(process.CrashBystander)
}

func (s *schedule) isSpecial(w *sim.World, q process.ID) bool {
	if s.plan.Special != nil {
		return s.plan.Special(w, q)
	}
	return property.HasSpecial(s.plan.Spec) && q == s.seen.token
}

// crashDue lets a crash happen that is due, or delays it if no process may crash. Only
// one crash happens at a time, because the processes that may crash can depend on earlier
// crashes.
func (s *schedule) crashDue(w *sim.World) error {
	if len(s.due) == 0 || s.due[0].after > w.Events() || s.seen.doomed != process.None && s.plan.MayCrash != nil {
		return nil
	}
	happened, err := s.crash(w, s.due[0])
	if happened {
		s.due = s.due[1:]
	}
	return err
}

func (s *schedule) crash(w *sim.World, c crash) (happened bool, err error) {
	for i := range s.cfg.Process.N {
		q := process.ID((c.rank + i) % s.cfg.Process.N)
		if !s.mayCrash(w, q) || w.Events() < c.after+crashDelay && !s.seen.is(c.wanted, q) {
			continue
		}
		f := sim.Fault{Kind: sim.Crash, Process: q, For: c.down}
		if c.inStep {
			f.Kind, f.Effects = sim.CrashInStep, c.effects
		}
		s.seen.doomed = q
		return true, w.Fault(f)
	}
	return false, nil
}
