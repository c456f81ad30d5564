package vopr

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/internal/test/vopr/faults"
	"github.com/conclave-io/conclave/internal/test/vopr/stats"
)

var (
	seeds = flag.Int("seeds", 16, "how many seeds TestSample plays")
	first = flag.Uint64("first", 1, "the first of them")
)

// TestSample runs a sample of the plans that `make long-vopr` runs for a simulated day.
func TestSample(t *testing.T) {
	var all stats.Stats
	for n := range uint64(*seeds) {
		plan := faults.Draw(*first+n, 40_000)
		result := Run(plan, nil)
		all.Add(&result.Stats)
		if v := result.Violation; v != nil {
			smaller, v := Shrink(plan, v, 200)
			t.Fatalf("seed %d: %v\na plan that fails:\n%s", plan.Seed, v, smaller.Encode())
		}
	}
	seconds := int(all.Nanos / 1e9)
	t.Logf("%+v", all)
	if all.Operations < 10*seconds || all.Faults*10 < seconds {
		t.Errorf("%d operations and %d faults in %d s: that is too few to show anything", all.Operations, all.Faults, seconds)
	}
	for what, n := range map[string]int{
		"holds lost": all.Lost, "crashes": all.Restarts, "writes torn or lost": all.Torn + all.Unsynced, "snapshots": all.Snapshots,
		"changes of members": all.Changes, "late writes refused": all.Refused, "histories": all.Histories,
		"entries and states compared": all.Alike, "grants in turn": all.Pairs, "holds looked for": all.Kept, "sessions looked for": all.Alive,
		"grants beside others": all.Shared, "grants after others": all.Handed, "patient candidates": all.Patient, "leaders asked to leave for another": all.Overtaken, "candidates elected in turn": all.Preferred, "leaderships handed over": all.Transfers, "ends remembered": all.Endings, "states told to observers": all.Told, "looks at observers": all.Looked,
		"writes beside others": all.Beside, "sessions ended by an operator": all.Dismissed, "holds asked back before their grants arrived": all.Recalled,
		"copies of servers": all.Copies, "copies refused": all.CopiesRefused,
		"levels raised": all.Raised, "acquires whose callers keep something": all.Nested, "deadlocks refused": all.Deadlocks, "floods": all.Floods, "acquires refused by the limit of the state": all.Limited, "requests in sessions of others": all.Thefts, "streams relayed": all.Relayed, "messages between servers dropped": all.Dropped, "snapshots that broke off": all.BrokenOff, "streams of clients cut off": all.CutOff, "founders": all.Founded, "disks emptied": all.Emptied, "removed servers taken away": all.TakenAway, "servers that rejoined": all.Rejoined, "emptied servers taken back": all.TakenBack,
	} {
		if n == 0 && *seeds >= 20 {
			t.Errorf("no %s in %d runs", what, *seeds)
		}
	}
	all.Compared.Each(func(rule string, n int) {
		t.Logf("%8d decisions by the rule %s of the model", n, rule)
		if n == 0 && *seeds >= 16 {
			t.Errorf("no decision in %d runs was by the rule %s of the model", *seeds, rule)
		}
	})
}

func TestSamePlanSameRun(t *testing.T) {
	plan := faults.Draw(7, 10_000)
	var one, two bytes.Buffer
	a, b := Run(plan, &one), Run(plan, &two)
	if a != b && (a.Violation == nil || b.Violation == nil) || a.Digest != b.Digest {
		t.Fatalf("the same plan gave %+v and %+v", a, b)
	}
	if one.Len() < 10_000 || !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Errorf("the logs of one plan, of %d and %d bytes, differ or are short", one.Len(), two.Len())
	}
	if c := Run(faults.Draw(9, 10_000), nil); c.Digest == a.Digest {
		t.Error("another seed gave the same digest")
	}
	text := plan.Encode()
	again, err := faults.Decode(text)
	if err != nil || !slices.Equal(again.Faults, plan.Faults) || again.Seed != plan.Seed {
		t.Errorf("a plan is not read as it was written: %v\n%s", err, text)
	}
}

// TestPeriods runs a plan in which three machines start a job once a minute.
func TestPeriods(t *testing.T) {
	plan := faults.DrawPeriods(*first, 300_000)
	result := Run(plan, nil)
	if v := result.Violation; v != nil {
		t.Fatal(v)
	}
	if s := &result.Stats; s.Periods != 5 || s.JobRuns == 0 || s.Restarts == 0 {
		t.Errorf("in %d periods, with %d crashes, the job ran %d times", s.Periods, s.Restarts, s.JobRuns)
	}
}

// Every setting of a plan is in its text.
func TestPlansAreWholeAsText(t *testing.T) {
	plan := faults.Draw(7, 10_000)
	for _, field := range reflect.ValueOf(&plan).Elem().Fields() {
		if field.Kind() == reflect.Bool {
			field.SetBool(true)
		}
	}
	again, err := faults.Decode(plan.Encode())
	if err != nil || !reflect.DeepEqual(again, plan) {
		t.Errorf("the text of a plan says %+v, the plan %+v; %v", again, plan, err)
	}
}

// TestRegressions runs the plans in testdata. Each of them once found a mistake in the server.
func TestRegressions(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no plans in testdata: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := faults.Decode(text)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if v := Run(plan, nil).Violation; v != nil {
			t.Errorf("%s: %v", file, v)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, text := range []string{
		"{", `{"seed":1,"servers":0,"clients":1,"millis":2000}`, `{"seed":1,"servers":3,"clients":99,"millis":2000}`,
		`{"seed":1,"servers":3,"clients":1,"millis":2}`, `{"seed":1,"servers":3,"clients":1,"millis":2000,"faults":[{"kind":"?"}]}`,
	} {
		if _, err := faults.Decode([]byte(text)); err == nil {
			t.Errorf("%s is taken for a plan", text)
		}
	}
}
