package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/engine"
)

// An algorithm that says what the fields of its machine mean says it of each field, and of
// no other. Those of the first lessons do.
func TestFieldsAreExplained(t *testing.T) {
	for _, name := range []string{"lamport", "ricart-agrawala", "suzuki-kasami", "raymond", "maekawa", "maekawa-slides"} {
		if spec := algorithm.Find(name); spec == nil || spec.State == nil {
			t.Errorf("%s does not say what its fields mean", name)
		}
	}
	p := newPage(t)
	for _, spec := range slices.Concat(algorithm.All, algorithm.Broken) {
		explains := false
		for layer := range spec.Depth() {
			explains = explains || spec.Layer(uint8(layer)).State != nil
		}
		if !explains {
			continue
		}
		run, _ := p.open(engine.Request{Text: fmt.Sprintf("algorithm: %s\nn: 3\n", spec.Name), Records: 1}, &columns{})
		states := result[engine.States](p, engine.Request{Call: engine.CallStates, Run: run.Run, At: 0})
		var names []string
		for _, field := range states.Processes[0].Fields {
			names = append(names, field.Name)
		}
		for _, field := range run.Fields {
			if i := slices.Index(names, field.Name); i < 0 || field.Text == "" {
				t.Errorf("%s: the field %q is explained by %q, the machine has %v", spec.Name, field.Name, field.Text, names)
			}
		}
		if spec.Depth() == 1 && len(run.Fields) != len(names) {
			t.Errorf("%s: only %d of the fields %v are explained", spec.Name, len(run.Fields), names)
		}
	}
}
