package sim_test

import (
	"strings"
	"testing"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// Each judge finds the violation of a machine with a deliberate flaw, and nothing in the
// runs of a correct one.
func TestJudgesCanFail(t *testing.T) {
	for _, test := range []struct {
		name  string
		judge sim.Judge
		rules func(m *probe, ev *process.Event, fx *process.Effects)
		want  string // in the violation; empty: none
	}{
		{"everybody enters", sim.AtMost(1), grantAtOnce, "2 entered while 1 was inside"},
		{"two may enter", sim.AtMost(2), grantAtOnce, "3 entered while 1, 2 were inside: at most 2 may be"},
		{"three may enter", sim.AtMost(3), grantAtOnce, ""},
		{"same fence", sim.FencesGrow, grantAtOnce, "2 entered with fence 1: an earlier entry had fence 1"},
		{"same fence, causally", sim.FencesGrowCausally, grantAtOnce, "2 entered with fence 1: another entry had the same fence"},
		{"growing fences", sim.FencesGrow, queued(func(turn uint64) uint64 { return turn }), ""},
		{"growing fences, causally", sim.FencesGrowCausally, queued(func(turn uint64) uint64 { return turn }), ""},
		{"falling fences", sim.FencesGrow, queued(func(turn uint64) uint64 { return 9 - turn }), "fence 7: an earlier entry had fence 8"},
		{"falling fences, causally", sim.FencesGrowCausally, queued(func(turn uint64) uint64 { return 9 - turn }),
			"fence 7: an entry that happened before had fence 8"},
		{"nobody enters", sim.Progress, silent, "1, 2, 3 wait forever: no event is enabled"},
		{"everybody enters at last", sim.Progress, queued(func(turn uint64) uint64 { return turn }), ""},
		{"nobody enters, but timers run", sim.Progress, busyWaiting, "1, 2, 3 wait, and nobody has entered for"},
		{"stubborn", sim.BypassSince(5, process.SinceRequest), onlyFirst, "others entered 6 times while 2 waited: the bound is 5"},
		{"alive", sim.BypassSince(2, process.SinceRequest), queued(func(turn uint64) uint64 { return turn }), ""},
		{"one by one", sim.BypassSince(0, process.SinceRequest), queued(func(turn uint64) uint64 { return turn }), "others entered once while 3 waited: the bound is 0"},
		{"one by one, counted from arrival", sim.BypassSince(0, process.SinceArrival), overtakes(0), "others entered once while 2 waited: the bound is 0"},
		{"overtakes before it arrives", sim.BypassSince(0, process.SinceArrival), overtakes(20 * ms), ""},
		{"overtakes once it is known", sim.BypassSince(0, process.SinceKnown), overtakes(0), "others entered once while 2 waited: the bound is 0"},
		{"overtakes before it is known", sim.BypassSince(0, process.SinceKnown), overtakes(20 * ms), ""},
		{"last first", sim.HappenedBeforeOrder, causal(2, 1), "3 entered before 2, whose request happened before its own"},
		{"first first", sim.HappenedBeforeOrder, causal(1, 2), ""},
		{"last stamp first", sim.TimestampOrder, causal(2, 1), "2 entered after 3, whose request has a later time stamp"},
		{"first stamp first", sim.TimestampOrder, causal(1, 2), ""},
		{"last come", sim.ArrivalOrder, causal(2, 1), "3 entered before 2, whose request arrived earlier"},
		{"first come", sim.ArrivalOrder, causal(1, 2), ""},
		{"a token of its own", sim.OneToken, tokens(func(m *probe, fx *process.Effects) { m.passOn(2, 1, fx) }), "2 sent a token that it did not have: the token is with 1"},
		{"enters without it", sim.OneToken, tokens(func(_ *probe, fx *process.Effects) { fx.Grant(1) }), "2 entered without the token: it is with 1"},
		{"the token twice", sim.OneToken, tokens(nil, 1, 2), "1 sent a token that it did not have: the token is on its way from 1 to 2"},
		{"the token again", sim.OneToken, tokens(nil, 1, 1), ""},
		{"the token goes round", sim.OneToken, tokens(nil, 1), ""},
		{"goes round forever", sim.Quiescence, circulates(false), "still sends NOTE"},
		{"goes round for a while", sim.Quiescence, circulates(true), ""},
		{"grants unasked", nil, unasked, "1 was granted an entry that it did not wait for"},
		{"asserts", nil, asserts, "what must not be"},
		{"two leaders", sim.LeaderAgreement, elects(func(m *probe) process.ID { return m.self }, 1), "2 elected 2 in round 1: another process elected 1"},
		{"two leaders in a round", sim.RoundAgreement, elects(func(m *probe) process.ID { return m.self }, 1), "2 leads in round 1 for 2: 1 does for another process"},
		{"one leader in a round", sim.RoundAgreement, elects(func(*probe) process.ID { return 2 }, 1), ""},
		{"a leader per term", sim.LeaderAgreement, elects(func(m *probe) process.ID { return m.self }, 0), ""},
		{"the worst leads", sim.LeaderValidity, elects(func(*probe) process.ID { return 0 }, 1), "1 elected 1, but 3 is up"},
		{"the best leads", sim.LeaderValidity, elects(func(*probe) process.ID { return 2 }, 1), ""},
		{"two lead at once", sim.SingleLeader, elects(func(m *probe) process.ID { return m.self }, 0), "2 leads while 1 leads"},
		{"one follows the other", sim.SingleLeader, elects(func(m *probe) process.ID { return m.self &^ 1 }, 0), "3 leads while 1 leads"},
		{"one leads at once", sim.SingleLeader, elects(func(*probe) process.ID { return 2 }, 1), ""},
		{"two lead at the end", sim.LeaderTermination, elects(func(m *probe) process.ID { return m.self }, 0), "1 ended with leader 1, 2 with leader 2"},
		{"one never learns", sim.LeaderTermination, electsTwice, "3 has not elected a leader"},
		{"all learn", sim.LeaderTermination, elects(func(*probe) process.ID { return 2 }, 1), ""},
		{"decides otherwise", sim.JudgeOf(process.ValueAgreement), decides(func(m *probe) int64 { return int64(m.self) }), "2 decided 1: another process decided 0"},
		{"decides alike", sim.JudgeOf(process.ValueAgreement), decides(func(*probe) int64 { return 4 }), ""},
		{"suspects the living", sim.StrongAccuracy, suspects, "1 suspects 2, which is up"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := judged(test.rules)
			cfg.Judges = []sim.Judge{}
			if test.judge != nil {
				cfg.Judges = []sim.Judge{test.judge}
			}
			checkVerdict(t, run(t, cfg), test.want)
		})
	}
}

