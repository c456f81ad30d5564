package check

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// An election that asks no detector elects, and no more: that a leader has gone is
// noticed above it, by whoever wants something of the leader, and that one calls for
// another. So whoever follows a leader that has crashed is asked for an election at
// some later moment, soon or late, and again if the next leader has crashed as well.
// A run in which nobody asks would end with a dead leader, of which the election is
// innocent.

// notices reports whether clients notice that a leader has crashed.
func (c *Config) notices() bool {
	return c.family() == process.Election && c.Crashes > 0 && c.Detector != process.ReliableDetector
}

// mayNotice reports whether a process in this local state might be asked for another
// leader. Who leads itself has nobody to miss.
func (w *worker) mayNotice(l *local) bool {
	return w.cfg.notices() && l.leader != process.None && l.leader != l.proc
}

// recall asks for another leader in place of one that has crashed.
func (s *stepper) recall() { s.step(process.Event{Kind: process.Campaign}) }

// noticed reports whether the leader has crashed that an edge of a notice is about,
// and something comes of it. Who holds an election already need not be asked again.
func (w *worker) noticed(v []uint32, e *edge) bool {
	return w.missing(v, e) && (e.delta != print{} || e.sendsN > 0)
}

func (w *worker) missing(v []uint32, e *edge) bool { return w.view(v[e.argument]).down }

// askInVain finds who does nothing when it is asked for another leader, in a state in
// which nothing else can happen any more.
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
