package sim

import (
	"cmp"
	"slices"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// StateInvariant watches that the invariant of the Spec holds after each event. It does
// not judge a Spec without an invariant.
func StateInvariant(w *World) Watcher {
	watcher := Watcher{Property: process.StateInvariant}
	if w.cfg.Spec.Invariant != nil {
		s := &snapshot{w: w}
		watcher.State = func() string { return w.say(property.Invariant(w.cfg.Spec, s.take())) }
	}
	return watcher
}

// snapshot is the present state of a run, in reused memory.
type snapshot struct {
	w        *World
	global   process.Global
	flights  []item
	messages []process.Message
}

func (s *snapshot) take() *process.Global {
	w, g := s.w, &s.global
	g.Config, g.Faults = w.config, w.faults
	g.Machines, g.Messages, s.flights, s.messages = g.Machines[:0], g.Messages[:0], s.flights[:0], s.messages[:0]
	for p := range w.procs {
		g.Machines = append(g.Machines, nil)
		if !w.procs[p].down {
			g.Machines[p] = w.procs[p].machine
		}
	}
	w.queue.each(s.add)
	for i := range w.backlog {
		s.add(&w.backlog[i])
	}
	slices.SortFunc(s.flights, func(a, b item) int {
		from := cmp.Compare(w.payloads.list[a.arg].from, w.payloads.list[b.arg].from)
		return cmp.Or(from, cmp.Compare(a.proc, b.proc), cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
	})
	s.messages = slices.Grow(s.messages, len(s.flights)) // the pointers must stay valid
	for i := range s.flights {
		it := &s.flights[i]
		s.messages = append(s.messages, process.Message{})
		w.payloads.fill(it.arg, process.ID(it.proc), &s.messages[i])
		g.Messages = append(g.Messages, &s.messages[i])
	}
	return g
}

// add includes an item if it is a message that would be accepted.
func (s *snapshot) add(it *item) {
	if it.kind != itemDelivery || it.revocable && s.w.stale(it) {
		return
	}
	pl := &s.w.payloads.list[it.arg]
	to := &s.w.procs[it.proc]
	outdated := s.w.oracle.news && s.w.outdated(process.ID(it.proc), pl.from, pl.incarnation)
	if !to.down && to.incarnation == it.incarnation && !pl.void && !outdated {
		s.flights = append(s.flights, *it)
	}
}

// Convergence watches that states stay legitimate once they are, until the next fault,
// and that they are legitimate at the end. A state is legitimate if the invariant of
// the Spec holds. It does not judge a Spec without an invariant.
func Convergence(w *World) Watcher {
	watcher := Watcher{Property: process.Convergence}
	if w.cfg.Spec.Invariant == nil {
		return watcher
	}
	s := &snapshot{w: w}
	legitimate, since := false, process.Duration(0)
	watcher.State = func() string {
		if w.disturbed != since {
			legitimate, since = false, w.disturbed
		}
		text := w.cfg.Spec.Invariant.Wrong(s.take())
		if text != "" && legitimate && w.disturbed < w.now {
			return w.say(property.Left(text))
		}
		legitimate = text == ""
		return ""
	}
	watcher.End = func() string {
		if text := w.cfg.Spec.Invariant.Wrong(s.take()); text != "" {
			return w.say(property.Illegitimate(text))
		}
		return ""
	}
	return watcher
}

// deadlocks returns the judge of a property of detectors. Declarations are compared with
// the processes that were stuck before that step.
func deadlocks(judged process.Property) Judge {
	return func(w *World) Watcher {
		watcher := Watcher{Property: judged}
		if w.cfg.Spec.Waits == nil {
			return watcher
		}
		layer, declares := property.Declares(w.cfg.Spec)
		state, declared := &snapshot{w: w}, process.NewSet(w.config.N)
		var stuck property.Stuck
		watcher.Watch = func(o *Observation) string {
			switch {
			case o.Kind == Entered || o.Kind == Crashed:
				declared.Remove(o.Process)
			case o.Kind == Delivered && o.Message.Layer == layer && o.Message.Type == declares:
				declared.Add(o.Message.Subject)
				if judged == process.NoPhantom {
					return w.say(property.Phantom(w.scene(), o.Process, o.Message.Subject, stuck))
				}
			}
			return ""
		}
		watcher.State = func() string {
			stuck = property.StuckIn(w.cfg.Spec.Waits(state.take()))
			return ""
		}
		if judged == process.DeadlockFound {
			watcher.Quiet = func() string { return w.say(property.DeadlockFound(w.scene(), stuck, declared.Has)) }
		}
		return watcher
	}
}
