package engine

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/lab/course"
)

// Course is the answer to the call course.
type Course struct {
	Lessons    []course.Lesson    `json:"lessons"`
	Challenges []course.Challenge `json:"challenges"`
}

// Graded is the answer to the call grade. If the text has a change that the challenge does not
// allow, the text is not run.
type Graded struct {
	Solved  bool     `json:"solved"`
	Refused []string `json:"refused"` // sentences: changes that the challenge does not allow
	Unmet   []string `json:"unmet"`   // conditions of the challenge that the run does not meet
}

// gradedEvents is the maximum number of events in the run of a solution.
const gradedEvents = 100_000

// lessons answers with the lessons and the challenges.
func (e *Engine) lessons(*Request) (Frame, error) {
	lessons, err := course.Lessons()
	if err != nil {
		return Frame{}, err
	}
	challenges, err := course.Challenges()
	if err != nil {
		return Frame{}, err
	}
	return Frame{Head: Course{lessons, challenges}}, nil
}

// grade runs a text and reports whether it solves a challenge.
func (e *Engine) grade(j *job) (Frame, error) {
	r := j.request
	challenges, err := course.Challenges()
	if err != nil {
		return Frame{}, err
	}
	i := slices.IndexFunc(challenges, func(c course.Challenge) bool { return c.ID == r.Challenge })
	if i < 0 {
		return Frame{}, badRequest("challenge: %q: no such challenge", r.Challenge)
	}
	s, err := readScenario(r)
	if err != nil {
		return Frame{}, err
	}
	refused, err := challenges[i].Refused(r.Text)
	if err != nil {
		return Frame{}, err
	}
	if len(refused) > 0 {
		return Frame{Head: Graded{Refused: refused, Unmet: []string{}}}, nil
	}
	going, err := s.Begin(nil)
	if err != nil {
		return Frame{}, err
	}
	steps := 0
	for going.Step() {
		if steps++; steps > gradedEvents {
			return Frame{Head: Graded{Refused: refused, Unmet: []string{fmt.Sprintf("The run has more than %d events.", gradedEvents)}}}, nil
		}
		if steps%lookEvery == 0 && j.over() && !j.pause() {
			return Frame{}, errCancelled
		}
	}
	outcome, err := going.Outcome()
	if err != nil {
		return Frame{}, err
	}
	unmet := []string{}
	for _, text := range outcome.Unmet {
		unmet = append(unmet, course.Plain(text))
	}
	return Frame{Head: Graded{Solved: outcome.Met(), Refused: refused, Unmet: unmet}}, nil
}
