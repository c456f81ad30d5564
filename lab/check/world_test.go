package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/process"
)

// jugs is a world: one jug of 3 litres and one of 5, and a tap. It asserts that no jug
// ever has that many litres.
type jugs struct {
	litres      [2]int
	measureable int
}

const (
	fill process.Rule = iota + 1
	spill
	pour
	drink // never applied
)

func (j *jugs) Step(ev *process.Event, fx *process.Effects) {
	if ev.Kind == process.Fire {
		rule, from := process.Rule(fx.Choose(3)+1), fx.Choose(2)
		fx.Rule(rule)
		size := [2]int{3, 5}
		switch rule {
		case fill:
			j.litres[from] = size[from]
		case spill:
			j.litres[from] = 0
		case pour:
			n := min(j.litres[from], size[1-from]-j.litres[1-from])
			j.litres[from] -= n
			j.litres[1-from] += n
		}
		process.Assert(j.litres[1] != j.measureable, "it is measured")
	}
	fx.Arm(1, 1, 1)
}

func (j *jugs) Fields(f *process.Fields) {
	f.Count("small", &j.litres[0])
	f.Count("large", &j.litres[1])
}

func jugsOf(measureable int) World {
	return World{
		Process: process.Config{N: 1},
		Spec: &process.Spec{
			Name: "jugs", Family: process.Mutex, Timers: []string{"step"},
			Rules: []process.RuleSpec{{Name: "fill"}, {Name: "spill"}, {Name: "pour"}, {Name: "drink"}},
			New:   func(process.ID, *process.Config) process.Machine { return &jugs{measureable: measureable} },
		},
	}
}

// TestWorld searches the jugs: 16 states are reachable, all with a full or an empty jug.
func TestWorld(t *testing.T) {
	for _, workers := range []int{1, 3} {
		w := jugsOf(6)
		w.Workers = workers
		r, err := w.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict != Proved || r.States != 16 || r.Transitions != 16*6 || r.Depth != 7 || !slices.Equal(r.Unreached, []string{"drink"}) {
			t.Errorf("%+v", r)
		}
	}
}

// TestWorldPath finds the shortest way to measure 4 litres.
func TestWorldPath(t *testing.T) {
	for _, workers := range []int{1, 3} {
		w := jugsOf(4)
		w.Workers = workers
		r, err := w.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var run []string
		for _, step := range r.Steps {
			run = append(run, step.String())
		}
		want := `fill: large 0 -> 5
pour: small 0 -> 3; large 5 -> 2
spill: small 3 -> 0
pour: small 0 -> 2; large 2 -> 0
fill: large 0 -> 5
pour: small 2 -> 3; large 5 -> 4`
		if got := strings.Join(run, "\n"); got != want || r.Verdict != Violated || r.Broken != "it is measured" || r.Depth != 6 {
			t.Errorf("%s: %s after %d steps:\n%s\nwant\n%s", r.Verdict, r.Broken, r.Depth, got, want)
		}
	}
}

// TestWorldIsBounded ends a search in each way.
func TestWorldIsBounded(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for want, c := range map[string]struct {
		ctx    context.Context
		change func(w *World)
	}{
		"states":       {t.Context(), func(w *World) { w.MaxStates = 5 }},
		"depth":        {t.Context(), func(w *World) { w.MaxDepth = 3 }},
		"memory":       {t.Context(), func(w *World) { w.Memory = 1 }},
		"interruption": {canceled, func(*World) {}},
	} {
		w := jugsOf(6)
		c.change(&w)
		if r, err := w.Run(c.ctx); err != nil || r.Verdict != Bounded || r.Stopped != want || r.States > 15 {
			t.Errorf("%s: %+v, %v", want, r, err)
		}
	}
}

func TestWorldHasOneMachine(t *testing.T) {
	w := jugsOf(4)
	w.Process.N = 2
	if _, err := w.Run(t.Context()); fmt.Sprint(err) != "check: world jugs: N: 2: must be 1" {
		t.Error(err)
	}
}

// TestWorldAsRun compares with Run, which keeps all local states.
func TestWorldAsRun(t *testing.T) {
	w := jugsOf(6)
	r, err := Run(t.Context(), Config{
		Spec: w.Spec, Process: w.Process, Timing: AnyTime, Requesters: []process.ID{}, Properties: []process.Property{},
	})
	if err != nil || r.Verdict != Proved || r.States != 16 || r.Transitions != 16*6 || r.Depth != 7 {
		t.Errorf("%+v, %v", r, err)
	}
}
