package check

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Path is a run from the start to a violation or, if the run is infinite, to the point
// where it repeats.
type Path struct {
	Steps []Step
	// Loop is the step after which the run repeats what follows, or -1 if it ends.
	Loop int

	states   [][]uint32   // before each step, and after the last one unless that step is wrong itself
	start    []Step       // the first steps of all processes, at time 0
	traitors []process.ID // the Byzantine processes
}

// Step is one transition of a path. The first takes place at time 1.
type Step struct {
	Kind    string // acquire, release, cancel, campaign, propose, forget, fire, deliver, drop, duplicate, crash, restart, elect
	Process process.ID
	Layer   uint8
	Timer   process.Timer    // that expires
	Message *process.Message // that is delivered or lost; nil for news
	News    process.Kind     // about Peer, in place of a message
	Peer    process.ID
	Term    process.Term
	Value   int64 // that is proposed

	// Lost says that the host did not deliver the message.
	Lost bool
	// Crashes says that the process crashes after some effects of a step, which is
	// its InStep-th step since the start.
	Crashes bool
	Effects int
	InStep  int
	Choices []int // of the machine

	slot    int    // of the message
	message uint32 // its number
	sends   []send // what is sent and not lost at once

	asked []*process.Message // what it asks to send; beyond sends, a crash comes before the message leaves
	armed []uint64           // the timers that are set again
}

var actionNames = [...]string{
	"", "acquire", "release", "campaign", "fire", "deliver", "elect", "crash", "restart", "drop", "duplicate", "suspect", "campaign", "cancel",
	"propose", "forget",
}

// path finds the run to a violation. It takes the steps again, from the start. At each
// state it picks the successor that, according to the visited states, came next.
func (s *search) path(f *finding) *Path {
	w := s.workers[0]
	chain := s.visited.chain(f.state)
	p := &Path{Loop: -1}
	state := p.begin(w, chain[0])
	p.states = append(p.states, state)
	count := w.stepsAtStart()
	for _, lo := range chain[1:] {
		i := w.pick(state, func(i int, next *successor) bool { return next.broken == nil && w.normalPrint(i).lo == lo })
		p.Steps = append(p.Steps, w.describe(state, w.found[i].action, count))
		state = slices.Clone(w.successor(i))
		p.states = append(p.states, state)
	}
	if f.action.kind != 0 {
		i := w.pick(state, func(_ int, next *successor) bool {
			return next.broken != nil && *next.broken == *f.broken && next.action.like(f.action)
		})
		p.Steps = append(p.Steps, w.describe(state, w.found[i].action, count))
	}
	return p
}

// stepsAtStart returns the number of steps of each process before the first transition.
func (w *worker) stepsAtStart() []int {
	count := make([]int, w.layout.n)
	for i := range count {
		count[i] = 1
		if w.spec.Needs.Load {
			count[i] = 2
		}
	}
	return count
}

// begin begins the path in a root and returns it.
func (p *Path) begin(w *worker, lo uint64) (root []uint32) {
	all := w.roots()
	i := slices.IndexFunc(all, func(v []uint32) bool { return w.printOfState(v).lo == lo })
	process.Assert(i >= 0, "a run begins in a root")
	root = all[i]
	set := 0
	for more := len(w.rootsOf(set)); i >= more; more = len(w.rootsOf(set)) {
		i -= more
		set++
	}
	if p.start = w.describeStart(set, i); len(w.cfg.Traitors) > 0 {
		p.traitors = w.cfg.Traitors[set]
	}
	return root
}

// describeStart describes what a fault has left, and what the machines do first with a
// set of Byzantine processes, in the i-th root.
func (w *worker) describeStart(set, i int) []Step {
	first, births := make([]Step, w.layout.n), make([]int, w.layout.n)
	for p := process.ID(w.layout.n) - 1; p >= 0; p-- {
		w.notes = []note{}
		ways := w.firstSteps(p, set)
		way := i % len(ways)
		i /= len(ways)
		births[p] = ways[way].birth
		first[p] = Step{Kind: "start", Process: p, sends: ways[way].sends, asked: w.asked(ways[way].sends), Choices: w.notes[way].choices, armed: w.notes[way].armed}
		w.notes = nil
	}
	if w.cfg.Corrupt {
		left := w.leftBehind(make([]uint32, w.layout.stride))[i]
		return append(w.corrupted(left, births), first...)
	}
	return first
}

