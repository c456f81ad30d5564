package sim

import (
	"slices"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// oracle replaces a detector and an election below the algorithm, and provides what a
// transport knows about incarnations.
type oracle struct {
	detects process.DetectorKind
	elects  bool
	round   uint64
	called  bool // an election is in progress
	winners []process.Term

	// news says that a process has crashed or restarted, so that the processes'
	// knowledge of each other differs from that at the start. For a pair of
	// processes, known holds twice the highest incarnation that the first has heard
	// of the second, plus 1 if the second is known to have crashed. Above that it
	// holds the life in which the first has heard it: what it heard in an earlier
	// life no longer counts. If absent, the first knows the incarnation that the
	// second had when the first started.
	news  bool
	known table
	// returns are the restarts of each process, numbered consecutively; nil before
	// the first. Looking here is cheaper than telling every restarted process of
	// all others.
	returns  [][]uint64
	returned uint64
}

const lifeShift = 34

func (o *oracle) init(c *Config) {
	if !c.Oracle.Silent {
		o.detects, o.elects = c.Spec.Needs.Detector, c.Spec.Needs.Elector
	}
}

func (o *oracle) knows(who, of process.ID) int64 {
	if o.detects == process.NoDetector && o.life(of) == 0 {
		return 2 // there was nothing to hear
	}
	v := o.known.get(pair(int32(who), int32(of)))
	if v>>lifeShift == o.life(who) && v != 0 {
		return v & (1<<lifeShift - 1)
	}
	return 2 * o.met(who, of)
}

func (o *oracle) learn(who, of process.ID, v int64) {
	o.known.set(pair(int32(who), int32(of)), o.life(who)<<lifeShift|v, nil)
}

// life returns the number of restarts of a process.
func (o *oracle) life(p process.ID) int64 {
	if o.returns == nil {
		return 0
	}
	return int64(len(o.returns[p]))
}

// met returns the incarnation of a process when another one started. Earlier
// incarnations were over before that.
func (o *oracle) met(who, of process.ID) int64 {
	if o.life(who) == 0 {
		return 1
	}
	start := o.returns[who][len(o.returns[who])-1]
	before, _ := slices.BinarySearch(o.returns[of], start)
	return 1 + int64(before)
}

// addressee returns the incarnation of a receiver that a sender means.
func (o *oracle) addressee(from, to process.ID) uint32 {
	if !o.news {
		return 1
	}
	return uint32(o.knows(from, to) / 2)
}

// bounce tells a sender, one message delay later, that the receiver has restarted as
// another incarnation, as the link between them would.
func (w *World) bounce(from, to process.ID, incarnation uint32) {
	sender := &w.procs[from]
	if w.procs[to].down || sender.down || sender.incarnation != incarnation {
		return
	}
	if 2*int64(w.procs[to].incarnation) > w.oracle.knows(from, to) {
		it := w.push(w.now+w.config.D(), classTimer, from, itemNews)
		it.arg, it.layer, it.cause = int32(to), uint8(process.Rejoin), uint64(w.procs[to].incarnation)
	}
}

// outdated reports whether the receiver knows that this incarnation of a sender is
// over.
func (w *World) outdated(who, from process.ID, incarnation uint32) bool {
	return 2*int64(incarnation) < w.oracle.knows(who, from)
}

// meet tells a process of another's new incarnation, if its message is the first from
// it.
func (w *World) meet(who, from process.ID, incarnation uint32) {
	if v := 2 * int64(incarnation); v > w.oracle.knows(who, from) {
		w.oracle.learn(who, from, v)
		w.ev = process.Event{Kind: process.Rejoin, Peer: from, Incarnation: uint64(incarnation)}
		w.step(who, &w.ev, 0)
	}
}

// What the oracle detects and reports.
const (
	foundCrash = iota + 1
	foundRestart
	foundPause
	foundResume
)

func (w *World) find(p process.ID, what int32) {
	if w.oracle.detects != process.NoDetector {
		w.push(w.now+w.cfg.Oracle.Detect, classTimer, p, itemDetect).arg = what
	}
}

func (w *World) noticeCrash(p process.ID) {
	w.oracle.news = true
	w.find(p, foundCrash)
}

func (w *World) noticeRestart(p process.ID) {
	o := &w.oracle
	if o.returns == nil {
		o.returns = make([][]uint64, w.config.N)
	}
	o.returned++
	o.returns[p] = append(o.returns[p], o.returned)
	w.find(p, foundRestart)
}

// Only an unreliable detector treats a slow process as crashed.
func (w *World) noticePause(p process.ID) {
	if w.oracle.detects == process.UnreliableDetector {
		w.find(p, foundPause)
	}
}

func (w *World) noticeResume(p process.ID) {
	if w.oracle.detects == process.UnreliableDetector && !w.procs[p].down {
		w.find(p, foundResume)
	}
}

// detect tells all processes what was detected about p, if it is still true.
func (w *World) detect(it *item) {
	p, pr := process.ID(it.proc), &w.procs[it.proc]
	if pr.incarnation != it.incarnation {
		return
	}
	switch it.arg {
	case foundCrash:
		if pr.down {
			w.spread(p, w.suspicion())
		}
	case foundPause:
		if pr.paused {
			pr.suspected = true
			w.spread(p, process.Suspect)
		}
	case foundResume:
		if pr.suspected && !pr.paused && !pr.down {
			pr.suspected = false
			w.spread(p, process.Trust)
		}
	case foundRestart:
		if !pr.down {
			w.spread(p, process.Rejoin)
			w.tellOfTheDead(p)
		}
	}
}

func (w *World) suspicion() process.Kind {
	if w.oracle.detects == process.UnreliableDetector {
		return process.Suspect
	}
	return process.Fail
}

func (w *World) spread(about process.ID, kind process.Kind) {
	for q := range w.procs {
		if process.ID(q) != about && !w.procs[q].down {
			w.pushNews(process.ID(q), about, kind)
		}
	}
}

func (w *World) tellOfTheDead(p process.ID) {
	for q := range w.procs {
		if w.procs[q].down {
			w.pushNews(p, process.ID(q), w.suspicion())
		}
	}
}

func (w *World) pushNews(to, about process.ID, kind process.Kind) {
	it := w.push(w.now, classTimer, to, itemNews)
	it.arg, it.layer, it.cause = int32(about), uint8(kind), uint64(w.procs[about].incarnation)
}

// tell gives a process news about another, or about an election.
func (w *World) tell(it *item) {
	p := process.ID(it.proc)
	if w.procs[p].down || w.procs[p].incarnation != it.incarnation || w.deferred(it) {
		return
	}
	if it.kind == itemElected {
		term := w.oracle.winners[it.arg]
		w.step(p, &process.Event{Kind: process.Elected, Peer: term.Leader(), Term: term}, 0)
		return
	}
	w.tellNews(p, process.ID(it.arg), process.Kind(it.layer), int64(it.cause))
}

// tellNews does not repeat what the process has heard from the other itself. A report
// of a reliable detector ends the other's incarnation: messages of it that are still in
// flight no longer count.
func (w *World) tellNews(p, about process.ID, kind process.Kind, incarnation int64) {
	w.suspects(kind, about)
	w.ev = process.Event{Kind: kind, Peer: about}
	known := w.oracle.knows(p, about)
	switch kind {
	case process.Fail:
		if known > 2*incarnation {
			return
		}
		w.oracle.learn(p, about, 2*incarnation+1)
	case process.Rejoin:
		if known >= 2*incarnation {
			w.trustAgain(p, about)
			return
		}
		w.oracle.learn(p, about, 2*incarnation)
		w.ev.Incarnation = uint64(incarnation)
	}
	w.step(p, &w.ev, 0)
	if kind == process.Rejoin {
		w.trustAgain(p, about)
	}
}

// suspects notes that a detector is wrong, if its report about a process is.
func (w *World) suspects(kind process.Kind, about process.ID) {
	w.faults = w.faults || (kind == process.Suspect || kind == process.Fail) && !w.procs[about].down
}

// trustAgain withdraws an unreliable detector's suspicion of a process that is back.
func (w *World) trustAgain(p, about process.ID) {
	if w.oracle.detects == process.UnreliableDetector {
		w.ev = process.Event{Kind: process.Trust, Peer: about}
		w.step(p, &w.ev, 0)
	}
}

// campaign handles the request of a machine that has no election in its stack.
func (w *World) campaign() {
	if w.oracle.elects && !w.oracle.called {
		w.oracle.called = true
		w.push(w.now+w.cfg.Oracle.Elect, classTimer, 0, itemElection)
	}
}

// elect makes the live process with the highest label the leader.
func (w *World) elect() {
	w.oracle.called = false
	leader := property.Highest(w.scene())
	if leader == process.None {
		return
	}
	w.oracle.round++
	w.oracle.winners = append(w.oracle.winners, process.MakeTerm(w.oracle.round, leader))
	for q := range process.ID(w.config.N) {
		if !w.procs[q].down {
			w.push(w.now, classTimer, q, itemElected).arg = int32(len(w.oracle.winners) - 1)
		}
	}
}
