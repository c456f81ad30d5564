// Package floodset is consensus in synchronous rounds: every process floods what it
// knows, and decides the least value.
//
// # Problem and idea
//
// Every process proposes a value. All processes that stay up must decide the same
// proposed value, although up to f processes crash, perhaps in the middle of a
// multicast. If all processes knew the same set of values, each could decide the least
// of them. So all processes work in rounds, and in each round a process sends all
// others what it has learned. A crash may leave a value with some processes and not
// with others. But after a round without a crash all processes that are up know the
// same set, and nothing later makes their sets differ. At least one of f+1 rounds is
// without a crash.
//
// # Rules
//
//	R1  propose v: W := {v}. Begin round 1: VALUES(1, W) to all, wait one round.
//	R2  on VALUES(r, V) in round r: keep V until the round is over.
//	    R2a r is a later round: keep V until that round. R2b r is an earlier round: the
//	    message is too late, ignore it.
//	R3  a round is over: add the received values to W. If it was round f+1, decide
//	    min(W).
//	    R3a Otherwise begin the next round: send the values that are new in this
//	    round. If there are none, send nothing.
//	R4  mode early: send W in every round, so that silence means a crash.
//	    R4a If as many processes sent in this round as in the one before, or one of
//	    them sent LAST: send LAST(r, W) in the next round, then decide min(W).
//
// # Why it is safe
//
// Take the first round in which no process crashes. Every process that is up at its end
// has received the same messages in it, and has sent all that it had learned before. So
// their sets are equal, and remain equal. In mode early, a process that has heard of
// the same processes in two rounds has missed nothing: every process that crashed had
// sent it everything before. It decides only after it has sent its set to all. So no
// other process can decide another value, even if the first crashes at once.
//
// # Cost
//
// N(N-1) messages in each round in which every process has news. If no process crashes
// and the values differ, the first round brings all values, the second repeats them,
// and no messages are sent in the others: 2N(N-1), if f >= 1. At most N(N-1)(f+1). The
// decision comes after f+1 rounds. In mode early it comes after one round if no process
// crashes, and after at most c+1 rounds if c processes do.
//
// # Assumptions and deviations
//
// A timer ends each round, which is a strong assumption: a message that arrives after
// its round breaks agreement, and so does crash number f+1. The processes propose
// within less than one delay of each other, so a round lasts twice the longest delay. A
// process that does not propose in time counts as crashed. A process that restarts does
// not take part. More than N rounds are never useful: with f >= N there are N.
//
// The documents only state the problem. Lynch's FloodSet sends W in every round;
// sending only news is her optimization. Mode early is the rule of Dolev, Reischuk and
// Strong in the form of Raynal.
//
// Sources: N. Lynch: Distributed Algorithms, 1996, chapter 6; D. Dolev, R. Reischuk,
// H. R. Strong: Early stopping in Byzantine agreement, 1990; M. Raynal: Consensus in
// synchronous systems: a concise guided tour, 2002; [D0].
package floodset

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "floodset",
	Title:     "FloodSet: consensus in synchronous rounds",
	Paper:     "N. Lynch: Distributed Algorithms, Morgan Kaufmann, 1996, chapter 6",
	Documents: []string{"[D0]", "[D1]", "[D2]"},
	Family:    process.Agreement,
	Messages: []process.MessageSpec{
		{Name: "VALUES", Fields: content},
		{Name: "LAST", Fields: content},
	},
	Timers: []string{"round"},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "propose: send the value to all, wait one round"},
		{Name: "R2", Text: "values of this round: keep them until it is over"},
		{Name: "R2a", Text: "values of a later round: keep them until then"},
		{Name: "R2b", Text: "values of an earlier round: too late, ignore them"},
		{Name: "R3", Text: "the last round is over: decide the least value"},
		{Name: "R3a", Text: "a round is over: send its news in the next one"},
		{Name: "R4", Text: "mode early: send all values in every round"},
		{Name: "R4a", Text: "mode early: no process is missing, send the values for the last time and decide"},
	},
	Options: []process.Option{
		{Name: "mode", Default: full, Values: []string{full, early}, Text: "whether a process decides as soon as it has missed nothing"},
		{Name: "f", Default: "1", Min: 0, Max: 1_000_000, Text: "number of crashes that it survives; there are f+1 rounds"},
		{Name: "round", Default: "2", Min: 1, Max: 1_000_000, Text: "length of a round, in D; less than 2 only if all processes propose at the same moment"},
	},
	Needs:  process.Needs{Reliable: true, NoDuplication: true, Synchrony: true},
	Claims: claims,
	New:    Flaw{}.New,
}

