package check

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/process"
)

// An infinite run in finitely many states ends in a strongly connected part of their
// graph. It violates progress if a process waits in all of that part, and if it is
// fair: whatever is possible in all of the part, such as the delivery of the first
// message of a link, happens in it somewhere. A timer that is set in all of it, and not
// set again, expires if it may anywhere in it. That it has to wait until no message is
// in flight represents its length, and time also passes while heartbeats continue. If
// such a timer is overdue, a smaller loop in which it may expire nowhere can still be
// fair: that of a message that never rests. Requests, calls and faults need not happen.

// node is a state in the graph.
type node struct {
	state  []uint32
	print  print
	first  int32 // of its edges
	after  int32 // behind the last of them
	parent int32
	by     action // the action that led here from the parent

	index, low int32 // of Tarjan's algorithm; 0: not on its stack
	part       int32 // the strongly connected part that it belongs to; 0: none
}

// arc is an edge of the graph.
type arc struct {
	to     int32
	action action
	class  uint64 // the kind of action; 0: need not happen
}

// graph is all states with all steps.
type graph struct {
	*search
	w     *worker
	nodes []node
	arcs  []arc
	known map[print]int32
	whole int // number of nodes with all their arcs; all, unless MaxStates ended the search
}

// live looks for a fair run in which a process waits forever. If MaxStates has ended
// the search of a consensus, it looks at the states that were searched: ballot numbers
// are unbounded, but a loop that is found is real.
func (s *search) live() {
	g := &graph{search: s, w: s.workers[0], known: map[print]int32{}}
	if !g.build() {
		return
	}
	t := &tarjan{graph: g}
	if g.cfg.Corrupt {
		t.converge()
		return
	}
	for p := range g.w.layout.n {
		if loop := t.starves(process.ID(p)); loop != nil {
			s.broken, s.loop = &finding{broken: loop.broken}, loop
			return
		}
	}
}

// build explores the graph again and keeps it, as far as memory allows.
func (g *graph) build() bool {
	for _, root := range g.w.roots() {
		g.node(root, g.w.printOfState(root), -1, action{})
	}
	size := int64(g.w.layout.stride)*4 + 120
	left := g.cfg.Memory
	for i := 0; i < len(g.nodes); i++ {
		if g.cfg.MaxStates > 0 && uint64(i) >= g.cfg.MaxStates {
			break
		}
		g.whole = i + 1
		n := &g.nodes[i]
		g.w.expand(n.state, n.print)
		first := int32(len(g.arcs))
		for k, next := range g.w.found {
			a := arc{action: next.action, class: g.w.class(g.nodes[i].state, next.action)}
			a.to = g.node(g.w.successor(k), next.print, int32(i), next.action)
			g.arcs = append(g.arcs, a)
		}
		g.nodes[i].first, g.nodes[i].after = first, int32(len(g.arcs))
		full := i%1024 == 0 && g.room != nil && !g.room(0)
		if left -= size + int64(len(g.w.found))*24; left < 0 || full || i%1024 == 0 && g.ctx.Err() != nil {
			g.stop("memory for the graph, or time")
			return false
		}
	}
	return true
}

// node returns the number of a state.
func (g *graph) node(state []uint32, f print, parent int32, by action) int32 {
	if i, ok := g.known[f]; ok {
		return i
	}
	i := int32(len(g.nodes))
	g.known[f] = i
	g.nodes = append(g.nodes, node{state: append([]uint32{}, state...), print: f, parent: parent, by: by})
	return i
}

// fires is the prefix of the class of an expiring timer.
const fires = 4

// class names an action that a fair run may not postpone forever, or is 0.
func (w *worker) class(v []uint32, a action) uint64 {
	switch a.kind {
	case actDeliver:
		name := uint64(1)<<40 | uint64(a.slot)<<24
		if w.cfg.Unordered || int(a.slot) >= w.layout.n+w.layout.links {
			name = uint64(2)<<60 | uint64(a.slot)<<32 | uint64(w.link(v[a.slot]).takes[a.take].message)
		}
		return name
	case actRelease:
		return uint64(3)<<60 | uint64(a.proc)
	case actFire:
		return uint64(fires)<<60 | uint64(a.proc)<<48 | w.edgeOf(v, a).argument&(1<<48-1)
	case actElect:
		return uint64(5) << 60
	case actNotice:
		return uint64(6)<<60 | uint64(a.proc)
	}
	return 0
}

