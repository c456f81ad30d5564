package metrics

import (
	"testing"
	"time"
)

// Every duration is in a class whose largest is at most an eighth above it, and classes
// are in order.
func TestLatenciesAreExactToAnEighth(t *testing.T) {
	var last int
	for us := uint64(0); us < 1<<30; us += 1 + us/100 {
		class := classOf(us)
		if class < last || class > last+1 {
			t.Fatalf("%d us are in the class %d after %d", us, class, last)
		}
		last = class
		if most := largestOf(class); most < us || most-us > us/8 || classOf(most) != class || classOf(most+1) != class+1 {
			t.Fatalf("%d us are in the class %d, which ends at %d", us, class, most)
		}
	}
	var l latencies
	for _, took := range []time.Duration{-1, time.Millisecond, 1000 * time.Hour, time.Millisecond} {
		l.note(took)
	}
	got := l.counts()
	if len(got) != 3 || got[0].GetAtMostUs() != 0 || got[1].GetCount() != 2 || got[2].GetCount() != 1 {
		t.Errorf("got %v", got)
	}
}
