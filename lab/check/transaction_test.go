package check_test

import (
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/transaction/paxoscommit"
	"github.com/conclave-io/conclave/algorithm/transaction/threephase"
	"github.com/conclave-io/conclave/algorithm/transaction/twophase"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// TestTransactionsAreProved: within these bounds, no process commits what another one
// aborts, and all decide after all have restarted. The number of states is exact.
func TestTransactionsAreProved(t *testing.T) {
	nothing := []process.OptionValue{{Name: "mode", Value: "presumed-nothing"}}
	for _, test := range []struct {
		spec    *process.Spec
		n       int
		options []process.OptionValue
		change  func(c *check.Config)
		states  uint64
	}{
		{twophase.Spec, 2, nil, func(*check.Config) {}, 37},
		{twophase.Spec, 3, nil, func(*check.Config) {}, 690},
		{twophase.Spec, 3, nil, func(c *check.Config) { c.Crashes, c.Restarts, c.Liveness = 1, 1, true }, 17234},
		{twophase.Spec, 3, nothing, func(c *check.Config) { c.Crashes, c.Restarts, c.Liveness = 1, 1, true }, 32152},
		{twophase.Spec, 3, nil, func(c *check.Config) { c.Drops, c.Liveness = 1, true }, 2410},
		{twophase.Spec, 3, nil, func(c *check.Config) { c.Duplicates, c.Unordered = 1, true }, 3137},
		{twophase.Spec, 2, nil, func(c *check.Config) { c.Crashes, c.Restarts, c.Timing, c.Timeouts = 1, 1, check.AnyTime, 3 }, 2782},
		{threephase.Spec, 3, nil, func(*check.Config) {}, 708},
		{threephase.Spec, 3, nil, func(c *check.Config) { c.Crashes, c.Liveness = 2, true }, 21412},
		{threephase.Spec, 2, nil, func(c *check.Config) { c.Crashes, c.Restarts, c.Liveness = 1, 1, true }, 947},
		{threephase.Spec, 2, nil, func(c *check.Config) { c.Suspicions, c.Properties = 1, []process.Property{process.Atomicity} }, 247},
		{paxoscommit.Spec, 2, nil, func(*check.Config) {}, 99},
		{paxoscommit.Spec, 3, nil, func(*check.Config) {}, 85160},
		{paxoscommit.Spec, 2, nil, func(c *check.Config) { c.Crashes, c.Restarts, c.Timeouts = 1, 1, 2 }, 2269},
		{paxoscommit.Spec, 3, []process.OptionValue{{Name: "f", Value: "0"}}, func(*check.Config) {}, 663},
	} {
		cfg := check.Config{Spec: test.spec, Process: process.Config{N: test.n, Options: test.options}}
		test.change(&cfg)
		r := searched(t, cfg)
		if r.Verdict != check.Proved || r.States != test.states {
			t.Errorf("%s: %s, %v, %d states, want %d", test.spec.Name, r.Sentence(), r.Broken, r.States, test.states)
		}
		for _, s := range r.Sometimes {
			if !s.Reached {
				t.Errorf("%s, %s: %s never happens", test.spec.Name, r.Config.Bounds(), s.What)
			}
		}
	}
}

// TestTwoPhaseCommitBlocks: a participant that has voted yes waits forever for a
// coordinator that is down, while it asks again and again.
func TestTwoPhaseCommitBlocks(t *testing.T) {
	r := searched(t, check.Config{
		Spec: twophase.Spec, Process: process.Config{N: 3}, Crashes: 1, Liveness: true,
		Properties: []process.Property{process.NonBlocking},
	})
	if r.Verdict != check.Violated || r.Broken.Property != process.NonBlocking || r.Path.Loop < 0 {
		t.Fatalf("%s, want a run that goes on forever", r.Sentence())
	}
	if !strings.Contains(r.Broken.Text, "waits forever") {
		t.Error(r.Broken.Text)
	}
}

// TestThreePhaseCommitUnderPartition: if each side of a partition is told that the other
// has crashed, they decide differently. The simulator finds the same.
func TestThreePhaseCommitUnderPartition(t *testing.T) {
	r := searched(t, check.Config{
		Spec: threephase.Spec, Process: process.Config{N: 2}, Suspicions: 2,
		Properties: []process.Property{process.Atomicity},
	})
	if r.Verdict != check.Violated || r.Broken.Text != "1 committed: 2 aborted" {
		t.Fatalf("%s: %v, want a violation of atomicity", r.Sentence(), r.Broken)
	}
	replayed(t, r)
}

// TestOneVoteEach: there is one transaction.
func TestOneVoteEach(t *testing.T) {
	c := check.Config{Spec: twophase.Spec, Process: process.Config{N: 2}, Entries: 2}
	if err := c.Validate(); err == nil {
		t.Error("2 votes each are accepted")
	}
	c.Entries, c.Reduce, c.Properties = 1, check.PartialOrder, []process.Property{process.Atomicity}
	if err := c.Validate(); err == nil {
		t.Error("a reduction of a transaction is accepted")
	}
}
