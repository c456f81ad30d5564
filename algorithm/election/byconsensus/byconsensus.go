// Package byconsensus is an election by consensus: the decided value is the leader.
//
// # Problem and idea
//
// An election is consensus on a process: every process that wants a leader proposes
// one, and all follow the decided one. Nothing else is needed. A consensus that decides
// one value elects once. One that decides a sequence elects again when asked.
//
// # Rules
//
//	L1  start an election: propose this process for the round after the last one.
//	L2  a process is decided for a round above the last one: it leads in that round.
//	    L2a Decisions for earlier rounds are too late.
//
// # Why it is safe
//
// All processes see the same decisions in the same order, so the first decision that
// names a round is the same for all, and only that one counts.
//
// # What happens when the helper crashes
//
// The helper is the consensus below. The election survives what that survives. But a
// single decision cannot be undone: over Paxos, if the elected process crashes, all
// others follow it forever. Over Raft the next election is the next decision.
//
// # Cost
//
// One decision.
//
// # Assumptions and deviations
//
// The winner is the first to propose, not the highest label: consensus promises only
// that the decided value was proposed. [D0] says that leader election is a special case
// of consensus.
//
// Sources: [D0].
package byconsensus

import "github.com/conclave-io/conclave/process"

// Spec describes the layer. It works only above a consensus.
var Spec = &process.Spec{
	Name:      "election-by-consensus",
	Title:     "Election by consensus",
	Paper:     "R. Sisto: Coordination Algorithms, lecture notes, Politecnico di Torino",
	Documents: []string{"[D0]"},
	Family:    process.Election,
	Rules: []process.RuleSpec{
		{Name: "L1", Text: "start: propose this process for the next round"},
		{Name: "L2", Text: "a process is decided for a new round: it leads"},
		{Name: "L2a", Text: "a process is decided for an old round: too late"},
	},
	Claims: process.Claims{
		Properties: []process.Claim{
			{Property: process.LeaderAgreement},
			{Property: process.RoundAgreement},
			{Property: process.LeaderTermination, When: "the consensus below decides"},
		},
		Survives: []process.Survival{
			{Fault: process.CrashAny, When: "the consensus below survives it", How: "this layer keeps only decisions"},
			{Fault: process.AmnesiaRestart, When: "the consensus below survives it", How: "a restarted process sees all decisions again"},
		},
	},
	New: Flaw{}.New,
}

const (
	ruleL1 process.Rule = iota + 1
	ruleL2
	ruleL2a
)

// Flaw selects the mistake of a broken variant of the layer. The zero Flaw has none.
type Flaw struct {
	LeadsAtOnce bool // L1: leads when it proposes itself
	LastWins    bool // L2a is missing: the last process decided for a round leads in it
}

type machine struct {
	c    *process.Config
	flaw Flaw
	self process.ID

	round uint64 // the last one that was decided
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{c: c, flaw: flaw, self: self}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	n := int64(m.c.N)
	switch ev.Kind {
	case process.Campaign:
		fx.Rule(ruleL1)
		fx.Propose(int64(m.round+1)*n + int64(m.self))
		if m.flaw.LeadsAtOnce {
			m.lead(m.round+1, m.self, fx)
		}
	case process.Decided:
		round, leader := uint64(ev.Value/n), process.ID(ev.Value%n)
		if round <= m.round && !m.flaw.LastWins {
			fx.Rule(ruleL2a)
			return
		}
		fx.Rule(ruleL2)
		m.lead(round, leader, fx)
	}
}

// lead announces the leader of a round.
func (m *machine) lead(round uint64, leader process.ID, fx *process.Effects) {
	m.round = round
	fx.Elect(leader, process.MakeTerm(round, leader))
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) { f.Uint("round", &m.round) }
