package rules_test

import (
	"flag"
	"testing"

	"github.com/conclave-io/conclave/internal/test/vopr"
	"github.com/conclave-io/conclave/internal/test/vopr/faults"
	"github.com/conclave-io/conclave/internal/test/vopr/stats"
)

var first = flag.Uint64("first", 1, "the first seed")

// TestAccess runs a sample of the plans in which rules and quotas change.
func TestAccess(t *testing.T) {
	const runs = 3
	var all stats.Stats
	for n := range uint64(runs) {
		plan := faults.DrawAccess(*first+n, 20_000)
		result := vopr.Run(plan, nil)
		all.Add(&result.Stats)
		if v := result.Violation; v != nil {
			smaller, v := vopr.Shrink(plan, v, 200)
			t.Fatalf("seed %d: %v\na plan that fails:\n%s", plan.Seed, v, smaller.Encode())
		}
	}
	s := all.Access
	t.Logf("%+v", s)
	for what, n := range map[string]int{"changes of the rules": s.Changed, "denied acquires": s.Denied, "acquires beyond a quota": s.Quotas, "decisions": s.Judged} {
		if n == 0 {
			t.Errorf("no %s in %d runs", what, runs)
		}
	}
}
