package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/lab/engine"
	"github.com/conclave-io/conclave/process"
)

// The searches of the catalog find the mistakes of the variants. The page can open the runs that
// they find.
func TestCheckFindsMistakes(t *testing.T) {
	p := newPage(t)
	found := 0
	for _, v := range result[engine.Catalog](p, engine.Request{Call: engine.CallCatalog}).Broken {
		if v.Check == nil || v.Check.N > 3 || v.Of != "lamport" && v.Of != "maekawa" && v.Of != "bully" && v.Of != "generals" {
			continue
		}
		found++
		c := result[engine.Checked](p, engine.Request{Call: engine.CallCheck, Check: v.Check})
		if c.Verdict != "violated" || c.Property != v.Breaks && v.Breaks != "mutual exclusion" || c.Steps == 0 || c.Scenario == "" {
			t.Errorf("%s: %+v, it breaks %s", v.Name, c, v.Breaks)
			continue
		}
		if strings.Fields(c.Command)[2] != v.Name || len(c.Sometimes) == 0 {
			t.Errorf("%s is made by %s and came through %v", v.Name, c.Command, c.Sometimes)
		}
		run, end := p.open(engine.Request{Text: c.Scenario}, &columns{})
		if last := c.Story[len(c.Story)-1]; last.Record > end.Records || last.Step > c.Steps {
			t.Errorf("%s: the story ends with %+v, the run after %d records", v.Name, last, end.Records)
		}
		for _, told := range c.Story {
			d := result[engine.Described](p, engine.Request{Call: engine.CallDescribe, Run: run.Run, From: told.Record, To: told.Record})
			if !strings.HasSuffix(told.Text, d.Sentences[0]) {
				t.Errorf("%s: step %d is %q, record %d %q", v.Name, told.Step, told.Text, told.Record, d.Sentences[0])
			}
		}
		if v.Name == "maekawa-slides" && (c.NoReturn == nil || *c.NoReturn != 4) {
			t.Errorf("the point of no return of %s is %v", v.Name, c.NoReturn)
		}
		if len(end.Violations) == 0 || end.Violations[0].Property != c.Property {
			t.Errorf("%s: the scenario ends with %v, the search with %s", v.Name, end.Violations, c.Property)
		}
	}
	if found < 5 {
		t.Errorf("only %d variants were searched", found)
	}
}

// A search reports its progress, and it has the same result as conclave check.
func TestCheckTellsProgress(t *testing.T) {
	p := newPage(t)
	request := &engine.Check{Algorithm: "ricart-agrawala", N: 3, Entries: 2, MaxStates: 200_000}
	c := result[engine.Checked](p, engine.Request{Call: engine.CallCheck, Check: request})
	want, err := check.Run(context.Background(), check.Config{
		Spec: algorithm.Find("ricart-agrawala"), Process: process.Config{N: 3}, Entries: 2, MaxStates: 200_000, Workers: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Verdict != want.Verdict.String() || c.Stopped != want.Stopped || c.States != want.States || c.Transitions != want.Transitions {
		t.Errorf("the engine finds %+v, the checker %v after %d states", c, want.Verdict, want.States)
	}
	last := uint64(0)
	told := p.answers(p.last)
	for _, f := range told[:len(told)-1] {
		progress := decode[engine.CheckProgress](t, f)
		if f.kind != engine.TypeProgress || progress.States < last || progress.Transitions == 0 {
			t.Errorf("progress is %s", f.head)
		}
		last = progress.States
	}
	if last == 0 {
		t.Error("no progress was told")
	}
	if small := result[engine.Checked](p, engine.Request{Call: engine.CallCheck, Check: &engine.Check{Algorithm: "lamport", N: 2}}); small.Verdict != "proved" {
		t.Errorf("lamport for 2: %+v", small)
	}
}

func TestBadChecks(t *testing.T) {
	p := newPage(t)
	for want, c := range map[string]*engine.Check{
		"missing":        nil,
		"unknown algori": {Algorithm: "lampord", N: 2},
		"N: 0":           {Algorithm: "lamport"},
		"sometimes":      {Algorithm: "lamport", N: 2, Timers: "sometimes"},
		"Byzantine":      {Algorithm: "lamport", N: 2, Traitors: []int{1}},
		"beauty":         {Algorithm: "lamport", N: 2, Properties: []string{"beauty"}},
		"heartbeat is":   {Algorithm: "heartbeat", N: 2},
		"no option":      {Algorithm: "lamport", N: 2, Options: map[string]string{"speed": "fast"}},
		"requester: ran": {Algorithm: "lamport", N: 2, Requesters: []int{7}},
		"without crashe": {Algorithm: "lamport", N: 2, Restarts: 1},
	} {
		if got := p.problem(engine.Request{Call: engine.CallCheck, Check: c}); got.Code != engine.CodeRequest || !strings.Contains(got.Message, want) {
			t.Errorf("%+v fails with %+v, it must say %q", c, got, want)
		}
	}
}
