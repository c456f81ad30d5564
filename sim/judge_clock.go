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

// clockLayer finds the logical clock of a stack: a layer that reports messages
// called EVENT. A clock over another carrier is not judged: its messages leave
// later in the step than it gave them their times.
func clockLayer(spec *process.Spec) (layer uint8, event process.Type, vector bool) {
	for l := range spec.Depth() {
		one := spec.Layer(uint8(l))
		for i, m := range one.Messages {
			if one.Family == process.ClockSync && m.Name == "EVENT" {
				return uint8(l), process.Type(i + 1), m.FieldSet().Has(process.FieldVector)
			}
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

// past returns how many events of q are in the causal past of p as it is now.
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

// earlier checks an event against the last of each process that happened before
// it. Those before that one are below it, because they were checked likewise.
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

// strangers checks an event against those that did not happen before it: none is
// below it, and it is below none. If any of a process is below it, the first is,
// and if it is below any, the last.
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
	return Watcher{Name: "clock condition", Property: process.ClockCondition, Ghost: true, Watch: s.watch(s.earlier)}
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
	return Watcher{Name: "strong clock condition", Property: process.StrongClock, Ghost: true, Watch: watch}
}

// clockBound watches how far clocks are apart.
type clockBound struct {
	w        *World
	bound    *process.Formula
	params   process.Params
	internal bool         // any two are compared, not each with the reference
	parents  []process.ID // whose clock each one follows
	seen     []int        // corrections, by rank
	based    []bool       // the last one is by a clock that counts
	counts   []bool       // that one is worked in; so it is right from now on
}

// ClockBound watches that clocks that have worked in a correction are no further
// apart than a formula says: of any two if the master is elected, otherwise from
// that of the coordinator, or of the root of the tree. It says nothing of runs in
// which delays have no bound, messages are lost or processes stand still.
func ClockBound(bound *process.Formula) Judge {
	return func(w *World) Watcher {
		watcher := Watcher{Name: "clock bound", Property: process.ClockBound, Messages: true, Watch: func(*Observation) string { return "" }}
		top := w.cfg.Spec.Layer(uint8(w.cfg.Spec.Depth() - 1)) // the stack may have the election
		b := &clockBound{w: w, bound: bound, internal: top.Needs.Elector}
		if w.clocks == nil || !b.measure() {
			return watcher
		}
		n := w.config.N
		b.seen, b.based, b.counts = make([]int, n), make([]bool, n), make([]bool, n)
		if b.parents = w.config.Topology.Parent; w.cfg.Spec.Needs.Topology != process.Tree {
			b.parents = process.Star(n)
			b.parents[0], b.parents[w.config.Topology.Coordinator] = w.config.Topology.Coordinator, process.None
		}
		watcher.Watch = b.watch
		watcher.End = b.check
		return watcher
	}
}

// measure fills in what the bound depends on, and reports whether it has one.
func (b *clockBound) measure() bool {
	cfg, d := &b.w.cfg, float64(b.w.config.D())
	lo, hi, bounded := cfg.Links.span()
	for _, f := range cfg.Faults {
		bounded = bounded && f.Kind != Pause && f.Kind != Lose && f.Kind != Partition
	}
	drift := 0
	for _, c := range cfg.Clocks {
		drift = max(drift, c.Drift, -c.Drift)
	}
	b.params = process.Params{
		N: b.w.config.N, MinDelay: float64(lo) / d, MaxDelay: float64(hi) / d,
		Drift: float64(drift) / million, Slew: float64(SlewRate) / million,
		Interval: float64(b.w.config.IntOption("interval", 100)),
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
	}
	return b.check()
}

// check looks at all clocks.
func (b *clockBound) check() string {
	for p := range process.ID(b.w.config.N) {
		b.update(p)
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

// update finds out whether the clock of p is right from now on: it has worked in a
// correction, by a clock that was right.
func (b *clockBound) update(p process.ID) {
	c := &b.w.clocks[p]
	if c.rounds != b.seen[p] {
		b.seen[p] = c.rounds
		parent := b.parents[p]
		b.based[p] = b.based[p] || b.internal || parent != process.None && (b.parents[parent] == process.None || b.counts[parent])
	}
	b.counts[p] = b.counts[p] || b.based[p] && c.settled(b.w.now)
}

// root returns whom p gets its time from in the end, and notes how far away it is.
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

// rounding is what whole nanoseconds may add up to.
const rounding = 100

// boundOf returns the formula with which a Spec claims a property.
func boundOf(spec *process.Spec, property process.Property) *process.Formula {
	i := slices.IndexFunc(spec.Claims.Properties, func(c process.Claim) bool { return c.Property == property })
	return spec.Claims.Properties[i].Bound
}
