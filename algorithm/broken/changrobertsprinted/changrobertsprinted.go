// Package changrobertsprinted is the ring election as one of the documents prints it,
// with the comparison reversed. It elects its starter, or no process, and is here to
// show how.
//
// # Problem and idea
//
// As in chang-roberts, labels travel round a ring and the highest should complete the
// round.
//
// # Rules
//
//	P1  start: participate, send ELECTION(i) to the next.
//	P2  on ELECTION(j) with i > j: pass it on, participate.
//	P3  on ELECTION(j) with i < j: if this process does not participate, pass it on,
//	    participate.
//	    P3a Otherwise do nothing.
//	P4  on ELECTION(i): this process leads; stop participating, send ELECTED(i).
//	P5  on ELECTED(j) of another: j leads; stop participating, pass it on.
//	    P5a on ELECTED(i): stop.
//
// # What is wrong
//
// In [D1] the higher receiver passes the lower label on (P2). The lower receiver should
// always pass the higher label on, but does so only once (P3). The rule that should
// replace a lower label by the receiver's own passes the lower one on instead. So the
// label of a lone starter always completes the round, and the starter elects itself: with
// label 1 it leads a ring that contains 4. If there are several starters, a low one wins,
// or none does: a label is dropped at the first participant below it. The scripts in
// testdata show each case.
//
// The subscripts of Participant and Elected, printed as j, are read as i. As printed
// they would be variables of other processes.
//
// # Cost
//
// 2N messages for a lone starter at any position: the position of the maximum does not
// matter.
//
// Rounds are an addition, so that one election can follow another. Sources: [D1]; E.
// Chang and R. Roberts, 1979, who have the correct comparison.
package changrobertsprinted

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "chang-roberts-printed",
	Title:     "Ring election of Chang and Roberts as misprinted, which elects its starter",
	Paper:     "E. Chang, R. Roberts: An improved algorithm for decentralized extrema-finding in circular configurations of processes, CACM 22(5), 1979, doi:10.1145/359104.359108",
	Documents: []string{"[D1]"},
	Family:    process.Election,
	Messages:  []process.MessageSpec{{Name: "ELECTION", Fields: named}, {Name: "ELECTED", Fields: named}},
	Rules: []process.RuleSpec{
		{Name: "P1", Text: "start: participate, send ELECTION with its own label"},
		{Name: "P2", Text: "ELECTION of a lower label: pass it on, participate"},
		{Name: "P3", Text: "ELECTION of a higher label: pass it on, participate"},
		{Name: "P3a", Text: "ELECTION of a higher label at a participant: do nothing"},
		{Name: "P4", Text: "ELECTION of its own label: lead, send ELECTED"},
		{Name: "P5", Text: "ELECTED: record the leader, pass it on"},
		{Name: "P5a", Text: "ELECTED of its own label: stop"},
	},
	Needs: process.Needs{Reliable: true, NoDuplication: true, FIFO: true, Topology: process.RingTopology},
	Claims: process.Claims{
		Properties: []process.Claim{
			{Property: process.LeaderAgreement},
			{Property: process.Quiescence},
			{Property: process.LeaderValidity, Fails: true, When: "a lone starter elects itself whatever its label"},
			{Property: process.LeaderTermination, Fails: true, When: "labels of several starters may all meet lower participants"},
		},
		Costs: []process.Cost{
			{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: "N >= 2", Exact: process.PerProcess("2N", 2),
				Said: []process.Figure{{Document: "[D1]", Text: "2N to 3N-1", Wrong: "the cost of the correct algorithm"}}},
		},
	},
	New: newMachine,
}

var named = []process.FieldUse{{Field: process.FieldSubject, Symbol: "id"}, {Field: process.FieldTerm, Symbol: "round"}}

const (
	election process.Type = iota + 1
	elected
)

const (
	ruleP1 process.Rule = iota + 1
	ruleP2
	ruleP3
	ruleP3a
	ruleP4
	ruleP5
	ruleP5a
)

type machine struct {
	c    *process.Config
	self process.ID

	round       uint64 // the highest seen
	participant bool   // in round
	leader      process.ID
}

func newMachine(self process.ID, c *process.Config) process.Machine {
	return &machine{c: c, self: self, leader: process.None}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Campaign:
		m.start(fx)
	case process.Deliver:
		m.see(ev.Message.Term.Round())
		if ev.Message.Type == election {
			m.onElection(ev.Message, fx)
		} else {
			m.onElected(ev.Message, fx)
		}
	}
}

// see notes a round. A higher round ends the one before.
func (m *machine) see(round uint64) {
	if round > m.round {
		m.round, m.participant = round, false
	}
}

// start is P1.
func (m *machine) start(fx *process.Effects) {
	if m.participant {
		return
	}
	fx.Rule(ruleP1)
	m.see(m.round + 1)
	m.participant = true
	if m.c.N == 1 {
		m.win(fx)
		return
	}
	m.pass(m.message(election), fx)
}

func (m *machine) message(t process.Type) process.Message {
	return process.Message{Type: t, Subject: m.self, Term: process.MakeTerm(m.round, m.self)}
}

func (m *machine) pass(msg process.Message, fx *process.Effects) {
	fx.Send(m.c.Topology.Next(m.self, m.c.N), msg)
}

// onElection is P2 to P4, with the comparison as it is printed.
func (m *machine) onElection(msg *process.Message, fx *process.Effects) {
	j := msg.Subject
	switch {
	case msg.Term.Round() < m.round:
	case m.c.Above(m.self, j):
		fx.Rule(ruleP2)
		m.participant = true
		m.pass(*msg, fx)
	case j == m.self:
		m.win(fx)
	case !m.participant:
		fx.Rule(ruleP3)
		m.participant = true
		m.pass(*msg, fx)
	default:
		fx.Rule(ruleP3a)
	}
}

// win is P4.
func (m *machine) win(fx *process.Effects) {
	fx.Rule(ruleP4)
	m.participant, m.leader = false, m.self
	msg := m.message(elected)
	fx.Elect(m.self, msg.Term)
	if m.c.N > 1 {
		m.pass(msg, fx)
	}
}

// onElected is P5.
func (m *machine) onElected(msg *process.Message, fx *process.Effects) {
	if msg.Subject == m.self {
		fx.Rule(ruleP5a)
		return
	}
	fx.Rule(ruleP5)
	m.participant, m.leader = false, msg.Subject
	fx.Elect(m.leader, msg.Term)
	m.pass(*msg, fx)
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	f.Seq("round", &m.round)
	f.Bool("participant", &m.participant)
	f.ID("leader", &m.leader)
}
