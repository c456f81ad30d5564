package measure

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm/transaction/paxoscommit"
	"github.com/conclave-io/conclave/algorithm/transaction/threephase"
	"github.com/conclave-io/conclave/algorithm/transaction/twophase"
	"github.com/conclave-io/conclave/process"
)

// TestTransactionsCostWhatTheSpecsSay measures a commit at every size that costs little.
func TestTransactionsCostWhatTheSpecsSay(t *testing.T) {
	mode := func(value string) []process.OptionValue { return []process.OptionValue{{Name: "mode", Value: value}} }
	faults := func(f string) []process.OptionValue { return []process.OptionValue{{Name: "f", Value: f}} }
	for _, test := range []struct {
		spec    *process.Spec
		mode    string
		options []process.OptionValue
		f       int
	}{
		{twophase.Spec, "presumed-abort", nil, 0},
		{twophase.Spec, "presumed-nothing", mode("presumed-nothing"), 0},
		{threephase.Spec, "", nil, 0},
		{paxoscommit.Spec, "", faults("0"), 0},
		{paxoscommit.Spec, "", faults("1"), 1},
		{paxoscommit.Spec, "", faults("2"), 2},
	} {
		for _, n := range []int{2, 3, 4, 5, 8, 13, 30} {
			got, err := Transaction(test.spec, n, test.options)
			if err != nil {
				t.Fatal(err)
			}
			for metric, measured := range map[process.Metric]float64{
				process.MessagesPerDecision: float64(got.Messages), process.MessageCount: float64(got.All),
				process.DecisionTime: got.Time, process.LogWrites: float64(got.Writes),
			} {
				formula := said(t, test.spec, metric, process.AllStart, test.mode)
				if formula == nil {
					t.Fatalf("%s says nothing of %s", test.spec.Name, metric)
				}
				if want := formula.Eval(process.Params{N: n, F: test.f}); measured != want {
					t.Errorf("%s %s, N = %d: %s %v, theory %v", test.spec.Name, test.mode, n, metric, measured, want)
				}
			}
		}
	}
}

// TestBlocking measures how long participants wait for a coordinator that has crashed:
// in two-phase commit until it is back and they ask it. They ask every 8 D, and the first
// question is lost: it is addressed to the process as it was before the crash. In
// three-phase commit they decide as soon as they are told of the crash, and in Paxos Commit
// when the first of them has waited long enough and asked a majority.
func TestBlocking(t *testing.T) {
	for _, test := range []struct {
		spec *process.Spec
		most func(down float64) float64
	}{
		{twophase.Spec, func(down float64) float64 { return down + 2*8 + 2 }},
		{threephase.Spec, func(float64) float64 { return 5 + 3 }},    // detection, STATE-REQ, STATE, DECISION
		{paxoscommit.Spec, func(float64) float64 { return 2*8 + 5 }}, // timer, RECOVER to DECISION
	} {
		for _, down := range []process.Duration{10, 20, 100, 1000} {
			blocked, err := Blocked(test.spec, 4, nil, down*delay)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: down for %d D, blocked for %v D", test.spec.Name, down, blocked)
			if blocked > test.most(float64(down)) || test.spec == twophase.Spec && blocked < float64(down) {
				t.Errorf("%s: down for %d D, blocked for %v D", test.spec.Name, down, blocked)
			}
		}
	}
}