// pick expands a state, without normal forms of its successors, and returns the first
// successor that is wanted. So the messages of a path are those that were sent.
func (w *worker) pick(state []uint32, wanted func(i int, next *successor) bool) int {
	normal, believed := w.normal, w.believed
	w.normal, w.believed = nil, nil // it is no longer known which steps were left out
	w.expand(state, w.printOfState(state))
	w.normal, w.believed = normal, believed
	for i := range w.found {
		if wanted(i, &w.found[i]) {
			return i
		}
	}
	process.Assert(false, "a state that was reached can be reached again")
	return -1
}

// normalPrint returns the fingerprint of the normal form of a successor.
func (w *worker) normalPrint(i int) print {
	f := w.found[i].print
	if w.normal != nil {
		f = w.normal.normalize(slices.Clone(w.successor(i)), f).nonzero()
	}
	return f
}

// like reports whether two actions are equal except for the indices of messages and
// outcomes, which may differ in a normal form.
func (a action) like(b action) bool {
	return a.kind == b.kind && a.proc == b.proc && a.slot == b.slot && a.stop == b.stop
}

// successor returns the slots of a successor.
func (w *worker) successor(i int) []uint32 {
	return w.next[i*w.layout.stride : (i+1)*w.layout.stride]
}

// describe describes an action in a state, and counts the steps of machines.
func (w *worker) describe(v []uint32, a action, count []int) Step {
	st := Step{Kind: actionNames[a.kind], Process: process.ID(a.proc), slot: int(a.slot)}
	switch a.kind {
	case actDeliver, actDuplicate, actDrop:
		w.describeMessage(&st, v, a)
	case actCrash, actSuspect, actElect:
		return st
	}
	if a.kind == actDrop {
		return st
	}
	e := w.edgeOf(v, a)
	st.Lost = e.steps == 0 && st.News == 0 && st.Message != nil
	w.retake(&st, v, a, e)
	if e.kind == actPropose {
		switch {
		case w.cfg.transaction():
			st.Value = int64(e.argument)
		case w.spec.Values != nil:
			st.Value = int64(w.view(e.to).state.proposal) - 1
		default:
			st.Value = w.cfg.proposal(st.Process, int(w.view(v[a.proc]).asked))
		}
	}
	if e.kind == actFire {
		st.Layer, st.Timer = uint8(e.argument>>32), process.Timer(e.argument)
	}
	st.sends = slices.Clone(w.sent[e.sendsAt : e.sendsAt+uint32(e.sendsN)])
	st.asked = w.asked(st.sends)
	if a.stop >= 0 {
		stop := w.stopped[e.stops][a.stop]
		st.Crashes, st.Effects, st.InStep = true, stop.effects, count[a.proc]+stop.step
		if st.sends = st.sends[:stop.sends]; !stop.saved {
			st.asked = st.asked[:stop.sends]
		}
	}
	count[a.proc] += int(e.steps)
	return st
}

// asked returns the messages that are sent, or nil in place of news.
func (w *worker) asked(sends []send) []*process.Message {
	all := make([]*process.Message, len(sends))
	for i, s := range sends {
		if m := w.messages[s.message]; m.news == 0 {
			all[i] = &m.Message
		}
	}
	return all
}

func (w *worker) describeMessage(st *Step, v []uint32, a action) {
	take := w.link(v[a.slot]).takes[a.take]
	m := w.messages[take.message]
	st.message = take.message
	if m.news != 0 {
		st.News, st.Peer, st.Term = m.news, m.Subject, m.Term
		return
	}
	st.Message = &m.Message
}

// edgeOf returns the edge that an action follows.
func (w *worker) edgeOf(v []uint32, a action) *edge {
	switch a.kind {
	case actDeliver, actDuplicate:
		take := w.link(v[a.slot]).takes[a.take]
		return &w.deliveries(v[a.proc], take.message)[a.edge]
	case actRestart:
		return &w.returnEdges(v, int(a.proc))[a.edge]
	}
	return &w.list(w.view(v[a.proc]).own)[a.edge]
}

// note is the part of a step that no state keeps.
type note struct {
	choices []int
	armed   []uint64
}

// retake takes a step once more to see what the machine chooses and which timers it
// sets.
func (w *worker) retake(st *Step, v []uint32, a action, e *edge) {
	from := w.view(v[a.proc]).state
	if from.down && a.kind != actRestart {
		return
	}
	w.notes = []note{}
	switch a.kind {
	case actDeliver, actDuplicate:
		m := w.messages[st.message]
		w.take(from, func() { w.receive(m) })
	case actRestart:
		incarnations := w.incarnations(v)
		w.take(from, func() { w.restart(incarnations) })
	default:
		w.take(from, func() { w.own(e.kind, e.argument) })
	}
	st.Choices, st.armed = w.notes[e.choice].choices, w.notes[e.choice].armed
	w.notes = nil
}

