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

// clockBound watches the distance between clocks.
type clockBound struct {
	w        *World
	bound    *process.Formula
	params   process.Params
	longest  process.Duration // of the delays
	internal bool             // any two clocks are compared, not each with the reference
	parents  []process.ID     // the process whose clock each one follows
	seen     []int            // corrections, by rank
	sound    []bool           // the parent's clock has been right since the last of them
	based    []bool           // one of them was measured by a clock that was right
	counts   []bool           // that correction is complete, so the clock is right from now on
}

// ClockBound watches that clocks that are right are no further apart than a formula
// says: any two if the master is elected, otherwise each from the clock of the
// coordinator or of the root of the tree. It does not judge runs in which delays have
// no bound, messages are lost or processes are stopped.
//
// A clock that follows another is right once it has completed a correction that it
// requested when the other clock was right. Completing just any correction is not
// enough: the other clock may have been still in correction when it was asked, and be
// right before the judge looks.
//
// Clocks that follow their average are right once all have completed the corrections of
// one round. Before that the average moves from round to round, because it is taken of
// clocks in correction, and a clock that has arrived has to turn back. For example,
// with three clocks at 0, 3 and 3 s, and 1 s corrected by the next round, the averages
// are 2 and 5/3 s.
func ClockBound(bound *process.Formula) Judge {
	return func(w *World) Watcher {
		watcher := Watcher{Property: process.ClockBound, Messages: true}
		top := w.cfg.Spec.Top() // the stack may have the election
		b := &clockBound{w: w, bound: bound, internal: top.Needs.Elector}
		if w.clocks == nil || !b.measure(top) {
			return watcher
		}
		b.follow()
		watcher.Watch = b.watch
		watcher.End = b.check
		return watcher
	}
}

// follow determines which process follows which.
func (b *clockBound) follow() {
	n, topology := b.w.config.N, &b.w.config.Topology
	b.seen, b.sound, b.based, b.counts = make([]int, n), make([]bool, n), make([]bool, n), make([]bool, n)
	if b.parents = topology.Parent; b.w.cfg.Spec.Needs.Topology != process.Tree {
		b.parents = process.Star(n)
		b.parents[0], b.parents[topology.Coordinator] = topology.Coordinator, process.None
	}
	for p := range process.ID(n) {
		b.sound[p] = b.rightAbove(p)
	}
}

// rightAbove reports whether the clock that p follows is right. The root's clock is
// right by definition.
func (b *clockBound) rightAbove(p process.ID) bool {
	parent := b.parents[p]
	return parent != process.None && (b.parents[parent] == process.None || b.counts[parent])
}

// measure computes what the bound depends on, and reports whether there is a bound.
func (b *clockBound) measure(top *process.Spec) bool {
	cfg, d := &b.w.cfg, float64(b.w.config.D())
	lo, hi, bounded := cfg.Links.span()
	drift := 0
	for _, c := range cfg.Clocks {
		drift = max(drift, c.Drift, -c.Drift)
	}
	for _, f := range cfg.Faults {
		bounded = bounded && f.Kind != Pause && f.Kind != Lose && f.Kind != Slow && f.Kind != Partition
		drift = max(drift, f.Drift, -f.Drift)
	}
	b.longest = hi
	option := func(name string) int { return top.Number(b.w.config, name, 0) }
	b.params = process.Params{
		N: b.w.config.N, MinDelay: float64(lo) / d, MaxDelay: float64(hi) / d,
		Drift: float64(drift) / million, Slew: float64(SlewRate) / million,
		Interval: float64(option("interval")), Limit: float64(option("limit")),
		Exchanges: option("burst") + option("samples"),
	}
	return bounded
}

// span returns the least and the largest delay of all links, if there is one.
func (l *Links) span() (lo, hi process.Duration, bounded bool) {
	all := []Link{l.Link}
	for _, o := range l.Overrides {
		all = append(all, o.Link)
	}
	lo, bounded = longest, true
	for _, link := range all {
		delay := link.Delay.or(l.Delay)
		least, most := delay.lo, delay.hi
		if delay.kind == listed {
			least, most = slices.Min(delay.list), slices.Max(delay.list)
		}
		if link.Reorder > 0 {
			most += 4 * delay.Mean()
		}
		lo, hi = min(lo, least), max(hi, most)
		bounded = bounded && delay.kind != exponential && link.Drop == 0
	}
	return lo, hi, bounded
}

func (b *clockBound) watch(o *Observation) string {
	if o.Kind == Crashed {
		b.based[o.Process], b.counts[o.Process] = false, false
		for p := range b.parents {
			b.sound[p] = b.sound[p] && b.parents[p] != o.Process
		}
	}
	return b.check()
}

// check looks at all clocks.
func (b *clockBound) check() string {
	for p := range process.ID(b.w.config.N) {
		b.update(p)
	}
	if b.internal {
		b.join()
	}
	first, last := process.None, process.None
	for p := range process.ID(b.w.config.N) {
		switch {
		case !b.counts[p] || b.w.procs[p].down:
		case !b.internal:
			if text := b.compare(p, b.root(p)); text != "" {
				return text
			}
		case first == process.None:
			first, last = p, p
		case b.w.Clock(p) < b.w.Clock(first):
			first = p
		case b.w.Clock(p) > b.w.Clock(last):
			last = p
		}
	}
	if first == last {
		return ""
	}
	return b.compare(first, last)
}

// update determines whether the clock of p is right from now on. It runs before p asks
// again, because the request is observed.
func (b *clockBound) update(p process.ID) {
	c := &b.w.clocks[p]
	if c.rounds != b.seen[p] {
		b.seen[p] = c.rounds
		b.based[p] = b.based[p] || b.internal || b.sound[p]
		b.sound[p] = b.rightAbove(p)
	}
	if !b.internal {
		b.counts[p] = b.counts[p] || b.based[p] && c.settled(b.w.now)
	}
}

// join determines whether all live clocks are right from now on: they have completed
// the corrections of one round, which are made within the longest delay of each other.
func (b *clockBound) join() {
	first, last := longest, process.Duration(0)
	for p := range b.based {
		if c := &b.w.clocks[p]; !b.w.procs[p].down {
			if !b.based[p] || !c.settled(b.w.now) {
				return
			}
			first, last = min(first, c.corrected), max(last, c.corrected)
		}
	}
	for p := range b.counts {
		b.counts[p] = b.counts[p] || last-first <= b.longest && !b.w.procs[p].down
	}
}

// root returns the process that p finally gets its time from, and notes the distance to
// it.
func (b *clockBound) root(p process.ID) process.ID {
	b.params.Distance = 0
	for b.parents[p] != process.None {
		p = b.parents[p]
		b.params.Distance++
	}
	return p
}

func (b *clockBound) compare(p, q process.ID) string {
	apart := b.w.Clock(p) - b.w.Clock(q)
	limit := b.bound.Eval(b.params) * float64(b.w.config.D())
	if float64(max(apart, -apart)) <= limit+rounding {
		return ""
	}
	return fmt.Sprintf("the clocks of %s and %s are %d ns apart, at most %.0f are allowed",
		b.w.config.Text(p), b.w.config.Text(q), max(apart, -apart), limit)
}

// rounding is the possible sum of rounding errors of whole nanoseconds.
const rounding = 100
