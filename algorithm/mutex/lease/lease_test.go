package lease

import (
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) {
	for _, spec := range []*process.Spec{Spec, Redlock} {
		t.Run(spec.Name, func(t *testing.T) { processtest.Conform(t, spec) })
	}
}

func TestScripts(t *testing.T) {
	for _, spec := range []*process.Spec{Spec, Redlock} {
		t.Run(spec.Name, func(t *testing.T) { processtest.Script(t, spec, "testdata/"+spec.Name) })
	}
}

func TestServers(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 1, 3: 1, 4: 3, 5: 3, 6: 5, 100: 5} {
		if got := Servers(&process.Config{N: n}); got != want {
			t.Errorf("N=%d: %d servers, want %d", n, got, want)
		}
	}
}
