package check_test

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm/agreement/paxos"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// TestNewsAreSomebodys: the same report to two processes is two events. A state in which
// process 1 has yet to receive its report differs from the state in which process 2 has.
// If they were equal, a search would skip states, depending on the order of the search.
func TestNewsAreSomebodys(t *testing.T) {
	for _, workers := range []int{1, 2, 4} {
		r := searched(t, check.Config{
			Spec: paxos.Spec, Process: process.Config{N: 3}, Requesters: []process.ID{0},
			Crashes: 1, Restarts: 1, Timeouts: 1, Workers: workers,
		})
		if r.Verdict != check.Proved || r.States != 78898 {
			t.Errorf("%d workers: %s, %d states, want 78898", workers, r.Sentence(), r.States)
		}
	}
}
