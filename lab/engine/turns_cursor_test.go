package engine_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/lab/engine"
)

// The choices are those at the cursor, also if later records have the same time: what has not
// happened at the cursor can be chosen, and does not happen by itself.
func TestTurnsBeginAtTheCursor(t *testing.T) {
	p := newPage(t)
	text := p.scenario("maekawa-deadlock")
	var whole columns
	run, _ := p.open(engine.Request{Text: text, Name: "test"}, &whole)
	turns := result[engine.Turns](p, engine.Request{Call: engine.CallTurns, Run: run.Run, At: 5})
	if turns.Held || turns.From != 5 || turns.Time != 1_000_000 {
		t.Errorf("after record 5: %+v", turns)
	}
	asks := slices.IndexFunc(turns.Choices, func(c engine.Choice) bool { return c.Turn == "acquire 3" })
	if asks < 0 || turns.Choices[asks].Why != "" || !turns.Choices[asks].Pending {
		t.Errorf("process 3 has not asked, and cannot: %+v", turns.Choices)
	}
	if slices.ContainsFunc(turns.Choices, func(c engine.Choice) bool { return c.Turn == "REQ 3>1" || c.Cause > 5 }) {
		t.Errorf("a message is there that nobody has sent: %+v", turns.Choices)
	}

	edit := engine.Edit{Do: "turn", Turn: "REQ 1>2"}
	done := result[engine.Edited](p, engine.Request{Call: engine.CallEdit, Run: run.Run, At: 5, Text: text, Edit: &edit})
	var next columns
	run, end := p.open(engine.Request{Text: done.Text, Name: "test"}, &next)
	if end.Reason != "held" || end.Records != 6 || !reflect.DeepEqual(whole.records[:5], next.records[:5]) || done.Time != turns.Time {
		t.Fatalf("%+v, %d records, the turn is at %d\n%s", end, end.Records, done.Time, done.Text)
	}
	if turns = result[engine.Turns](p, engine.Request{Call: engine.CallTurns, Run: run.Run, At: 6}); !turns.Held || turns.Taken != 1 || turns.From != 6 {
		t.Errorf("after the turn: %+v", turns)
	}
	// Back at the cursor before it, and before the schedule began.
	for at, held := range map[int]bool{5: true, 4: false} {
		if turns = result[engine.Turns](p, engine.Request{Call: engine.CallTurns, Run: run.Run, At: at}); turns.Held != held || turns.Taken != 0 || turns.From != at {
			t.Errorf("after record %d: %+v", at, turns)
		}
	}
	rest := result[engine.Edited](p, engine.Request{Call: engine.CallEdit, Run: run.Run, At: 6, Text: done.Text, Edit: &engine.Edit{Do: "rest"}})
	if _, end := p.open(engine.Request{Text: rest.Text}, &columns{}); end.Reason != "quiet" || end.Entries != 3 {
		t.Errorf("the rest: %+v", end)
	}
}

// A process starts by itself. The answer says after which record the choices are.
func TestTurnsSayWhereTheyBegin(t *testing.T) {
	p := newPage(t)
	run, _ := p.open(engine.Request{Text: "algorithm: lamport\nn: 3\n"}, &columns{})
	for at := range 4 {
		if turns := result[engine.Turns](p, engine.Request{Call: engine.CallTurns, Run: run.Run, At: at}); turns.From != 3 {
			t.Errorf("after record %d: the choices are after %d", at, turns.From)
		}
	}
}

// A turn that wrote the record at the cursor is taken, also if the next record has the same time, and
// a schedule that begins at the end of the run, because no record has its number, has control.
func TestTurnsThatWereTaken(t *testing.T) {
	const beyond = "algorithm: lamport\nn: 3\nworkload:\n  commands:\n    - {at: 0, acquire: 1, hold: 1}\nschedule:\n  record: 9999\n  turns:\n    - acquire 2\n    - REQ 2>1\n"
	p := newPage(t)
	for _, c := range []struct {
		text            string
		at, from, taken int // at -1: the end
	}{
		{p.scenario("assumptions/maekawa-duplication"), 4, 4, 1},
		{p.scenario("assumptions/maekawa-duplication"), 5, 6, 2}, // the turn that wrote 5 also repeats the GRANT
		{p.scenario("assumptions/raymond-duplication"), 4, 5, 2},
		{p.scenario("assumptions/tree-election-crash"), 4, 5, 2},
		{beyond, -1, 13, 2},
	} {
		var whole columns
		run, end := p.open(engine.Request{Text: c.text, Name: "test"}, &whole)
		at := c.at
		if at < 0 {
			at = end.Records
		}
		turns := result[engine.Turns](p, engine.Request{Call: engine.CallTurns, Run: run.Run, At: at})
		if !turns.Held || turns.From < at || turns.From != c.from || turns.Taken != c.taken {
			t.Errorf("after record %d: %+v, want %d turns taken after %d\n%s", at, turns, c.taken, c.from, c.text)
		}
	}
}
