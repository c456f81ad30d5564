package histogram

import "testing"

// TestClasses: a duration is in the first class whose bound it does not exceed.
func TestClasses(t *testing.T) {
	for _, c := range []struct {
		ns    int64
		class int
	}{
		{-5, 0}, {0, 0}, {1, 0}, {first, 0}, {first + 1, 1}, {2 * first, 1}, {2*first + 1, 2}, {4 * first, 2}, {4*first + 1, 3},
		{first << (Classes - 1), Classes - 1}, {first<<(Classes-1) + 1, Classes}, {1 << 62, Classes},
	} {
		var d Durations
		d.Note(c.ns)
		if d.Counts[c.class] != 1 {
			t.Errorf("%d ns: counted as %v, want class %d", c.ns, d.Counts, c.class)
		}
		if d.Sum != max(c.ns, 0) {
			t.Errorf("%d ns: the sum is %d", c.ns, d.Sum)
		}
	}
}

// TestBuckets: buckets count what is below their bounds too, as Prometheus wants them.
func TestBuckets(t *testing.T) {
	var d Durations
	for _, ns := range []int64{1, first, 2 * first, 1 << 62} {
		d.Note(ns)
	}
	all, atMost := d.Buckets()
	if all != 4 || len(atMost) != Classes || atMost[0.0001] != 2 || atMost[0.0002] != 3 || atMost[0.0004] != 3 {
		t.Errorf("%d in all, buckets %v", all, atMost)
	}
}
