// Package world is a simulated world: servers with clocks, disks and a network between them, clients,
// an operator, what the plan does to them, and the judge of what they promise. Parts that only some
// plans have are packages of their own: see Parts.
package world

import (
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/test/vopr/faults"
	"github.com/conclave-io/conclave/internal/test/vopr/stats"
)

// ms is a millisecond, in ns.
const ms = int64(1e6)

// World is the state of one run.
type World struct {
	Plan   faults.Plan
	checks Checks
	log    io.Writer // nil: no log
	Now    int64     // ns, from the start
	end    int64     // when clients stop starting new work

	events events
	drawn  uint64 // number of scheduled events so far
	Digest uint64 // digest of all events

	net, disks, work, releases, nests *rand.Rand // independent random sources

	Servers     []*Server // by id, from 1
	founders    []uint64
	directories uint64  // number of directories created so far
	doubtful    bool    // a removal of a server may have succeeded without a confirmation
	settled     members // those of which a leader said last that they are settled, in the term settledIn
	settledIn   uint64
	Clients     []*client
	owners      map[registry.SessionID]string // principals of all sessions that clients opened, also of those given up
	cuts        []*cut
	Storm       *faults.Fault
	uneasy      int64  // when there was last a fault of the servers, or a change of the members
	numbers     uint64 // the number of the latest connection or stream
	Healed      bool
	operator
	attendant
	Judge judge
	trace *trace  // nil if traces are not checked
	live  StandIn // nil if the plan has no live names
	Hosts Hosts   // nil if the plan has no hosts
	// guards is the common part of live and hosts, or nil.
	Guards guards
	rules  Rules // nil if the plan has no rules
	Stats  stats.Stats
	Found  *Violation
}

// Violation is a broken promise.
type Violation struct {
	// Rule is the short name of the promise. Text describes what happened.
	Rule, Text string
	At         int64 // ns
}

func (v *Violation) Error() string {
	return fmt.Sprintf("%s: %s, at %d ms", v.Rule, v.Text, v.At/ms)
}

// Checks selects what a run is checked for.
type Checks uint8

// The possible checks: the promises of the service, and whether the decisions of servers and
// clients conform to the model of the sessions.
const (
	Promises Checks = 1 << iota
	Traces
)

// New returns the world of a plan. parts make what only some plans have.
func New(plan faults.Plan, log io.Writer, checks Checks, parts *Parts) *World {
	w := &World{
		Plan: plan, checks: checks, log: log, end: plan.Millis * ms, Judge: newJudge(),
		owners:   make(map[registry.SessionID]string),
		net:      rand.New(rand.NewPCG(plan.Seed, 2)),
		disks:    rand.New(rand.NewPCG(plan.Seed, 3)),
		work:     rand.New(rand.NewPCG(plan.Seed, 4)),
		releases: rand.New(rand.NewPCG(plan.Seed, 5)),
		nests:    rand.New(rand.NewPCG(plan.Seed, 6)),
	}
	if plan.Deadlocks {
		w.Judge.tested = newPretested()
	}
	if checks&Traces != 0 && !plan.Live {
		w.trace = newTrace(w) // the model has no seats
	}
	if plan.Hosts {
		w.Hosts = parts.Hosts(w)
		w.Guards = w.Hosts
	}
	w.foundCluster()
	for slot := range plan.Clients {
		w.Clients = append(w.Clients, newClient(w, slot))
	}
	for _, f := range plan.Faults {
		w.At(f.At*ms, func() { w.strike(f) })
	}
	w.At(tick, w.watchPatience)
	w.At(lookPeriod, w.attend)
	if plan.Levels {
		w.At(levelSoak, w.roll)
	}
	switch {
	case plan.Live && !plan.Hosts:
		w.live = parts.Seats(w)
		w.Guards = w.live
	case plan.Hosts:
		w.Judge.Live = newLiveResources()
	}
	if plan.Access {
		w.rules = parts.Rules(w)
	}
	w.At(w.end, w.heal)
	return w
}

// Counts returns what happened in the run.
func (w *World) Counts() stats.Stats {
	w.Stats.Runs, w.Stats.Nanos = 1, w.Now
	if w.trace != nil {
		w.Stats.Compared = w.trace.run.Compared
	}
	return w.Stats
}

// Play processes events until the run is quiet after its end, or a check fails.
func (w *World) Play() {
	for w.Found == nil && w.step() {
		if w.Now > w.end && w.Judge.settled(w) {
			w.Judge.conclude(w)
			return
		}
	}
}

func (w *World) step() bool {
	if len(w.events) == 0 {
		return false
	}
	e := w.events.pop()
	w.Now = e.at
	w.Stats.Events++
	e.do()
	return true
}

// At schedules an event at a time. Events at the same time happen in the order in which they were
// scheduled.
func (w *World) At(when int64, do func()) {
	w.drawn++
	w.events.push(event{max(when, w.Now), w.drawn, do})
}

// After schedules an event after a time.
func (w *World) After(d int64, do func()) { w.At(w.Now+d, do) }

// note adds an event to the digest and to the log.
func (w *World) note(what string, a, b uint64) {
	const prime = 0x100000001b3
	h := w.Digest ^ uint64(w.Now)
	for i := range len(what) {
		h = (h ^ uint64(what[i])) * prime
	}
	h = (h ^ a) * prime
	h ^= h >> 29
	w.Digest = (h ^ b) * prime
	if w.log != nil {
		fmt.Fprintf(w.log, "%10.3f %s %d %d\n", float64(w.Now)/1e6, what, a, b)
	}
}

// Tell adds a line to the log.
func (w *World) Tell(format string, args ...any) {
	if w.log != nil {
		fmt.Fprintf(w.log, "%10.3f "+format+"\n", append([]any{float64(w.Now) / 1e6}, args...)...)
	}
}

// Violate records the first check that fails.
func (w *World) Violate(rule, format string, args ...any) {
	if w.Found == nil && (rule == ruleTrace || w.checks&Promises != 0) {
		w.Found = &Violation{Rule: rule, Text: fmt.Sprintf(format, args...), At: w.Now}
		w.Tell("VIOLATION %v", w.Found)
	}
}

// event is a scheduled event.
type event struct {
	at  int64
	seq uint64
	do  func()
}

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

// events is a heap of scheduled events.
type events []event

func (q *events) push(e event) {
	*q = append(*q, e)
	h := *q
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = e
}

func (q *events) pop() event {
	h := *q
	top, last := h[0], h[len(h)-1]
	h[len(h)-1] = event{}
	h = h[:len(h)-1]
	*q = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].before(&h[child]) {
			child++
		}
		if !h[child].before(&last) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = last
	return top
}
