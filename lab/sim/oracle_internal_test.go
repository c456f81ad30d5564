package sim

import (
	"testing"

	"github.com/conclave-io/conclave/process"
)

// A process knows the last incarnation of another process that was reported to it since
// its own restart. If none was reported, it knows the one at its restart.
func TestOracleKnowsOfThisLife(t *testing.T) {
	w := &World{config: &process.Config{N: 3}}
	o := &w.oracle
	back := func(p process.ID) {
		o.detects = process.NoDetector // nobody is told
		w.noticeRestart(p)
		o.detects = process.ReliableDetector
	}
	o.detects = process.ReliableDetector
	want := func(who, of process.ID, v int64) {
		t.Helper()
		if got := o.knows(who, of); got != v {
			t.Errorf("%d knows %d of %d, want %d", who, got, of, v)
		}
	}
	want(0, 1, 2)
	o.learn(0, 1, 5) // 1 is back for the first time, and has crashed again
	want(0, 1, 5)
	back(1)
	want(0, 1, 5)
	want(2, 1, 2) // nobody has told it
	back(0)
	want(0, 1, 4) // 1 was back before 0 was; that it has crashed again 0 does not know
	want(1, 0, 2)
	back(1)
	want(0, 1, 4)
	want(1, 0, 4)
	back(2)
	want(2, 1, 6)
	o.learn(2, 1, 8)
	want(2, 1, 8)
}
