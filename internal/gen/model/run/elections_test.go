package main

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// total is what a row adds up to.
type total struct {
	searches, depth     int
	states, transitions uint64
}

func totalOf(t *testing.T, r row) total {
	t.Helper()
	result, err := r.search(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if result.Verdict != check.Proved {
		t.Errorf("%s: %s %v", r.name, result.Verdict, result.Broken)
	}
	return total{len(r.each(r.config())), result.Depth, result.States, result.Transitions}
}

// Chang-Roberts on each ring of four with each set of callers: what make model does for
// six.
func TestEveryRing(t *testing.T) {
	got := totalOf(t, row{name: "chang-roberts", n: 4, entries: 1, each: everyRing})
	if want := (total{6 * 15, 42, 16911, 34905}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// The number of relative positions of callers is the number of necklaces of two colours,
// minus the one without a caller.
func TestPlaces(t *testing.T) {
	for n, want := range map[int]int{2: 2, 3: 3, 4: 5, 5: 7, 6: 13} {
		c := check.Config{Process: process.Config{N: n}}
		if got := len(places(1, n)(c)); got != want {
			t.Errorf("n=%d: %d, want %d", n, got, want)
		}
	}
}

// A sum is proved only if all its searches are proved. Otherwise it has the first
// violation.
func TestSum(t *testing.T) {
	broken := &check.Violation{Text: "first"}
	parts := []*check.Result{
		{Verdict: check.Proved, States: 1, Depth: 3}, {Verdict: check.Bounded, Stopped: "time", States: 2, Depth: 9},
		{Verdict: check.Violated, Broken: broken, States: 4, Depth: 2}, {Verdict: check.Violated, Broken: &check.Violation{}, States: 8},
	}
	for upTo, want := range []check.Verdict{check.Proved, check.Bounded, check.Violated, check.Violated} {
		if got := sum(parts[:upTo+1]); got.Verdict != want {
			t.Errorf("of %d parts: %s, want %s", upTo+1, got.Verdict, want)
		}
	}
	if all := sum(parts); all.States != 15 || all.Depth != 9 || all.Broken != broken || all.Stopped != "" {
		t.Errorf("%+v", all)
	}
}
