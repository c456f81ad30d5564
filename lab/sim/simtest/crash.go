package simtest

import (
	"math/rand/v2"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

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
		c.inStep = r.IntN(2) == 0 && s.anyMayCrash()
		if s.survives(process.AmnesiaRestart) && r.IntN(4) > 0 {
			c.down = process.Duration(1 + r.Int64N(40*int64(d)))
		}
		s.crashes = append(s.crashes, c)
	}
}

// survives reports whether the algorithm claims to survive a fault in the mode of
// the schedule.
func (s *schedule) survives(fault process.Fault) bool { return s.plan.Spec.Survives(fault, s.mode) }

// anyMayCrash reports whether a process may crash whatever it does, so that the
// crash may come within a step.
func (s *schedule) anyMayCrash() bool {
	return s.survives(process.CrashAny)
}

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
