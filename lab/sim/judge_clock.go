package sim

import (
	"fmt"
	"slices"
	"sort"

	"github.com/conclave-io/conclave/process"
)

// stamped is an event that a logical clock has given a time.
type stamped struct {
	at    uint64   // its number at its process, as the ghost counts
	stamp []uint64 // one number, or one for each process
}

// stamps are all such events of a run, by process, in their order.
type stamps struct {
	w      *World
	layer  uint8
	event  process.Type
	vector bool
	events [][]stamped
}

// clockLayer finds the logical clock of a stack: a layer that reports messages called
// EVENT. A clock above another carrier is not judged: its messages leave later in the
// step than they get their times.
func clockLayer(spec *process.Spec) (layer uint8, event process.Type, vector bool) {
	for l, one := range spec.All() {
		if t := typeOf(one, "EVENT"); t > 0 && one.Family == process.ClockSync {
			return l, t, one.Messages[t-1].FieldSet().Has(process.FieldVector)
		}
		if one.Carrier {
			break
		}
	}
	return 0, 0, false
}

func newStamps(w *World) *stamps {
	s := &stamps{w: w, events: make([][]stamped, w.config.N)}
	s.layer, s.event, s.vector = clockLayer(w.cfg.Spec)
	return s
}

// watch shows each new event of the clock to a judge, before it is kept.
func (s *stamps) watch(judge func(p process.ID, e stamped) string) func(o *Observation) string {
	return func(o *Observation) string {
		if o.Kind != Delivered || s.event == 0 || o.Message.Layer != s.layer || o.Message.Type != s.event {
			return ""
		}
		e := stamped{at: s.w.ghost.clocks[o.Process][o.Process], stamp: []uint64{o.Message.Clock}}
		if s.vector {
			e.stamp = slices.Clone(o.Message.Vector)
		}
		text := judge(o.Process, e)
		s.events[o.Process] = append(s.events[o.Process], e)
		return text
	}
}

// past returns the number of events of q in the present causal past of p.
func (s *stamps) past(p, q process.ID) int {
	known := s.w.ghost.clocks[p][q]
	return sort.Search(len(s.events[q]), func(i int) bool { return s.events[q][i].at > known })
}

// below compares two stamps: all numbers are at most the other's, and not all are
// equal.
func below(a, b []uint64) bool {
	differ := false
	for i := range a {
		if a[i] > b[i] {
			return false
		}
		differ = differ || a[i] < b[i]
	}
	return differ
}

func (s *stamps) text(p process.ID, stamp []uint64) string {
	if s.vector {
		return fmt.Sprintf("an event of %s at %v", s.w.config.Text(p), stamp)
	}
	return fmt.Sprintf("an event of %s at %d", s.w.config.Text(p), stamp[0])
}

// earlier checks an event against the last event of each process that happened before
// it. Earlier events are below that one, because they were checked in the same way.
func (s *stamps) earlier(p process.ID, e stamped) string {
	for q := range process.ID(s.w.config.N) {
		k := s.past(p, q)
		if k == 0 {
			continue
		}
		if cause := s.events[q][k-1]; !below(cause.stamp, e.stamp) {
			return s.text(q, cause.stamp) + " happened before " + s.text(p, e.stamp)
		}
	}
	return ""
}

// strangers checks an event against those that did not happen before it: none is below
// it, and it is below none. If any event of a process is below it, the first is; if it
// is below any, it is below the last.
func (s *stamps) strangers(p process.ID, e stamped) string {
	for q := range process.ID(s.w.config.N) {
		k := s.past(p, q)
		if others := s.events[q][k:]; len(others) > 0 && below(others[0].stamp, e.stamp) {
			return s.text(q, others[0].stamp) + " did not happen before " + s.text(p, e.stamp)
		}
		if all := s.events[q]; len(all) > 0 && below(e.stamp, all[len(all)-1].stamp) {
			return s.text(p, e.stamp) + " did not happen before " + s.text(q, all[len(all)-1].stamp)
		}
	}
	return ""
}

// ClockCondition watches that an event that happened before another has the
// smaller stamp.
func ClockCondition(w *World) Watcher {
	s := newStamps(w)
	return Watcher{Property: process.ClockCondition, Ghost: true, Watch: s.watch(s.earlier)}
}

// StrongClock watches that one event has a smaller stamp than another exactly if
// it happened before it.
func StrongClock(w *World) Watcher {
	s := newStamps(w)
	watch := s.watch(func(p process.ID, e stamped) string {
		if text := s.earlier(p, e); text != "" {
			return text
		}
		return s.strangers(p, e)
	})
	return Watcher{Property: process.StrongClock, Ghost: true, Watch: watch}
}