const calm = "all processes propose different values at the same moment; no process crashes"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ValueAgreement, When: atMostF},
		{Property: process.ValueValidity},
		{Property: process.Decision, When: "all processes propose within less than one delay"},
		{Property: process.DecideOnce},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerDecision, Regime: process.AllStart, When: calm, Exact: &process.Formula{
			Text: "2N(N-1); N(N-1) if f = 0", Eval: func(p process.Params) float64 { return float64(min(p.F+1, 2) * p.N * (p.N - 1)) }}},
		{Metric: process.MessagesPerDecision, Regime: process.Worst, When: atMostF, Hi: &process.Formula{
			Text: "N(N-1)(f+1)", Eval: func(p process.Params) float64 { return float64(rounds(p) * p.N * (p.N - 1)) }}},
		{Metric: process.DecisionTime, Regime: process.AllStart, Mode: full, When: calm + ", a round is 2D", Exact: &process.Formula{
			Text: "f+1 rounds = 2(f+1)", Eval: func(p process.Params) float64 { return float64(2 * rounds(p)) }}},
		{Metric: process.DecisionTime, Regime: process.AllStart, Mode: early, When: calm + ", a round is 2D", Exact: process.Constant("one round = 2", 2)},
	},
	Survives: []process.Survival{
		{Fault: process.CrashAny, When: atMostF, How: "in one of f+1 rounds no process crashes"},
	},
}

const atMostF = "at most f processes crash"

func rounds(p process.Params) int { return min(p.F, p.N-1) + 1 }

var content = []process.FieldUse{{Field: process.FieldSeq, Symbol: "round"}, {Field: process.FieldVector, Symbol: "W"}}

// The values of the mode option.
const (
	full  = "full"
	early = "early"
)

const (
	values process.Type = iota + 1
	last
)

const roundTimer process.Timer = 1

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR2a
	ruleR2b
	ruleR3
	ruleR3a
	ruleR4
	ruleR4a
)

// heard is what one process sent in one round.
type heard struct {
	round  uint64
	last   bool
	values []uint64
}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	OneRoundLess bool // f rounds instead of f+1
	OwnValueOnly bool // R3a is missing: no process passes on what it has learned
	DecidesFirst bool // R4a: decides before it sends LAST
}

type machine struct {
	c      *process.Config
	flaw   Flaw
	early  bool
	rounds uint64           // the number of rounds
	length process.Duration // of a round

	round  uint64   // the present one; 0: not yet proposed
	over   bool     // it has decided, or has restarted
	known  []uint64 // W, the values as they are encoded, in the order in which they came
	heard  []heard  // of this round and of later ones, in the order of arrival
	before int      // mode early: number of senders in the round before, itself included

	scratch []uint64 // the news of a round
}

// New makes a machine with the flaw.
func (flaw Flaw) New(_ process.ID, c *process.Config) process.Machine {
	rounds := min(c.IntOption("f", 1), c.N-1) + 1
	if flaw.OneRoundLess {
		rounds = max(1, rounds-1)
	}
	return &machine{
		c: c, flaw: flaw, rounds: uint64(rounds),
		early:  c.Option("mode", full) == early,
		length: process.Duration(c.IntOption("round", 2)) * c.D(),
	}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Restart:
		m.over = true
	case process.Propose:
		m.propose(ev.Value, fx)
	case process.Deliver:
		m.onValues(ev.Message, fx)
	case process.Fire:
		m.endRound(fx)
	}
}

