package guarded_test

import (
	"flag"
	"testing"

	"github.com/conclave-io/conclave/internal/test/vopr"
	"github.com/conclave-io/conclave/internal/test/vopr/faults"
	"github.com/conclave-io/conclave/internal/test/vopr/stats"
)

var (
	seeds = flag.Int("live-seeds", 5, "how many seeds each test plays")
	first = flag.Uint64("first", 1, "the first of them")
)

// TestSeats runs a sample of the plans in which algorithms guard names.
func TestSeats(t *testing.T) {
	var all stats.Stats
	for n := range uint64(*seeds) {
		plan := faults.DrawSeats(*first+n, 40_000)
		result := vopr.Run(plan, nil)
		all.Add(&result.Stats)
		if v := result.Violation; v != nil {
			smaller, v := vopr.Shrink(plan, v, 200)
			t.Fatalf("seed %d: %v\na plan that fails:\n%s", plan.Seed, v, smaller.Encode())
		}
	}
	s := all.Seats
	t.Logf("%+v, slowest recovery %d ms", s, all.Slowest/int64(1e6))
	for what, n := range map[string]int{
		"renewals of seats": s.Renewals, "epochs": s.Epochs, "seats that expired": s.Expired, "seats given back": s.Closed, "holds with an heir": s.Adopted,
		"holds by algorithms": s.Entered, "holds by agreement": s.Granted, "requests referred to an algorithm": s.Moved, "changes of guards": s.Switched,
	} {
		if n == 0 && *seeds >= 5 {
			t.Errorf("no %s in %d runs", what, *seeds)
		}
	}
	again := faults.DrawSeats(*first, 10_000)
	if one, two := vopr.Run(again, nil), vopr.Run(again, nil); one.Digest != two.Digest {
		t.Error("the same plan gave two runs")
	}
}
