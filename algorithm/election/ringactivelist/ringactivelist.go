// Package ringactivelist is the election on a ring in which every process collects the
// labels of all live processes and determines the highest by itself.
//
// # Problem and idea
//
// The processes form a unidirectional ring whose links keep the order of messages. Each
// sends its own label round once, before it passes on the first label of another. When
// its own label is back, all others have passed. The process with the highest of them
// leads, and no announcement is needed.
//
// # Rules
//
//	A1  start: the list is [i]; send ELECT(i) to the next.
//	A2  the first ELECT(j): the list is [i j]; send ELECT(i), then ELECT(j).
//	A3  another ELECT(j): add j to the list, pass it on.
//	A4  on ELECT(i): the list is complete, its highest label leads.
//	    A4a It has come before, or this process has not sent it: drop it.
//	A5  the next process does not acknowledge within R: pass all messages to the one
//	    behind.
//	    A5a The owner of a label is down: drop the label instead of passing it on,
//	    because no other process would remove it from the ring.
//	A6  ELECT of an old round: drop it, and start if no election is in progress, so
//	    that its sender hears of the later one.
//
// # Why it is safe
//
// On a ring that keeps order nothing overtakes: ELECT(i) follows every label that its
// sender knew, and each process on the path sends its own label before it. So when
// ELECT(i) is back, every process that it has passed is on the list. Elections are
// numbered by rounds, and a higher round ends a lower one.
//
// # Cost
//
// Each of n labels travels n hops: n^2 messages, whichever processes start. All know
// after 2n-1 message times if one process starts, and after n if all do. ACKs are
// counted separately.
//
// # Deviations
//
// In [D4] rule A3 is missing: a process that gets another process's label treats its
// list as complete at once. Its example passes ELECT(3) on, as here. Without that, 2
// and 3 would still agree in the example, but a third process would decide on half a
// list. The example announces the result with ELECTED messages, which are not needed,
// and lets messages pass through the crashed P4 and P1; here A5 passes over them. Order
// of links, rounds, A5a and A6 are not in the document, nor is the cost.
//
// Not survived: any crash during the election. The crashed process may have lost
// another process's label, and that process then waits forever. Lists may also differ
// by a process that crashed. Links that do not keep order: the list may be complete too
// early.
//
// Sources: [D4]; in substance G. Le Lann: Distributed systems, towards a formal
// approach, 1977.
package ringactivelist

import (
	"github.com/conclave-io/conclave/algorithm/election/ring"
	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "ring-active-list",
	Title:     "Ring election by active lists",
	Paper:     "after G. Le Lann: Distributed systems, towards a formal approach, IFIP Congress 1977",
	Documents: []string{"[D4]"},
	Family:    process.Election,
	Messages: []process.MessageSpec{
		{Name: "ELECT", Fields: []process.FieldUse{
			{Field: process.FieldSubject, Symbol: "id"}, {Field: process.FieldTerm, Symbol: "round"}}},
		{Name: "ACK", Class: process.Acknowledgement, Fields: ring.AckFields("ELECT")},
	},
	Timers: []string{"ack"},
	Rules: []process.RuleSpec{
		{Name: "A1", Text: "start: a list with its own label, send ELECT with it"},
		{Name: "A2", Text: "first ELECT: a list of both labels, send its own ELECT, then pass the other on"},
		{Name: "A3", Text: "ELECT of another label: add it, pass it on"},
		{Name: "A4", Text: "ELECT of its own label: the highest of the list leads"},
		{Name: "A4a", Text: "ELECT of its own label that is not expected: drop it"},
		{Name: "A5", Text: "no ACK: pass all messages to the process behind"},
		{Name: "A5a", Text: "the owner is down: drop its label"},
		{Name: "A6", Text: "ELECT of an old round: drop it, start if idle"},
	},
	Needs:  process.Needs{FIFO: true, Reliable: true, Synchrony: true, Topology: process.RingTopology},
	Claims: claims,
	New:    Flaw{}.New,
}

const allUp = "n processes are up, N >= 2; processes that are down cost a few messages more"

var claims = process.Claims{
	Properties: process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence),
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: allUp, Exact: square,
			Said: []process.Figure{{Document: "[D3]", Text: "2n", Wrong: "the cost of the ring with a list of senders; here every label goes round"}}},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: allUp, Exact: square},
		{Metric: process.MessagesPerElection, Regime: process.Worst, When: allUp, Exact: square},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: "all processes are up, N >= 2; until the last process knows the leader", Exact: &process.Formula{
			Text: "2n-1", Eval: func(p process.Params) float64 { return 2*float64(p.Live) - 1 }}},
		{Metric: process.ElectionTime, Regime: process.AllStart, When: "all processes are up, N >= 2; until the last process knows the leader", Exact: &process.Formula{
			Text: "n", Eval: func(p process.Params) float64 { return float64(p.Live) }}},
	},
	Survives: []process.Survival{
		{Fault: process.Duplication, How: "the owner removes every duplicate of its label from the ring"},
	},
}

var square = &process.Formula{Text: "n^2", Eval: func(p process.Params) float64 { return float64(p.Live) * float64(p.Live) }}

