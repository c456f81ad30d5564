package check

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// global builds the machines and messages of a state from its numbers, for an
// invariant. It keeps each machine and the content of each link that it has met.
type global struct {
	process.Global
	machines []process.Machine    // by number of the local state; nil: not met yet, or down
	contents [][]*process.Message // by number of the channel
}

// judge says what is wrong with a state according to the invariant of the Spec.
func (g *global) judge(w *worker, v []uint32) *Violation {
	return property.Invariant(w.spec, g.take(w, v))
}

// take makes the machines and messages of a state. They are valid until the next call.
func (g *global) take(w *worker, v []uint32) *process.Global {
	g.Config, g.Machines, g.Messages, g.Faults = w.config, g.Machines[:0], g.Messages[:0], false
	for _, b := range [...]budget{crashes, drops, duplicates, suspicions} {
		g.Faults = g.Faults || positive(v, w.layout.budgets[b])
	}
	for p := range w.layout.n {
		g.Machines = append(g.Machines, g.machine(w, v[p]))
	}
	for slot := w.layout.n; slot < w.layout.n+w.layout.links; slot++ {
		if v[slot] != 0 {
			g.onLink(w, v, slot)
		}
	}
	return &g.Global
}

// machine returns the machine of a local state, or nil if it is down.
func (g *global) machine(w *worker, id uint32) process.Machine {
	for int(id) >= len(g.machines) {
		g.machines = append(g.machines, nil)
	}
	if l := w.view(id); g.machines[id] == nil && !l.down {
		g.machines[id] = w.spec.New(l.state.proc, w.config)
		err := process.DecodeState(l.state.state, g.machines[id], w.config.N)
		process.Assert(err == nil, "an encoded state can be decoded")
	}
	return g.machines[id]
}

// onLink adds the messages of a link that its receiver would accept.
func (g *global) onLink(w *worker, v []uint32, slot int) {
	to := w.view(v[w.layout.receiver(slot)])
	if to.down {
		return
	}
	if w.cfg.faulty() {
		for _, m := range w.messagesOn(v[slot]) {
			if m.addressee == to.state.incarnation && 2*m.incarnation >= to.state.knows[m.From] {
				g.Messages = append(g.Messages, &m.Message)
			}
		}
		return
	}
	id := v[slot]
	for int(id) >= len(g.contents) {
		g.contents = append(g.contents, nil)
	}
	if g.contents[id] == nil {
		for _, m := range w.messagesOn(id) {
			g.contents[id] = append(g.contents[id], &m.Message)
		}
	}
	g.Messages = append(g.Messages, g.contents[id]...)
}

// messagesOn returns the messages of a channel; if it keeps order, the one sent first
// comes first.
func (w *worker) messagesOn(id uint32) []*message {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []*message
	for _, m := range w.contents(id) {
		all = append(all, w.messages[m])
	}
	return all
}
