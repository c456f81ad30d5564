package check_test

import (
	"bytes"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// Elections use the election labels, and processes are named by their own labels, also in
// the scenario of a violation. If two election labels are equal, either process may lead.
func TestElectionLabels(t *testing.T) {
	run := func(labels []process.Label, drops int) *check.Result {
		r, err := check.Run(t.Context(), check.Config{
			Spec: algorithm.Find("bully"), Process: process.Config{N: 2, ElectionLabels: labels}, Drops: drops,
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := run([]process.Label{2, 2}, 0); r.Verdict != check.Proved {
		t.Errorf("equal labels: %s, %v", r.Verdict, r.Broken)
	}
	r := run([]process.Label{2, 1}, 1)
	if r.Verdict != check.Violated || r.Broken.Text != "2 elected 2, but 1 is up" {
		t.Fatalf("the first has the higher label, and a message is lost: %s, %v", r.Verdict, r.Broken)
	}
	if text := r.Scenario(); !bytes.Contains(text, []byte("labels: [1, 2]\nelection-labels: [2, 1]\n")) {
		t.Errorf("the scenario lacks the labels:\n%s", text)
	}
	s, err := r.Replay()
	if err != nil {
		t.Fatal(err)
	}
	if o, err := s.Run(); err != nil || len(o.Result.Violations) == 0 || o.Result.Violations[0].Text != r.Broken.Text {
		t.Errorf("the simulator finds %v, %v", o, err)
	}
}