// judged is a run of three processes that ask to enter at 1, 2 and 3 ms.
func judged(rules func(m *probe, ev *process.Event, fx *process.Effects)) sim.Config {
	var commands []sim.Command
	for p := range process.ID(3) {
		at := process.Duration(p+1) * ms
		commands = append(commands, sim.Command{At: at, Process: p, Kind: process.Acquire},
			sim.Command{At: at, Process: p, Kind: process.Campaign})
	}
	for i := range 10 {
		commands = append(commands, sim.Command{At: process.Duration(30+20*i) * ms, Process: 0, Kind: process.Acquire})
	}
	return sim.Config{
		Spec: probeSpec(rules), Process: process.Config{N: 3}, Workload: sim.Workload{Commands: commands},
		Limit: sim.Limit{Events: 100_000},
	}
}

func checkVerdict(t *testing.T, r *sim.Result, want string) {
	t.Helper()
	switch {
	case want == "" && len(r.Violations) > 0:
		t.Errorf("unjust: %s", r.Violations[0])
	case want != "" && len(r.Violations) == 0:
		t.Errorf("nothing was found, want %q; ended by %s", want, r.Reason)
	case want != "" && !strings.Contains(r.Violations[0].Text, want):
		t.Errorf("found %q, want %q", r.Violations[0].Text, want)
	}
}

