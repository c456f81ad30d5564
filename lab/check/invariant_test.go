package check_test

import (
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// passer sends a message to the next process when its client asks, and one that gets a
// message passes it on, up to the last process.
type passer struct {
	self process.ID
	c    *process.Config
	got  uint64
}

func (m *passer) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Deliver:
		m.got++
	case process.Campaign:
	default:
		return
	}
	if next := m.self + 1; int(next) < m.c.N {
		fx.Send(next, process.Message{Type: 1})
	}
}

func (m *passer) Fields(f *process.Fields) { f.Uint("got", &m.got) }

func passers(wrong func(g *process.Global) string) *process.Spec {
	return &process.Spec{
		Name: "passer", Family: process.Election, Messages: []process.MessageSpec{{Name: "PASS"}},
		Invariant: &process.Invariant{Text: "a promise", Wrong: wrong},
		New:       func(self process.ID, c *process.Config) process.Machine { return &passer{self: self, c: c} },
	}
}

// An invariant is judged in every state, including the first and those after a fault, and
// it sees all machines and messages. The simulator judges the same way.
func TestInvariant(t *testing.T) {
	got := func(g *process.Global, p process.ID) uint64 {
		if m, up := g.Machines[p].(*passer); up {
			return m.got
		}
		return 0
	}
	for _, test := range []struct {
		name  string
		wrong func(g *process.Global) string
		want  string
		steps int
	}{
		{"holds", func(g *process.Global) string {
			for _, m := range g.Messages {
				if m.To != m.From+1 || g.Machines[m.To] == nil {
					return "a message that nobody sent"
				}
			}
			return ""
		}, "", 0},
		{"first state", func(g *process.Global) string {
			if len(g.Messages) == 0 && len(g.Machines) == 3 {
				return "no message is on its way"
			}
			return ""
		}, "no message is on its way", 0},
		{"messages and machines", func(g *process.Global) string {
			if len(g.Messages) == 2 && got(g, 1) == 1 {
				return fmt.Sprintf("%s->%s", g.Config.Text(g.Messages[0].From), g.Config.Text(g.Messages[1].To))
			}
			return ""
		}, "1->3", 3},
		{"crash", func(g *process.Global) string {
			if g.Faults && g.Machines[2] == nil && got(g, 1) == 1 {
				return fmt.Sprintf("%d messages go to those who are up", len(g.Messages))
			}
			return ""
		}, "0 messages go to those who are up", 3},
	} {
		cfg := check.Config{
			Spec: passers(test.wrong), Process: process.Config{N: 3}, Requesters: []process.ID{0}, Entries: 2, Crashes: 1,
			Properties: []process.Property{process.StateInvariant},
		}
		r, err := check.Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if text(r) != test.want || r.Broken != nil && len(r.Path.Steps) != test.steps {
			t.Errorf("%s: %s %v, want %q in %d steps", test.name, r.Verdict, r.Broken, test.want, test.steps)
		}
	}
}

// The sentence of an invariant is the same in the simulator, at the end of the same run.
func TestInvariantInTheSimulator(t *testing.T) {
	wrong := *algorithm.Find("raymond")
	wrong.Invariant = &process.Invariant{Text: "at most one message is on its way", Wrong: func(g *process.Global) string {
		if len(g.Messages) < 2 {
			return ""
		}
		return fmt.Sprintf("%s and %s have sent messages", g.Config.Text(g.Messages[0].From), g.Config.Text(g.Messages[1].From))
	}}
	r, err := check.Run(t.Context(), check.Config{Spec: &wrong, Process: process.Config{N: 3}})
	if err != nil || r.Broken == nil || r.Broken.String() != "invariant: 2 and 3 have sent messages" {
		t.Fatal(err, r.Broken)
	}
	sc, err := r.Replay()
	if err != nil {
		t.Fatal(err)
	}
	cfg := sc.Config()
	cfg.Spec = &wrong
	o, err := sim.Run(cfg)
	if err != nil || len(o.Violations) != 1 || o.Violations[0].Text != r.Broken.Text || o.Events != 3+2 {
		t.Error(err, o)
	}
}

// A search for an invariant is refused if the reduction skips states, or if the Spec
// declares no invariant.
func TestInvariantIsRefused(t *testing.T) {
	raymond := check.Config{Spec: algorithm.Find("raymond"), Process: process.Config{N: 3}, Reduce: check.PartialOrder}
	if r, err := check.Run(t.Context(), raymond); err != nil || r.Verdict != check.Proved {
		t.Error(err, r)
	}
	raymond.Properties = []process.Property{process.StateInvariant}
	if _, err := check.Run(t.Context(), raymond); err == nil {
		t.Error("a reduced search judges an invariant")
	}
	if _, err := check.Run(t.Context(), check.Config{
		Spec: algorithm.Find("central"), Process: process.Config{N: 2}, Properties: raymond.Properties,
	}); err == nil {
		t.Error("central has an invariant")
	}
}
