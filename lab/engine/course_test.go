package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/conclave-io/conclave/lab/course"
	"github.com/conclave-io/conclave/lab/engine"
	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// told is the run of a step, with the data that the checks of its claims need.
type told struct {
	*page
	at      string // names the step in errors
	text    string
	run     engine.Run
	end     engine.End
	records []trace.Record
	says    []string
}

func newTold(t *testing.T, p *page, at, text string) *told {
	t.Helper()
	w := &told{page: p, at: at, text: text}
	p.frames = nil
	w.run, w.end = p.open(engine.Request{Text: text}, &columns{})
	for from := 1; from <= w.end.Records; from += engine.MostDescribed {
		to := min(w.end.Records, from+engine.MostDescribed-1)
		d := result[engine.Described](p, engine.Request{Call: engine.CallDescribe, Run: w.run.Run, From: from, To: to})
		w.records, w.says = append(w.records, d.Records...), append(w.says, d.Sentences...)
	}
	return w
}

func (w *told) wrong(format string, args ...any) {
	w.t.Helper()
	w.t.Errorf("%s: %s", w.at, fmt.Sprintf(format, args...))
}

// All lessons are complete, and their claims about their runs are true.
func TestLessonsAreTrue(t *testing.T) {
	c := result[engine.Course](newPage(t), engine.Request{Call: engine.CallCourse})
	lessons, err := course.Lessons()
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Lessons) != len(lessons) {
		t.Fatalf("the engine has %d lessons of %d", len(c.Lessons), len(lessons))
	}
	for _, lesson := range lessons {
		t.Run(lesson.ID, func(t *testing.T) {
			if n := len(lesson.Steps); n < 5 || n > 8 || lesson.Title == "" || lesson.Goal == "" {
				t.Errorf("%d steps, title %q, goal %q", n, lesson.Title, lesson.Goal)
			}
			p := newPage(t)
			for i := range lesson.Steps {
				p.judgeStep(t, &lesson.Steps[i], fmt.Sprintf("%s, step %d", lesson.ID, i+1))
			}
		})
	}
}

func (p *page) judgeStep(t *testing.T, s *course.Step, at string) {
	t.Helper()
	if (s.Scenario == "") == (s.Run == "") {
		t.Fatalf("%s: needs a scenario or a run, and only one of them", at)
	}
	text := s.Run
	if s.Scenario != "" {
		text = p.scenario(s.Scenario)
	}
	w := newTold(t, p, at, text)
	if s.At < 0 || s.At > s.Then || s.Then > w.end.Records {
		w.wrong("the places %d and %d are not within the %d records", s.At, s.Then, w.end.Records)
	}
	if s.Process != 0 && !slices.Contains(w.run.Header.Labels, process.Label(s.Process)) {
		w.wrong("unknown process %d", s.Process)
	}
	if !w.end.Met {
		w.wrong("the run is not what its scenario expects: %v", w.end.Unmet)
	}
	if s.Compare != "" {
		p.scenario(s.Compare)
	}
	if s.Tell == "" || s.Ask == "" || s.Sum == "" || len(s.Claims) == 0 {
		w.wrong("a text or the claims are missing")
	}
	judgeAnswers(w, s.Answers, 1)
	// The search that a step offers is the one that its sum tells of: its first.
	if i := slices.IndexFunc(s.Claims, func(c course.Claim) bool { return c.Search != nil }); s.Check != "" {
		if name, _, _ := strings.Cut(s.Check, "?"); i < 0 || s.Claims[i].Search["algorithm"] != name {
			w.wrong("the check %s is not the first search of the claims", s.Check)
		}
	}
	for i := range s.Claims {
		w.judge(&s.Claims[i])
	}
}

// judgeAnswers requires the given number of right answers, and a reason for each answer.
func judgeAnswers(w *told, answers []course.Answer, right int) {
	w.t.Helper()
	texts := map[string]bool{}
	for _, a := range answers {
		if texts[a.Text] = true; a.Text == "" || a.Why == "" {
			w.wrong("an answer has no text or no reason: %+v", a)
		}
		if a.Right {
			right--
		}
	}
	if right != 0 || len(texts) != len(answers) || len(answers) < 2 {
		w.wrong("the answers: %d too few are right, %d of %d differ", right, len(texts), len(answers))
	}
}

