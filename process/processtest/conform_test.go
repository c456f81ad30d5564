package processtest

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/process"
)

// Every promise of Conform is tested by a machine that breaks it.

const (
	ping process.Type = iota + 1
	undeclared
)

// toy sends a ping on every campaign and remembers what it got. Its faults are
// switched on one by one.
type toy struct {
	c     *process.Config
	self  process.ID
	fault string

	sent  uint64
	got   []uint64
	extra uint64 // named by Fields unless the fault is "hidden"
}

var outside uint64 // what a machine must not depend on

func toySpec(fault string) *process.Spec {
	return &process.Spec{
		Name: "toy", Title: "Toy", Paper: "none", Family: process.Election,
		Messages: []process.MessageSpec{{Name: "PING", Fields: []process.FieldUse{
			{Field: process.FieldSeq, Symbol: "n"}, {Field: process.FieldVector, Symbol: "list"}}}},
		Timers: []string{"again"},
		Rules:  []process.RuleSpec{{Name: "R1", Text: "campaign: ping everyone"}},
		Claims: process.Claims{Properties: []process.Claim{{Property: process.Quiescence}, {Property: process.StrongAccuracy}}},
		New: func(self process.ID, c *process.Config) process.Machine {
			return &toy{c: c, self: self, fault: fault}
		},
	}
}

func (m *toy) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Campaign:
		m.campaign(fx)
	case process.Deliver:
		process.Assert(m.fault != "asserts" || ev.Message.Seq < 3, "nobody has three")
		m.extra += ev.Message.Seq
		m.got = append(m.got[:0], ev.Message.Vector...)
		if m.fault == "keeps" {
			m.got = ev.Message.Vector
		}
	}
}

func (m *toy) campaign(fx *process.Effects) {
	m.sent++
	msg := process.Message{Type: ping, Seq: m.sent, Vector: []uint64{m.sent, m.extra}}
	switch m.fault {
	case "field":
		msg.Clock = 1
	case "type":
		msg.Type = undeclared
	case "rule":
		fx.Rule(2)
	case "accuses":
		fx.Suspect((m.self + 1) % process.ID(m.c.N))
	case "timer":
		fx.Arm(2, 1, 1)
	case "outside":
		outside++
		m.extra = outside
	case "effects":
		outside++
		msg.Seq = outside
	}
	fx.Rule(1)
	fx.Arm(1, process.Duration(fx.Choose(3)+1), 5)
	fx.Broadcast(msg)
}

func (m *toy) Fields(f *process.Fields) {
	f.Seq("sent", &m.sent)
	f.Uints("got", &m.got)
	switch {
	case m.fault == "twice":
		f.Uint("sent", &m.extra)
	case m.fault == "shape" && m.sent > 3:
		f.Uint("more", &m.extra)
	case m.fault != "hidden":
		f.Uint("extra", &m.extra)
	}
}

// verdict runs the schedules until one fails.
func verdict(spec *process.Spec) error {
	for seed := range int64(4) {
		if err := schedule(spec, nil, 3, seed); err != nil {
			return err
		}
	}
	return nil
}

func TestConformAcceptsAToy(t *testing.T) { Conform(t, toySpec("")) }

func TestConformFindsEachFault(t *testing.T) {
	cases := map[string]string{
		"hidden":  "extra",
		"keeps":   "kept a slice of the event",
		"accuses": ", which is up",
		"field":   "does not declare",
		"type":    "not declared",
		"rule":    "rule 2 is not declared",
		"timer":   "timer 2 is not declared",
		"outside": "reach different states",
		"effects": "differ",
		"twice":   `two fields have the name "sent"`,
		"shape":   "Fields named",
	}
	for fault, want := range cases {
		t.Run(fault, func(t *testing.T) {
			err := verdict(toySpec(fault))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error is %v, it should say %q", err, want)
			}
		})
	}
}

// grabber grants without asking anybody.
type grabber struct{ inside bool }

func (m *grabber) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Acquire:
		m.inside = true
		fx.Grant(1)
	case process.Release:
		m.inside = false
	}
}

func (m *grabber) Fields(f *process.Fields) { f.Bool("inside", &m.inside) }

func grabberSpec(claims ...process.Claim) *process.Spec {
	return &process.Spec{
		Name: "grabber", Family: process.Mutex, Claims: process.Claims{Properties: claims},
		New: func(process.ID, *process.Config) process.Machine { return &grabber{} },
	}
}

func TestConformJudgesMutualExclusion(t *testing.T) {
	alone := grabberSpec()
	alone.Invariant = &process.Invariant{Text: "1 is never inside", Wrong: func(g *process.Global) string {
		if m, up := g.Machines[0].(*grabber); up && m.inside {
			return g.Config.Text(0) + " is inside"
		}
		return ""
	}}
	cases := map[string]*process.Spec{
		"invariant: 1 is inside":       alone,
		"entered while":                grabberSpec(process.Claim{Property: process.MutualExclusion}),
		"an earlier entry had fence 1": grabberSpec(process.Claim{Property: process.FencesGrow}),
	}
	for want, spec := range cases {
		if err := verdict(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, it should say %q", err, want)
		}
	}
	if err := verdict(grabberSpec()); err != nil {
		t.Errorf("who claims nothing breaks nothing: %v", err)
	}
}

// unordered has state before configuration.
type unordered struct {
	count uint64
	self  process.ID
}