// own takes a step that needs no message.
func (w *worker) own(kind actionKind, argument uint64) {
	switch kind {
	case actAcquire:
		w.acquire()
	case actRelease:
		w.leave(process.Release)
	case actCancel:
		w.leave(process.Cancel)
	case actForget:
		w.forgetMachine()
	case actCampaign:
		w.campaign()
	case actPropose:
		if w.cfg.transaction() {
			w.castVote(int64(argument))
			return
		}
		w.propose()
	case actNotice: // asks for another leader in place of one that has crashed
		w.step(process.Event{Kind: process.Campaign})
	case actFire:
		w.fire(argument)
	}
}

// noteEffects remembers what the present step has chosen and armed.
func (s *stepper) noteEffects() {
	last := &s.notes[len(s.notes)-1]
	for i := range s.fx.Len() {
		switch e := s.fx.At(i); {
		case e.Kind == process.EffectChoose && e.Hi > 1:
			last.choices = append(last.choices, int(e.Value))
		case e.Kind == process.EffectArm && !e.Internal:
			last.armed = append(last.armed, timerKey(e.Layer, e.Timer))
		}
	}
}

// rescue looks for runs that keep the property that a path violates. A state is lost if
// no such run continues from it. It is saved by a state in which no event is enabled
// and nothing is wrong. Unless the violation is about how runs end, it is also saved by
// a loop.
type rescue struct {
	*worker
	atEnd bool           // the violation is about how runs end
	lost  map[print]bool // by searched state; false: being searched
	left  int            // number of states that may still be searched
	open  bool           // something that might save a state was left out
}

// noReturn returns the first step of a path after which every run violates a property:
// 0 if every run does from the start. It returns -1 if that is unknown: because of the
// limit on states, or because there are loops in which a process waits.
func (s *search) noReturn(p *Path, f *finding, limit int) int {
	if s.loop != nil || limit == 0 {
		return -1
	}
	w := s.workers[0]
	w.normal, w.believed = nil, nil // see pick
	r := &rescue{worker: w, atEnd: f.action.kind == 0 && f.broken.Property != process.StateInvariant, lost: map[print]bool{}, left: limit}
	for at := len(p.states) - 1; at >= 0; at-- {
		if f.action.kind == 0 && at == len(p.states)-1 {
			r.lost[w.printOfState(p.states[at])] = true // it is wrong itself
			continue
		}
		if r.saved(p.states[at]) {
			return at + 1
		}
		if r.open || r.left <= 0 {
			return -1
		}
	}
	return 0
}

// ahead is a state whose successors are searched.
type ahead struct {
	print print
	next  [][]uint32
}

// saved reports whether a run that keeps the properties continues from a state.
func (r *rescue) saved(state []uint32) bool {
	var stack []ahead
	for {
		if f := r.printOfState(state); state != nil {
			searched, known := r.lost[f]
			switch {
			case known && !searched:
				if !r.atEnd {
					return true
				}
				r.open = true
			case !known:
				next, good := r.enter(state, f)
				if good {
					return true
				}
				stack = append(stack, ahead{f, next})
			}
		}
		if len(stack) == 0 || r.left <= 0 {
			return false
		}
		top := &stack[len(stack)-1]
		if last := len(top.next) - 1; last >= 0 {
			state, top.next = top.next[last], top.next[:last]
			continue
		}
		r.lost[top.print] = true
		stack, state = stack[:len(stack)-1], nil
	}
}

// enter returns the successors of a state that violate nothing, and whether the state
// is a good end.
func (r *rescue) enter(state []uint32, f print) (next [][]uint32, good bool) {
	r.lost[f] = false
	r.left--
	if r.cfg.checks(process.StateInvariant) && r.global.judge(r.worker, state) != nil {
		return nil, false
	}
	if r.expand(state, f) != nil {
		return nil, false
	}
	if r.moves == 0 {
		if !r.goesOn(state) {
			return nil, true
		}
		r.open = true
	}
	for i := range r.found {
		if r.found[i].broken == nil {
			next = append(next, append([]uint32{}, r.successor(i)...))
		}
	}
	return next, false
}
