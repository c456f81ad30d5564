package check

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// actionKind is what happens in a transition.
type actionKind uint8

const (
	actAcquire actionKind = iota + 1
	actRelease
	actCampaign
	actFire
	actDeliver
	actElect // the oracle elects
	actCrash
	actRestart
	actDrop
	actDuplicate
	actSuspect // of a process that is up
	actNotice  // that the leader has crashed
	actCancel
	actPropose
	actForget
)

// action names a transition out of a given state.
type action struct {
	kind actionKind
	proc uint8
	edge uint16 // which of the possible outcomes of the step
	slot uint16
	take uint8 // which message of the channel
	stop int8  // which crash cuts it short, or -1
}

// expand finds all successors of a state. It returns a violation of the state itself if
// no event is enabled in it.
func (w *worker) expand(v []uint32, f print) *Violation {
	w.forget(0)
	return w.expandMore(v, f)
}

// forget removes all but the given number of successors.
func (w *worker) forget(n int) { w.next, w.found = w.next[:n*w.layout.stride], w.found[:n] }

// expandMore is expand for one state after another: it keeps what was found before.
func (w *worker) expandMore(v []uint32, f print) *Violation {
	w.origin = v
	if w.believed != nil && w.expandReduced(v, f) {
		return nil
	}
	w.moves = 0
	n := w.layout.n
	for slot := n; slot < n+w.layout.links; slot++ {
		if v[slot] != 0 {
			w.expandSlot(v, f, slot)
		}
	}
	if w.layout.inbox >= 0 {
		for slot := w.layout.inbox; slot < w.layout.inbox+n; slot++ {
			if v[slot] != 0 {
				w.expandSlot(v, f, slot)
			}
		}
	}
	timers := w.timersMayFire(v)
	for p := range n {
		w.expandOwn(v, f, p, timers)
	}
	if w.layout.oracle >= 0 {
		w.expandOracle(v, f)
	}
	if w.moves == 0 {
		if broken := w.judgeEnd(v); broken != nil {
			return broken
		}
		w.askInVain(v, f)
	}
	if w.cfg.faulty() {
		w.expandFaults(v, f)
	}
	return nil
}

// quiet reports whether no message is in flight.
func (w *worker) quiet(v []uint32) bool {
	for _, c := range v[w.layout.n : w.layout.n+w.layout.links] {
		if c != 0 {
			return false
		}
	}
	return true
}

// timersMayFire reports whether timers may expire in a state.
func (w *worker) timersMayFire(v []uint32) bool {
	if !w.left(v, timeouts) {
		return false
	}
	switch w.cfg.Timing {
	case AnyTime:
		return true
	case Synchronous:
		return w.quiet(v)
	case Patient:
		return w.quiet(v) && w.still(v)
	}
	return false
}

// still reports whether no process is inside, and no news or election is in progress.
func (w *worker) still(v []uint32) bool {
	for p := range w.layout.n {
		if w.view(v[p]).phase == inside || w.layout.inbox >= 0 && v[w.layout.inbox+p] != 0 {
			return false
		}
	}
	return w.layout.oracle < 0 || v[w.layout.oracle]&1 == 0
}

// left reports whether a budget allows one more. Timeouts have a budget only if a limit
// is given.
func (w *worker) left(v []uint32, b budget) bool {
	slot := w.layout.budgets[b]
	return slot >= 0 && int(v[slot]) < w.cfg.limit(b) || slot < 0 && b == timeouts
}

// premature reports whether a timer of a layer of p cannot have expired yet: the timer
// of a round that is not over; one with which a detector gives up a live process,
// because live processes are heard first while delays are bounded; one of the lock of a
// stack while a process is inside; or a lease while its holder is inside, which leaves
// before.
func (w *worker) premature(v []uint32, p int, e *edge) bool {
	if w.cfg.Timing == AnyTime {
		return false
	}
	if w.cfg.synchronous() {
		return w.inRound(v, p)
	}
	layer, about := uint8(e.argument>>32), process.Timer(e.argument).Peer()
	switch w.spec.Layer(layer).Family {
	case process.Detector:
		return about != process.None && !w.view(v[about]).down
	case process.Mutex:
		return w.spec.Depth() > 1 && !w.still(v) || about != process.None && w.view(v[about]).phase == inside
	}
	return false
}

// expandOwn is what a process may do without a message.
func (w *worker) expandOwn(v []uint32, f print, p int, timers bool) {
	edges := w.list(w.view(v[p]).own)
	for i := range edges {
		e := &edges[i]
		if e.kind == actFire && (!timers || w.premature(v, p, e)) || e.kind == actNotice && !w.noticed(v, e) || e.kind == actCancel && !w.left(v, cancels) || e.kind == actForget && !w.left(v, forgets) {
			continue
		}
		a := action{kind: e.kind, proc: uint8(p), edge: uint16(i), stop: -1}
		next := w.fork(v)
		nf := f
		switch e.kind {
		case actFire:
			w.spend(next, &nf, timeouts)
			w.noteLate(next, &nf)
		case actCancel:
			w.spend(next, &nf, cancels)
			w.moves-- // a client need not withdraw
		case actForget:
			w.spend(next, &nf, forgets)
			w.moves--
		}
		w.follow(next, nf, p, e, a)
	}
}

