package trace_test

import (
	"slices"
	"testing"

	"github.com/conclave-io/conclave/lab/trace"
)

// causality returns a run. Process 1 sends to 2 in record 2. Process 2 receives the message in
// record 4 and sends to 3. Process 3 receives that message in record 6. A copy for 3 is lost.
func causality(t *testing.T) *trace.Causality {
	t.Helper()
	c := trace.NewCausality()
	for _, r := range []trace.Record{
		{ID: 1, Process: 1, Kind: "start"},
		{ID: 2, Process: 1, Kind: "propose"},
		{ID: 3, Process: 3, Kind: "propose"},
		{ID: 4, Process: 2, Kind: "deliver", Cause: 2},
		{ID: 5, Process: 3, Kind: trace.Drop, Cause: 4},
		{ID: 6, Process: 3, Kind: "deliver", Cause: 4},
		{ID: 7, Process: 1, Kind: "propose"},
	} {
		if err := c.Write(&r); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestPast(t *testing.T) {
	c := causality(t)
	for id, want := range map[uint64][]uint64{1: nil, 2: {1}, 4: {1, 2}, 6: {1, 2, 3, 4}, 5: {1, 2, 4}, 7: {1, 2}, 99: nil} {
		if got := c.Past(id); !slices.Equal(got, want) {
			t.Errorf("the past of %d is %v, want %v", id, got, want)
		}
	}
}

func TestBeforeAndConcurrent(t *testing.T) {
	c := causality(t)
	for _, q := range []struct {
		a, b               uint64
		before, concurrent bool
	}{
		{1, 6, true, false}, {6, 1, false, false}, {3, 4, false, true}, {7, 6, false, true},
		{2, 2, false, false}, {3, 6, true, false}, {5, 6, false, true}, {1, 99, false, false},
	} {
		if got := c.Before(q.a, q.b); got != q.before {
			t.Errorf("%d happened before %d: %v", q.a, q.b, got)
		}
		if got := c.Concurrent(q.a, q.b); got != q.concurrent {
			t.Errorf("%d and %d are concurrent: %v", q.a, q.b, got)
		}
	}
	if got := c.Chain(1, 6); !slices.Equal(got, []uint64{1, 2, 4, 6}) {
		t.Errorf("the chain from 1 to 6 is %v", got)
	}
	if got := c.Chain(3, 4); got != nil {
		t.Errorf("there is a chain from 3 to 4: %v", got)
	}
}

func TestRecordsHaveNumbersOfTheirOwn(t *testing.T) {
	if err := causality(t).Write(&trace.Record{ID: 4}); err == nil {
		t.Error("two records with one number are accepted")
	}
}
