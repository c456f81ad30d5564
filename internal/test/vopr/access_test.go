package vopr

import (
	"testing"

	"github.com/conclave-io/conclave/internal/test/vopr/faults"
	"github.com/conclave-io/conclave/internal/test/vopr/stats"
)

// TestAccess runs a sample of the plans in which rules and quotas change.
func TestAccess(t *testing.T) {
	const runs = 3
	var all stats.Stats
	for n := range uint64(runs) {
		plan := faults.DrawAccess(*first+n, 20_000)
		result := Run(plan, nil)
		all.Add(&result.Stats)
		if v := result.Violation; v != nil {
			smaller, v := Shrink(plan, v, 200)
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
