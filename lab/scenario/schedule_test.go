package scenario_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/trace/journal"
)

// held runs a scenario that stops at the end of its schedule, and returns the possible
// next turns.
func held(t *testing.T, s *scenario.Scenario) (*sim.World, *scenario.Outcome, *journal.Journal) {
	t.Helper()
	kept := &journal.Journal{}
	run, err := s.Begin(kept)
	if err != nil {
		t.Fatal(err)
	}
	for run.Step() {
	}
	outcome, err := run.Outcome()
	if err != nil {
		t.Fatal(err)
	}
	return run.World, outcome, kept
}

// With any algorithm, random turns are taken from those that can be next. Each turn
// extends the run, and the text of the run repeats it. A turn that cannot be next is
// refused with its reason.
func TestRandomSchedules(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	taken, refused := 0, 0
	for _, text := range []string{
		"algorithm: lamport\nn: 3\n",
		"algorithm: maekawa\nn: 3\nlinks: {fifo: false, delay: {uniform: [0.5, 1.5]}}\n",
		"algorithm: suzuki-kasami\nn: 3\nworkload: {regime: saturated}\nlimit: {events: 500}\n",
		"algorithm: bully\nn: 3\nfaults: [{at: 3.2, crash: 3}]\nworkload: {commands: [{at: 1, campaign: 1}]}\n",
		"algorithm: ricart-agrawala\nn: 3\nlinks: {drop: 0.1, delay: {uniform: [0.5, 1.5]}}\nfaults: [{at: 5.2, pause: 2, for: 4}, {at: 8.5, crash: 1, for: 3}]\nworkload: {commands: [{at: 2, acquire: 3}]}\n",
		"algorithm: heartbeat\nn: 3\nlimit: {time: 100}\n",
		"algorithm: raymond\nn: 4\nworkload: {regime: idle}\nlimit: {events: 500}\n",
		"algorithm: generals\nn: 4\nworkload: {commands: [{at: 1, propose: 1, by: 1}, {at: 3, propose: 1, by: 2}]}\n",
	} {
		for _, after := range []string{"", "after: 2.5, ", "record: 5, "} {
			var turns []string
			var before *journal.Journal
			for range 25 {
				full := text + "schedule: {" + after + "turns: [" + strings.Join(turns, ", ") + "]}\n"
				s, err := scenario.Parse("test", []byte(full))
				if err != nil {
					t.Fatal(err)
				}
				world, outcome, kept := held(t, s)
				if outcome.Result.Untaken != nil {
					t.Fatalf("%s\n%v", full, outcome.Unmet)
				}
				if before != nil && kept.Same(before, 0) != before.Len() {
					t.Fatalf("%s\nthe last turn changed what was before it", full)
				}
				before = kept
				var possible []string
				for _, c := range world.Choices() {
					if c.Why == "" {
						possible = append(possible, s.TurnText(&c.Turn))
						continue
					}
					refused++
					if refused%5 > 0 {
						continue
					}
					other, err := scenario.Parse("test", []byte(text+"schedule: {"+after+"turns: ["+strings.Join(append(turns[:len(turns):len(turns)], s.TurnText(&c.Turn)), ", ")+"]}\n"))
					if err != nil {
						t.Fatal(err)
					}
					if _, o, _ := held(t, other); o.Result.Untaken == nil || o.Result.Untaken.Why != c.Why {
						t.Fatalf("%s\n%s: refused with %v: must be %q", full, s.TurnText(&c.Turn), o.Unmet, c.Why)
					}
				}
				possible = append(possible, "wait 2.5")
				if outcome.Result.Reason == sim.Violated || outcome.Result.Reason == sim.LimitReached {
					break
				}
				turns = append(turns, possible[random.IntN(len(possible))])
				taken++
			}
			checkTurns(t, text+"schedule: {"+after+"turns: ["+strings.Join(turns, ", ")+"]}\n")
		}
	}
	if taken < 300 || refused < 200 {
		t.Errorf("%d turns were taken, %d refused", taken, refused)
	}
}

// checkTurns checks that turns read and written are the same, and that the run continues
// after them.
func checkTurns(t *testing.T, text string) {
	t.Helper()
	s, err := scenario.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.Config()
	rest := scenario.Schedule{Rest: true, Record: cfg.Schedule.Record}
	if cfg.Schedule.After >= 0 {
		rest.After = scenario.TimeText(cfg.Schedule.After, cfg.Process.D())
	}
	for i := range cfg.Schedule.Turns {
		rest.Turns = append(rest.Turns, s.TurnText(&cfg.Schedule.Turns[i]))
	}
	edited, line, err := scenario.SetSchedule("test", []byte(text), rest)
	if err != nil || line != strings.Count(text, "\n") {
		t.Fatalf("line %d: %v", line, err)
	}
	again, err := scenario.Parse("test", edited)
	if err != nil {
		t.Fatal(err)
	}
	other := again.Config()
	if !reflect.DeepEqual(other.Schedule.Turns, cfg.Schedule.Turns) || other.Schedule.After != cfg.Schedule.After || other.Schedule.Record != cfg.Schedule.Record {
		t.Errorf("%s\nbecomes\n%s", text, edited)
	}
	_, waits, short := held(t, s)
	_, goesOn, long := held(t, again)
	if long.Same(short, 0) != short.Len() || waits.Result.Reason == sim.Held && goesOn.Result.Reason == sim.Held {
		t.Errorf("%s\nthe run after the turns: %d of %d records are the same, it ends by %s", edited, long.Same(short, 0), short.Len(), goesOn.Result.Reason)
	}
}

