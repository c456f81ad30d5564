package check

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

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
