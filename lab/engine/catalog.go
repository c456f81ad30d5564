package engine

import (
	"cmp"
	"errors"
	"io/fs"
	"strings"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/algorithm/broken"
	"github.com/conclave-io/conclave/lab/course"
	"github.com/conclave-io/conclave/lab/describe"
	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/lab/scenarios"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/lab/trace/journal"
	"github.com/conclave-io/conclave/process"
)

// journalFormat is the format that this package can export in addition to those of package trace.
const journalFormat = "journal"

func (e *Engine) hello(*Request) (Frame, error) {
	return Frame{Head: Hello{
		Protocol: Protocol, Build: e.options.Build, Host: e.options.Host, Cores: e.options.Cores, Memory: e.options.Memory,
		Calls: callNames, Kinds: journal.Kinds, Formats: append(trace.Formats(), journalFormat),
	}}, nil
}

// all answers with the catalog.
func (e *Engine) all(*Request) (Frame, error) {
	if e.catalog == nil {
		files, err := scenarioFiles()
		if err != nil {
			return Frame{}, err
		}
		c := &Catalog{Scenarios: files}
		for _, spec := range algorithm.All {
			c.Algorithms = append(c.Algorithms, describe.NewView(spec))
		}
		for i := range broken.Variants {
			v := &broken.Variants[i]
			c.Broken = append(c.Broken, Broken{v.Name, v.Of.Name, v.Mistake, v.Tempting, v.Wrong, v.Breaks.String(), v.Command(), checkOf(v)})
		}
		for _, p := range process.Properties {
			c.Properties = append(c.Properties, p.String())
		}
		for k := sim.Crash; k <= sim.SlowDisk; k++ {
			c.Faults = append(c.Faults, k.String())
		}
		c.addTables()
		e.catalog = c
	}
	return Frame{Head: e.catalog}, nil
}

// scenarioFiles returns a description of each scenario file.
func scenarioFiles() ([]Scenario, error) {
	objectives, err := course.Objectives()
	if err != nil {
		return nil, err
	}
	var all []Scenario
	err = fs.WalkDir(scenarios.Files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := scenarios.Files.ReadFile(path)
		if err != nil {
			return err
		}
		h, err := scenario.Glance(path, text)
		if err != nil {
			return err
		}
		s := Scenario{
			ID: strings.TrimSuffix(path, ".yaml"), Algorithm: h.Algorithm, N: h.N, About: h.About,
			Violation: h.Violation, Text: string(text),
		}
		s.Objective = objectives[s.ID]
		if spec := algorithm.Find(h.Algorithm); spec != nil {
			s.Family = spec.Family.String()
		}
		all = append(all, s)
		return nil
	})
	return all, err
}

// parse answers with a description of the run that a scenario text defines.
func (e *Engine) parse(r *Request) (Frame, error) {
	s, err := readScenario(r)
	if err != nil {
		return Frame{}, err
	}
	return Frame{Head: aboutRun(s)}, nil
}

// readScenario reads the scenario of a request.
func readScenario(r *Request) (*scenario.Scenario, error) {
	s, err := scenario.Parse(cmp.Or(r.Name, "scenario"), []byte(r.Text))
	if err != nil {
		return nil, scenarioProblem(err)
	}
	if cfg := s.Config(); cfg.Process.N > MostProcesses {
		return nil, &Problem{Code: CodeLimit, Message: "the lab shows at most 65,534 processes; use conclave sim"}
	}
	return s, nil
}

// scenarioProblem converts an error in a scenario. The result names the mistake and its line.
func scenarioProblem(err error) error {
	var wrong *scenario.Error
	if errors.As(err, &wrong) {
		return &Problem{Code: CodeScenario, Message: wrong.Text, Line: wrong.Line, Suggestion: wrong.Suggestion()}
	}
	return err
}

// aboutRun describes the run of a scenario.
func aboutRun(s *scenario.Scenario) Run {
	cfg := s.Config()
	a := Run{
		Name: s.Name, About: s.About, Header: cfg.Header(), D: int64(cfg.Process.D()), Topology: topology(&cfg),
		Messages: []MessageRef{}, Rules: []RuleRef{},
	}
	for i, l := range cfg.Spec.All() {
		layer := int(i)
		for i := range l.Messages {
			m := &l.Messages[i]
			uses := append([]string{}, describe.Symbols(m)...)
			a.Messages = append(a.Messages, MessageRef{m.Name, m.Class.String(), layer, uses, m.Part.String()})
		}
		for _, rule := range l.Rules {
			a.Rules = append(a.Rules, RuleRef{rule.Name, rule.Text, layer})
		}
		for _, field := range l.State {
			name := field.Name
			if cfg.Spec.Depth() > 1 {
				name = l.Name + "." + name // see process.Stack
			}
			a.Fields = append(a.Fields, FieldRef{name, field.Text})
		}
	}
	return a
}

// topologies has a name for each kind of topology.
var topologies = [...]string{
	process.Complete: "complete", process.RingTopology: "ring", process.Tree: "tree", process.Quorums: "quorums", process.Centre: "centre",
	process.Commander: "commander",
}

func topology(cfg *sim.Config) Topology {
	kind := cfg.Spec.Needs.Topology
	of, n := &cfg.Process.Topology, cfg.Process.N
	t := Topology{Kind: topologies[kind]}
	switch kind {
	case process.Centre, process.Commander:
		t.Coordinator = rank(of.Coordinator)
	case process.RingTopology:
		for p := range process.ID(n) {
			t.Successor = append(t.Successor, int(of.Next(p, n)))
		}
	case process.Tree:
		parent := of.Parent
		if parent == nil {
			parent = process.BinaryTree(n)
		}
		t.Parent = ranks(parent)
	case process.Quorums:
		for _, set := range of.Quorums {
			t.Quorums = append(t.Quorums, ranks(set))
		}
	}
	return t
}

func ranks(ids []process.ID) []int {
	all := make([]int, len(ids))
	for i, id := range ids {
		all[i] = int(id)
	}
	return all
}
