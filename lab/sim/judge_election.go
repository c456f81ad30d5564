package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/conclave-io/conclave/process"
)

// LeaderAgreement watches that nobody differs on the leader of a term.
func LeaderAgreement(w *World) Watcher {
	leaders := map[process.Term]process.ID{}
	return Watcher{Name: "agreement on the leader", Property: process.LeaderAgreement, Watch: func(o *Observation) string {
		if o.Kind != Elected {
			return ""
		}
		leader, known := leaders[o.Term]
		if known && leader != o.Peer {
			return fmt.Sprintf("%s elects %s in round %d, another process elected %s",
				w.config.Text(o.Process), w.config.Text(o.Peer), o.Term.Round(), w.config.Text(leader))
		}
		leaders[o.Term] = o.Peer
		return ""
	}}
}

// LeaderValidity watches that the leader is the best of all that are up: the one of
// the highest label, or the least busy of an algorithm that goes by load; of equal ones
// any will do. It judges runs in which nobody crashes, comes back or gets another load after the first
// message was sent.
func LeaderValidity(w *World) Watcher {
	announced, changed := false, false
	return Watcher{Name: "valid leader", Property: process.LeaderValidity, Watch: func(o *Observation) string {
		switch o.Kind {
		case Crashed, Restarted:
			changed = changed || announced || w.meter.protocol > 0
		case Elected:
			announced = true
			changed = changed || w.loadsChange()
			if best := w.bestLive(); !changed && !w.asGood(o.Peer, best) {
				return fmt.Sprintf("%s elects %s, but %s is up",
					w.config.Text(o.Process), w.config.Text(o.Peer), w.config.Text(best))
			}
		}
		return ""
	}}
}

// bestLive returns the best process that is up, or None.
func (w *World) bestLive() process.ID {
	best := process.None
	for p := range process.ID(w.config.N) {
		if !w.procs[p].down && (best == process.None || w.isBetter(p, best)) {
			best = p
		}
	}
	return best
}

// asGood reports whether p is the best of those that are up, or up and no worse: two
// are equal if their labels are.
func (w *World) asGood(p, best process.ID) bool {
	return p == best || p != process.None && best != process.None && !w.procs[p].down && !w.isBetter(best, p)
}

func (w *World) isBetter(p, q process.ID) bool {
	if w.cfg.Spec.Needs.Load {
		if a, b := w.loadOf(p), w.loadOf(q); a != b {
			return a < b
		}
	}
	return w.config.Above(p, q)
}

// loadOf returns what p was told last of how busy it is. A new incarnation knows
// nothing of that.
func (w *World) loadOf(p process.ID) int64 {
	load, at := int64(math.MaxInt64), process.Duration(-1)
	for i := range w.cfg.Workload.Commands {
		c := &w.cfg.Workload.Commands[i]
		if c.Kind == process.Load && c.Process == p && at <= c.At && c.At <= w.now {
			load, at = max(0, c.Value), c.At
		}
	}
	if w.procs[p].incarnation > 1 {
		return math.MaxInt64
	}
	return load
}

// loadsChange reports whether some process was told a load after somebody was asked
// for an election, or while it was down.
func (w *World) loadsChange() bool {
	called := endOfTime
	for i := range w.cfg.Workload.Commands {
		if c := &w.cfg.Workload.Commands[i]; c.Kind == process.Campaign {
			called = min(called, c.At)
		}
	}
	return w.cfg.Spec.Needs.Load && slices.ContainsFunc(w.cfg.Workload.Commands, func(c Command) bool {
		return c.Kind == process.Load && called <= c.At && c.At <= w.now || w.procs[c.Process].incarnation > 1
	})
}

// LeaderTermination watches that, when nothing is left to happen after somebody
// announced a leader, everyone who is up has announced the same one; and that
// somebody has, if a message of the algorithm reached one who is up. Nor may anybody
// end with a leader that has crashed who was told so, or asked for another in vain.
func LeaderTermination(w *World) Watcher {
	reached := make([]bool, w.config.N)
	left := &orphans{w, make([]process.Duration, w.config.N)}
	return Watcher{
		Name: "election terminates", Property: process.LeaderTermination, Messages: true,
		Watch: func(o *Observation) string {
			switch o.Kind {
			case Received:
				m := w.cfg.Spec.Message(o.Message.Layer, o.Message.Type)
				reached[o.Process] = reached[o.Process] || m.Class == process.Protocol
			case Crashed:
				reached[o.Process], left.crashed[o.Process] = false, w.now
			}
			return ""
		},
		End: func() string {
			switch {
			case w.reason != Quiet:
				return ""
			case w.meter.leaders != nil:
				return cmp.Or(w.disagreement(), left.abandoned())
			}
			if p := slices.Index(reached, true); p >= 0 {
				return w.config.Text(process.ID(p)) + " has never learnt who leads, nor has anybody else"
			}
			return ""
		},
	}
}

func (w *World) disagreement() string {
	var first *Leadership
	for p := range w.meter.leaders {
		l := &w.meter.leaders[p]
		switch {
		case w.procs[p].down:
		case l.Leader == process.None:
			return w.config.Text(l.Process) + " has never learnt who leads"
		case first == nil:
			first = l
		case l.Leader != first.Leader:
			return fmt.Sprintf("%s ends with leader %s, %s with %s", w.config.Text(first.Process),
				w.config.Text(first.Leader), w.config.Text(l.Process), w.config.Text(l.Leader))
		}
	}
	return ""
}

// ValueAgreement watches that nobody decides differently.
func ValueAgreement(w *World) Watcher {
	var value int64
	by := process.None
	return Watcher{Name: "agreement", Property: process.ValueAgreement, Watch: func(o *Observation) string {
		if o.Kind != Decided {
			return ""
		}
		if by != process.None && o.Value != value {
			return fmt.Sprintf("%s decides %d, %s decided %d", w.config.Text(o.Process), o.Value, w.config.Text(by), value)
		}
		value, by = o.Value, o.Process
		return ""
	}}
}

// StrongAccuracy watches that nobody is suspected before it crashes. A crash that
// is noticed only when the process is back gives each of the others a reason for
// one suspicion; who restarts itself has no reason but those who are down then.
func StrongAccuracy(w *World) Watcher {
	crashes := make([]uint32, w.config.N)
	noticed := map[uint64]uint32{} // by who and whom
	watch := func(o *Observation) string {
		switch o.Kind {
		case Crashed:
			crashes[o.Process]++
		case Restarted:
			for q := range process.ID(w.config.N) {
				who := pair(int32(o.Process), int32(q))
				if noticed[who] = crashes[q]; w.procs[q].down {
					noticed[who]--
				}
			}
		case Suspected, Failed:
			who := pair(int32(o.Process), int32(o.Peer))
			if !w.procs[o.Peer].down && noticed[who] == crashes[o.Peer] {
				return fmt.Sprintf("%s suspects %s, which is up", w.config.Text(o.Process), w.config.Text(o.Peer))
			}
			noticed[who] = crashes[o.Peer]
		}
		return ""
	}
	return Watcher{Name: "strong accuracy", Property: process.StrongAccuracy, Watch: watch}
}
