package check

import (
	"slices"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// roots returns the states in which all processes have had their first event, one for
// each combination of Byzantine processes and of the machines' first choices.
func (w *worker) roots() [][]uint32 {
	var all [][]uint32
	for set := range max(1, len(w.cfg.Traitors)) {
		all = append(all, w.rootsOf(set)...)
	}
	return all
}

// rootsOf returns the roots with a given set of Byzantine processes.
func (w *worker) rootsOf(set int) [][]uint32 {
	all := [][]uint32{make([]uint32, w.layout.stride)}
	if w.cfg.Corrupt {
		all = w.leftBehind(all[0])
	}
	for p := range process.ID(w.layout.n) {
		ways := w.firstSteps(p, set)
		var more [][]uint32
		for _, v := range all {
			for _, way := range ways {
				next := append([]uint32{}, v...)
				next[p] = way.to
				more = append(more, next)
				w.sendAll(next, way.sends)
				w.bookStart(next, p, &way.extra)
			}
		}
		all = more
	}
	return all
}

// firstSteps returns all possible first steps of a process.
func (w *worker) firstSteps(p process.ID, set int) []taken {
	var ways []taken
	for i, l := range w.births(p, set) {
		first := len(ways)
		ways = append(ways, w.take(l, func() { w.start(p) })...)
		for k := range ways[first:] {
			ways[first+k].birth = i
		}
	}
	return ways
}

func (w *worker) sendAll(v []uint32, sends []send) {
	for _, s := range sends {
		v[s.slot] = w.put(int(s.slot), v[s.slot], s.message).to
	}
}

// unborn returns the local state of a process that has had no event, given a set of
// Byzantine processes. If only a commander proposes, the others wait for a decision
// from the start.
func (w *worker) unborn(p process.ID, set int) *local {
	n := w.layout.n
	l := &local{proc: p, incarnation: 1, leader: process.None}
	switch {
	case len(w.cfg.Traitors) > 0 && slices.Contains(w.cfg.Traitors[set], p):
		l.traitors = uint16(set) + 1
	case w.cfg.family() == process.Agreement && !property.Proposes(w.spec, w.config, p):
		l.phase = waiting
	}
	l.state = process.AppendState(nil, w.spec.New(p, w.config))
	if w.cfg.faulty() {
		for range n {
			l.knows = append(l.knows, 2)
		}
	}
	if w.wantsPast() {
		l.past, l.request = make([]uint8, n), make([]uint8, n)
	}
	return l
}

func (w *worker) start(p process.ID) {
	w.step(process.Event{Kind: process.Start, Incarnation: 1})
	if w.spec.Needs.Load {
		w.step(process.Event{Kind: process.Load, Value: w.cfg.Loads[p]})
	}
}

// printOfState computes the fingerprint of a state from scratch.
func (w *worker) printOfState(v []uint32) print {
	var f print
	for slot, value := range v {
		switch {
		case slot < w.layout.n:
			f.add(w.view(value).print)
		case slot < w.layout.n+w.layout.links || w.layout.inbox >= 0 && slot >= w.layout.inbox && slot < w.layout.inbox+w.layout.n:
			f.add(w.link(value).print)
		default:
			f.add(printOfNumber(slot, value))
		}
	}
	return f.nonzero()
}

// unreached returns the rules that no step has applied.
func (sp *space) unreached() []string {
	var names []string
	for layer, rules := range sp.rules {
		for r := 1; r < len(rules); r++ {
			if !rules[r] {
				names = append(names, sp.ruleName(uint8(layer), process.Rule(r)))
			}
		}
	}
	return names
}

// ruleName is the name of a rule; in a stack, whose layers number their own rules,
// preceded by the name of the layer.
func (sp *space) ruleName(layer uint8, r process.Rule) string {
	name := sp.spec.RuleText(layer, r)
	if sp.spec.Layers == nil {
		return name
	}
	return sp.spec.Layer(layer).Name + " " + name
}
