package check

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
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
				w.fork(v)
				w.finish(f, action{kind: actNotice, proc: uint8(p), edge: uint8(i), stop: -1}, w.inVain(process.ID(p), process.ID(e.argument)))
			}
		}
	}
}

func (w *worker) inVain(p, leader process.ID) *Violation {
	return &Violation{process.LeaderTermination, p, fmt.Sprintf("%s is asked for another leader than %s, which has crashed, and nothing comes of it",
		w.config.Text(p), w.config.Text(leader))}
}

// judgeOrphan watches that nobody ends with a leader of which a reliable detector has
// told it that it has crashed.
func (w *worker) judgeOrphan(v []uint32) *Violation {
	if w.cfg.Detector != process.ReliableDetector {
		return nil
	}
	for p := range process.ID(w.layout.n) {
		if l := w.view(v[p]); !l.down && l.state.leader != process.None && w.view(v[l.state.leader]).down {
			return &Violation{process.LeaderTermination, p, fmt.Sprintf("%s was told that %s has crashed, and ends with it as its leader",
				w.config.Text(p), w.config.Text(l.state.leader))}
		}
	}
	return nil
}

// judgeSingle watches that of those who are up at most one takes itself for the
// leader.
func (w *worker) judgeSingle(v []uint32, p process.ID) *Violation {
	if !w.cfg.checks(process.SingleLeader) || w.view(v[p]).state.leader != p {
		return nil
	}
	for q := range process.ID(w.layout.n) {
		if q != p && w.view(v[q]).state.leader == q {
			return &Violation{process.SingleLeader, p, fmt.Sprintf("%s takes itself for the leader, and so does %s",
				w.config.Text(p), w.config.Text(q))}
		}
	}
	return nil
}