type rules = func(m *probe, ev *process.Event, fx *process.Effects)

func grantAtOnce(_ *probe, ev *process.Event, fx *process.Effects) {
	if ev.Kind == process.Acquire {
		fx.Grant(1)
	}
}

// queued lets process 0 give turns in the order of asking; the turns have
// fences.
func queued(fence func(turn uint64) uint64) rules {
	var queue []process.ID
	busy, turn := false, uint64(0)
	next := func(m *probe, fx *process.Effects) {
		if busy = len(queue) > 0; !busy {
			return
		}
		turn++
		p := queue[0]
		queue = queue[1:]
		if p == m.self {
			fx.Grant(process.Fence(fence(turn)))
			return
		}
		fx.Send(p, process.Message{Type: note, Fence: process.Fence(fence(turn))})
	}
	ask := func(m *probe, p process.ID, fx *process.Effects) {
		if queue = append(queue, p); !busy {
			next(m, fx)
		}
	}
	return func(m *probe, ev *process.Event, fx *process.Effects) {
		switch {
		case ev.Kind == process.Acquire && m.self == 0:
			ask(m, 0, fx)
		case ev.Kind == process.Acquire:
			fx.Send(0, process.Message{Type: request, Seq: 1})
		case ev.Kind == process.Release && m.self == 0:
			next(m, fx)
		case ev.Kind == process.Release:
			fx.Send(0, process.Message{Type: note})
		case ev.Kind == process.Deliver && ev.Message.Type == request:
			ask(m, ev.Message.From, fx)
		case ev.Kind == process.Deliver && m.self == 0:
			next(m, fx)
		case ev.Kind == process.Deliver:
			fx.Grant(ev.Message.Fence)
		}
	}
}

func silent(*probe, *process.Event, *process.Effects) {}

func busyWaiting(_ *probe, ev *process.Event, fx *process.Effects) {
	if ev.Kind == process.Acquire || ev.Kind == process.Fire {
		fx.Arm(1, 500*ms, 500*ms)
	}
}

// onlyFirst serves process 0 alone.
func onlyFirst(m *probe, ev *process.Event, fx *process.Effects) {
	if m.self == 0 {
		grantAtOnce(m, ev, fx)
	}
}

// causal lets 1 and 2 ask by messages to 0 and to each other, with time stamps 1
// and 2, so that the request of 1 happened before that of 2; then they enter in
// the given order. Process 0 does as it likes.
func causal(order ...process.ID) rules {
	return func(m *probe, ev *process.Event, fx *process.Effects) {
		switch {
		case m.self == 0:
			grantAtOnce(m, ev, fx)
		case ev.Kind == process.Acquire:
			fx.Broadcast(process.Message{Type: request, Clock: uint64(m.self), Seq: 1})
			if m.self == 2 {
				fx.Arm(1, 5*ms, 5*ms)
			}
		case ev.Kind == process.Fire && m.self == order[0], ev.Kind == process.Deliver && ev.Message.Type == note && m.self == order[0]:
			fx.Grant(1)
		case ev.Kind == process.Fire:
			fx.Send(order[0], process.Message{Type: note})
		case ev.Kind == process.Release && m.self == order[0]:
			fx.Send(order[1], process.Message{Type: note})
		case ev.Kind == process.Deliver && ev.Message.Type == note:
			fx.Grant(2)
		}
	}
}