// expandSlot is what may happen to the messages of a link, or to the pending news of a
// process.
func (w *worker) expandSlot(v []uint32, f print, slot int) {
	to := int(w.layout.receiver(slot))
	l := w.link(v[slot])
	many := len(l.takes)
	if slot < w.layout.n+w.layout.links && !w.cfg.Unordered && !w.left(v, reorders) {
		many = 1
	}
	for i := range many {
		take, rest := l.first, l.rest
		if i > 0 {
			take = l.takes[i]
			rest = w.link(take.rest).minus(l.print)
		}
		edges := w.deliveries(v[to], take.message)
		for k := range edges {
			a := action{kind: actDeliver, proc: uint8(to), edge: uint16(k), stop: -1, slot: uint16(slot), take: uint8(i)}
			next := w.fork(v)
			next[slot] = take.rest
			nf := f.plus(rest)
			if i > 0 && !w.cfg.Unordered && slot < w.layout.n+w.layout.links {
				w.spend(next, &nf, reorders)
			}
			w.follow(next, nf, to, &edges[k], a)
			if w.layout.budgets[duplicates] >= 0 && slot < w.layout.n+w.layout.links {
				w.duplicate(v, f, &edges[k], a)
			}
		}
		if slot < w.layout.n+w.layout.links && w.left(v, drops) {
			next := w.fork(v)
			next[slot] = take.rest
			nf := f.plus(rest)
			w.spend(next, &nf, drops)
			w.finish(nf, action{kind: actDrop, proc: uint8(to), stop: -1, slot: uint16(slot), take: uint8(i)}, nil)
		}
	}
}

// duplicate delivers a message and keeps it on the link.
func (w *worker) duplicate(v []uint32, f print, e *edge, a action) {
	if !w.left(v, duplicates) {
		return
	}
	a.kind = actDuplicate
	next := w.fork(v)
	nf := f
	w.spend(next, &nf, duplicates)
	w.follow(next, nf, int(a.proc), e, a)
}

// fork returns room for a successor, as a copy of the state. It is valid until the next
// one is made.
func (w *worker) fork(v []uint32) []uint32 {
	at := len(w.next)
	w.next = append(w.next, v...)
	return w.next[at:]
}

// spend uses up one of a budget, if there is one.
func (w *worker) spend(next []uint32, f *print, b budget) {
	if slot := w.layout.budgets[b]; slot >= 0 {
		w.set(next, f, slot, next[slot]+1)
		if int(next[slot]) == w.cfg.limit(b) {
			w.usedUp(b)
		}
	}
}

// set changes a slot that holds a plain number.
func (w *worker) set(next []uint32, f *print, slot int, value uint32) {
	f.sub(printOfNumber(slot, next[slot]))
	f.add(printOfNumber(slot, value))
	next[slot] = value
}

// follow lets process p take a step and adds, as other successors, those in which it
// crashes within that step.
func (w *worker) follow(next []uint32, f print, p int, e *edge, a action) {
	w.moves++
	before, cut := f, e.stops != 0 && w.left(next, crashes)
	if cut {
		w.before = append(w.before[:0], next...)
	}
	next[p] = e.to
	f.add(e.delta)
	sends := w.sent[e.sendsAt : e.sendsAt+uint32(e.sendsN)]
	for i := range sends {
		w.sendTo(next, &f, &sends[i])
	}
	if w.open != 0 {
		w.watch(next, process.ID(p), e)
	}
	var broken *Violation
	if e.flags != 0 {
		broken = w.judge(next, &f, p, e)
	}
	w.finish(f, a, broken)
	if cut {
		w.followStops(before, p, e, a)
	}
}

// sendTo puts a message into a slot. A message for a process that is down for good is
// lost.
func (w *worker) sendTo(next []uint32, f *print, s *send) {
	if w.cfg.faulty() && w.cfg.Restarts == 0 && w.view(next[w.layout.receiver(int(s.slot))]).down {
		return
	}
	made := w.put(int(s.slot), next[s.slot], s.message)
	f.add(made.delta)
	next[s.slot] = made.to
}

// finish completes a successor.
func (w *worker) finish(f print, a action, broken *Violation) {
	if w.normal != nil && broken == nil {
		f = w.normal.normalize(w.next[len(w.next)-w.layout.stride:], f)
	}
	w.found = append(w.found, successor{print: f.nonzero(), action: a, broken: broken})
}

// expandOracle is the election that a machine has asked for.
func (w *worker) expandOracle(v []uint32, f print) {
	called := v[w.layout.oracle]
	if called&1 == 0 {
		return
	}
	leader := property.Highest(w.sceneOf(v))
	if leader == process.None {
		return
	}
	w.moves++
	next := w.fork(v)
	nf := f
	w.set(next, &nf, w.layout.oracle, called+1)
	w.endArrival(next, &nf)
	term := process.MakeTerm(uint64(called/2+1), leader)
	for p := range w.layout.n {
		if !w.view(v[p]).down {
			news := w.internMessage(&message{Message: process.Message{To: process.ID(p), Subject: leader, Term: term}, news: process.Elected})
			w.sendTo(next, &nf, &send{uint32(w.layout.inbox + p), news})
		}
	}
	w.finish(nf, action{kind: actElect, stop: -1}, nil)
}
