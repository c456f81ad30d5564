// Package treeelection is the election on a tree by waves, as Tel describes it.
//
// # Problem and idea
//
// The processes form a tree, and each talks to its neighbours only. First a wave of
// WAKEUP makes all processes take part. Then labels move from the leaves inwards: a
// process that knows the best label behind all its neighbours but one tells it to that
// one. Somewhere in the tree two of these messages meet on an edge. Both processes there
// know the best label of all, and send it back outwards.
//
// # Rules
//
//	T1  start: unless this process takes part already, send WAKEUP to all neighbours.
//	T2  the first message of a round: the same, before anything else.
//	T3  on WAKEUP from j: note that j is awake.
//	T4  on TOK(i) from j: note that j has answered, and i if it is the best so far.
//
// After each of them, in this order:
//
//	T5  all neighbours are awake, all but one have answered, and no TOK was sent: send
//	    TOK(best) to that one.
//	T6  all neighbours have answered: the best label leads. Send TOK(best) to all
//	    neighbours to which none was sent.
//	T7  a message of a round that is over: discard.
//
// # Why it is safe
//
// TOK from j to i by T5 has the best label of the part of the tree behind j: by
// induction, j has an answer for each of the subtrees of that part. TOK from j by T6 has the
// best label of all. So when all neighbours of a process have answered, and its own
// label is counted, it knows the best of all.
//
// Some process gets there. Suppose that no message is in flight, and no process has
// decided. Then all are awake and know it. A process that has sent TOK lacks one answer, and
// one that has not lacks at least two (T5). If s processes have sent, at least 2N-s
// answers are missing. But there are only 2(N-1) to send, of which s were sent. From a
// process that has decided, the answers go outwards by T6 until all have decided.
//
// Elections are numbered by rounds, and a higher round ends a lower one.
//
// # Cost
//
// WAKEUP and TOK go over each edge once in each direction: 4(N-1) messages, whichever
// processes start. Let d be the diameter of the tree. If one process starts, all are
// awake after at most d message times, and all know the leader after at most 2d+1. If
// all start, all know it after d+1.
//
// # Assumptions and deviations
//
// Links lose nothing. The tree is given (Topology.Parent); which process is its root does
// not matter. Because all processes join (T2), the winner is the highest of all; in
// Tel's version it is the lowest. He ends the wave of WAKEUP before a process handles
// TOK; here TOK may come first, and counts, so order does not matter. Sets of
// neighbours in place of his counters make duplicates harmless. Rounds are an addition.
//
// Not survived: any crash. It cuts the tree, and the answer of that part never comes.
//
// Source: G. Tel: Introduction to Distributed Algorithms, 2nd edition, 2000, section 7.1.
package treeelection

import (
	"github.com/conclave-io/conclave/algorithm/election/ring"
	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:   "tree-election",
	Title:  "Election on a tree",
	Paper:  "G. Tel: Introduction to Distributed Algorithms, 2nd edition, Cambridge University Press, 2000, doi:10.1017/CBO9781139168724",
	Family: process.Election,
	Messages: []process.MessageSpec{
		{Name: "WAKEUP", Fields: []process.FieldUse{round}},
		{Name: "TOK", Fields: []process.FieldUse{{Field: process.FieldSubject, Symbol: "id"}, round}},
	},
	Rules: []process.RuleSpec{
		{Name: "T1", Text: "start: send WAKEUP to all neighbours"},
		{Name: "T2", Text: "first message of a round: send WAKEUP to all neighbours before handling it"},
		{Name: "T3", Text: "WAKEUP: its sender is awake"},
		{Name: "T4", Text: "TOK: its sender has answered; note the best label"},
		{Name: "T5", Text: "all are awake and all but one have answered: send TOK with the best label to that one"},
		{Name: "T6", Text: "all have answered: the best label leads, send TOK with it to the others"},
		{Name: "T7", Text: "a message of a round that is over: discard it"},
	},
	Needs:  process.Needs{Reliable: true, Topology: process.Tree},
	Claims: claims,
	New:    newMachine,
}

const (
	several = "N >= 2"
	onTree  = several + ", on any tree; until the last process knows the leader"
)

