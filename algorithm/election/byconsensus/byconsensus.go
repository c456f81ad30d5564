// Package byconsensus is an election by consensus: who leads is the value that is
// decided.
//
// # Problem and idea
//
// An election is consensus on a process: everybody who wants a leader proposes one, and
// all follow the one that is decided. Nothing else is left to do. A consensus that
// decides one value elects once; one that decides a sequence elects again when it is
// asked.
//
// # Rules
//
//	L1  start an election: propose oneself for the round after the last one.
//	L2  a process is decided for a round above the last one: it leads in that round.
//	    L2a Whatever is decided for an earlier round is too late.
//
// # Why it is safe
//
// All see the same decisions in the same order, so the first that names a round is the
// same everywhere, and it is the only one that counts.
//
// # What happens when the helper crashes
//
// The helper is the consensus below. What it survives, the election survives. But a
// single decision cannot be taken back: over Paxos, if the process that was elected
// crashes, everybody follows it forever. Over Raft the next election is the next
// decision.
//
// # Cost
//
// One decision.
//
// # Assumptions and deviations
//
// The winner is who proposes first, not the highest label: consensus promises that it
// was proposed and no more. [D0] says that leader election is a
// special case of consensus.
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
		{Name: "L1", Text: "start: propose oneself for the next round"},
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
			{Fault: process.CrashAny, When: "the consensus below survives it", How: "nothing is kept here but what was decided"},
			{Fault: process.AmnesiaRestart, When: "the consensus below survives it", How: "all is decided again"},
		},
	},
	New: Flaw{}.New,
}

const (
	ruleL1 process.Rule = iota + 1
	ruleL2
	ruleL2a
)

type machine struct {
	c    *process.Config
	flaw Flaw
	self process.ID

	round uint64 // the last one that was decided
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
