package dijkstra

import (
	"slices"
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

// TestRing goes through a run of the paper's machines by hand: n=3, K=4.
func TestRing(t *testing.T) {
	ring, v := Ring(3, 4), []int{2, 0, 1}
	for _, step := range []struct {
		privileged []int // machines
		moves      int
		to         []int
	}{
		{[]int{1, 2}, 1, []int{2, 2, 1}}, {[]int{2}, 2, []int{2, 2, 2}}, {[]int{0}, 0, []int{3, 2, 2}}, {[]int{1}, 1, []int{3, 3, 2}},
	} {
		var privileged []int
		for i := range v {
			if len(ring.Moves(v, i)) > 0 {
				privileged = append(privileged, i)
			}
		}
		v[step.moves] = ring.Moves(v, step.moves)[0]
		if !slices.Equal(privileged, step.privileged) || !slices.Equal(v, step.to) {
			t.Errorf("%v were privileged, then %v; want %v, %v", privileged, v, step.privileged, step.to)
		}
	}
}

// TestCorruption: a fault can leave one state for each pair of values, and messages only
// between neighbours.
func TestCorruption(t *testing.T) {
	c := &process.Config{N: 3, Options: []process.OptionValue{{Name: "values", Value: "5"}}}
	if got := len(states(1, c)); got != 25 {
		t.Errorf("%d states, want 25", got)
	}
	if got := len(messages(2, 0, c)); got != 5 {
		t.Errorf("%d messages from 2 to 0, want 5", got)
	}
	if got := len(messages(0, 2, c)); got != 0 {
		t.Errorf("%d messages from 0 to 2, want none", got)
	}
}