// waits reports whether a process wants something in a state.
func (g *graph) waits(i int32, p process.ID) bool {
	if g.cfg.transaction() {
		return g.w.undecided(g.nodes[i].state, p)
	}
	l := g.w.view(g.nodes[i].state[p])
	if g.cfg.family() != process.Election {
		return l.phase == waiting && !l.down
	}
	return !l.down && l.state.reached && l.state.leader == process.None
}

// starves looks for a fair part of the graph in which p waits in every state.
func (t *tarjan) starves(p process.ID) *lasso {
	var states []int32
	for i := range t.nodes[:t.whole] {
		if t.waits(int32(i), p) {
			states = append(states, int32(i))
		}
	}
	part := t.fairPart(states)
	if part == nil {
		return nil
	}
	text := fmt.Sprintf("%s waits forever while a loop of %s repeats", t.config().Text(p), count(len(part), "state"))
	property := process.Progress
	switch t.cfg.family() {
	case process.Election:
		property = process.LeaderTermination
	case process.Agreement:
		property = process.Decision
	case process.Transaction:
		property = t.cfg.endless()
	}
	return &lasso{graph: t.graph, part: part, broken: &Violation{Property: property, Process: p, Text: text}}
}

// fairPart returns a fair part of some states, or nil. An action that is possible in
// all states of a part and happens nowhere in it is also possible in every smaller
// part, so no smaller part is fair. A timer that is overdue is not overdue in a smaller
// part in which it can expire nowhere: the states in which it may expire are removed,
// and the rest is divided again.
func (t *tarjan) fairPart(states []int32) []int32 {
	for _, part := range t.split(states) {
		fair, late := t.judge(part)
		if !fair {
			continue
		}
		if len(late) == 0 {
			return part
		}
		if smaller := t.fairPart(t.without(part, late)); smaller != nil {
			return smaller
		}
	}
	return nil
}

func (g *graph) config() *process.Config { return g.space.config }

// leaving returns the arcs of a state.
func (g *graph) leaving(i int32) []arc { return g.arcs[g.nodes[i].first:g.nodes[i].after] }

// inside returns the arcs of a state that stay in its part.
func (g *graph) inside(i int32) []arc {
	var stay []arc
	for _, a := range g.leaving(i) {
		if g.nodes[a.to].part == g.nodes[i].part {
			stay = append(stay, a)
		}
	}
	return stay
}

// judge reports whether everything that is possible in all states of a part also
// happens in it, and which timers are overdue in it.
func (g *graph) judge(part []int32) (fair bool, late []uint64) {
	possible := map[uint64]int{} // the number of states
	taken := map[uint64]bool{}   // including actions that need not happen
	for _, i := range part {
		here := map[uint64]bool{}
		for _, a := range g.leaving(i) {
			if a.class != 0 && !here[a.class] {
				here[a.class] = true
				possible[a.class]++
			}
		}
		for _, a := range g.inside(i) {
			taken[a.class] = true
		}
	}
	for class, states := range possible {
		switch {
		case taken[class]:
		case class>>60 == fires:
			if g.overdue(part, class) {
				late = append(late, class)
			}
		case states == len(part):
			return false, nil
		}
	}
	return len(taken) > 0, late
}

// without returns the states of a part in which none of some timers may expire.
func (g *graph) without(part []int32, late []uint64) []int32 {
	return slices.DeleteFunc(part, func(i int32) bool {
		return slices.ContainsFunc(g.leaving(i), func(a arc) bool { return slices.Contains(late, a.class) })
	})
}

// overdue reports whether a timer, given by the class of its expiry, is set in all of a
// part and never set again.
func (g *graph) overdue(part []int32, class uint64) bool {
	p, key := uint8(class>>48&0xff), class&(1<<48-1)
	for _, i := range part {
		if _, set := slices.BinarySearch(g.w.view(g.nodes[i].state[p]).state.timers, key); !set {
			return false
		}
		for _, a := range g.inside(i) {
			if a.action.proc == p && slices.Contains(g.w.armedBy(g.nodes[i].state, a.action), key) {
				return false
			}
		}
	}
	return true
}

// armedBy returns the timers that a step of a process sets.
func (w *worker) armedBy(v []uint32, a action) []uint64 { return w.extras[w.edgeOf(v, a).extra].armed }

// lasso is a run into a part of the graph, and a round in it.
type lasso struct {
	*graph
	part   []int32
	exit   *arc // the wrong step out of the part; nil: it repeats, or ends
	broken *Violation
}

