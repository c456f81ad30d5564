// Package events is the course of one run: the time of the world, what is scheduled, what is written
// to the log and to the digest, and the first check that fails.
package events

import (
	"fmt"
	"io"

	"github.com/conclave-io/conclave/internal/test/vopr/stats"
)

// Millisecond is a millisecond, in ns.
const Millisecond = int64(1e6)

// Violation is a broken promise.
type Violation struct {
	// Rule is the short name of the promise. Text describes what happened.
	Rule, Text string
	At         int64 // ns
}

func (v *Violation) Error() string {
	return fmt.Sprintf("%s: %s, at %d ms", v.Rule, v.Text, v.At/Millisecond)
}

// Checks selects what a run is checked for.
type Checks uint8

// The possible checks: the promises of the service, and whether the decisions of servers and
// clients conform to the model of the sessions.
const (
	Promises Checks = 1 << iota
	Traces
)

// RuleTrace is the Rule of a Violation of the model.
const RuleTrace = "trace"

// Run is the course of one run.
type Run struct {
	Now    int64  // ns, from the start
	Digest uint64 // digest of all events
	Stats  stats.Stats
	Found  *Violation

	checks Checks
	log    io.Writer // nil: no log
	queue  events
	drawn  uint64 // number of scheduled events so far
}

// New returns a run at time 0.
func New(log io.Writer, checks Checks) *Run { return &Run{log: log, checks: checks} }

// Checks reports whether the run is checked for all of these.
func (r *Run) Checks(c Checks) bool { return r.checks&c == c }

// Logs reports whether there is a log.
func (r *Run) Logs() bool { return r.log != nil }

// Step does the next event. It returns false if there is none.
func (r *Run) Step() bool {
	if len(r.queue) == 0 {
		return false
	}
	e := r.queue.pop()
	r.Now = e.at
	r.Stats.Events++
	e.do()
	return true
}

// At schedules an event at a time. Events at the same time happen in the order in which they were
// scheduled.
func (r *Run) At(when int64, do func()) {
	r.drawn++
	r.queue.push(event{max(when, r.Now), r.drawn, do})
}

// After schedules an event after a time.
func (r *Run) After(d int64, do func()) { r.At(r.Now+d, do) }

// Note adds an event to the digest and to the log.
func (r *Run) Note(what string, a, b uint64) {
	const prime = 0x100000001b3
	h := r.Digest ^ uint64(r.Now)
	for i := range len(what) {
		h = (h ^ uint64(what[i])) * prime
	}
	h = (h ^ a) * prime
	h ^= h >> 29
	r.Digest = (h ^ b) * prime
	if r.log != nil {
		fmt.Fprintf(r.log, "%10.3f %s %d %d\n", float64(r.Now)/1e6, what, a, b)
	}
}

// Tell adds a line to the log.
func (r *Run) Tell(format string, args ...any) {
	if r.log != nil {
		fmt.Fprintf(r.log, "%10.3f "+format+"\n", append([]any{float64(r.Now) / 1e6}, args...)...)
	}
}

// Violate records the first check that fails.
func (r *Run) Violate(rule, format string, args ...any) {
	if r.Found == nil && (rule == RuleTrace || r.Checks(Promises)) {
		r.Found = &Violation{Rule: rule, Text: fmt.Sprintf(format, args...), At: r.Now}
		r.Tell("VIOLATION %v", r.Found)
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
