package recovering

import (
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

// TestConform skips a stack if other stacks contain each of its pairs of neighbouring
// layers.
func TestConform(t *testing.T) {
	for _, spec := range []*process.Spec{CentralRecovering, TokenRingRecovering, TokenRingSwim, BullyHeartbeat, BullyPhi} {
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			processtest.Conform(t, spec)
		})
	}
}

func TestScripts(t *testing.T) {
	for _, spec := range []*process.Spec{CentralRecovering, TokenRingRecovering, TokenRingSwim, BullyPhi} {
		t.Run(spec.Name, func(t *testing.T) { processtest.Script(t, spec, "testdata/"+spec.Name) })
	}
}

// TestOptionsReachTheirLayers: the options of all layers are options of the whole.
func TestOptionsReachTheirLayers(t *testing.T) {
	for _, spec := range []*process.Spec{CentralRecovering, TokenRingRecovering} {
		for _, o := range []process.OptionValue{{Name: "announce", Value: "all"}, {Name: "beat-period", Value: "9"}, {Name: "delta", Value: "5"}} {
			err := spec.Validate(&process.Config{N: 2, Options: []process.OptionValue{o}})
			if wrong := o.Name == "delta" && spec == CentralRecovering; (err != nil) != wrong {
				t.Errorf("%s with %s=%s: %v", spec.Name, o.Name, o.Value, err)
			}
		}
	}
}

// TestNeeds: what the layers give each other is not asked of the host.
func TestNeeds(t *testing.T) {
	for _, spec := range All {
		want := process.Needs{FIFO: true, Reliable: true, Synchrony: true, Topology: spec.Needs.Topology}
		want.FIFO = spec.Family == process.Mutex || spec == BullyReliable
		want.Clock = spec == BullyPhi
		want.Awake = spec == TokenRingRecovering || spec == TokenRingSwim // the token must meet everyone
		if spec.Needs != want {
			t.Errorf("%s needs %+v, want %+v", spec.Name, spec.Needs, want)
		}
	}
}
