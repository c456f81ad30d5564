package cristian

import (
	"testing"

	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }
func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

// For any two delays, the error is half their difference. It is at most half of the wait,
// minus the least delay.
func TestErrorOfAMeasurement(t *testing.T) {
	const least, ahead, hold = 2, 1000, 0
	for out := int64(least); out <= 20; out++ {
		for back := int64(least); back <= 20; back++ {
			asked := int64(100)
			s := measure(asked, asked+out+back, asked+out+ahead)
			wrong := s.ahead - ahead
			if 2*wrong-(out-back) > 1 || (out-back)-2*wrong > 1 {
				t.Errorf("delays %d and %d: wrong by %d, want half their difference", out, back, wrong)
			}
			if limit := s.wait/2 - least + 1; wrong > limit || -wrong > limit {
				t.Errorf("delays %d and %d: wrong by %d, at most %d", out, back, wrong, limit)
			}
		}
	}
}