const (
	elect process.Type = iota + 1
	ack
)

const ackTimer process.Timer = 1 // one for each process that owes an ACK

const (
	ruleA1 process.Rule = iota + 1
	ruleA2
	ruleA3
	ruleA4
	ruleA4a
	ruleA5
	ruleA5a
	ruleA6
)

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	PassesFirst bool // A2 passes the other label on before it sends its own
}

type machine struct {
	c    *process.Config
	self process.ID
	flaw Flaw
	hand ring.Hand

	round    uint64       // the highest seen; rises before any message of a new one is sent
	list     []process.ID // those known to take part in round, rising; empty or with this process
	complete bool         // this process's label is back
	box      ring.Box
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{c: c, self: self, flaw: flaw, hand: ring.Hand{Config: c, Self: self, Ack: ack, Timer: ackTimer}}
}

// Step dispatches the event to the handler of its rule. A round that was seen is saved
// before any message of it or of a later round is sent.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	before := m.round
	switch ev.Kind {
	case process.Campaign, process.Restart:
		m.start(fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	case process.Fire:
		fx.Rule(ruleA5)
		m.afterLoss(m.box.OnSilence(&m.hand, ev.Timer.Peer(), fx), fx)
	case process.Fail:
		m.afterLoss(m.box.OnFail(&m.hand, ev.Peer, fx), fx)
	case process.Rejoin:
		m.box.OnRejoin(&m.hand, ev.Peer, fx)
	case process.Trust:
		m.box.Heard(ev.Peer)
	}
	if m.round != before {
		fx.Save()
	}
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	if msg.Type == ack {
		m.box.OnAck(&m.hand, msg, fx)
		return
	}
	if msg.Term.Round() > m.round {
		m.begin(msg.Term.Round())
		m.box.Renew()
	}
	m.box.Met(msg.From, msg.Subject)
	m.onElect(msg, fx)
	m.box.Acknowledge(&m.hand, msg, msg.Subject, fx)
}

// begin enters a round with an empty list.
func (m *machine) begin(round uint64) {
	m.round, m.list, m.complete = round, m.list[:0], false
}

// start is A1. A process that takes part in an election does not start another.
func (m *machine) start(fx *process.Effects) {
	if len(m.list) > 0 && !m.complete {
		return
	}
	fx.Rule(ruleA1)
	m.begin(m.round + 1)
	m.introduce(fx)
}

// introduce sends this process's label round the ring. Alone on the ring it need not
// travel.
func (m *machine) introduce(fx *process.Effects) {
	m.list = process.Insert(m.list, m.self)
	if !m.pass(m.self, fx) {
		m.finish(fx)
	}
}

// pass sends a label to the next process, and reports whether there is one.
func (m *machine) pass(j process.ID, fx *process.Effects) bool {
	return m.box.Pass(&m.hand, process.Message{Type: elect, Subject: j, Term: process.MakeTerm(m.round, j)}, j, fx)
}

// onElect is A2 to A4, and A6.
func (m *machine) onElect(msg *process.Message, fx *process.Effects) {
	j := msg.Subject
	switch {
	case msg.Term.Round() < m.round:
		fx.Rule(ruleA6)
		m.start(fx)
	case j == m.self && (len(m.list) == 0 || m.complete):
		fx.Rule(ruleA4a)
	case j == m.self:
		m.finish(fx)
	case len(m.list) == 0:
		fx.Rule(ruleA2)
		m.join(j, fx)
	default:
		fx.Rule(ruleA3)
		m.relay(j, fx)
	}
}

// join is A2.
func (m *machine) join(j process.ID, fx *process.Effects) {
	if m.flaw.PassesFirst {
		m.relay(j, fx)
		m.introduce(fx)
		return
	}
	m.introduce(fx)
	m.relay(j, fx)
}

// relay is A3.
func (m *machine) relay(j process.ID, fx *process.Effects) {
	m.list = process.Insert(m.list, j)
	if !m.pass(j, fx) {
		fx.Rule(ruleA5a)
	}
}

// finish is A4.
func (m *machine) finish(fx *process.Effects) {
	fx.Rule(ruleA4)
	m.complete = true
	best := m.list[0]
	for _, p := range m.list {
		if m.c.Above(p, best) {
			best = p
		}
	}
	fx.Elect(best, process.MakeTerm(m.round, best))
}

// afterLoss is A5a, or A4 if no other process is left.
func (m *machine) afterLoss(loss ring.Loss, fx *process.Effects) {
	for i := range loss.Stuck {
		msg := &loss.Stuck[i].Message
		switch {
		case msg.Subject != m.self:
			fx.Rule(ruleA5a)
		case msg.Term.Round() == m.round && !m.complete:
			m.finish(fx)
		}
	}
}

// Fields names the state. Only the round must survive a crash: a process that forgot it
// could lead twice in one term.
func (m *machine) Fields(f *process.Fields) {
	f.Durable().Seq("round", &m.round)
	f.IDs("list", &m.list)
	f.Bool("complete", &m.complete)
	m.box.Fields(f)
}
