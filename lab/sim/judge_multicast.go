package sim

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/process"
)

// groupLog is what the applications of a group have multicast and delivered, from their
// point of view. A multicast is identified by its sender and value. If a sender repeats
// a value, a delivery is of the earliest that the process has not delivered.
type groupLog struct {
	w          *World
	multicasts []multicastSeen
	delivered  [][]int // by process: positions in multicasts, in the order of delivery
	crashed    []bool  // at least once: a process that crashed is out of the group
}

type multicastSeen struct {
	from   process.ID
	value  int64
	number int // among those of its sender, from 1
	got    process.Set
}

func newGroupLog(w *World) *groupLog {
	return &groupLog{w: w, delivered: make([][]int, w.config.N), crashed: make([]bool, w.config.N)}
}

// note records an observation. For a delivery by a process that has never crashed it
// returns the delivered multicast; otherwise, or if there is none, -1.
func (g *groupLog) note(o *Observation) (at int, delivery bool) {
	switch o.Kind {
	case Crashed:
		g.crashed[o.Process] = true
	case Proposed:
		m := multicastSeen{from: o.Process, value: o.Value, number: 1, got: process.NewSet(g.w.config.N)}
		for i := range g.multicasts {
			if g.multicasts[i].from == o.Process {
				m.number++
			}
		}
		g.multicasts = append(g.multicasts, m)
	case Delivered:
		if !g.crashed[o.Process] {
			return g.match(o), true
		}
	}
	return -1, false
}

func (g *groupLog) match(o *Observation) int {
	for i := range g.multicasts {
		m := &g.multicasts[i]
		if m.from == o.Message.From && m.value == o.Message.Value && !m.got.Has(o.Process) {
			m.got.Add(o.Process)
			g.delivered[o.Process] = append(g.delivered[o.Process], i)
			return i
		}
	}
	return -1
}

// text names a multicast.
func (g *groupLog) text(i int) string {
	m := &g.multicasts[i]
	return fmt.Sprintf("multicast %d of %s (value %d)", m.number, g.w.config.Text(m.from), m.value)
}

// MulticastAgreement watches that a process delivers a multicast at most once, and
// only if somebody has sent it; and that in the end, when nothing is left to happen,
// of the processes that never crashed all have delivered what one of them has
// delivered or sent.
func MulticastAgreement(w *World) Watcher {
	g := newGroupLog(w)
	watch := func(o *Observation) string {
		if at, delivery := g.note(o); delivery && at < 0 {
			return fmt.Sprintf("%s delivers value %d of %s, which was not sent or was delivered before",
				w.config.Text(o.Process), o.Message.Value, w.config.Text(o.Message.From))
		}
		return ""
	}
	return Watcher{Property: process.MulticastAgreement, Watch: watch, Quiet: g.disagreement}
}

func (g *groupLog) disagreement() string {
	if g.w.heldUp() {
		return ""
	}
	for i := range g.multicasts {
		due, why := g.due(i)
		for p := range process.ID(g.w.config.N) {
			if due && !g.crashed[p] && !g.multicasts[i].got.Has(p) {
				return fmt.Sprintf("%s has never delivered %s, which %s", g.w.config.Text(p), g.text(i), why)
			}
		}
	}
	return ""
}

// due reports whether every process must deliver a multicast, and why.
func (g *groupLog) due(i int) (due bool, why string) {
	m := &g.multicasts[i]
	if !g.crashed[m.from] {
		return true, "its sender has lived to see delivered"
	}
	for p := range m.got.All() {
		if !g.crashed[p] {
			return true, g.w.config.Text(p) + " has delivered"
		}
	}
	return false, ""
}

// OrderFIFO watches that no process delivers a multicast before an earlier one of the
// same sender.
func OrderFIFO(w *World) Watcher {
	g := newGroupLog(w)
	watch := func(o *Observation) string {
		at, _ := g.note(o)
		if at < 0 {
			return ""
		}
		for i := range g.multicasts[:at] {
			if m := &g.multicasts[i]; m.from == g.multicasts[at].from && !m.got.Has(o.Process) {
				return fmt.Sprintf("%s delivers %s before %s", w.config.Text(o.Process), g.text(at), g.text(i))
			}
		}
		return ""
	}
	return Watcher{Property: process.OrderFIFO, Watch: watch}
}

// OrderCausal watches that no process delivers a multicast before one that happened
// before it: one that its sender had sent or delivered when it sent it, directly or
// through others. A multicast that had only arrived at the sender, and was held there,
// had not yet happened for the application. So the ghost that travels with messages
// would be too strict.
func OrderCausal(w *World) Watcher {
	g := newGroupLog(w)
	var pasts [][]int // by multicast: what happened before it
	sent := make([][]int, w.config.N)
	watch := func(o *Observation) string {
		at, _ := g.note(o)
		if o.Kind == Proposed {
			past := slices.Concat(sent[o.Process], g.delivered[o.Process])
			slices.Sort(past)
			pasts = append(pasts, slices.Compact(past))
			sent[o.Process] = append(sent[o.Process], len(g.multicasts)-1)
		}
		if at < 0 {
			return ""
		}
		for _, i := range pasts[at] {
			if !g.multicasts[i].got.Has(o.Process) {
				return fmt.Sprintf("%s delivers %s before %s, which happened before it",
					w.config.Text(o.Process), g.text(at), g.text(i))
			}
		}
		return ""
	}
	return Watcher{Property: process.OrderCausal, Watch: watch}
}

// OrderTotal watches that of any two live processes that never crashed, the deliveries
// of one are a prefix of the other's.
func OrderTotal(w *World) Watcher {
	g := newGroupLog(w)
	watch := func(o *Observation) string {
		at, _ := g.note(o)
		if at < 0 {
			return ""
		}
		place := len(g.delivered[o.Process]) - 1
		for q, theirs := range g.delivered {
			if !g.crashed[q] && place < len(theirs) && theirs[place] != at {
				return fmt.Sprintf("%s delivers %s in place %d, %s has delivered %s there", w.config.Text(o.Process),
					g.text(at), place+1, w.config.Text(process.ID(q)), g.text(theirs[place]))
			}
		}
		return ""
	}
	return Watcher{Property: process.OrderTotal, Watch: watch}
}
