package measure_test

import (
	"bytes"
	"math"
	"os"
	"testing"

	"github.com/conclave-io/conclave/lab/measure"
)

// The measurement agrees with the formula to within four standard errors, and the page
// has the measured figures.
func TestResets(t *testing.T) {
	rows, err := measure.Resets(measure.ResetTrials)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(measure.Votes) * len(measure.Chances); len(rows) != want {
		t.Fatalf("%d rows, want %d", len(rows), want)
	}
	for i := range rows {
		if r := &rows[i]; !r.Within() {
			t.Errorf("n=%d m=%d p=%.1f: violated in %.4f of the runs, the formula says %.4f, give or take %.4f",
				r.Replicas, r.Votes, r.P, r.Measured(), r.Theory, r.Error())
		}
	}
	var page bytes.Buffer
	if err := measure.ResetsText(&page, rows); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile("../../docs/majority-resets.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written, page.Bytes()) {
		t.Error("docs/majority-resets.md is not what the simulator measures; write it with `make resets`")
	}
}

// Values that were worked out by hand.
func TestResetChance(t *testing.T) {
	for _, c := range []struct {
		n, m int
		p    float64
		want float64
	}{
		{3, 2, 0.1, 0.19},         // 2*0.1*0.9 + 0.01
		{3, 2, 0.5, 0.75},         // not both remember
		{8, 5, 0.5, 26.0 / 32},    // 2 or more of 5
		{10, 7, 0.5, 64.0 / 128},  // 4 or more of 7
		{8, 6, 1, 1},              // all forget
		{16, 12, 0, 0},            // nobody forgets
		{8, 5, 3. / 3600, 6.9e-6}, // as in the paper
	} {
		if got := measure.ResetChance(c.n, c.m, c.p); math.Abs(got-c.want) > 0.01*c.want {
			t.Errorf("n=%d m=%d p=%v: %v, want %v", c.n, c.m, c.p, got, c.want)
		}
	}
	if got := measure.ResetChance(32, 24, 10./10800); got > 1e-40 {
		t.Errorf("n=32 m=24: %v, want less than 1e-40", got)
	}
}
