// Package peterson is the election of Peterson, and of Dolev, Klawe and Rodeh, on a
// unidirectional ring. It needs at most N log N messages of each of two types, for any
// order of the labels.
//
// # Problem and idea
//
// A process knows only the next process on the ring, not how many there are. On a
// bidirectional ring, a process could ask its two neighbors for their labels and stay
// in the election only if its own is higher than both: at least every second process
// gives up. Here labels travel in one direction only. So each process learns the labels
// of the two before it, and decides for the one in the middle: if that is the highest
// of the three, the process continues with it in place of its own label. The others
// only pass messages on from then on. The label that remains at the end has beaten all
// others. It is usually not the label of the process that carries it.
//
// # Rules
//
// An active process carries a label, at first its own.
//
//	P1  start: unless this process takes part already, become active, send FIRST(i) to the next.
//	P2  the first message of a round: the same, before anything else.
//	P3  on FIRST(j), if active with the label l:
//	    P3a j is another label: remember it, send SECOND(j).
//	    P3b j = l: no other process is active. j leads, send ELECTED(j).
//	P4  on SECOND(k), if active with the label l and after FIRST(j):
//	    P4a j is better than l and k: l := j, send FIRST(j).
//	    P4b otherwise: become a relay.
//	P5  relay: pass FIRST and SECOND on.
//	P6  on ELECTED(j): j leads, pass it on. P6a it has completed the ring: stop it.
//	P7  a message of a round that is over: discard.
//
// # Why it is safe
//
// Between two active processes there are only relays, so an active process receives
// FIRST and SECOND from the active process before it. Consider the ring of the labels
// that active processes carry. After a phase exactly those labels remain that are
// better than both neighbors; each has moved to the next active process. The best label
// is always among them, and of two neighbors at most one is. So the best label never
// disappears, and the number of active processes is at least halved, until one is left.
// Its FIRST then returns to it, which cannot happen while another process is active.
// Elections are numbered by rounds, and a higher round ends a lower one.
//
// # Cost
//
// In each phase every link carries one FIRST and one SECOND: 2N messages. There are at
// most log2(N) phases, rounded down, with two or more active processes. The last phase
// costs N FIRST, the announcement N ELECTED. Together that is at most 2N log2(N) + 2N
// messages, and at least 4N, on a ring on which labels rise or fall. The number depends
// only on the arrangement of the labels, not on the starters or on delays: every
// process reads its messages from one link, in a fixed order.
//
// # Assumptions and deviations
//
// Links lose and duplicate nothing and keep order. A message has no phase number, so an
// active process treats the next message as FIRST, and the one after that as SECOND. N
// is not known. The first message wakes a process, so the highest of all wins and not
// the highest starter. Peterson sends the better of l and j in place of j as the second
// message, which leads to the same decisions. Labels are unique; they are represented
// by ranks, and if two labels were equal the higher rank would be better. The
// announcement and the rounds are additions.
//
// Not survived: any crash, because it cuts the ring, and any loss or duplication of a
// message.
//
// Sources: G. L. Peterson: An O(n log n) unidirectional algorithm for the circular
// extrema problem, 1982; D. Dolev, M. Klawe and M. Rodeh: An O(n log n) unidirectional
// distributed algorithm for extrema finding in a circle, 1982.
package peterson

import (
	"math/bits"

	"github.com/conclave-io/conclave/algorithm/election/ring"
	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:   "peterson",
	Title:  "Unidirectional ring election of Peterson, and of Dolev, Klawe and Rodeh",
	Paper:  "G. L. Peterson: An O(n log n) unidirectional algorithm for the circular extrema problem, ACM TOPLAS 4(4), 1982, doi:10.1145/69622.357194; D. Dolev, M. Klawe, M. Rodeh: An O(n log n) unidirectional distributed algorithm for extrema finding in a circle, Journal of Algorithms 3(3), 1982, doi:10.1016/0196-6774(82)90023-2",
	Family: process.Election,
	Messages: []process.MessageSpec{
		{Name: "FIRST", Fields: named},
		{Name: "SECOND", Fields: named},
		{Name: "ELECTED", Fields: named},
	},
	Rules: []process.RuleSpec{
		{Name: "P1", Text: "start: become active, send FIRST with its own label"},
		{Name: "P2", Text: "first message of a round: become active and send its own FIRST before handling it"},
		{Name: "P3a", Text: "active, FIRST of another label: send SECOND with it"},
		{Name: "P3b", Text: "active, FIRST of the label it carries: that label leads, send ELECTED"},
		{Name: "P4a", Text: "active, the middle one of three labels is the best: continue with it, send FIRST"},
		{Name: "P4b", Text: "active, the middle one is not the best: become a relay"},
		{Name: "P5", Text: "relay: pass FIRST and SECOND on"},
		{Name: "P6", Text: "ELECTED: record the leader, pass it on"},
		{Name: "P6a", Text: "ELECTED that has completed the ring: stop it"},
		{Name: "P7", Text: "a message of a round that is over: discard it"},
	},
	Needs:  process.Needs{FIFO: true, Reliable: true, NoDuplication: true, Topology: process.RingTopology},
	Claims: claims,
	New:    Flaw{}.New,
}

const (
	several = "N >= 2"
	rising  = "the labels rise in the direction of sending, N >= 2"
)

var claims = process.Claims{
	Properties: process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence),
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: rising, Exact: least},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: several + ", any arrangement of the labels, any starters", Lo: least, Hi: most},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: rising + ", d hops from the starter to the maximum, N if it is the starter; until the last process knows the leader",
			Exact: &process.Formula{Text: "2N+d", Eval: func(p process.Params) float64 {
				if p.Distance == 0 {
					return 3 * float64(p.N)
				}
				return 2*float64(p.N) + float64(p.Distance)
			}}},
	},
}