// judge fails if a claim is not true.
func (w *told) judge(c *course.Claim) {
	w.t.Helper()
	switch {
	case c.Says != "":
		if c.Record < 1 || c.Record > len(w.says) || !strings.Contains(w.says[c.Record-1], c.Says) {
			w.wrong("record %d does not say %q: %v", c.Record, c.Says, w.around(c.Record))
		}
	case c.Field != "" || c.Client != "":
		w.judgeState(c)
	case c.Count != nil:
		q := &engine.Query{Message: c.Message, Rule: c.Rule, Kind: c.Kind}
		found := result[engine.Found](w.page, engine.Request{Call: engine.CallFind, Run: w.run.Run, Query: q})
		if len(found.Records) != *c.Count {
			w.wrong("%+v: %d records, not %d: %v", *q, len(found.Records), *c.Count, found.Records)
		}
	case len(c.Before) == 2:
		if !w.before(c.Before[0], c.Before[1]) {
			w.wrong("%d did not happen before %d", c.Before[0], c.Before[1])
		}
	case len(c.Concurrent) == 2:
		if a, b := c.Concurrent[0], c.Concurrent[1]; w.before(a, b) || w.before(b, a) {
			w.wrong("%d and %d are not concurrent", a, b)
		}
	case c.Expect != nil:
		w.judgeOutcome(c.Expect)
	case c.Search != nil:
		w.judgeSearch(c)
	default:
		w.wrong("a claim says nothing: %+v", *c)
	}
}

func (w *told) around(record int) []string {
	if record < 1 || record > len(w.says) {
		return nil
	}
	return w.says[max(0, record-3):min(len(w.says), record+2)]
}

func (w *told) judgeState(c *course.Claim) {
	w.t.Helper()
	rank := slices.Index(w.run.Header.Labels, process.Label(c.Process))
	if rank < 0 {
		w.wrong("unknown process %d", c.Process)
		return
	}
	states := result[engine.States](w.page, engine.Request{Call: engine.CallStates, Run: w.run.Run, At: c.At, Ranks: []int{rank}})
	state := states.Processes[0]
	if c.Client != "" {
		got := state.Client
		if state.Down {
			got = "down"
		}
		if got != c.Client {
			w.wrong("after %d the client of %d is %s, not %s", c.At, c.Process, got, c.Client)
		}
		return
	}
	for _, f := range state.Fields {
		if f.Name == c.Field {
			if f.Value != c.Is {
				w.wrong("after %d field %s of %d is %s, not %s", c.At, c.Field, c.Process, f.Value, c.Is)
			}
			return
		}
	}
	w.wrong("process %d has no field %s: %v", c.Process, c.Field, state.Fields)
}

// before reports whether one record happened before another. It searches backwards, along the
// causes and along the records of each process.
func (w *told) before(a, b int) bool {
	seen := map[int]bool{}
	var reaches func(at int) bool
	reaches = func(at int) bool {
		if at < a || seen[at] {
			return false
		}
		if at == a {
			return true
		}
		seen[at] = true
		r := &w.records[at-1]
		for before := at - 1; before >= 1; before-- {
			if w.records[before-1].Process == r.Process {
				if reaches(before) {
					return true
				}
				break
			}
		}
		return reaches(int(r.Cause))
	}
	return a < b && b <= len(w.records) && reaches(b)
}

// judgeOutcome runs the scenario with different expectations.
func (w *told) judgeOutcome(expect map[string]any) {
	w.t.Helper()
	var top map[string]any
	if err := yaml.Unmarshal([]byte(w.text), &top); err != nil {
		w.t.Fatal(err)
	}
	top["expect"] = expect
	text, err := yaml.Marshal(top)
	if err != nil {
		w.t.Fatal(err)
	}
	_, end := w.open(engine.Request{Text: string(text)}, &columns{})
	if !end.Met {
		w.wrong("of the whole run: %v", end.Unmet)
	}
}

