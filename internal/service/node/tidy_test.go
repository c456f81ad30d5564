package node

import "testing"

func TestMemoryIsGivenBackOnceAfterARush(t *testing.T) {
	var at tidiness
	const second = int64(1e9)
	for _, look := range []struct {
		applied uint64
		now     int64
		want    bool
	}{
		{0, 0, false},
		{900, 10 * second, false},
		{900, 30 * second, false}, // that was no rush
		{1500, 40 * second, false},
		{1500, 44 * second, false}, // it may continue
		{1500, 45 * second, true},
		{1500, 99 * second, false}, // said before
		{2400, 100 * second, false},
		{2400, 200 * second, false}, // again no rush
		{2600, 201 * second, false},
		{2600, 206 * second, true},
	} {
		if got := at.due(look.applied, look.now); got != look.want {
			t.Errorf("with %d entries after %d s: %v", look.applied, look.now/second, got)
		}
	}
}
