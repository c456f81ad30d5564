package sim

import (
	"cmp"
	"math"
	"slices"

	"github.com/conclave-io/conclave/algorithm/election/superpeer"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// LeaderAgreement watches that all processes name the same leader of a term.
func LeaderAgreement(w *World) Watcher {
	leaders := map[process.Term]process.ID{}
	return w.on(Elected, process.LeaderAgreement, func(o *Observation) *property.Violation {
		earlier, known := leaders[o.Term]
		if leaders[o.Term] = o.Peer; !known {
			return nil
		}
		return property.LeaderAgreement(w.scene(), o.Process, o.Peer, o.Term, earlier)
	})
}

// RoundAgreement watches that all processes name the same leader of a round.
func RoundAgreement(w *World) Watcher {
	leaders := map[uint64]process.ID{}
	return w.on(Elected, process.RoundAgreement, func(o *Observation) *property.Violation {
		round := o.Term.Round()
		earlier, known := leaders[round]
		if leaders[round] = o.Peer; !known {
			return nil
		}
		return property.RoundAgreement(w.scene(), o.Process, o.Peer, round, earlier)
	})
}

// LeaderValidity watches that the leader is the best live process: the one with the
// highest label, or the least busy one of an algorithm that elects by load; of equals
// any will do. It judges runs in which no process crashes, restarts or gets another
// load after the first message was sent.
func LeaderValidity(w *World) Watcher {
	announced, changed := false, false
	load := w.loadOf
	if !w.cfg.Spec.Needs.Load {
		load = nil
	}
	return Watcher{Property: process.LeaderValidity, Watch: func(o *Observation) string {
		switch o.Kind {
		case Crashed, Restarted:
			changed = changed || announced || w.meter.protocol > 0
		case Elected:
			announced = true
			changed = changed || w.loadsChange()
			if !changed {
				return w.say(property.LeaderValidity(w.scene(), o.Process, o.Peer, load))
			}
		}
		return ""
	}}
}

// loadOf returns the load that p was last told. A new incarnation was told none.
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

// loadsChange reports whether a process was told a load after an election was
// requested, or while it was down.
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

// LeaderTermination watches that, when no event is left after a leader was announced,
// every live process has announced the same one; and that a leader was announced if a
// message of the algorithm reached a live process. Also, no process may end with a
// crashed leader if it was told of the crash, or asked for another leader without
// success.
func LeaderTermination(w *World) Watcher {
	reached := make([]bool, w.config.N)
	left := &orphans{w, make([]process.Duration, w.config.N)}
	return Watcher{
		Property: process.LeaderTermination, Messages: true,
		Watch: func(o *Observation) string {
			switch o.Kind {
			case Received:
				m := w.cfg.Spec.Message(o.Message.Layer, o.Message.Type)
				consensus := w.cfg.Spec.Layer(o.Message.Layer).Family == process.Agreement // continues by itself
				reached[o.Process] = reached[o.Process] || m.Class == process.Protocol && !consensus
			case Crashed:
				reached[o.Process], left.crashed[o.Process] = false, w.now
			}
			return ""
		},
		Quiet: func() string {
			disagree := property.LeaderTermination(w.scene(), func(p process.ID) bool { return reached[p] })
			return w.say(cmp.Or(disagree, property.Orphan(w.scene(), left.told, left.asked)))
		},
	}
}

// SingleLeader watches that at most one live process considers itself the leader. Few
// elections promise it: a leader that was replaced learns so one message later, which
// is why its actions are ordered by its term.
func SingleLeader(w *World) Watcher {
	return w.on(Elected, process.SingleLeader, func(o *Observation) *property.Violation {
		return property.SingleLeader(w.scene(), o.Process)
	})
}

// StrongAccuracy watches that no process is suspected before it crashes. A crash that
// is noticed only when the process is back entitles each other process to one
// suspicion. A process that restarts itself is entitled only to suspicions of processes
// that are down then.
func StrongAccuracy(w *World) Watcher {
	crashes := make([]uint32, w.config.N)
	noticed := map[uint64]uint32{} // by suspecting and suspected process
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
				return w.say(property.Suspicion(w.scene(), o.Process, o.Peer))
			}
			noticed[who] = crashes[o.Peer]
		}
		return ""
	}
	return Watcher{Property: process.StrongAccuracy, Watch: watch}
}

// orphans are processes that follow a crashed leader. A client or a detector has to
// notice: an election that was not requested is not at fault.
type orphans struct {
	w       *World
	crashed []process.Duration // the time of the last crash of each process
}

// told reports whether p was told of the crash of its leader.
func (o *orphans) told(p, leader process.ID) bool {
	return o.given(func(c *Command) bool {
		return c.Kind == process.Fail && c.Process == p && c.Peer == leader && c.At >= o.crashed[leader]
	})
}

// asked reports whether p was asked for another leader when no other event was left.
func (o *orphans) asked(p, _ process.ID) bool {
	return o.given(func(c *Command) bool { return c.Kind == process.Campaign && c.Process == p && c.At == o.w.now })
}

// given reports whether there was such a command.
func (o *orphans) given(like func(c *Command) bool) bool {
	return slices.ContainsFunc(o.w.cfg.Workload.Commands, func(c Command) bool { return c.At <= o.w.now && like(&c) })
}

// ofCensus returns the judge of a property of super-peers that a census decides.
func ofCensus(p process.Property, judge func(*superpeer.Census) *property.Violation) Judge {
	return func(w *World) Watcher {
		c := superpeer.NewCensus(w.scene())
		watch := func(o *Observation) string {
			if o.Kind == Crashed || o.Kind == Restarted {
				c.Changed()
			}
			return ""
		}
		return Watcher{Property: p, Watch: watch, End: func() string { return w.say(judge(c)) }}
	}
}

// superPeerCap watches superpeer.Cap.
func superPeerCap(w *World) Watcher {
	s := superpeer.NewClients(w.scene())
	return Watcher{Property: superpeer.Cap, Messages: true, Watch: func(o *Observation) string {
		switch o.Kind {
		case Crashed:
			s.Crashed(o.Process)
		case Sent:
			return w.say(s.Sent(o.Message))
		case Received:
			s.Received(o.Message)
		}
		return ""
	}}
}