// path returns the shortest run into the part, and one round through it that contains
// everything that fairness requires.
func (l *lasso) path() *Path {
	start := l.part[0]
	var stem []int32
	for i := start; l.nodes[i].parent >= 0; i = l.nodes[i].parent {
		stem = append(stem, i)
	}
	w, count := l.w, l.w.stepsAtStart()
	root := start
	if len(stem) > 0 {
		root = l.nodes[stem[len(stem)-1]].parent
	}
	p := &Path{}
	state := p.begin(w, l.nodes[root].print.lo)
	take := func(to int32, by action) {
		i := w.pick(state, func(i int, next *successor) bool {
			return next.action.like(by) && w.normalPrint(i) == l.nodes[to].print
		})
		p.Steps = append(p.Steps, w.describe(state, w.found[i].action, count))
		state = slices.Clone(w.successor(i))
	}
	for k := len(stem) - 1; k >= 0; k-- {
		take(stem[k], l.nodes[stem[k]].by)
	}
	p.Loop = len(p.Steps)
	if l.exit != nil {
		take(l.exit.to, l.exit.action)
	}
	if l.exit != nil || len(l.leaving(start)) == 0 {
		p.Loop = -1
		return p
	}
	for _, round := range l.round(start) {
		take(round.to, round.action)
	}
	return p
}

// round returns a closed walk from a state of the part, through a step of each class
// that is taken in it.
func (l *lasso) round(start int32) []arc {
	var walk []arc
	done := map[uint64]bool{}
	at := start
	for {
		step := l.walk(at, func(a arc) bool { return a.class != 0 && !done[a.class] })
		if step == nil {
			break
		}
		for _, a := range step {
			done[a.class] = true
		}
		walk = append(walk, step...)
		at = step[len(step)-1].to
	}
	if at != start || len(walk) == 0 {
		walk = append(walk, l.walk(at, func(a arc) bool { return a.to == start })...)
	}
	return walk
}

// walk returns a shortest walk within the part whose last arc satisfies wanted, or nil.
func (l *lasso) walk(from int32, wanted func(a arc) bool) []arc {
	type reached struct {
		by   arc
		from int32
	}
	came := map[int32]reached{}
	queue := []int32{from}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		for _, a := range l.inside(i) {
			if wanted(a) {
				walk := []arc{a}
				for ; i != from; i = came[i].from {
					walk = append([]arc{came[i].by}, walk...)
				}
				return walk
			}
			if _, seen := came[a.to]; !seen && a.to != from {
				came[a.to] = reached{a, i}
				queue = append(queue, a.to)
			}
		}
	}
	return nil
}

// tarjan finds strongly connected parts, without recursion: the runs may be long.
type tarjan struct {
	*graph
	next  int32
	stack []int32
	parts [][]int32
	last  int32 // the number of the last part; none is used twice
}

// open is the part of a state whose part is still to be found.
const open = -1

type frame struct{ at, arc int32 }

// split returns the strongly connected parts of some states, each in the order of its
// numbers, which rise with the depth; the first one begins first.
func (t *tarjan) split(states []int32) [][]int32 {
	t.next, t.parts = 0, nil
	for _, i := range states {
		t.nodes[i].part = open
	}
	for _, i := range states {
		if t.nodes[i].part == open {
			t.visit(i)
		}
	}
	slices.SortFunc(t.parts, func(a, b []int32) int { return int(a[0] - b[0]) })
	return t.parts
}

func (t *tarjan) visit(root int32) {
	frames := []frame{t.enter(root)}
	for len(frames) > 0 {
		f := &frames[len(frames)-1]
		n := &t.nodes[f.at]
		if f.arc < n.after {
			to := t.arcs[f.arc].to
			f.arc++
			switch m := &t.nodes[to]; {
			case m.part != open:
			case m.index == 0:
				frames = append(frames, t.enter(to))
			default:
				n.low = min(n.low, m.index)
			}
			continue
		}
		at := f.at
		if frames = frames[:len(frames)-1]; len(frames) > 0 {
			below := &t.nodes[frames[len(frames)-1].at]
			below.low = min(below.low, n.low)
		}
		if n.low == n.index {
			t.close(at)
		}
	}
}

func (t *tarjan) enter(i int32) frame {
	t.next++
	n := &t.nodes[i]
	n.index, n.low = t.next, t.next
	t.stack = append(t.stack, i)
	return frame{i, n.first}
}

// close takes a part off the stack.
func (t *tarjan) close(root int32) {
	var part []int32
	t.last++
	for {
		i := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		t.nodes[i].index, t.nodes[i].part = 0, t.last
		part = append(part, i)
		if i == root {
			break
		}
	}
	slices.Sort(part)
	t.parts = append(t.parts, part)
}