// overtakes lets 1 ask by messages that leave some time after its request, and
// enter 7 ms after that; 2 enters 5 ms after its own request. 0, the coordinator,
// enters as it likes.
func overtakes(late process.Duration) rules {
	return func(m *probe, ev *process.Event, fx *process.Effects) {
		switch {
		case m.self == 0:
			grantAtOnce(m, ev, fx)
		case ev.Kind == process.Acquire && m.self == 1:
			fx.Arm(1, late+1, late+1)
		case ev.Kind == process.Acquire:
			fx.Arm(1, 5*ms, 5*ms)
		case ev.Kind == process.Fire && m.self == 1 && m.counted == 0:
			m.counted++
			fx.Broadcast(process.Message{Type: request, Seq: 1})
			fx.Arm(1, 7*ms, 7*ms)
		case ev.Kind == process.Fire:
			fx.Grant(1)
		}
	}
}

const token process.Type = 3

func (m *probe) passOn(to process.ID, number uint64, fx *process.Effects) {
	fx.Send(to, process.Message{Type: token, Seq: number})
}

// tokens lets 0 send the only token to each of some processes when it asks, and lets 1
// break a rule when it asks. A process that gets the token keeps it.
func tokens(wrong func(m *probe, fx *process.Effects), to ...process.ID) rules {
	return func(m *probe, ev *process.Event, fx *process.Effects) {
		switch {
		case ev.Kind != process.Acquire:
		case m.self == 0:
			for _, p := range to {
				m.passOn(p, 1, fx)
			}
		case m.self == 1 && wrong != nil:
			wrong(m, fx)
		}
	}
}

// circulates sends a note around, forever or a hundred times.
func circulates(stops bool) rules {
	return func(m *probe, ev *process.Event, fx *process.Effects) {
		n := uint64(0)
		switch {
		case ev.Kind == process.Deliver:
			n = ev.Message.Seq
		case ev.Kind != process.Campaign || m.self != 0:
			return
		}
		if n < 100 || !stops {
			fx.Send((m.self+1)%3, process.Message{Type: note, Seq: n + 1})
		}
	}
}

func unasked(_ *probe, ev *process.Event, fx *process.Effects) {
	if ev.Kind == process.Start {
		fx.Grant(1)
	}
}

func asserts(_ *probe, ev *process.Event, _ *process.Effects) {
	process.Assert(ev.Kind != process.Acquire, "what must not be")
}

func elects(leader func(m *probe) process.ID, round uint64) rules {
	return func(m *probe, ev *process.Event, fx *process.Effects) {
		if ev.Kind == process.Campaign {
			r := round
			if r == 0 {
				r = uint64(m.self) + 1
			}
			fx.Elect(leader(m), process.MakeTerm(r, 0))
		}
	}
}

func electsTwice(m *probe, ev *process.Event, fx *process.Effects) {
	if ev.Kind == process.Campaign && m.self < 2 {
		fx.Elect(2, process.MakeTerm(1, 2))
	}
}

func decides(value func(m *probe) int64) rules {
	return func(m *probe, ev *process.Event, fx *process.Effects) {
		if ev.Kind == process.Acquire {
			fx.Decide(value(m))
		}
	}
}

func suspects(m *probe, ev *process.Event, fx *process.Effects) {
	if ev.Kind == process.Campaign {
		fx.Suspect(1)
	}
}

// A crash justifies one suspicion, even after the restart. It does not justify two, or
// one before the crash.
func TestAccuracyAfterRestart(t *testing.T) {
	suspect := func(m *probe, ev *process.Event, fx *process.Effects) {
		if ev.Kind == process.Load {
			fx.Suspect(1)
		}
	}
	for _, test := range []struct {
		at   []process.Duration
		want string
	}{
		{[]process.Duration{15 * ms}, ""},
		{[]process.Duration{25 * ms}, ""},
		{[]process.Duration{15 * ms, 25 * ms}, "1 suspects 2, which is up (at t=25000000"},
		{[]process.Duration{5 * ms}, "1 suspects 2, which is up (at t=5000000"},
	} {
		r := run(t, sim.Config{
			Spec: probeSpec(suspect), Process: process.Config{N: 2}, Judges: []sim.Judge{sim.StrongAccuracy},
			Workload: sim.Workload{Commands: loads(0, test.at...)},
			Faults:   []sim.Fault{{At: 10 * ms, Kind: sim.Crash, Process: 1, For: 10 * ms}},
		})
		if got := len(r.Violations) > 0; got != (test.want != "") || got && !strings.Contains(r.Violations[0].String(), test.want) {
			t.Errorf("suspected at %d: %v, want %q", test.at, r.Violations, test.want)
		}
	}
}

