package check

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/trace"
)

// Told is a step of a path in words.
type Told struct {
	Step   int // from 1
	Record int // the last record of the step in a run of Result.Scenario
	Text   string
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
