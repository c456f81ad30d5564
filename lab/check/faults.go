package check

import (
	"encoding/binary"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// expandFaults lets processes crash between two steps, and restart.
func (w *worker) expandFaults(v []uint32, f print) {
	if w.left(v, suspicions) {
		w.suspectWrongly(v, f)
	}
	mayCrash, mayReturn := w.left(v, crashes), w.left(v, restarts)
	if !mayCrash && !mayReturn {
		return
	}
	for p := range w.layout.n {
		switch down := w.view(v[p]).down; {
		case !down && mayCrash:
			next := w.fork(v)
			nf := f
			w.crash(next, &nf, p, w.view(v[p]).crashed)
			w.finish(nf, action{kind: actCrash, proc: uint8(p), stop: -1}, nil)
		case down && mayReturn:
			w.bringBack(v, f, p)
		}
	}
}

// suspectWrongly lets the detector tell a process that a live process has crashed. The
// take says which process is told.
func (w *worker) suspectWrongly(v []uint32, f print) {
	for p := range w.layout.n {
		about := w.view(v[p])
		for q := range w.layout.n {
			if q == p || about.down || w.view(v[q]).down {
				continue
			}
			news := w.news(w.suspicion(), process.ID(q), process.ID(p), about.state.incarnation)
			next, nf := w.fork(v), f
			w.spend(next, &nf, suspicions)
			w.sendTo(next, &nf, &send{uint32(w.layout.inbox + q), news})
			w.finish(nf, action{kind: actSuspect, proc: uint8(p), take: uint8(q), stop: -1}, nil)
		}
	}
}

// followStops adds the successors in which p crashes within a step. The state before it
// is in w.before.
func (w *worker) followStops(f print, p int, e *edge, a action) {
	sends := w.sent[e.sendsAt : e.sendsAt+uint32(e.sendsN)]
	for i, s := range w.stopped[e.stops] {
		next, nf := w.fork(w.before), f
		for k := range sends[:s.sends] {
			w.sendTo(next, &nf, &sends[k])
		}
		before := w.view(next[p]).state
		w.crash(next, &nf, p, s.to)
		var broken *Violation
		if s.decided > 0 {
			broken = w.judgeStopped(next, &nf, process.ID(p), before, w.extras[e.extra].decided[:s.decided])
		}
		a.stop = int8(i)
		w.finish(nf, a, broken)
	}
}

// judgeStopped judges what p has decided in a step in which it crashes.
func (w *worker) judgeStopped(next []uint32, f *print, p process.ID, before *local, decided []int64) *Violation {
	if w.cfg.transaction() {
		return w.judgeOutcomes(next, p, before.outcome, decided)
	}
	return w.judgeDecisions(next, f, p, int(before.decisions), decided)
}

// crash stops a process, which detectors notice.
func (w *worker) crash(next []uint32, f *print, p int, to uint32) {
	w.spend(next, f, crashes)
	w.watchCrash(next, process.ID(p))
	w.bookCrash(next, f, process.ID(p))
	incarnation := w.view(next[p]).state.incarnation
	f.sub(w.view(next[p]).print)
	f.add(w.view(to).print)
	next[p] = to
	w.clearSlots(next, f, p)
	kind := w.suspicion()
	if kind == 0 {
		return
	}
	for q := range w.layout.n {
		if q != p && !w.view(next[q]).down {
			w.sendTo(next, f, &send{uint32(w.layout.inbox + q), w.news(kind, process.ID(q), process.ID(p), incarnation)})
		}
	}
}

// clearSlots removes what a process that is down will never get. If it may restart,
// messages in flight to it arrive and bounce.
func (w *worker) clearSlots(next []uint32, f *print, p int) {
	clear := func(slot int) {
		f.sub(w.link(next[slot]).print)
		next[slot] = 0
	}
	clear(w.layout.inbox + p)
	for q := range w.layout.n {
		if q != p && w.cfg.Restarts == 0 {
			clear(w.layout.link(process.ID(q), process.ID(p)))
		}
	}
}

// bringBack restarts a process with all possible outcomes of its first step.
func (w *worker) bringBack(v []uint32, f print, p int) {
	edges := w.returnEdges(v, p)
	for i := range edges {
		next := w.fork(v)
		nf := f
		w.spend(next, &nf, restarts)
		w.tellOfReturn(next, &nf, p)
		w.follow(next, nf, p, &edges[i], action{kind: actRestart, proc: uint8(p), edge: uint16(i), stop: -1})
		w.moves-- // a process need not restart
	}
}

// returnEdges returns the first steps of a restarted process.
func (w *worker) returnEdges(v []uint32, p int) []edge {
	incarnations := w.incarnations(v)
	key := binary.AppendUvarint(nil, uint64(v[p]))
	for _, i := range incarnations {
		key = binary.AppendUvarint(key, uint64(i))
	}
	at, known := w.returns[string(key)]
	if !known {
		at = w.keep(w.edges(w.view(v[p]).state, edge{kind: actRestart}, func() { w.restart(incarnations) }))
		w.returns[string(key)] = at
	}
	return w.list(at)
}

// incarnations returns the present incarnations of the processes.
func (w *worker) incarnations(v []uint32) []uint32 {
	incarnations := make([]uint32, w.layout.n)
	for q := range incarnations {
		incarnations[q] = w.view(v[q]).state.incarnation
	}
	return incarnations
}

// tellOfReturn is what a detector says about a restarted process, and to it.
func (w *worker) tellOfReturn(next []uint32, f *print, p int) {
	kind := w.suspicion()
	if kind == 0 {
		return
	}
	own := w.view(next[p]).state.incarnation + 1
	for q := range w.layout.n {
		other := w.view(next[q])
		switch {
		case q == p:
		case other.down:
			w.sendTo(next, f, &send{uint32(w.layout.inbox + p), w.news(kind, process.ID(p), process.ID(q), other.state.incarnation)})
		default:
			w.sendTo(next, f, &send{uint32(w.layout.inbox + q), w.news(process.Rejoin, process.ID(q), process.ID(p), own)})
		}
	}
}

// An election that asks for no detector only elects. Whoever uses the leader, above the
// election, notices that it has failed, and calls for another election. So each process
// that follows a crashed leader is asked for an election at some later moment, and
// again if the next leader has crashed as well. A run in which no process is asked
// would end with a crashed leader, which would not be caused by the election.

// notices reports whether clients notice that a leader has crashed.
func (c *Config) notices() bool {
	return c.family() == process.Election && c.Crashes > 0 && c.Detector != process.ReliableDetector
}

// mayNotice reports whether a process in this local state might be asked for another
// leader. A process that leads itself does not miss a leader.
func (w *worker) mayNotice(l *local) bool {
	return w.cfg.notices() && l.leader != process.None && l.leader != l.proc
}

// noticed reports whether the leader that an edge of a notice is about has crashed, and
// whether asking has an effect. A process that already runs an election need not be
// asked again.
func (w *worker) noticed(v []uint32, e *edge) bool {
	return w.missing(v, e) && (e.delta != print{} || e.sendsN > 0)
}

func (w *worker) missing(v []uint32, e *edge) bool { return w.view(v[e.argument]).down }

// askInVain finds a process that does nothing when it is asked for another leader, in a
// state in which no other event is enabled.
func (w *worker) askInVain(v []uint32, f print) {
	if !w.cfg.notices() || !w.cfg.checks(process.LeaderTermination) || w.goesOn(v) {
		return
	}
	for p := range w.layout.n {
		edges := w.list(w.view(v[p]).own)
		for i := range edges {
			if e := &edges[i]; e.kind == actNotice && w.missing(v, e) {
				asked := func(q, _ process.ID) bool { return int(q) == p }
				broken := property.Orphan(w.sceneOf(v), func(_, _ process.ID) bool { return false }, asked)
				w.fork(v)
				w.finish(f, action{kind: actNotice, proc: uint8(p), edge: uint16(i), stop: -1}, broken)
			}
		}
	}
}
