// Package course has the lessons and challenges of the lab: texts, the runs they show,
// questions with answers, and the goals of challenges. The content is data; the tests of
// package engine prove what its steps claim about the runs.
package course

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed lessons/*.yaml challenges/*.yaml objectives.yaml
var files embed.FS

// Lesson is a sequence of steps. Each asks for a prediction, and then the run answers.
type Lesson struct {
	ID    string `json:"id" yaml:"-"`
	Title string `json:"title" yaml:"title"`
	Goal  string `json:"goal" yaml:"goal"` // what a reader can do after it
	Steps []Step `json:"steps" yaml:"steps"`
}

// Step shows a run up to a record, asks one question, and then shows more of the run.
type Step struct {
	Scenario string   `json:"scenario,omitempty" yaml:"scenario"` // a file of the catalog, such as mutex/lamport
	Run      string   `json:"run,omitempty" yaml:"run"`           // or the text of a scenario
	At       int      `json:"at" yaml:"at"`                       // how many records are shown before the answer
	Then     int      `json:"then" yaml:"then"`                   // where the cursor goes after it
	Process  int      `json:"process,omitempty" yaml:"process"`   // the label of the process that is selected; 0: none
	Tell     string   `json:"tell" yaml:"tell"`                   // before the question
	Ask      string   `json:"ask" yaml:"ask"`
	Answers  []Answer `json:"answers" yaml:"answers"`
	Sum      string   `json:"sum" yaml:"sum"`                   // after the right answer
	Check    string   `json:"check,omitempty" yaml:"check"`     // an algorithm to search, offered after the answer
	Compare  string   `json:"compare,omitempty" yaml:"compare"` // another scenario to open after the answer

	Claims []Claim `json:"-" yaml:"claims"` // what the texts say, for the tests
}

// Answer is a possible answer. Why says why it is right or wrong.
type Answer struct {
	Text  string `json:"text" yaml:"text"`
	Right bool   `json:"right,omitempty" yaml:"right"`
	Why   string `json:"why" yaml:"why"`
}

// Claim is something that a step says and a machine can judge. Exactly one kind is
// set.
type Claim struct {
	// A record, and a part of the sentence that describes it.
	Record int    `yaml:"record"`
	Says   string `yaml:"says"`

	// The state of a process, by its label, after record At: a field, or what its client
	// does.
	At      int    `yaml:"at"`
	Process int    `yaml:"process"`
	Field   string `yaml:"field"`
	Is      string `yaml:"is"`
	Client  string `yaml:"client"`

	// How many records of the whole run deliver a message, apply a rule or have a kind.
	Count   *int   `yaml:"count"`
	Message string `yaml:"message"`
	Rule    string `yaml:"rule"`
	Kind    string `yaml:"kind"`

	// Two records: the first happened before the second, or neither did.
	Before     []int `yaml:"before"`
	Concurrent []int `yaml:"concurrent"`

	// What comes of the whole run, in the words of a scenario's expect.
	Expect map[string]any `yaml:"expect"`

	// A search of all schedules, with the fields of engine.Check, and its verdict.
	Search  map[string]any `yaml:"search"`
	Verdict string         `yaml:"verdict"`
	Steps   int            `yaml:"steps"` // of a violated verdict
}

// Challenge is a run and a goal that the run does not meet. A student solves it by
// changing the run, or by saying why that is impossible.
type Challenge struct {
	ID      string         `json:"id" yaml:"-"`
	Title   string         `json:"title" yaml:"title"`
	Goal    string         `json:"goal" yaml:"goal"`
	Run     string         `json:"run" yaml:"run"`               // a scenario whose expectations are the goal
	May     []string       `json:"may" yaml:"may"`               // the keys of the scenario that may be changed, such as faults or links.fifo
	Most    map[string]int `json:"most,omitempty" yaml:"most"`   // how many items may be added to the lists below such a key
	Never   []string       `json:"never,omitempty" yaml:"never"` // words that what is changed may not have, such as drop
	Hints   []string       `json:"hints" yaml:"hints"`           // the first after two tries
	Reasons []Answer       `json:"reasons" yaml:"reasons"`       // why it might be impossible; at most one is right
	Sum     string         `json:"sum" yaml:"sum"`               // after it is solved
	Claims  []Claim        `json:"-" yaml:"claims"`              // for the tests: what proves that it is impossible
	Solved  string         `json:"-" yaml:"solved"`              // for the tests: a text that meets the goal
	Missed  string         `json:"-" yaml:"missed"`              // for the tests: one that nearly does
}

// Lessons returns all lessons in their order.
func Lessons() ([]Lesson, error) {
	return load("lessons", func(l *Lesson, id string) { l.ID = id })
}

// Challenges returns all challenges in their order.
func Challenges() ([]Challenge, error) {
	return load("challenges", func(c *Challenge, id string) { c.ID = id })
}

// Objectives returns what to look for in scenarios of the catalog, by their names.
func Objectives() (map[string]string, error) {
	text, err := files.ReadFile("objectives.yaml")
	if err != nil {
		return nil, err
	}
	var all map[string]string
	if err := yaml.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("course: objectives.yaml: %w", err)
	}
	return all, nil
}

// load reads the files of a folder. Each name is a number for the order, followed by the
// id.
func load[T any](folder string, name func(one *T, id string)) ([]T, error) {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(entries))
	for i, entry := range entries {
		at := path.Join(folder, entry.Name())
		text, err := files.ReadFile(at)
		if err != nil {
			return nil, err
		}
		d := yaml.NewDecoder(bytes.NewReader(text))
		d.KnownFields(true)
		if err := d.Decode(&all[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		_, id, _ := strings.Cut(strings.TrimSuffix(entry.Name(), ".yaml"), "-")
		name(&all[i], id)
	}
	return all, nil
}