func (m *unordered) Step(*process.Event, *process.Effects) { m.count++ }
func (m *unordered) Fields(f *process.Fields)              { f.Uint("count", &m.count) }

func TestConformFindsStateBeforeConfiguration(t *testing.T) {
	spec := toySpec("")
	spec.New = func(self process.ID, _ *process.Config) process.Machine { return &unordered{self: self} }
	if err := verdict(spec); err == nil || !strings.Contains(err.Error(), "field self stands behind") {
		t.Errorf("error is %v, it should name the field self", err)
	}
}

func TestDeclarations(t *testing.T) {
	spec := toySpec("")
	spec.Name = "Toy"
	spec.Messages = append(spec.Messages, process.MessageSpec{Name: "PING"})
	spec.Options = []process.Option{{Name: "mode", Default: "c", Values: []string{"a", "b"}}}
	spec.Claims.Costs = []process.Cost{{Metric: process.MessageCount, Mode: "z"}}
	var all strings.Builder
	for _, err := range checkSpec(spec) {
		all.WriteString(err.Error() + "\n")
	}
	for _, want := range []string{
		`name "Toy"`, `message "PING"`, "the default of option mode", "option mode has no text",
		`about mode "z"`, "neither a value nor bounds",
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("complaints do not say %q:\n%s", want, all.String())
		}
	}
}

// A script that fails under -rewrite does not say that -rewrite would help.
func TestRewriting(t *testing.T) {
	before := flag.Lookup("rewrite").Value.String()
	for _, is := range []string{"true", "false", before} {
		if err := flag.Set("rewrite", is); err != nil {
			t.Fatal(err)
		}
		if rewriting() != (is == "true") {
			t.Errorf("-rewrite=%s: rewriting is %v", is, rewriting())
		}
	}
}

func TestScripts(t *testing.T) { Script(t, toySpec(""), "testdata") }

// deaf never answers.
type deaf struct{ asked bool }

func (m *deaf) Step(ev *process.Event, _ *process.Effects) { m.asked = ev.Kind == process.Acquire }
func (m *deaf) Fields(f *process.Fields)                   { f.Bool("asked", &m.asked) }

func TestConformJudgesProgress(t *testing.T) {
	spec := grabberSpec(process.Claim{Property: process.Progress})
	spec.New = func(process.ID, *process.Config) process.Machine { return &deaf{} }
	if err := verdict(spec); err == nil || !strings.Contains(err.Error(), "forever: no event") {
		t.Errorf("error is %v, it should say that somebody waits forever", err)
	}
}

// TestConformForgets: machines that are idle are replaced by new ones.
func TestConformForgets(t *testing.T) {
	spec := *central.Spec
	spec.New = central.Flaw{BaseSeen: true}.New
	if err := verdict(&spec); err == nil || !strings.Contains(err.Error(), "larger fence") {
		t.Errorf("error is %v, a fence below a Base should be found", err)
	}
}

// TestConformShowsAssertions: an assertion that fails is shown with the seed, and with
// the schedule up to the step in which it fails.
func TestConformShowsAssertions(t *testing.T) {
	err := verdict(toySpec("asserts"))
	if err == nil {
		t.Fatal("a failed assertion is not found")
	}
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	if !strings.HasPrefix(lines[0], "seed 0, ") || !strings.HasSuffix(lines[0], "assertion failed: nobody has three") {
		t.Errorf("the error begins with %q", lines[0])
	}
	if last := lines[len(lines)-1]; !strings.Contains(last, "gets PING n=3") {
		t.Errorf("the schedule ends with %q", last)
	}
}

// TestScriptErrors: an error of a script is accepted only where the script has it.
func TestScriptErrors(t *testing.T) {
	s := &script{spec: toySpec("asserts")}
	for _, c := range []struct {
		line, out string
	}{
		{"step", "error: the first command must be init"},
		{"init n=2", "ok"},
		{"deliver 1->2", "error: there is no such message from 1 to 2"},
		{"campaign 1 1 1", "1 campaign [R1]\n"},
		{"deliver 1->2 nth=3", "2 gets PING n=3 list=[3 0] from 1\nerror: process: assertion failed: nobody has three"},
	} {
		words := strings.Fields(c.line)
		d := &datadriven.TestData{Cmd: words[0]}
		for _, w := range words[1:] {
			key, value, _ := strings.Cut(w, "=")
			a := datadriven.CmdArg{Key: key}
			if value != "" {
				a.Vals = []string{value}
			}
			d.CmdArgs = append(d.CmdArgs, a)
		}
		out, err := s.perform(d)
		if !strings.HasPrefix(out, c.out) || (err != nil) != strings.Contains(c.out, "error: ") {
			t.Errorf("%s: %q, %v, want %q", c.line, out, err, c.out)
		}
		if err == nil {
			continue
		}
		if expects(d, err) {
			t.Errorf("%s: the error is accepted, but the script does not have it", c.line)
		}
		if d.Expected = out + "\n"; !expects(d, err) {
			t.Errorf("%s: the error is not accepted, but the script has it", c.line)
		}
	}
}

// TestNoScripts: a folder without scripts is an error.
func TestNoScripts(t *testing.T) {
	folder := t.TempDir()
	for _, missing := range []string{folder, filepath.Join(folder, "nothing")} {
		if err := checkScripts(missing); err == nil {
			t.Errorf("%s has no scripts, but there is no error", missing)
		}
	}
	if err := checkScripts("testdata"); err != nil {
		t.Error(err)
	}
}
