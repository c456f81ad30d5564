package leasemodel

import (
	"slices"

	"github.com/conclave-io/conclave/internal/service/founding"
)

// The founding goes by internal/service/founding itself. A server that decides has heard any of
// the others, as they are now: that answers come late is tried in the tests of that
// package, which search the founding alone.

// uid returns the UID of the directory of a server: its first or its second.
func uid(i int, second bool) uint64 {
	if second {
		return uint64(i) + 1 + servers
	}
	return uint64(i) + 1
}

// recordOf unpacks a founding record.
func recordOf(packed int) (r founding.Record) {
	for i := range servers {
		if packed != 0 {
			r = append(r, founding.Founder{ID: uint64(i) + 1, UID: uid(i, (packed-1)>>i&1 != 0)})
		}
	}
	return r
}

func packed(r founding.Record) int {
	set := 0
	for i := range r {
		if r[i].UID > servers {
			set |= 1 << i
		}
	}
	return set + 1
}

// founding is the server with a number, as package founding knows it.
func (s *server) founding(i int) founding.Server {
	all := founding.Server{ID: uint64(i) + 1, UID: uid(i, s.redrew), Record: recordOf(s.record)}
	for j := range servers {
		all.Founders = append(all.Founders, uint64(j)+1)
	}
	return all
}

// decide returns what a server decides that has heard a set of the others: the step,
// and of Write the record. What package founding said once is kept, since it takes longer
// than all else in a step.
func (w *world) decide(i, heard int) (step founding.Step, record int) {
	const records = 1<<servers + 1
	key := i<<servers | heard
	for j := range servers {
		s := &w.servers[j]
		key = (key*records+s.record)*4 + number(s.redrew)*2 + number(s.phase == founder)
	}
	if w.decisions == nil {
		w.decisions = make([]uint16, servers<<servers*records*records*records*4*4*4)
	}
	known := &w.decisions[key]
	if *known == 0 {
		d := w.ask(i, heard)
		*known = 1 + uint16(d.Step)
		if d.Step == founding.Write {
			*known += uint16(packed(d.Record)) << 4
		}
	}
	return founding.Step(*known&15 - 1), int(*known >> 4)
}

// ask asks package founding.
func (w *world) ask(i, heard int) founding.Decision {
	answers := make(map[uint64]founding.Answer, servers)
	for j := range servers {
		switch {
		case j == i:
		case heard>>j&1 != 0 && w.servers[j].phase == founder:
			answers[uint64(j)+1] = founding.Answer{UID: uid(j, w.servers[j].redrew), Phase: founding.Founded, Record: recordOf(w.servers[j].record)}
		case heard>>j&1 != 0:
			answers[uint64(j)+1] = w.servers[j].founding(j).Says(nil)
		case w.flaw == FoundsByTwo && heard != 0:
			answers[uint64(j)+1] = w.servers[i].imagined(j)
		}
	}
	return w.servers[i].founding(i).Decide(answers)
}

// imagined is what a server that founds with one other takes the third one to say.
func (s *server) imagined(j int) founding.Answer {
	if s.record != 0 {
		return founding.Answer{UID: uid(j, false), Phase: founding.Recorded, Record: recordOf(s.record)}
	}
	return founding.Answer{UID: uid(j, false), Phase: founding.New}
}

// findDecisions lists what servers that have not founded may do next, each once.
func (w *world) findDecisions() {
	for i := range w.servers {
		if s := &w.servers[i]; s.phase != fresh && s.phase != recorded {
			continue
		}
		first := len(w.actions)
		for heard := range 1 << servers {
			if heard>>i&1 != 0 {
				continue
			}
			step, record := w.decide(i, heard)
			a := action{ruleWrite, i, record, int(step)}
			if step != founding.Wait && !slices.Contains(w.actions[first:], a) {
				w.actions = append(w.actions, a)
			}
		}
	}
}

// found takes the next step of a founding.
func (w *world) found(i int, step founding.Step, record int) Rule {
	s := &w.servers[i]
	switch {
	case step == founding.Write:
		s.phase, s.record = recorded, record
		if next, _ := w.decide(i, 0); next == founding.Rejoin {
			return w.found(i, next, 0) // it needs no answers for that
		}
		return ruleWrite
	case step == founding.Rejoin && w.flaw != BlankVotes:
		s.phase = blank
		return ruleBlank
	}
	s.phase = founder
	return ruleFound
}

// settleFounding forgets the founding once it is over for good: no server needs a record
// any more to know what it is.
func (w *world) settleFounding() {
	if w.emptied < w.empties {
		return
	}
	for i := range w.servers {
		if p := w.servers[i].phase; p == fresh || p == recorded {
			return
		}
	}
	for i := range w.servers {
		w.servers[i].redrew, w.servers[i].record = false, 0
	}
}
