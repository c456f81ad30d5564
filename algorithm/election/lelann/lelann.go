// Package lelann is the election of Le Lann on a unidirectional ring: every label goes
// all the way round, and every process determines the highest by itself.
//
// # Problem and idea
//
// A process knows only the next process on the ring, not how many there are. A process
// that takes part sends its label round the ring, and every process passes the labels
// of others on. Links keep the order of messages. So when its own label is back, a
// process has seen all others, and no announcement is needed. This is the first ring
// election; later ones save messages by stopping labels that cannot win.
//
// # Rules
//
//	L1  start: unless this process takes part already, send CANDIDATE(i) to the next.
//	L2  the first CANDIDATE of a round: send CANDIDATE(i) before passing it on.
//	L3  on CANDIDATE(j): note j if it is the best so far, and pass it on.
//	L4  on CANDIDATE(i): the best label seen leads.
//	    L4a of a round that is over: discard.
//
// # Why it is safe
//
// CANDIDATE(i) passes every process on the ring. Each of them has sent its own label
// before that (L2), and nothing overtakes that label on the rest of the ring. So when
// CANDIDATE(i) is back, all labels have passed i. So all processes find the same best
// label. The owner of a label removes it from the ring, so nothing circulates
// afterwards. Elections are numbered by rounds, and a higher round ends a lower one.
//
// # Cost
//
// N labels travel N hops each: N^2 messages, whichever processes start. If one process
// starts, the last process joins after N-1 message times and knows the result after
// 2N-1. If all start, all know after N.
//
// # Assumptions and deviations
//
// Links lose nothing and keep order. Without order a label may return before others
// have passed, and processes find different leaders. N is not known. Le Lann uses the
// election to regenerate a lost control token, and collects the labels in a list; only
// the best one counts, so only that is kept. Because a process that has not started
// joins (L2), the winner is the highest of all; otherwise it would be the highest
// starter. Rounds are an addition.
//
// Not survived: any crash. The label of a crashed process, or a label that it had
// received, is lost, and the owner of that label waits forever.
//
// The election ring-active-list adds acknowledgements and passes over processes that
// are down, as in a lecture document.
//
// Source: G. Le Lann: Distributed systems, towards a formal approach, 1977.
package lelann

import (
	"github.com/conclave-io/conclave/algorithm/election/ring"
	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:   "le-lann",
	Title:  "Ring election of Le Lann",
	Paper:  "G. Le Lann: Distributed systems, towards a formal approach, IFIP Congress 1977",
	Family: process.Election,
	Messages: []process.MessageSpec{
		{Name: "CANDIDATE", Fields: []process.FieldUse{
			{Field: process.FieldSubject, Symbol: "id"}, {Field: process.FieldTerm, Symbol: "round"}}},
	},
	Rules: []process.RuleSpec{
		{Name: "L1", Text: "start: send CANDIDATE with its own label"},
		{Name: "L2", Text: "first CANDIDATE of a round: send its own CANDIDATE before passing it on"},
		{Name: "L3", Text: "CANDIDATE of another label: note the best, pass it on"},
		{Name: "L4", Text: "CANDIDATE of its own label: the best label leads"},
		{Name: "L4a", Text: "CANDIDATE of a round that is over: discard it"},
	},
	Needs:  process.Needs{FIFO: true, Reliable: true, Topology: process.RingTopology},
	Claims: claims,
	New:    Flaw{}.New,
}

const several = "N >= 2"

var claims = process.Claims{
	Properties: process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence),
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: several, Exact: square},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: several, Exact: square},
		{Metric: process.MessagesPerElection, Regime: process.Worst, When: several, Exact: square},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: several + "; until the last process knows the leader",
			Exact: process.OfN("2N-1", func(n float64) float64 { return 2*n - 1 })},
		{Metric: process.ElectionTime, Regime: process.AllStart, When: several + "; until the last process knows the leader",
			Exact: process.PerProcess("N", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Duplication, How: "a duplicate label changes nothing, and its owner removes every duplicate from the ring"},
	},
}

var square = process.OfN("N^2", func(n float64) float64 { return n * n })

const candidate process.Type = 1

const (
	ruleL1 process.Rule = iota + 1
	ruleL2
	ruleL3
	ruleL4
	ruleL4a
)

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	PassesFirst bool // L2 passes the first label on before it sends its own
	StopsWorse  bool // L3 discards a label that is not the best seen so far
}

type machine struct {
	c    *process.Config
	self process.ID
	flaw Flaw

	round uint64     // the highest seen; rises before any message of a new one is sent
	joins bool       // this process's label is in flight in this round
	best  process.ID // seen in this round, this process among them; None before the first round
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{c: c, self: self, flaw: flaw, best: process.None}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Campaign:
		m.start(fx)
	case process.Deliver:
		m.onCandidate(ev.Message, fx)
	}
}

// start is L1.
func (m *machine) start(fx *process.Effects) {
	if m.joins {
		return
	}
	fx.Rule(ruleL1)
	m.join(m.round+1, fx)
}

// join saves the round and then sends this process's label, unless it is alone.
func (m *machine) join(round uint64, fx *process.Effects) {
	m.round, m.joins, m.best = round, true, m.self
	fx.Save()
	next := m.c.Topology.Next(m.self, m.c.N)
	if next == m.self {
		m.decide(fx)
		return
	}
	fx.Send(next, process.Message{Type: candidate, Subject: m.self, Term: process.MakeTerm(round, m.self)})
}

// onCandidate is L2, L3 and L4.
func (m *machine) onCandidate(msg *process.Message, fx *process.Effects) {
	r := msg.Term.Round()
	if r < m.round || r == m.round && !m.joins {
		fx.Rule(ruleL4a)
		return
	}
	if msg.Subject == m.self && r == m.round {
		m.decide(fx)
		return
	}
	if r > m.round && !m.flaw.PassesFirst {
		fx.Rule(ruleL2)
		m.join(r, fx)
	}
	m.pass(msg, fx)
	if r > m.round {
		m.join(r, fx)
		m.note(msg.Subject)
	}
}

// pass is L3.
func (m *machine) pass(msg *process.Message, fx *process.Effects) {
	fx.Rule(ruleL3)
	m.note(msg.Subject)
	if m.flaw.StopsWorse && m.best != msg.Subject {
		return
	}
	fx.Send(m.c.Topology.Next(m.self, m.c.N), *msg)
}

func (m *machine) note(p process.ID) {
	if m.best == process.None || ring.Better(p, m.best, m.c) {
		m.best = p
	}
}

// decide is L4.
func (m *machine) decide(fx *process.Effects) {
	fx.Rule(ruleL4)
	m.joins = false
	fx.Elect(m.best, process.MakeTerm(m.round, m.best))
}

// Fields names the state. Only the round must survive a crash: a process that forgot it
// could elect two leaders in one term.
func (m *machine) Fields(f *process.Fields) {
	f.Durable().Seq("round", &m.round)
	f.Bool("joins", &m.joins)
	f.ID("best", &m.best)
}