var claims = process.Claims{
	Properties: process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence),
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: several, Exact: process.PerOther("4(N-1)", 4)},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: several, Exact: process.PerOther("4(N-1)", 4)},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: onTree,
			Hi: process.OfN("2N-1", func(n float64) float64 { return 2*n - 1 })},
		{Metric: process.ElectionTime, Regime: process.AllStart, When: onTree,
			Hi: process.PerProcess("N", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a TOK that overtakes a WAKEUP counts as well"},
		{Fault: process.Duplication, How: "a neighbour is noted once"},
	},
}

var round = process.FieldUse{Field: process.FieldTerm, Symbol: "round"}

const (
	wakeup process.Type = iota + 1
	tok
)

const (
	ruleT1 process.Rule = iota + 1
	ruleT2
	ruleT3
	ruleT4
	ruleT5
	ruleT6
	ruleT7
)

type machine struct {
	c          *process.Config
	self       process.ID
	neighbours []process.ID // rising

	round    uint64      // the highest seen; rises before any message of a new one is sent
	joins    bool        // this process takes part in this round, which is not over
	best     process.ID  // seen in this round, this process among them; None before the first round
	awake    process.Set // the neighbours that have sent WAKEUP; empty unless joins
	answered process.Set // the neighbours that have sent TOK; empty unless joins
	sent     process.ID  // the neighbour to which TOK was sent by T5, else None
}

func newMachine(self process.ID, c *process.Config) process.Machine {
	m := &machine{
		c: c, self: self, best: process.None, sent: process.None,
		awake: process.NewSet(c.N), answered: process.NewSet(c.N),
	}
	for p, parent := range c.Topology.Parent {
		if parent == self || c.Topology.Parent[self] == process.ID(p) {
			m.neighbours = append(m.neighbours, process.ID(p))
		}
	}
	return m
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Campaign:
		m.start(fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	}
}

// start is T1.
func (m *machine) start(fx *process.Effects) {
	if m.joins {
		return
	}
	fx.Rule(ruleT1)
	m.join(m.round+1, fx)
	m.proceed(fx)
}

// join saves the round before any message of it is sent.
func (m *machine) join(round uint64, fx *process.Effects) {
	m.forget()
	m.round, m.joins, m.best = round, true, m.self
	fx.Save()
	for _, p := range m.neighbours {
		fx.Send(p, process.Message{Type: wakeup, Term: process.MakeTerm(round, m.self)})
	}
}

func (m *machine) forget() {
	m.joins, m.sent = false, process.None
	m.awake.Clear()
	m.answered.Clear()
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	r := msg.Term.Round()
	if r < m.round || r == m.round && !m.joins {
		fx.Rule(ruleT7)
		return
	}
	if r > m.round {
		fx.Rule(ruleT2)
		m.join(r, fx)
	}
	switch msg.Type {
	case wakeup:
		fx.Rule(ruleT3)
		m.awake.Add(msg.From)
	case tok:
		fx.Rule(ruleT4)
		m.answered.Add(msg.From)
		if ring.Better(msg.Subject, m.best, m.c) {
			m.best = msg.Subject
		}
	}
	m.proceed(fx)
}

// proceed is T5 and T6.
func (m *machine) proceed(fx *process.Effects) {
	all := len(m.neighbours)
	if m.awake.Len() == all && m.answered.Len() == all-1 && m.sent == process.None {
		fx.Rule(ruleT5)
		for _, p := range m.neighbours {
			if !m.answered.Has(p) {
				m.sent = p
				m.tell(p, fx)
			}
		}
	}
	if m.answered.Len() == all {
		m.decide(fx)
	}
}

// decide is T6.
func (m *machine) decide(fx *process.Effects) {
	fx.Rule(ruleT6)
	for _, p := range m.neighbours {
		if p != m.sent {
			m.tell(p, fx)
		}
	}
	m.forget()
	fx.Elect(m.best, process.MakeTerm(m.round, m.best))
}

func (m *machine) tell(p process.ID, fx *process.Effects) {
	fx.Send(p, process.Message{Type: tok, Subject: m.best, Term: process.MakeTerm(m.round, m.best)})
}

// Fields names the state. Only the round must survive a crash: a process that forgot it
// could elect two leaders in one term.
func (m *machine) Fields(f *process.Fields) {
	f.Durable().Seq("round", &m.round)
	f.Bool("joins", &m.joins)
	f.ID("best", &m.best)
	f.Set("awake", m.awake)
	f.Set("answered", m.answered)
	f.ID("sent", &m.sent)
}
