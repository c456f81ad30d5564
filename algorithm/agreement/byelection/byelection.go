// Package byelection is consensus by an election: the leader sends its value to every
// process.
//
// # Problem and idea
//
// If all processes agree on a leader, they can agree on a value: the leader's. The
// leader multicasts its value, and every process that receives it decides it.
//
// # Rules
//
//	D1  propose v: keep v. If no leader is known, ask for an election.
//	D2  a leader that has a value and has not decided: multicast VALUE(v).
//	D3  on VALUE(v), including the leader's own: decide v, if nothing was decided before.
//
// # Why it is safe, and when not
//
// As long as there is one leader, one value is multicast. The multicast below must be
// reliable: if the leader crashes in the middle of it, either all other processes get
// the value or none does.
//
// # What happens when the helper crashes
//
// The helper is the leader. If it crashes before any process has its value, the next
// leader multicasts its own value. But a value that is only late looks the same.
// Suppose the first leader's value has reached one process, which has decided, and is
// still in flight to the second leader. The second leader then multicasts another
// value, and some processes decide one value and some the other. For agreement, a
// leader must first ask a majority what may have been decided. That is Paxos.
//
// # Cost
//
// One multicast: N-1 messages, or N(N-1) over a reliable one. One delay.
//
// # Assumptions and deviations
//
// A leader that proposes nothing decides nothing; here every process proposes. [D0]
// says that consensus can be solved with leader election, and does not mention crashes.
//
// Sources: [D0]; T. Chandra, S. Toueg: Unreliable failure detectors for reliable
// distributed systems, 1996.
package byelection

import "github.com/conclave-io/conclave/process"

// Spec describes the layer. It works only above an election and a multicast that also
// delivers to its sender.
var Spec = &process.Spec{
	Name:      "consensus-by-election",
	Title:     "Consensus by an election",
	Paper:     "T. Chandra, S. Toueg: Unreliable failure detectors for reliable distributed systems, Journal of the ACM 43(2), 1996, doi:10.1145/226643.226647",
	Documents: []string{"[D0]"},
	Family:    process.Agreement,
	Messages:  []process.MessageSpec{{Name: "VALUE", Fields: []process.FieldUse{{Field: process.FieldValue, Symbol: "v"}}}},
	Rules: []process.RuleSpec{
		{Name: "D1", Text: "propose: keep the value; ask for a leader if there is none"},
		{Name: "D2", Text: "lead: multicast the leader's value"},
		{Name: "D3", Text: "VALUE: decide it"},
	},
	Needs: process.Needs{Reliable: true, Elector: true},
	Claims: process.Claims{Properties: []process.Claim{
		{Property: process.ValueAgreement, When: "the leader does not change"},
		{Property: process.ValueValidity},
		{Property: process.DecideOnce},
		{Property: process.Decision, When: "the leader has a value, and does not crash"},
	}},
	New: Flaw{}.New,
}

const value process.Type = 1

const (
	ruleD1 process.Rule = iota + 1
	ruleD2
	ruleD3
)

// Flaw selects the mistake of a broken variant of the layer. The zero Flaw has none.
type Flaw struct {
	FollowersLead bool // D2: every process that knows a leader multicasts its own value
	ForgetsValue  bool // D1: keeps the value only if the leader is known
}

type machine struct {
	flaw Flaw
	self process.ID

	leader  process.ID // or None
	has     bool       // it has a value of its own
	own     int64
	decided bool
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, _ *process.Config) process.Machine {
	return &machine{flaw: flaw, self: self, leader: process.None}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Propose:
		m.propose(ev.Value, fx)
	case process.Elected:
		m.leader = ev.Peer
		m.lead(fx)
	case process.Deliver:
		m.onValue(ev.Message.Value, fx)
	}
}

func (m *machine) propose(v int64, fx *process.Effects) {
	if m.has || m.decided {
		return
	}
	fx.Rule(ruleD1)
	m.has, m.own = true, v
	if m.leader == process.None {
		m.has = !m.flaw.ForgetsValue
		fx.Campaign()
		return
	}
	m.lead(fx)
}

// lead is D2. A leader that decided before its value has left could be the only one to
// know it.
func (m *machine) lead(fx *process.Effects) {
	if m.leader != m.self && !m.flaw.FollowersLead || !m.has || m.decided {
		return
	}
	fx.Rule(ruleD2)
	fx.Broadcast(process.Message{Type: value, Value: m.own})
}

// onValue is D3.
func (m *machine) onValue(v int64, fx *process.Effects) {
	if m.decided {
		return
	}
	fx.Rule(ruleD3)
	m.decided, m.has, m.own = true, false, 0
	fx.Decide(v)
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	f.ID("leader", &m.leader)
	f.Bool("has", &m.has)
	f.Int("own", &m.own)
	f.Bool("decided", &m.decided)
}
