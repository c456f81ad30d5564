package sim_test

import (
	"strings"
	"testing"

	clocklamport "github.com/conclave-io/conclave/algorithm/clock/lamport"
	"github.com/conclave-io/conclave/algorithm/clock/vector"
	"github.com/conclave-io/conclave/algorithm/globalstate"
	"github.com/conclave-io/conclave/algorithm/mutex/tokenring"
	"github.com/conclave-io/conclave/algorithm/stack"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// tampered is a machine that gets messages other than they were sent.
type tampered struct {
	process.Machine
	tamper func(m *process.Message)
}

func (m tampered) Step(ev *process.Event, fx *process.Effects) {
	if ev.Kind == process.Deliver {
		var other process.Message
		other.CopyFrom(ev.Message)
		m.tamper(&other)
		ev.Message = &other
	}
	m.Machine.Step(ev, fx)
}

func tamper(spec *process.Spec, with func(m *process.Message)) *process.Spec {
	broken := *spec
	broken.New = func(self process.ID, c *process.Config) process.Machine { return tampered{spec.New(self, c), with} }
	return &broken
}

// verdict runs commands of propose at 1, 2, ... D, each by a process with a value,
// and returns what the judges say.
func verdict(t *testing.T, cfg sim.Config, proposals ...[2]int64) string {
	t.Helper()
	for i, p := range proposals {
		cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{
			Kind: process.Propose, At: process.Duration(i+1) * process.Millisecond, Process: process.ID(p[0] - 1), Value: p[1],
		})
	}
	result, err := sim.Run(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Violations) == 0 {
		return ""
	}
	return result.Violations[0].String()
}

func TestJudgesOfLogicalClocks(t *testing.T) {
	// 1 has two events and sends; 2 receives, and sends to 3.
	run := [][2]int64{{1, 0}, {1, 0}, {1, 2}, {3, 0}, {2, 3}}
	forget := func(m *process.Message) { m.Clock = 0; clear(m.Vector) }
	boast := func(m *process.Message) {
		for i := range m.Vector {
			m.Vector[i] += 5 // claims to know what has not happened
		}
	}
	for _, c := range []struct {
		name string
		spec *process.Spec
		want string
	}{
		{"Lamport", clocklamport.Spec, ""},
		{"vector", vector.Spec, ""},
		{"Lamport without maximum", tamper(clocklamport.Spec, forget), "clock condition: an event of 1 at 3 happened before an event of 2 at 1"},
		{"vector without maximum", tamper(vector.Spec, forget), "clock condition: an event of 1 at [3 0 0] happened before an event of 2 at [0 1 0]"},
		{"vector that boasts", tamper(vector.Spec, boast), "strong clock condition: an event of 3 at [0 0 1] did not happen before"},
	} {
		got := verdict(t, sim.Config{Spec: c.spec, Process: process.Config{N: 3}}, run...)
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// cutOf records the state of a token ring of three in a world with some delays
// from 1 to 2, and returns what the judges say of it.
func cutOf(t *testing.T, recorder *process.Spec, at process.Duration, delays ...process.Duration) string {
	t.Helper()
	spec, err := stack.Over(tokenring.Spec, recorder)
	if err != nil {
		t.Fatal(err)
	}
	cfg := sim.Config{
		Spec: spec, Process: process.Config{N: 3}, Limit: sim.Limit{Until: 20 * process.Millisecond},
		Judges: []sim.Judge{sim.ConsistentCut},
	}
	cfg.Workload.Commands = []sim.Command{{Kind: process.Record, At: at, Process: 0}}
	cfg.Links.Overrides = []sim.Override{{From: 0, To: 1, Link: sim.Link{Unordered: true, Delay: sim.List(delays...)}}}
	return verdict(t, cfg)
}

func TestJudgeOfCuts(t *testing.T) {
	const d = process.Millisecond
	for _, c := range []struct {
		name     string
		recorder *process.Spec
		at       process.Duration
		delays   []process.Duration
		want     string
	}{
		{"in order", globalstate.Spec, d / 2, []process.Duration{d}, ""},
		// The TOKEN of 0 comes after the MARKER that was sent after it.
		{"overtaken token", globalstate.Spec, d / 2, []process.Duration{3 * d, d}, "consistent cut: TOKEN h=1 f=0 was on its way from 1 to 2, but is not recorded"},
		// The MARKER of 2.5 D comes after the TOKEN that 1 sends at 3 D.
		{"overtaken marker", globalstate.Spec, 5 * d / 2, []process.Duration{d, 5 * d, d / 2}, "consistent cut: 2 had received TOKEN h=4 f=0 when it recorded its state, but 1 sent it after recording its own"},
	} {
		if got := cutOf(t, c.recorder, c.at, c.delays...); c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
