package check_test

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// A run in which every message is lost, and a run in which an assertion fails, also
// become scenarios that expect what the search found.
func TestOddRunsAreScenarios(t *testing.T) {
	for _, c := range []check.Config{
		{Spec: algorithm.Find("suzuki-kasami"), Process: process.Config{N: 2}, Drops: 1},
		{Spec: algorithm.Find("raymond"), Process: process.Config{N: 2}, Duplicates: 1},
	} {
		r, err := check.Run(t.Context(), c)
		if err != nil || r.Broken == nil {
			t.Fatal(err, r)
		}
		replayed(t, r)
		sc, err := r.Replay()
		if err != nil {
			t.Fatal(err)
		}
		o, err := sc.Run()
		if err != nil || !o.Met() {
			t.Errorf("%s: %v %q", c.Spec.Name, err, o.Unmet)
		}
	}
}

// A detector that is wrong once lets two processes in, if each needs the answer of the
// other. The simulator finds the same.
func TestWrongSuspicion(t *testing.T) {
	c := check.Config{Spec: algorithm.Find("ricart-agrawala"), Process: process.Config{N: 2}, Suspicions: 1,
		Properties: []process.Property{process.MutualExclusion}}
	r, err := check.Run(t.Context(), c)
	if err != nil || r.Broken == nil || r.Broken.Property != process.MutualExclusion {
		t.Fatalf("%v %v", err, r)
	}
	replayed(t, r)
	c.Spec = algorithm.Find("raymond")
	if _, err := check.Run(t.Context(), c); err == nil {
		t.Error("raymond asks no detector, but gets a wrong one")
	}
}

// sender sends two messages of one name, and then saves.
type sender struct {
	self process.ID
	got  uint64
	sent bool
}

func (m *sender) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Deliver:
		m.got = 10*m.got + ev.Message.Seq
	case process.Campaign:
		fx.Send(1, process.Message{Type: 1, Seq: 1})
		fx.Send(1, process.Message{Type: 1, Seq: 2})
		m.sent = true
		fx.Save()
	}
}

func (m *sender) Fields(f *process.Fields) {
	f.Uint("got", &m.got)
	f.Durable().Bool("sent", &m.sent)
}

// A crash that cuts a step before its Save loses the message that did not leave, and not
// the one before it of the same name. If two messages have one name, the replay loses or
// repeats the one that the checker chose.
func TestMessagesOfOneName(t *testing.T) {
	for _, test := range []struct {
		cfg  check.Config
		last uint64
	}{
		{check.Config{Crashes: 1}, 1},
		{check.Config{Drops: 1}, 1},
		{check.Config{Drops: 1}, 2},
		{check.Config{Duplicates: 1}, 112},
		{check.Config{Duplicates: 1}, 122},
		{check.Config{Duplicates: 1, Drops: 1}, 22},
	} {
		c := test.cfg
		c.Process, c.Requesters, c.Properties = process.Config{N: 2}, []process.ID{0}, []process.Property{process.StateInvariant}
		c.Spec = &process.Spec{
			Name: "hirschberg-sinclair", Family: process.Election,
			Messages: []process.MessageSpec{{Name: "PROBE", Fields: []process.FieldUse{{Field: process.FieldSeq, Symbol: "seq"}}}},
			New:      func(self process.ID, _ *process.Config) process.Machine { return &sender{self: self} },
			Invariant: &process.Invariant{Text: "a promise", Wrong: func(g *process.Global) string {
				if m, up := g.Machines[1].(*sender); up && m.got == test.last && len(g.Messages) == 0 {
					return "the other notes are lost"
				}
				return ""
			}},
		}
		r, err := check.Run(t.Context(), c)
		if err != nil || r.Broken == nil {
			t.Fatalf("%+v: %v %v", test, err, r)
		}
		sc, err := r.Replay()
		if err != nil {
			t.Fatal(err)
		}
		cfg := sc.Config()
		cfg.Spec = c.Spec
		o, err := sim.Run(cfg)
		if err != nil || len(o.Violations) != 1 || o.Violations[0].Text != r.Broken.Text {
			t.Errorf("%+v: %v %v\n%s", test, err, o, r.Scenario())
		}
	}
}
