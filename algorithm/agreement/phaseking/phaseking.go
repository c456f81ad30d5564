// Package phaseking is consensus while some processes lie, with short
// messages: the phase king algorithm for N > 4m.
//
// # Problem and idea
//
// Every process proposes a value. Up to m processes are Byzantine: they send anything
// to anyone, or nothing. All correct processes must decide the same value. If all of
// them propose the same value, they must decide that one. Package generals can do this,
// but its messages grow with N to the power of m. Here every message is one value, at
// the price of more rounds and more processes.
//
// There are m+1 phases, each with another king, so at least one king is correct. In a
// phase all processes exchange the values that they prefer. A process that sees a value
// with an overwhelming majority keeps it; all others take the value of the king. A
// correct king makes all processes agree, and once all agree, no king can change that.
//
// # Rules
//
//	R1  propose v: prefer v. A process that proposes nothing prefers 0.
//	R2  the exchange of phase k begins: send PREFER(v) to all.
//	R3  a PREFER or KING of this round or the next: keep its value until the round is over.
//	    R3a If it is of an earlier round, or a KING from a process that is not king: ignore it.
//	R4  the exchange is over: maj := the value that more than N/2 prefer, or 0. A value that
//	    has not come counts as 0. R4a The king of the phase sends KING(maj) to all.
//	R5  the phase is over: prefer maj if more than N/2 + m prefer it, else the value of the
//	    king. R5a After phase m+1 decide the preferred value.
//
// # Why it is safe
//
// If all correct processes prefer v at the start of a phase, each sees v at least N-m
// times, which is more than N/2 + m because N > 4m. So all keep it, whatever the king
// says. Hence a value that all propose is decided, and agreement lasts once it is
// reached. It is reached in the phase of a correct king: if a correct process sees v
// more than N/2 + m times, then more than N/2 correct processes prefer v, so every
// process has maj = v, including the king. So a process gets the same value whether it
// keeps its majority or takes the value of the king.
//
// # Cost
//
// N(N-1) + (N-1) messages in each of the m+1 phases, in 2(m+1) rounds.
//
// # Assumptions and deviations
//
// Rounds are as in package generals. The kings are the processes of the first m+1
// ranks. This is the form with two rounds in each phase, which textbooks print as phase
// king; it needs N > 4m. The paper's version takes three rounds in each phase and N >
// 3m; the paper calls the version with two rounds phase queen. Values may be any
// numbers.
//
// Sources: P. Berman, J. A. Garay, K. J. Perry: Towards optimal distributed consensus,
// 1989; H. Attiya, J. Welch: Distributed Computing, 2004, section 5.2.5;
// [D1].
package phaseking

import (
	"cmp"
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "phase-king",
	Title:     "Phase king: consensus among Byzantine processes",
	Paper:     "P. Berman, J. A. Garay, K. J. Perry: Towards optimal distributed consensus, 30th Symposium on Foundations of Computer Science, 1989, doi:10.1109/SFCS.1989.63511",
	Documents: []string{"[D1]"},
	Family:    process.Agreement,
	Messages: []process.MessageSpec{
		{Name: "PREFER", Fields: content},
		{Name: "KING", Fields: content},
	},
	Timers: []string{"round"},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "propose: prefer the value"},
		{Name: "R2", Text: "a phase begins: send the preferred value to all"},
		{Name: "R3", Text: "a value of this round or the next: keep it"},
		{Name: "R3a", Text: "a value of an earlier round, or a KING from a process that is not king: ignore it"},
		{Name: "R4", Text: "the exchange is over: find the majority"},
		{Name: "R4a", Text: "the king sends it to all"},
		{Name: "R5", Text: "the phase is over: prefer an overwhelming majority, else the value of the king"},
		{Name: "R5a", Text: "the last phase is over: decide"},
	},
	Options: []process.Option{
		{Name: "m", Default: "1", Min: 0, Max: 1_000_000, Text: "number of Byzantine processes that it survives; there are m+1 phases"},
		{Name: "round", Default: "2", Min: 1, Max: 1_000_000, Text: "length of a round, in D; less than 2 only if all processes start at the same moment"},
	},
	Needs:  process.Needs{Reliable: true, NoDuplication: true, Synchrony: true},
	Claims: claims,
	Values: []string{"0", "1"},
	Lies: func(_ *process.Config, _ []process.ID, m *process.Message) [][]process.Message {
		return process.AnyValue(m, 2)
	},
	New: Flaw{}.New,
}

const (
	few  = "N > 4m, at most m processes are Byzantine or crash"
	calm = "no process is Byzantine"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ValueAgreement, When: few},
		{Property: process.Unanimity, When: few + ", all processes propose before the first round"},
		{Property: process.Decision},
		{Property: process.DecideOnce},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerDecision, Regime: process.AllStart, When: calm, Exact: &process.Formula{
			Text: "(m+1)(N-1)(N+1)", Eval: func(p process.Params) float64 { return float64((p.F + 1) * (p.N - 1) * (p.N + 1)) }}},
		{Metric: process.DecisionTime, Regime: process.AllStart, When: calm + "; a round is 2D, and proposals are made in the round before the first", Exact: &process.Formula{
			Text: "2m+3 rounds = 2(2m+3)", Eval: func(p process.Params) float64 { return float64(2 * (2*p.F + 3)) }}},
	},
	Survives: []process.Survival{
		{Fault: process.CrashAny, When: few, How: "a crash is silence, which is one of the things that a Byzantine process may do"},
	},
}

var content = []process.FieldUse{{Field: process.FieldSeq, Symbol: "round"}, {Field: process.FieldValue, Symbol: "v"}}

const (
	prefer process.Type = iota + 1
	king
)