// propose is R1. A process proposes once.
func (m *machine) propose(value int64, fx *process.Effects) {
	if m.round > 0 || m.over {
		return
	}
	fx.Rule(ruleR1)
	m.learn(uint64(value))
	m.before = m.c.N
	m.begin(m.known, fx)
}

// begin begins the next round, with the given values to send.
func (m *machine) begin(say []uint64, fx *process.Effects) {
	m.round++
	if len(say) > 0 {
		fx.Broadcast(process.Message{Type: values, Seq: m.round, Vector: say})
	}
	fx.Arm(roundTimer, m.length, m.length)
}

// onValues is R2.
func (m *machine) onValues(msg *process.Message, fx *process.Effects) {
	if m.over || msg.Seq < m.round {
		fx.Rule(ruleR2b)
		return
	}
	rule := ruleR2
	if msg.Seq > m.round {
		rule = ruleR2a
	}
	fx.Rule(rule)
	m.heard = append(m.heard, heard{msg.Seq, msg.Type == last, append([]uint64(nil), msg.Vector...)})
}

// endRound is R3, and R4a.
func (m *machine) endRound(fx *process.Effects) {
	senders, final := m.takeIn()
	missedNothing := m.early && (senders == m.before || final)
	m.before = senders
	switch {
	case m.round == m.rounds:
		fx.Rule(ruleR3)
		m.decide(fx)
	case missedNothing:
		m.stopEarly(fx)
	case m.early:
		fx.Rule(ruleR4)
		m.begin(m.known, fx)
	default:
		fx.Rule(ruleR3a)
		if m.flaw.OwnValueOnly {
			m.scratch = nil
		}
		m.begin(m.scratch, fx)
	}
}

// takeIn adds what was received in this round. It returns the number of senders, this
// process included, and whether one of them said that it decides.
func (m *machine) takeIn() (senders int, final bool) {
	senders, m.scratch = 1, m.scratch[:0]
	for _, h := range m.heard {
		if h.round > m.round {
			continue
		}
		senders++
		final = final || h.last
		for _, v := range h.values {
			if m.learn(v) {
				m.scratch = append(m.scratch, v)
			}
		}
	}
	m.heard = slices.DeleteFunc(m.heard, func(h heard) bool { return h.round == m.round })
	return senders, final
}

// learn adds a value to W and reports whether it is new.
func (m *machine) learn(value uint64) bool {
	if slices.Contains(m.known, value) {
		return false
	}
	m.known = append(m.known, value)
	return true
}

// stopEarly is R4a. It decides after it has sent: a process that crashes in between has
// decided nothing.
func (m *machine) stopEarly(fx *process.Effects) {
	fx.Rule(ruleR4a)
	m.round++
	if m.flaw.DecidesFirst {
		fx.Decide(m.least())
	}
	fx.Broadcast(process.Message{Type: last, Seq: m.round, Vector: m.known})
	if m.flaw.DecidesFirst {
		m.rest()
		return
	}
	m.decide(fx)
}

func (m *machine) decide(fx *process.Effects) {
	fx.Decide(m.least())
	m.rest()
}

// rest forgets what is not needed after the decision.
func (m *machine) rest() { m.over, m.known, m.heard, m.before = true, nil, nil, 0 }

func (m *machine) least() int64 {
	least := int64(m.known[0])
	for _, v := range m.known {
		least = min(least, int64(v))
	}
	return least
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	f.Uint("round", &m.round)
	f.Bool("over", &m.over)
	f.Uints("W", &m.known)
	process.List(f, "heard", &m.heard, heardFields)
	f.Count("before", &m.before)
}

func heardFields(f *process.Fields, h *heard) {
	f.Uint("round", &h.round)
	f.Bool("last", &h.last)
	f.Uints("values", &h.values)
}
