package guarded_test

import (
	"os"
	"testing"

	"github.com/conclave-io/conclave/internal/test/vopr"
	"github.com/conclave-io/conclave/internal/test/vopr/faults"
	"github.com/conclave-io/conclave/internal/test/vopr/stats"
)

// TestHosts runs a sample of the plans in which servers run the algorithms that guard names.
func TestHosts(t *testing.T) {
	var all stats.Stats
	plans := []faults.Plan{leaving(t)}
	for n := range uint64(*seeds) {
		plans = append(plans, faults.DrawHosts(*first+n, 25_000))
	}
	for _, plan := range plans {
		result := vopr.Run(plan, nil)
		all.Add(&result.Stats)
		if v := result.Violation; v != nil {
			smaller, v := vopr.Shrink(plan, v, 200)
			t.Fatalf("seed %d: %v\na plan that fails:\n%s", plan.Seed, v, smaller.Encode())
		}
	}
	s := all.Hosts
	t.Logf("%+v, %d epochs, %d changes of guards, slowest recovery %d ms", s, all.Seats.Epochs, all.Seats.Switched, all.Slowest/int64(1e6))
	for what, n := range map[string]int{
		"grants by algorithms": s.Grants, "grants by agreement": s.Agreed, "requests that moved": s.Moved, "batches": s.Batches, "lanes that broke": s.Breaks,
		"seats that ended": s.Gone, "farewells": s.Farewells, "holds that were lost": s.Lost, "holders asked to leave": s.Asked, "homes taken over": s.Heirs, "holds of clients that went on there": s.Handed, "grants to programs within servers": s.Near, "reports with doubts": s.Doubts, "elected coordinators": s.Elected, "changes of guards": all.Seats.Switched,
	} {
		if n == 0 && *seeds >= 5 {
			t.Errorf("no %s in %d runs", what, *seeds)
		}
	}
	again := faults.DrawHosts(*first, 10_000)
	if one, two := vopr.Run(again, nil), vopr.Run(again, nil); one.Digest != two.Digest {
		t.Error("the same plan gave two runs")
	}
}

// leaving is a plan in which servers hand over their homes, with what clients hold there. Few
// short plans that are drawn have that.
func leaving(t *testing.T) faults.Plan {
	t.Helper()
	text, err := os.ReadFile("../mutants/testdata/adopter-ignores-promises.json")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := faults.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}