// The order of arrival ends with its coordinator.
func TestArrivalOrderEnds(t *testing.T) {
	cfg := judged(causal(2, 1))
	cfg.Judges = []sim.Judge{sim.ArrivalOrder}
	cfg.Faults = []sim.Fault{{At: 5 * ms, Kind: sim.Crash, Process: 0}}
	checkVerdict(t, run(t, cfg), "")
}

// A lost token is missing at the end. A token that a crash may have lost does not count
// as missing.
func TestTokenIsMissing(t *testing.T) {
	for _, test := range []struct {
		fault sim.Fault
		want  string
	}{
		{sim.Fault{Kind: sim.Lose, Message: "TOKEN", From: process.None, To: process.None}, "the token from 1 to 2 never arrived"},
		{sim.Fault{Kind: sim.Crash, Process: 1, At: 1}, "never arrived"},
		{sim.Fault{Kind: sim.Crash, Process: 1, At: ms + 1}, ""},
		{sim.Fault{Kind: sim.Crash, Process: 0, At: ms + 1}, ""},
	} {
		cfg := judged(tokens(nil, 1))
		cfg.Judges = []sim.Judge{sim.OneToken}
		cfg.Faults = []sim.Fault{test.fault}
		checkVerdict(t, run(t, cfg), test.want)
	}
}

// What an algorithm claims about bypassing is watched from the moment that it
// names.
func TestBypassAsClaimed(t *testing.T) {
	for late, want := range map[process.Duration]string{0: "the bound is 0", 20 * ms: ""} {
		cfg := judged(overtakes(late))
		cfg.Judges = nil
		cfg.Spec.Claims.Properties = []process.Claim{{
			Property: process.BoundedBypass, Since: process.SinceArrival,
			Bound: &process.Formula{Eval: func(p process.Params) float64 { return float64(p.N - 3) }},
		}}
		checkVerdict(t, run(t, cfg), want)
	}
}

// If the run may continue, several violations are collected.
func TestKeepGoing(t *testing.T) {
	cfg := judged(grantAtOnce)
	cfg.Judges = []sim.Judge{sim.FencesGrow}
	if r := run(t, cfg); len(r.Violations) != 1 || r.Reason != sim.Violated {
		t.Errorf("%d violations, ended by %s, want 1 violated", len(r.Violations), r.Reason)
	}
	cfg.KeepGoing = 5
	if r := run(t, cfg); len(r.Violations) != 5 || r.Reason != sim.Violated {
		t.Errorf("%d violations, ended by %s, want 5 violated", len(r.Violations), r.Reason)
	}
	cfg.KeepGoing = 1000
	if r := run(t, cfg); len(r.Violations) != 12 || r.Reason != sim.Quiet {
		t.Errorf("%d violations, ended by %s, want 12 quiet", len(r.Violations), r.Reason)
	}
}

// The trace shows the violation: the record that a violation names is the step
// in which it was seen.
func TestViolationNamesItsRecord(t *testing.T) {
	cfg := judged(grantAtOnce)
	cfg.Judges = []sim.Judge{sim.AtMost(1)}
	plain := run(t, cfg)
	cfg.Trace = &records{}
	withTrace := run(t, cfg)
	if plain.Violations[0] != withTrace.Violations[0] {
		t.Fatalf("%v without a trace, %v with it", plain.Violations, withTrace.Violations)
	}
	list := cfg.Trace.(*records).list
	last := list[len(list)-1]
	if last.ID != plain.Violations[0].Record || last.Process != 2 || last.Kind != "acquire" {
		t.Errorf("violation at record %d; the last record is %s", plain.Violations[0].Record, last.String())
	}
}