const roundTimer process.Timer = 1

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR3
	ruleR3a
	ruleR4
	ruleR4a
	ruleR5
	ruleR5a
)

// vote is what a process sent in a round.
type vote struct {
	round uint64
	from  process.ID
	value int64
}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	OnePhaseLess bool // m phases instead of m+1
	ObeysKing    bool // R5: always takes the value of the king
	HalfIsEnough bool // R5: keeps every majority
}

type machine struct {
	self   process.ID
	c      *process.Config
	flaw   Flaw
	m      int
	rounds uint64           // two in each phase
	length process.Duration // of a round

	round     uint64 // the present one; 0: the first has not begun
	over      bool   // it has decided, or has restarted
	preferred int64
	maj       int64  // in the second round of a phase: the majority of the first
	mult      int    // the number of processes that prefer it
	votes     []vote // of this round and the next, sorted; a missing value is 0
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	faulty := c.IntOption("m", 1)
	phases := faulty + 1
	if flaw.OnePhaseLess {
		phases = max(1, phases-1)
	}
	return &machine{
		self: self, c: c, flaw: flaw, m: faulty, rounds: 2 * uint64(phases),
		length: process.Duration(c.IntOption("round", 2)) * c.D(),
	}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start:
		fx.Arm(roundTimer, m.length, m.length)
	case process.Restart:
		m.over = true
	case process.Propose:
		m.propose(ev.Value, fx)
	case process.Deliver:
		m.onVote(ev.Message, fx)
	case process.Fire:
		m.endRound(fx)
	}
}

// propose is R1.
func (m *machine) propose(value int64, fx *process.Effects) {
	if m.round > 0 || m.over {
		return
	}
	fx.Rule(ruleR1)
	m.preferred = value
}

// kingOf returns the king of the phase that a round belongs to.
func (m *machine) kingOf(round uint64) process.ID {
	return process.ID((round - 1) / 2 % uint64(m.c.N))
}

// exchanges reports whether a round is the first of its phase.
func exchanges(round uint64) bool { return round%2 == 1 }

// onVote is R3.
func (m *machine) onVote(msg *process.Message, fx *process.Effects) {
	late := msg.Seq < max(1, m.round) || msg.Seq > m.rounds
	if late || m.over || exchanges(msg.Seq) != (msg.Type == prefer) || msg.Type == king && msg.From != m.kingOf(msg.Seq) {
		fx.Rule(ruleR3a)
		return
	}
	fx.Rule(ruleR3)
	at, found := m.find(msg.Seq, msg.From)
	switch {
	case found:
		m.votes[at].value = msg.Value
	case msg.Value != 0:
		m.votes = slices.Insert(m.votes, at, vote{msg.Seq, msg.From, msg.Value})
	}
}

func (m *machine) find(round uint64, from process.ID) (int, bool) {
	return slices.BinarySearchFunc(m.votes, vote{round: round, from: from}, func(a, b vote) int {
		return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.from, b.from))
	})
}

// endRound begins the next round.
func (m *machine) endRound(fx *process.Effects) {
	switch {
	case m.round > 0 && exchanges(m.round):
		fx.Rule(ruleR4)
		m.tally()
	case m.round > 0:
		fx.Rule(ruleR5)
		m.settle()
	}
	m.votes = slices.DeleteFunc(m.votes, func(v vote) bool { return v.round <= m.round })
	if m.round == m.rounds {
		fx.Rule(ruleR5a)
		fx.Decide(m.preferred)
		m.over, m.votes, m.preferred = true, nil, 0
		return
	}
	m.round++
	switch {
	case exchanges(m.round):
		fx.Rule(ruleR2)
		fx.Broadcast(process.Message{Type: prefer, Seq: m.round, Value: m.preferred})
	case m.self == m.kingOf(m.round):
		fx.Rule(ruleR4a)
		fx.Broadcast(process.Message{Type: king, Seq: m.round, Value: m.maj})
	}
	fx.Arm(roundTimer, m.length, m.length)
}

// tally is R4.
func (m *machine) tally() {
	m.maj, m.mult = 0, 0
	count := func(value int64) int {
		n, others := 0, m.c.N
		for _, v := range append(m.votes[:len(m.votes):len(m.votes)], vote{m.round, m.self, m.preferred}) {
			if v.round == m.round {
				others--
				if v.value == value {
					n++
				}
			}
		}
		if value == 0 {
			n += others
		}
		return n
	}
	values := []int64{m.preferred}
	for _, v := range m.votes {
		values = append(values, v.value)
	}
	for _, value := range values {
		if n := count(value); 2*n > m.c.N {
			m.maj, m.mult = value, n
			return
		}
	}
	m.mult = count(0)
}

// settle is R5.
func (m *machine) settle() {
	enough := m.c.N + 2*m.m
	if m.flaw.HalfIsEnough {
		enough = m.c.N
	}
	if m.preferred = m.kings(); 2*m.mult > enough && !m.flaw.ObeysKing {
		m.preferred = m.maj
	}
	m.maj, m.mult = 0, 0
}

// kings is the king's value.
func (m *machine) kings() int64 {
	from := m.kingOf(m.round)
	if from == m.self {
		return m.maj
	}
	if at, found := m.find(m.round, from); found {
		return m.votes[at].value
	}
	return 0
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	f.Uint("round", &m.round)
	f.Bool("over", &m.over)
	f.Int("preferred", &m.preferred)
	f.Int("maj", &m.maj)
	f.Count("mult", &m.mult)
	process.List(f, "votes", &m.votes, voteFields)
}

func voteFields(f *process.Fields, v *vote) {
	f.Uint("round", &v.round)
	f.ID("from", &v.from)
	f.Int("v", &v.value)
}
