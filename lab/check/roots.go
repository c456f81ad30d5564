package check

import (
	"fmt"
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

// With Config.Corrupt a search begins in every state that a transient fault may leave
// (process.Corruption). It checks whether every fair run reaches states in which the
// invariant of the Spec holds (convergence) and stays in them (closure). Clients behave
// as usual, but nothing else is judged: no property holds before convergence.

func (c *Config) validateCorrupt() error {
	switch {
	case !c.Corrupt && c.InFlight > 0:
		return fmt.Errorf("check: %d messages in flight at the start, but only runs from corrupted states begin with any", c.InFlight)
	case !c.Corrupt:
		return nil
	case c.Spec.Corruption == nil || c.Spec.Invariant == nil:
		return fmt.Errorf("check: %s does not say what states a fault may leave, and which are legitimate", c.Spec.Name)
	case c.Timeouts > 0:
		return fmt.Errorf("check: %d timeouts, but nothing converges without them: allow any number", c.Timeouts)
	case c.faulty() || c.Reduce != NoReduction:
		return fmt.Errorf("check: searches from corrupted states are without crashes, detectors and reduction")
	case len(c.Properties) != 1 || c.Properties[0] != process.Convergence:
		return fmt.Errorf("check: searches from corrupted states judge %s alone, not %v", process.Convergence, c.Properties)
	}
	return nil
}

// leftBehind returns what a fault may leave on all links: states with these messages
// and without processes.
func (w *worker) leftBehind(empty []uint32) [][]uint32 {
	all := [][]uint32{empty}
	for slot := w.layout.n; slot < w.layout.n+w.layout.links; slot++ {
		var ids []uint32
		for _, m := range w.spec.Corruption.Messages(w.layout.sender(slot), w.layout.receiver(slot), w.config) {
			ids = append(ids, w.internMessage(&message{Message: m, incarnation: 1}))
		}
		shorter := all
		for range min(w.cfg.InFlight, len(ids)*w.cfg.InFlight) {
			var longer [][]uint32
			for _, v := range shorter {
				for _, id := range ids {
					next := slices.Clone(v)
					next[slot] = w.put(slot, v[slot], id).to
					longer = append(longer, next)
				}
			}
			all, shorter = append(all, longer...), longer
		}
	}
	return all
}

// births returns the local states in which a process may be before its first event.
func (w *worker) births(p process.ID, set int) []*local {
	if !w.cfg.Corrupt {
		return []*local{w.unborn(p, set)}
	}
	var all []*local
	for _, m := range w.spec.Corruption.States(p, w.config) {
		l := w.unborn(p, set)
		l.state = process.AppendState(nil, m)
		all = append(all, l)
	}
	return all
}

// corrupted lists what a fault has left on the links of a root, and which processes it
// has changed to which states.
func (w *worker) corrupted(v []uint32, states []int) []Step {
	var steps []Step
	for p, state := range states {
		steps = append(steps, Step{Kind: "corrupt", Process: process.ID(p), Value: int64(state)})
	}
	for slot := w.layout.n; slot < w.layout.n+w.layout.links; slot++ {
		for _, id := range w.contents(v[slot]) {
			m := &w.messages[id].Message
			steps = append(steps, Step{Kind: "forge", Process: m.From, Message: m, sends: []send{{uint32(slot), id}}, asked: []*process.Message{m}})
		}
	}
	return steps
}

// converge looks for a step out of a legitimate state, for a state without successors,
// and for a fair run among the states that are not legitimate.
func (t *tarjan) converge() {
	legitimacy := &global{}
	wrong := make([]string, t.whole)
	var outside []int32
	for i := range wrong {
		if broken := legitimacy.judge(t.w, t.nodes[i].state); broken != nil {
			wrong[i], outside = broken.Text, append(outside, int32(i))
		}
	}
	for i := range wrong {
		leaving := t.leaving(int32(i))
		if wrong[i] != "" && len(leaving) == 0 {
			t.found(&lasso{graph: t.graph, part: []int32{int32(i)}, broken: property.Illegitimate(wrong[i])})
			return
		}
		for _, a := range leaving {
			if wrong[i] == "" && int(a.to) < t.whole && wrong[a.to] != "" {
				t.found(&lasso{graph: t.graph, part: []int32{int32(i)}, exit: &a, broken: property.Left(wrong[a.to])})
				return
			}
		}
	}
	if part := t.fairPart(outside); part != nil {
		text := fmt.Sprintf("%s, while a loop of %s repeats", wrong[part[0]], count(len(part), "state"))
		t.found(&lasso{graph: t.graph, part: part, broken: property.Illegitimate(text)})
	}
}

func (t *tarjan) found(l *lasso) { t.search.broken, t.search.loop = &finding{broken: l.broken}, l }
