package engine_test

import (
	"encoding/hex"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/lab/engine"
	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/lab/trace/journal"
)

// The test takes control at random records, takes possible turns, goes back, and takes other turns.
// Records before the cursor must not change, and the turn must happen. The command line must run
// the text in the same way.
func TestTurns(t *testing.T) {
	p := newPage(t)
	random := rand.New(rand.NewPCG(5, 6))
	for _, id := range []string{"mutex/ricart-agrawala", "mutex/maekawa", "mutex/suzuki-kasami", "bully", "recovered-token"} {
		text := p.scenario(id)
		var now columns
		run, _ := p.open(engine.Request{Text: text, Name: id}, &now)
		at := random.IntN(len(now.records) / 2)
		taken := 0
		for range 12 {
			turns := result[engine.Turns](p, engine.Request{Call: engine.CallTurns, Run: run.Run, At: at})
			if turns.Taken != taken || turns.Held != (taken > 0) {
				t.Fatalf("%s at %d: %+v, %d turns were taken", id, at, turns, taken)
			}
			possible := slices.DeleteFunc(slices.Clone(turns.Choices), func(c engine.Choice) bool { return c.Why != "" })
			if len(possible) == 0 {
				break
			}
			choice := possible[random.IntN(len(possible))]
			edit := engine.Edit{Do: "turn", Turn: choice.Turn}
			done := result[engine.Edited](p, engine.Request{Call: engine.CallEdit, Run: run.Run, At: at, Text: text, Edit: &edit})
			if done.Time != turns.Time {
				t.Errorf("%s: %s happens at %d, the turns say %d", id, choice.Turn, done.Time, turns.Time)
			}
			var next columns
			opened, end := p.open(engine.Request{Text: done.Text, Name: id}, &next)
			if len(end.Unmet) > 0 && strings.HasPrefix(end.Unmet[0], "turn ") {
				t.Fatalf("%s: %s: %v", id, choice.Turn, end.Unmet)
			}
			if at > len(next.records) || !reflect.DeepEqual(now.records[:at], next.records[:at]) {
				t.Fatalf("%s: %s after record %d changes what was before", id, choice.Turn, at)
			}
			if hash := hashOf(t, done.Text); hash != end.Hash {
				t.Errorf("%s: the command line makes %s, the page %s", id, hash, end.Hash)
			}
			run, text, now, taken = opened, done.Text, next, turns.Taken+1
			at = len(now.records)
			if random.IntN(4) == 0 && end.Reason == "held" {
				at -= random.IntN(2)
				taken = result[engine.Turns](p, engine.Request{Call: engine.CallTurns, Run: run.Run, At: at}).Taken
				if taken == 0 {
					at, taken = len(now.records), turns.Taken+1
				}
			}
			if end.Reason != "held" && end.Reason != "quiet" {
				break
			}
		}
		if taken < 3 {
			t.Errorf("%s: only %d turns were taken", id, taken)
		}
		rest := result[engine.Edited](p, engine.Request{Call: engine.CallEdit, Run: run.Run, At: at, Text: text, Edit: &engine.Edit{Do: "rest"}})
		if _, end := p.open(engine.Request{Text: rest.Text}, &columns{}); end.Reason == "held" {
			t.Errorf("%s: the rest is not played: %+v", id, end)
		}
	}
}

// hashOf returns the hash of the journal of a scenario that runs without an engine.
func hashOf(t *testing.T, text string) string {
	t.Helper()
	s, err := scenario.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	kept := &journal.Journal{}
	run, err := s.Begin(kept)
	if err != nil {
		t.Fatal(err)
	}
	for run.Step() {
	}
	return hex.EncodeToString(kept.Hash(kept.Len()))
}

// A choice that is not possible has a reason, and names the turn that is possible instead. A
// command is a turn while the user has control.
func TestTurnsSayWhyNot(t *testing.T) {
	p := newPage(t)
	text := "algorithm: lamport\nn: 3\nschedule: {turns: [acquire 1, acquire 2, REQ 1>2]}\n"
	run, end := p.open(engine.Request{Text: text}, &columns{})
	turns := result[engine.Turns](p, engine.Request{Call: engine.CallTurns, Run: run.Run, At: end.Records})
	i := slices.IndexFunc(turns.Choices, func(c engine.Choice) bool { return c.Turn == "REPLY 2>1" })
	if i < 0 || !strings.Contains(turns.Choices[i].Why, "an older REQ") || turns.Choices[i].Overtake != "REPLY 2>1 overtake" || turns.Choices[i].Cause != 6 {
		t.Fatalf("%+v", turns.Choices)
	}
	for want, edit := range map[string]*engine.Edit{
		"REPLY 2>1 overtake": {Do: "turn", Turn: turns.Choices[i].Overtake},
		"acquire 3":          {Do: "acquire", Rank: 2},
		"suspect 3 to 2":     {Do: "suspect", Rank: 2, To: 1},
	} {
		done := result[engine.Edited](p, engine.Request{Call: engine.CallEdit, Run: run.Run, At: end.Records, Text: text, Edit: edit})
		if done.Item != want || !strings.Contains(done.Text, "    - REQ 1>2\n    - "+want+"\n") {
			t.Errorf("%+v is %s in\n%s", edit, done.Item, done.Text)
		}
		if _, after := p.open(engine.Request{Text: done.Text}, &columns{}); len(after.Unmet) > 0 || after.Records <= end.Records {
			t.Errorf("%s: %+v", want, after)
		}
	}
	for turn, code := range map[string]string{"": engine.CodeRequest, "REQ 1>2]": engine.CodeRequest, "REQ 1>7": engine.CodeScenario} {
		got := p.problem(engine.Request{Call: engine.CallEdit, Run: run.Run, At: end.Records, Text: text, Edit: &engine.Edit{Do: "turn", Turn: turn}})
		if got.Code != code {
			t.Errorf("%q fails with %+v", turn, got)
		}
	}
}