func (w *told) judgeSearch(c *course.Claim) {
	w.t.Helper()
	text, err := json.Marshal(c.Search)
	if err != nil {
		w.t.Fatal(err)
	}
	var search engine.Check
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&search); err != nil {
		w.t.Fatal(err)
	}
	done := result[engine.Checked](w.page, engine.Request{Call: engine.CallCheck, Check: &search})
	if done.Verdict != c.Verdict || done.Steps != c.Steps {
		w.wrong("the search says %s after %d steps (%s), not %s after %d", done.Verdict, done.Steps, done.Sentence, c.Verdict, c.Steps)
	}
}

// Every challenge is unsolved at first. Its solution is graded as solved, and an incomplete
// solution is not.
func TestChallengesAreGraded(t *testing.T) {
	challenges, err := course.Challenges()
	if err != nil {
		t.Fatal(err)
	}
	p := newPage(t)
	for i := range challenges {
		c := &challenges[i]
		grade := func(text string) engine.Graded {
			return result[engine.Graded](p, engine.Request{Call: engine.CallGrade, Challenge: c.ID, Text: text})
		}
		w := newTold(t, p, c.ID, c.Run)
		if c.Title == "" || c.Goal == "" || c.Sum == "" || len(c.Hints) == 0 {
			w.wrong("a text is missing")
		}
		if g := grade(c.Run); g.Solved || len(g.Refused) > 0 || len(g.Unmet) == 0 {
			w.wrong("before anything is done: %+v", g)
		}
		if g := grade(c.Missed); g.Solved || len(g.Refused)+len(g.Unmet) == 0 {
			w.wrong("the near miss: %+v", g)
		}
		if slices.ContainsFunc(c.Reasons, func(a course.Answer) bool { return a.Right }) { // it is impossible
			judgeAnswers(w, c.Reasons, 1)
			if len(c.Claims) == 0 || c.Solved != "" {
				w.wrong("nothing proves that it is impossible")
			}
		} else {
			judgeAnswers(w, c.Reasons, 0)
			if g := grade(c.Solved); !g.Solved {
				w.wrong("the solution: %+v", g)
			}
		}
		for i := range c.Claims {
			w.judge(&c.Claims[i])
		}
	}
}

// The engine reports a change that a challenge does not allow, and does not run the text.
func TestChallengesRefuse(t *testing.T) {
	c := course.Challenge{
		Run: "algorithm: bully\nn: 3\nfaults:\n  - {at: 1, crash: 3}\n", May: []string{"faults", "workload"},
		Most: map[string]int{"faults": 1, "workload": 0},
	}
	for text, want := range map[string]string{
		"n: 3\nalgorithm: bully\nfaults: [{at: 1, crash: 3}, {at: 2, crash: 2}]\ndraws: keyed\nabout: mine\n": "[]",
		"algorithm: bully\nn: 4\nfaults: [{at: 1, crash: 3}]\n":                                               "[You changed n. You may change only faults, workload.]",
		"algorithm: bully\nn: 3\nfaults: [{at: 1, crash: 3}, {at: 2, crash: 2}, {at: 3, crash: 1}]\n":         "[You added 2 items to faults. This challenge allows at most 1.]",
		"algorithm: bully\nn: 3\nworkload: {section: 3, commands: [{at: 1, campaign: 1}]}\n":                  "[You added 1 item to workload. This challenge allows no new items.]",
	} {
		refused, err := c.Refused(text)
		if err != nil || fmt.Sprint(refused) != want {
			t.Errorf("%s: %v, %v", text, refused, err)
		}
	}
	p := newPage(t)
	if problem := p.problem(engine.Request{Call: engine.CallGrade, Challenge: "none", Text: c.Run}); problem.Code != engine.CodeRequest {
		t.Errorf("a challenge that does not exist: %+v", problem)
	}
	if _, err := json.Marshal(c); err != nil {
		t.Error(err)
	}
}
