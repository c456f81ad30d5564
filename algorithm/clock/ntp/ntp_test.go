package ntp

import (
	"testing"

	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }
func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

func TestGoldenExchange(t *testing.T) {
	if x := compute(100, 207, 209, 110); x != (exchange{offset: 103, delay: 8}) {
		t.Errorf("T1..T4 = 100, 207, 209, 110 give %+v, want offset 103 and delay 8", x)
	}
	if x := compute(100, 200, 220, 110); x.delay != 0 {
		t.Errorf("a server that waited longer than the client gives delay %d, want 0", x.delay)
	}
}

// The measured offset differs from the true one by at most half of the delay, however
// long the server takes.
func TestOffsetIsWithinHalfOfTheDelay(t *testing.T) {
	const offset = 1000
	for out := int64(0); out <= 20; out++ {
		for back := int64(0); back <= 20; back++ {
			for hold := int64(0); hold <= 4; hold += 2 {
				x := compute(100, 100+out+offset, 100+out+hold+offset, 100+out+hold+back)
				if wrong := 2 * (x.offset - offset); wrong > x.delay+1 || -wrong > x.delay+1 {
					t.Errorf("delays %d and %d: offset %d, delay %d", out, back, x.offset, x.delay)
				}
			}
		}
	}
}
