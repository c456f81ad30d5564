package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// Verdict is the outcome of a search.
type Verdict uint8

// The verdicts.
const (
	Proved   Verdict = iota + 1 // every schedule within the bounds was searched
	Violated                    // a schedule violates a property
	Bounded                     // no violation so far, but the search did not finish
)

var verdictNames = [...]string{"", "proved", "violated", "bounded"}

// String returns the verdict in lower case.
func (v Verdict) String() string { return verdictNames[v] }

// Result is the result of a search.
type Result struct {
	Config  Config // with all defaults
	Verdict Verdict
	// Broken is the violation, or nil, and Path the run to it: a shortest one if
	// the search was breadth first.
	Broken *Violation
	Path   *Path
	// NoReturn is the step of the path after which no schedule within the bounds
	// keeps the properties: 0 if none does from the start, -1 if it is unknown.
	NoReturn int

	States      uint64 // different ones
	Transitions uint64 // out of these, including those that lead to known states
	Depth       int    // the length of the longest of the shortest runs to a state
	Elapsed     time.Duration
	// Stopped says what ended a search that is Bounded: memory, time, states,
	// depth, ways of a step, or interruption if its context was canceled.
	Stopped string

	// Unreached are the rules that were never applied in any searched schedule.
	Unreached []string
	// Sometimes lists the states that make a verdict meaningful, and whether the
	// search reached them.
	Sometimes []Sometimes
	Locals    int // different local states of processes
	Messages  int // different messages

	written []byte // the Scenario, once it was requested
}

// Rate returns transitions per second.
func (r *Result) Rate() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Transitions) / r.Elapsed.Seconds()
}

// Sentence is the verdict in a few words, such as "proved for N=3, 2 entries each" or
// "searched 4.1 M states, bound hit (memory)".
func (r *Result) Sentence() string {
	switch r.Verdict {
	case Proved:
		return "proved for " + r.Config.Bounds()
	case Violated:
		return fmt.Sprintf("violated with %s, after %s", r.Config.Bounds(), count(r.Depth, "step"))
	}
	return fmt.Sprintf("searched %s states, bound hit (%s), of %s", thousands(r.States), r.Stopped, r.Config.Bounds())
}

func thousands(n uint64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%.1f k", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

// Bounds returns the bounds within which the verdict holds, such as "N=3, 2 entries
// each, 1 crash".
func (c *Config) Bounds() string {
	d := c.withDefaults()
	what := "entry"
	switch d.family() {
	case process.Election:
		what = "call"
	case process.Agreement:
		what = "proposal"
	case process.Transaction:
		what = "vote"
	}
	parts := []string{fmt.Sprintf("N=%d", d.Process.N), count(d.Entries, what) + " each"}
	if len(d.Requesters) < d.Process.N {
		parts[1] = fmt.Sprintf("%s of %s", count(d.Entries, what), strings.Join(d.Process.Texts(d.Requesters), " and "))
	}
	if d.Corrupt {
		parts = append(parts[:1:1], "from every state")
		if d.InFlight > 0 {
			parts = append(parts, fmt.Sprintf("with up to %s on each link", count(d.InFlight, "message")))
		}
	}
	if labels := d.Process.ElectionLabels; labels != nil {
		parts = append(parts, "elections by the labels "+strings.Trim(fmt.Sprint(labels), "[]"))
	}
	if d.Unordered {
		parts = append(parts, "messages in any order")
	}
	if d.Timing == AnyTime {
		parts = append(parts, "timers at any time")
	}
	if d.Detector != d.Spec.Needs.Detector {
		parts = append(parts, "told by a detector")
	}
	if len(d.Traitors) > 0 {
		parts = append(parts, d.traitorText())
	}
	for b := range budgetCount {
		if n := d.limit(b); n > 0 {
			parts = append(parts, count(n, budgetNames[b].one))
		}
	}
	return strings.Join(parts, ", ")
}

// traitorText names the Byzantine processes: "traitor 3", or of several sets "1 traitor
// at any of 3 places".
func (c *Config) traitorText() string {
	labels := c.Process.Texts(c.Traitors[0])
	what := "traitor"
	if len(labels) != 1 {
		what = "traitors"
	}
	if n := len(c.Traitors); n > 1 {
		return fmt.Sprintf("%d %s at any of %d places", len(labels), what, n)
	}
	return what + " " + strings.Join(labels, " and ")
}

// plurals are the irregular plurals.
var plurals = map[string]string{
	"entry": "entries", "crash": "crashes", "loss": "losses", "message out of order": "messages out of order",
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if more, ok := plurals[what]; ok {
		return fmt.Sprintf("%d %s", n, more)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Told is a step of a path in words.
type Told struct {
	Step   int    `json:"step"`   // from 1
	Record int    `json:"record"` // the last record of the step in a run of Result.Scenario
	Text   string `json:"text"`
}

// Story describes the run to the violation in a sentence for each step. It omits steps
// without a record, such as a loss, which is described where the message is sent. It is
// nil if there is no Scenario that can be run.
func (r *Result) Story() []Told {
	s, err := r.Replay()
	if err != nil {
		return nil
	}
	told := &teller{steps: len(r.Path.Steps)}
	if _, err := s.Run(told); err != nil {
		return nil
	}
	return told.story
}

// teller makes the story from the records of a run.
type teller struct {
	steps int
	story []Told
}

// Write takes the next record.
func (t *teller) Write(r *trace.Record) error {
	step := int(r.Time / int64(process.Millisecond)) // a step in each D, which is 1 ms
	if step < 1 || step > t.steps {
		return nil
	}
	if last := len(t.story) - 1; last >= 0 && t.story[last].Step == step {
		t.story[last].Record, t.story[last].Text = int(r.ID), t.story[last].Text+"; "+r.Sentence()
		return nil
	}
	t.story = append(t.story, Told{step, int(r.ID), r.Sentence()})
	return nil
}

// RecordOfNoReturn is the last record of the step after which the properties cannot be
// kept, in a run of Result.Scenario, or 0.
func (r *Result) RecordOfNoReturn() int {
	record := 0
	for _, t := range r.Story() {
		if t.Step <= r.NoReturn {
			record = t.Record
		}
	}
	return record
}

// NoReturnStates is the usual number of states in which to look for the point of no
// return: less than a second's work.
const NoReturnStates = 100_000

// PointOfNoReturn says from when on the properties could not be kept, or nothing if
// that is unknown.
func (r *Result) PointOfNoReturn() string {
	switch {
	case r.Path == nil || r.NoReturn < 0:
		return ""
	case r.NoReturn == 0:
		return "Every schedule within these bounds breaks a promise."
	case r.NoReturn == len(r.Path.Steps):
		return fmt.Sprintf("Until step %d there are schedules that keep the promises.", r.NoReturn)
	}
	return fmt.Sprintf("After step %d no schedule keeps the promises.", r.NoReturn)
}