// least is one phase, the last FIRST and ELECTED.
var least = process.PerProcess("4N", 4)

var most = process.OfN("2N floor(log2 N)+2N", func(n float64) float64 { return 2*n*float64(bits.Len(uint(n))-1) + 2*n })

var named = []process.FieldUse{{Field: process.FieldSubject, Symbol: "id"}, {Field: process.FieldTerm, Symbol: "round"}}

const (
	first process.Type = iota + 1
	second
	elected
)

const (
	ruleP1 process.Rule = iota + 1
	ruleP2
	ruleP3a
	ruleP3b
	ruleP4a
	ruleP4b
	ruleP5
	ruleP6
	ruleP6a
	ruleP7
)

type role uint8

const (
	idle role = iota // no election is in progress
	active
	relay
)

var roleNames = []string{"IDLE", "ACTIVE", "RELAY"}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	LastLeads     bool // P3b elects the last active process, not the label that it carries
	SleepersRelay bool // P2 makes a relay of a process that has not started
}

type machine struct {
	c    *process.Config
	self process.ID
	flaw Flaw

	round   uint64 // the highest seen; rises before any message of a new one is sent
	role    role
	label   process.ID   // active: the label that this process carries; else None
	before  process.ID   // active: the label of the active process before this one; None until FIRST has come
	elected process.Term // of the latest leader, or 0
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{c: c, self: self, flaw: flaw, label: process.None, before: process.None}
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

// start is P1.
func (m *machine) start(fx *process.Effects) {
	if m.role != idle {
		return
	}
	fx.Rule(ruleP1)
	m.join(m.round+1, fx)
}

func (m *machine) join(round uint64, fx *process.Effects) {
	m.see(round, active, fx)
	m.stand(m.self, fx)
}

// see notes a round and the role of this process in it, and saves the round before any
// message of it is sent.
func (m *machine) see(round uint64, as role, fx *process.Effects) {
	m.round, m.role = round, as
	fx.Save()
}

// stand begins a phase with a label. A process that is alone has won.
func (m *machine) stand(label process.ID, fx *process.Effects) {
	m.label, m.before = label, process.None
	if !m.send(first, label, fx) {
		m.win(fx)
	}
}

// send sends a message to the next process, and reports whether there is one.
func (m *machine) send(kind process.Type, label process.ID, fx *process.Effects) bool {
	next := m.c.Topology.Next(m.self, m.c.N)
	if next != m.self {
		fx.Send(next, process.Message{Type: kind, Subject: label, Term: process.MakeTerm(m.round, label)})
	}
	return next != m.self
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	r := msg.Term.Round()
	switch {
	case msg.Type == elected:
		m.onElected(msg, fx)
		return
	case r < m.round || r == m.round && m.role == idle:
		fx.Rule(ruleP7)
		return
	case r > m.round:
		m.wake(r, fx)
	}
	switch {
	case m.role == relay:
		fx.Rule(ruleP5)
		m.send(msg.Type, msg.Subject, fx)
	case m.before == process.None:
		m.onFirst(msg.Subject, fx)
	default:
		m.onSecond(msg.Subject, fx)
	}
}

// wake is P2.
func (m *machine) wake(round uint64, fx *process.Effects) {
	if m.flaw.SleepersRelay {
		m.see(round, relay, fx)
		return
	}
	fx.Rule(ruleP2)
	m.join(round, fx)
}

// onFirst is P3.
func (m *machine) onFirst(j process.ID, fx *process.Effects) {
	if j == m.label {
		m.win(fx)
		return
	}
	fx.Rule(ruleP3a)
	m.before = j
	m.send(second, j, fx)
}

// win is P3b. The leader is the owner of the label, not the process that carries it.
func (m *machine) win(fx *process.Effects) {
	fx.Rule(ruleP3b)
	leader := m.label
	if m.flaw.LastLeads {
		leader = m.self
	}
	m.record(process.MakeTerm(m.round, leader), fx)
	m.send(elected, leader, fx)
}

// onSecond is P4.
func (m *machine) onSecond(k process.ID, fx *process.Effects) {
	if ring.Better(m.before, m.label, m.c) && ring.Better(m.before, k, m.c) {
		fx.Rule(ruleP4a)
		m.stand(m.before, fx)
		return
	}
	fx.Rule(ruleP4b)
	m.role, m.label, m.before = relay, process.None, process.None
}

// onElected is P6.
func (m *machine) onElected(msg *process.Message, fx *process.Effects) {
	if msg.Term <= m.elected {
		fx.Rule(ruleP6a)
		return
	}
	fx.Rule(ruleP6)
	if r := msg.Term.Round(); r > m.round {
		m.see(r, idle, fx)
	}
	m.record(msg.Term, fx)
	m.send(elected, msg.Subject, fx)
}

// record notes the leader and announces it.
func (m *machine) record(t process.Term, fx *process.Effects) {
	m.role, m.label, m.before = idle, process.None, process.None
	m.elected = t
	fx.Elect(t.Leader(), t)
}

// Fields names the state. Only the round must survive a crash: a process that forgot it
// could elect two leaders in one term.
func (m *machine) Fields(f *process.Fields) {
	f.Durable().Seq("round", &m.round)
	process.Enum(f, "st", &m.role, roleNames)
	f.ID("label", &m.label)
	f.ID("before", &m.before)
	f.Term("elected", &m.elected)
}
