package sim

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// beliefs is what each process has announced about each other. Only the pairs with a
// suspicion use memory, not all N*N.
type beliefs struct {
	suspected map[uint64]bool
	// mistakes counts suspicions that were withdrawn. A detector that lengthens its
	// timeout with every mistake may take that much longer.
	mistakes map[uint64]int
}

func newBeliefs() beliefs {
	return beliefs{suspected: map[uint64]bool{}, mistakes: map[uint64]int{}}
}

// watch records suspicions and their ends. A process that restarts has forgotten its
// suspicions.
func (b *beliefs) watch(w *World, o *Observation) {
	key := pair(int32(o.Process), int32(o.Peer))
	switch o.Kind {
	case Suspected, Failed:
		b.suspected[key] = true
	case Trusted, Rejoined:
		if b.suspected[key] {
			b.mistakes[key]++
		}
		delete(b.suspected, key)
	case Restarted:
		for q := range process.ID(w.config.N) {
			delete(b.suspected, pair(int32(o.Process), int32(q)))
			delete(b.mistakes, pair(int32(o.Process), int32(q)))
		}
	}
}

// settled reports whether a detector has had enough time, since the last fault, to find
// out what p should know about q, or has nothing left to do.
func (b *beliefs) settled(w *World, p, q process.ID, within process.Duration) bool {
	mistakes := process.Duration(b.mistakes[pair(int32(p), int32(q))])
	return w.now-w.disturbed > within*(1+mistakes) || w.reason == Quiet
}

// StrongCompleteness watches that at the end, if the last fault was long enough ago for
// the detector, every process that is down is suspected by all live processes.
func StrongCompleteness(w *World) Watcher {
	return judgeBeliefs(w, process.StrongCompleteness, func(b *beliefs, p, q process.ID) string {
		if !w.procs[q].down || b.suspected[pair(int32(p), int32(q))] {
			return ""
		}
		return fmt.Sprintf("%s is down and %s does not suspect it", w.config.Text(q), w.config.Text(p))
	})
}

// EventualAccuracy watches that at the end, if the last fault was long enough ago for
// the detector, no live process suspects another. It does not judge runs in which links
// may lose messages or take longer than D.
func EventualAccuracy(w *World) Watcher {
	calm := w.calm()
	return judgeBeliefs(w, process.EventualAccuracy, func(b *beliefs, p, q process.ID) string {
		if !calm || w.procs[q].down || !b.suspected[pair(int32(p), int32(q))] {
			return ""
		}
		return fmt.Sprintf("%s still suspects %s, which is up", w.config.Text(p), w.config.Text(q))
	})
}

// judgeBeliefs checks, at the end, each pair of a live process p and another process q
// that the detector has had enough time for.
func judgeBeliefs(w *World, property process.Property, wrong func(b *beliefs, p, q process.ID) string) Watcher {
	b := newBeliefs()
	within := allowance(w.cfg.Spec, property, w.config)
	return Watcher{
		Property: property,
		Watch: func(o *Observation) string {
			b.watch(w, o)
			return ""
		},
		End: func() string {
			if within == 0 || w.heldUpByFaults() {
				return ""
			}
			for p := range process.ID(w.config.N) {
				for q := range process.ID(w.config.N) {
					if p == q || w.procs[p].down || !b.settled(w, p, q, within) {
						continue
					}
					if text := wrong(&b, p, q); text != "" {
						return text
					}
				}
			}
			return ""
		},
	}
}

// allowance is the time that a Spec claims for a property, 0 if it claims none.
func allowance(spec *process.Spec, property process.Property, c *process.Config) process.Duration {
	for _, claim := range spec.Claims.Properties {
		if claim.Property == property && claim.Within != nil && claim.Holds(spec.Mode(c)) {
			return claim.Within(c)
		}
	}
	return 0
}

// heldUpByFaults reports whether a fault is still in force.
func (w *World) heldUpByFaults() bool {
	return w.anyPaused() || w.cuts != nil || len(w.losses) > 0
}

// calm reports whether all links lose nothing and take at most D.
func (w *World) calm() bool {
	calm := !w.cfg.slows() && w.cfg.Links.Link.calm(w.cfg.Links.Delay, w.config.D())
	for _, o := range w.cfg.Links.Overrides {
		calm = calm && o.Link.calm(w.cfg.Links.Delay, w.config.D())
	}
	return calm
}

func (l Link) calm(byDefault Delay, bound process.Duration) bool {
	most, bounded := l.Delay.or(byDefault).Max()
	return bounded && most <= bound && l.Drop == 0 && l.Reorder == 0
}