func TestTurns(t *testing.T) {
	const head = "algorithm: lamport\nn: 3\n"
	for _, c := range []struct{ text, reason, unmet string }{
		{"schedule: {turns: [acquire 1, REQ 1>2, REPLY 2>1]}\n", "held", ""},
		{"schedule: {turns: [acquire 1, REQ 1>2, REPLY 2>1], rest: run}\n", "quiet", ""},
		{"schedule: {turns: []}\n", "quiet", ""},
		{"schedule: {turns: [release 1]}\n", "held", "turn 1, release 1: the client neither waits nor is inside"},
		{"schedule: {turns: [acquire 1, acquire 1]}\n", "held", "turn 2, acquire 1: the client waits"},
		{"schedule: {turns: [acquire 1, REQ 2>1]}\n", "held", "turn 2, REQ 2>1: no such message is in flight"},
		{"schedule: {turns: [acquire 1, acquire 2, REQ 1>2, REPLY 2>1]}\n", "held", "turn 4, REPLY 2>1: an older REQ is on this link, and links keep the order"},
		{"schedule: {turns: [acquire 1, acquire 2, REQ 1>2, REPLY 2>1 overtake]}\n", "held", ""},
		{"schedule: {turns: [acquire 1, acquire 2, REQ 1>2, lose REQ 2>1, REPLY 2>1]}\n", "held", ""},
		{"schedule: {turns: [acquire 1, REQ 1>2]}\nfaults: [{at: 1.5, crash: 2}]\n", "held", "turn 2, REQ 1>2: receiver is down: it would be lost"},
		{"schedule: {turns: [acquire 1, REQ 1>2]}\nfaults: [{at: 1.5, pause: 2}]\n", "held", "turn 2, REQ 1>2: 2 is paused"},
	} {
		s, err := scenario.Parse("test", []byte(head+c.text))
		if err != nil {
			t.Fatal(err)
		}
		_, o, _ := held(t, s)
		if o.Result.Reason.String() != c.reason || strings.Join(o.Unmet, "; ") != c.unmet {
			t.Errorf("%sends by %s: %v", c.text, o.Result.Reason, o.Unmet)
		}
	}
	for turn, want := range map[string]string{
		"REQ 1>9": "9: no such label", "REQQ 1>2": `did you mean "REQ"`, "REQ 1>2 soon": "must be one such as", "jump 3": "must be one such as",
		"fire retry 1": "no timer", "wait": "must be one such as", "suspect 1": "must be one such as", "acquire one": "must be one such as",
	} {
		_, err := scenario.Parse("test", []byte(head+fmt.Sprintf("schedule:\n  turns:\n    - %s\n", turn)))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "test:5:") {
			t.Errorf("%s: %v", turn, err)
		}
	}
}

func TestSetSchedule(t *testing.T) {
	s := scenario.Schedule{After: "3", Turns: []string{"acquire 1"}, Rest: true}
	const block = "schedule:\n  after: 3\n  rest: run\n  turns:\n    - acquire 1\n"
	for _, c := range []struct{ name, before, after string }{
		{"none yet", "algorithm: lamport\nn: 3\n# the end\n", "algorithm: lamport\nn: 3\n" + block + "# the end\n"},
		{"another", "algorithm: lamport\nschedule: {turns: [acquire 2]} # mine\n\n# n\nn: 3\n", "algorithm: lamport\n" + block + "\n# n\nn: 3\n"},
		{"its own", block + "algorithm: lamport\nn: 3\n", block + "algorithm: lamport\nn: 3\n"},
		{"in braces", "{algorithm: lamport, n: 3}\n", "{schedule: {after: 3, rest: run, turns: [acquire 1]}, algorithm: lamport, n: 3}\n"},
	} {
		got, line, err := scenario.SetSchedule("test", []byte(c.before), s)
		if err != nil || string(got) != c.after || !strings.Contains(strings.Split(string(got), "\n")[line-1], "schedule") {
			t.Errorf("%s: line %d, %v\n%s\nit must be\n%s", c.name, line, err, got, c.after)
		}
	}
	const plain = "algorithm: lamport\nn: 3\n"
	got, _, err := scenario.SetSchedule("test", []byte(plain), scenario.Schedule{Record: 4, Turns: []string{"acquire 1"}})
	if err != nil || string(got) != plain+"schedule:\n  record: 4\n  turns:\n    - acquire 1\n" {
		t.Errorf("after a record: %v\n%s", err, got)
	}
	if _, err := scenario.Parse("test", []byte(plain+"schedule: {after: 1, record: 4, turns: []}\n")); err == nil || !strings.Contains(err.Error(), "must be one of them") {
		t.Errorf("after and record: %v", err)
	}
	if _, _, err := scenario.SetSchedule("test", []byte("algorithm: lamport\nn: 3\n"), scenario.Schedule{Turns: []string{"dance"}}); err == nil {
		t.Error("a dance is accepted")
	}
}
