package describe_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/lab/describe"
	"github.com/conclave-io/conclave/process"
)

func formula(text string) *process.Formula { return &process.Formula{Text: text} }

// spec has something of everything that is put into words.
var spec = &process.Spec{
	Name:     "example",
	Messages: []process.MessageSpec{{Name: "REQ", Fields: []process.FieldUse{{Field: process.FieldClock, Symbol: "t"}, {Field: process.FieldFence, Symbol: "F"}}}, {Name: "ACK"}},
	Options: []process.Option{
		{Name: "mode", Default: "slow", Values: []string{"slow", "fast"}, Text: "how"},
		{Name: "k", Default: "2", Min: 1, Max: 9, Text: "how many"},
	},
	Needs: process.Needs{FIFO: true, Detector: process.UnreliableDetector, Topology: process.Tree},
	Claims: process.Claims{
		Properties: []process.Claim{
			{Property: process.MutualExclusion},
			{Property: process.BoundedBypass, Bound: formula("N-1"), Mode: "fast", When: "nobody sleeps"},
			{Property: process.OrderArrival, Fails: true},
		},
		Costs: []process.Cost{
			{Metric: process.MessagesPerEntry, Regime: process.AnyLoad, Exact: formula("3"), Mode: "slow",
				Said: []process.Figure{{Document: "a.txt", Text: "3"}, {Document: "b.txt", Text: "4", Wrong: "counts twice"}}},
			{Metric: process.MessagesPerEntry, Regime: process.Saturated, Lo: formula("1"), Hi: formula("N"), Mean: formula("N/2"), Mode: "fast", When: "N > 2"},
			{Metric: process.ClientDelay, Regime: process.Idle, Lo: formula("2")},
			{Metric: process.SyncDelay, Regime: process.Idle, Hi: formula("4")},
			{Metric: process.Bypass, Regime: process.AnyLoad, Mean: formula("1")},
		},
		Survives: []process.Survival{
			{Fault: process.CrashAny, How: "R7"},
			{Fault: process.Loss, Mode: "fast", When: "it is seldom", How: "R8"},
		},
	},
}

func TestWords(t *testing.T) {
	for name, c := range map[string]struct{ got, want []string }{
		"messages":     {[]string{describe.Message(&spec.Messages[0]), describe.Message(&spec.Messages[1])}, []string{"REQ(t, F)", "ACK"}},
		"needs":        {describe.Needs(spec), []string{"links that keep the order of messages", "a failure detector, which may be wrong, to survive crashes", "a tree"}},
		"no needs":     {describe.Needs(&process.Spec{}), []string{"nothing of the links but that messages may arrive"}},
		"promises":     {describe.Promises(spec), []string{"mutual exclusion", "bounded bypass by N-1 with mode=fast: nobody sleeps"}},
		"not promised": {describe.NotPromised(spec), []string{"order of arrival"}},
		"costs": {describe.Costs(spec), []string{
			"messages per entry with mode=slow: 3; a.txt says 3, rightly; b.txt says 4, which is off: counts twice",
			"messages per entry, saturated with mode=fast: 1 to N, on average N/2 (N > 2)",
			"client delay, idle: at least 2",
			"sync delay, idle: at most 4",
			"bypass: on average 1",
		}},
		"per entry":    {[]string{describe.PerEntry(spec), describe.Total(spec, process.ClientDelay), describe.PerEntry(&process.Spec{})}, []string{"3", "at least 2 idle", ""}},
		"survives":     {describe.Survives(spec), []string{"crash of any process: R7", "loss with mode=fast, if it is seldom: R8"}},
		"not survived": {describe.NotSurvived(spec), []string{"reordering", "loss with mode=slow", "duplication", "restart", "slowness"}},
		"options":      {describe.Options(spec), []string{"mode: how (slow, fast; default slow)", "k: how many (1 to 9; default 2)"}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
