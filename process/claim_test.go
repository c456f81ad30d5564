package process_test

import (
	"slices"
	"testing"

	"github.com/conclave-io/conclave/process"
)

func TestSurvives(t *testing.T) {
	spec := &process.Spec{
		Options: []process.Option{{Name: "mode", Default: "a", Values: []string{"a", "b", "c"}}},
		Claims: process.Claims{Survives: []process.Survival{
			{Fault: process.Loss},
			{Fault: process.CrashAny, Mode: "a"},
			{Fault: process.CrashBystander, Mode: "b"}, {Fault: process.CrashWaiter, Mode: "b"},
			{Fault: process.CrashHolder}, {Fault: process.CrashSpecial, Mode: "b"},
		}},
	}
	want := map[string][]process.Fault{
		"a": {process.Loss, process.CrashBystander, process.CrashWaiter, process.CrashHolder, process.CrashSpecial, process.CrashAny},
		"b": {process.Loss, process.CrashBystander, process.CrashWaiter, process.CrashHolder, process.CrashSpecial, process.CrashAny},
		"c": {process.Loss, process.CrashHolder},
	}
	for _, mode := range spec.Modes() {
		var got []process.Fault
		for f := process.Reorder; f <= process.Slowness; f++ {
			if spec.Survives(f, mode) {
				got = append(got, f)
			}
		}
		if !slices.Equal(got, want[mode]) {
			t.Errorf("mode %s survives %v, want %v", mode, got, want[mode])
		}
	}
}

func TestMode(t *testing.T) {
	plain := &process.Spec{Name: "plain"}
	if mode := plain.Mode(&process.Config{}); mode != "" || !slices.Equal(plain.Modes(), []string{""}) {
		t.Errorf("without the option the mode is %q of %q, want one that is empty", mode, plain.Modes())
	}
	top := &process.Spec{Options: []process.Option{{Name: "mode", Default: "a", Values: []string{"a", "b"}}}}
	stack := &process.Spec{Name: "stack", Layers: []*process.Spec{plain, top}}
	c := &process.Config{N: 1}
	if mode := stack.Mode(c); mode != "a" {
		t.Errorf("the mode of a stack is %q by default, want a", mode)
	}
	c.Options = []process.OptionValue{{Name: "mode", Value: "b"}}
	if mode := stack.Mode(c); mode != "b" {
		t.Errorf("the mode of a stack is %q, want b", mode)
	}
}
