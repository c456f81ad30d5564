package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check/audit"
	"github.com/conclave-io/conclave/lab/engine"
	"github.com/conclave-io/conclave/lab/measure"
)

// The cells of a row equal those of conclave audit, and the page can open the run of a violated
// cell.
func TestAuditOfARow(t *testing.T) {
	p := newPage(t)
	catalog := result[engine.Catalog](p, engine.Request{Call: engine.CallCatalog})
	if !slices.Contains(catalog.Audited, "lamport") || slices.Contains(catalog.Audited, "heartbeat") || len(catalog.Assumptions) != len(audit.Assumptions) {
		t.Fatalf("the catalog has %v and %v", catalog.Audited, catalog.Assumptions)
	}
	limits := audit.Default
	limits.States = 2000
	violated := 0
	for i, a := range catalog.Assumptions {
		got := result[engine.Audited](p, engine.Request{Call: engine.CallAudit, Audit: &engine.Audit{Algorithm: "lamport", Assumption: a.Name, States: limits.States}})
		cell := audit.One(t.Context(), algorithm.Find("lamport"), audit.Assumptions[i], limits)
		if got.Verdict != cell.Outcome.String() || got.Short != cell.Verdict() || a.Dropped == "" || !strings.HasPrefix(got.Command, "conclave audit lamport") {
			t.Errorf("without %s: %+v, want %s", a.Name, got, cell.Verdict())
		}
		if got.Verdict != "violated" {
			continue
		}
		violated++
		_, end := p.open(engine.Request{Text: got.Found}, &columns{})
		if len(end.Violations) == 0 || end.Violations[0].Property != got.Property || len(got.Story) == 0 {
			t.Errorf("without %s the run breaks %v, the cell %s with %d steps told", a.Name, end.Violations, got.Property, len(got.Story))
		}
	}
	if violated < 2 {
		t.Errorf("only %d cells are violated", violated)
	}
}

// The engine measures the same values as conclave compare.
func TestMeasureInTheEngine(t *testing.T) {
	p := newPage(t)
	catalog := result[engine.Catalog](p, engine.Request{Call: engine.CallCatalog})
	if !slices.Contains(catalog.Measured, "ricart-agrawala") {
		t.Fatalf("the catalog has %v", catalog.Measured)
	}
	got := result[engine.Measured](p, engine.Request{Call: engine.CallMeasure, Measure: &engine.Sizing{Algorithm: "ricart-agrawala", N: 7}})
	want, err := measure.Algorithm(algorithm.Find("ricart-agrawala"), 7)
	if err != nil || len(got.Rows) != len(want) {
		t.Fatalf("%d figures, want %d: %v", len(got.Rows), len(want), err)
	}
	for i, r := range got.Rows {
		if r.Metric != want[i].Metric || r.Measured != want[i].Measured || !r.Within {
			t.Errorf("got %+v, want %+v", r, want[i])
		}
		if r.Metric == measure.MessagesPerEntry && (r.Measured != 12 || r.Theory == nil || *r.Theory != 12 || r.Formula != "2(N-1)" || len(r.Said) == 0) {
			t.Errorf("messages per entry are %+v", r)
		}
	}
}

func TestBadTables(t *testing.T) {
	p := newPage(t)
	for want, r := range map[string]engine.Request{
		"audit: missing":           {Call: engine.CallAudit},
		`algorithm: "heartbeat"`:   {Call: engine.CallAudit, Audit: &engine.Audit{Algorithm: "heartbeat"}},
		`assumption: "gravity"`:    {Call: engine.CallAudit, Audit: &engine.Audit{Algorithm: "lamport", Assumption: "gravity"}},
		"at most 2000000":          {Call: engine.CallAudit, Audit: &engine.Audit{Algorithm: "lamport", Assumption: "no loss", States: 1 << 30}},
		"measure: missing":         {Call: engine.CallMeasure},
		`algorithm: "bully"`:       {Call: engine.CallMeasure, Measure: &engine.Sizing{Algorithm: "bully", N: 3}},
		"n: 0: must be between 1":  {Call: engine.CallMeasure, Measure: &engine.Sizing{Algorithm: "lamport"}},
		"n: 5000: must be between": {Call: engine.CallMeasure, Measure: &engine.Sizing{Algorithm: "lamport", N: 5000}},
	} {
		if got := p.problem(r); !strings.Contains(got.Message, want) {
			t.Errorf("%+v fails with %+v, it must say %q", r, got, want)
		}
	}
}
