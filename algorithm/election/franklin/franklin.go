// Package franklin is the election of Franklin on a bidirectional ring: in each phase,
// only the processes that are better than the nearest candidates on both sides remain.
//
// # Problem and idea
//
// A process knows its two neighbors on the ring, not how many processes there are. Each
// candidate sends its label in both directions, to the nearest candidate there. So it
// also gets two labels, and gives up if one of them is better than its own. Of two
// neighboring candidates at most one remains, so each phase removes at least half of
// them. A process that has given up passes labels on, and the remaining candidates are
// neighbors in the next phase. A candidate that gets its own label from both sides is
// the only one left.
//
// # Rules
//
//	F1  start: unless this process takes part already, become a candidate of phase 1, and
//	    send LABEL(i, 1) left and right.
//	F2  the first message of a round: the same, before anything else.
//	F3  candidate of phase k, on LABEL(j, k) from one side: wait for that from the other.
//	F4  candidate of phase k, with the labels j and l from both sides:
//	    F4a i is better than j and l: send LABEL(i, k+1) left and right, and continue with
//	        the labels that F5 has kept.
//	    F4b j or l is better than i: give up, and pass on the labels that F5 has kept.
//	    F4c both are i: no other candidate is left. i leads, send ELECTED(i) right.
//	F5  candidate of phase k, on LABEL(j, k+1): keep it until this process is in phase k+1
//	    or has given up.
//	F6  given up in phase k, on LABEL(j, h) with h > k: pass it on.
//	F7  on ELECTED(j): j leads, pass it on. F7a it has completed the ring: stop it.
//	F8  a message of a round or a phase that is over: discard.
//
// Each message carries the direction in which it travels.
//
// # Why it is safe
//
// A label of phase k passes only processes that have given up in an earlier phase. So
// each candidate of phase k gets the labels of the candidates of phase k that are
// nearest to it on both sides. The best candidate never gives up, and its neighbors do.
// So candidates are removed until it is the only one, and its labels complete the ring.
// A candidate is at most one phase ahead of the next one, because it needs that one's
// label in each phase. So F5 keeps at most one label for each side. Elections are
// numbered by rounds, and a higher round ends a lower one.
//
// # Cost
//
// In each phase every link carries one LABEL in each direction: 2N messages. There are
// at most log2(N) phases, rounded down, with two or more candidates. The last phase has
// one candidate and costs 2N as well, the announcement N ELECTED. Together that is at
// most 2N log2(N) + 3N messages, and at least 5N, on a ring on which labels rise or
// fall. The number depends only on the arrangement of the labels, not on the starters
// or on delays.
//
// On a ring on which labels rise, with one starter s hops away from the best process, the
// best process starts after s message times. It gets the last label of phase 1 two message
// times later, because the neighbor behind it starts one later. If it is opposite the
// starter, it gets that label after N/2, rounded up. Its own labels need N message times,
// the announcement N-1.
//
// # Assumptions and deviations
//
// Links work in both directions and lose nothing. N is not known. Franklin's links keep
// order, so that his messages need no number of the phase: the k-th label from a side
// belongs to phase k. Here messages carry it, and order does not matter. In a ring of
// two there are two links between the same two processes, so a message carries its
// direction as well. The first message wakes a process, so the highest of all wins and
// not the highest starter. The leader waits for both its labels, although one would be
// enough: when it announces itself, no other message of the round is in transit. Labels
// are unique; they are represented by ranks, and if two labels were equal the higher
// rank would be better. The announcement and the rounds are additions.
//
// Not survived: any crash, because it cuts the ring, and any loss of a message.
//
// Source: W. R. Franklin: On an improved algorithm for decentralized extrema finding in
// circular configurations of processors, 1982.
package franklin

import (
	"math/bits"

	"github.com/conclave-io/conclave/algorithm/election/ring"
	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:   "franklin",
	Title:  "Bidirectional ring election of Franklin",
	Paper:  "W. R. Franklin: On an improved algorithm for decentralized extrema finding in circular configurations of processors, CACM 25(5), 1982, doi:10.1145/358506.358517",
	Family: process.Election,
	Messages: []process.MessageSpec{
		{Name: "LABEL", Fields: []process.FieldUse{id, round, {Field: process.FieldSeq, Symbol: "phase"}, direction}},
		{Name: "ELECTED", Fields: []process.FieldUse{id, round}},
	},
	Rules: []process.RuleSpec{
		{Name: "F1", Text: "start: become a candidate, send LABEL with its own label left and right"},
		{Name: "F2", Text: "first message of a round: become a candidate and send its own LABEL before handling it"},
		{Name: "F3", Text: "candidate, LABEL from one side: wait for the other side"},
		{Name: "F4a", Text: "better than the labels from both sides: begin the next phase, send LABEL left and right"},
		{Name: "F4b", Text: "worse than a label from one side: give up"},
		{Name: "F4c", Text: "its own label from both sides: lead, send ELECTED"},
		{Name: "F5", Text: "candidate, LABEL of the next phase: keep it"},
		{Name: "F6", Text: "given up, LABEL of a later phase: pass it on"},
		{Name: "F7", Text: "ELECTED: record the leader, pass it on"},
		{Name: "F7a", Text: "ELECTED that has completed the ring: stop it"},
		{Name: "F8", Text: "a message of a round or a phase that is over: discard it"},
	},
	Needs:  process.Needs{Reliable: true, Topology: process.RingTopology},
	Claims: claims,
	New:    Flaw{}.New,
}

const (
	several = "N >= 2"
	rising  = "the labels rise to the right, N >= 2"
)

var claims = process.Claims{
	Properties: process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence),
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: rising, Exact: least},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: several + ", any arrangement of the labels, any starters", Lo: least, Hi: most},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: rising + ", s hops from the starter to the maximum, the shorter way; N+ceil(N/2)-1 more if it is opposite; until the last process knows the leader",
			Exact: fromStart},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "labels carry their phase, and one of the next phase is kept"},
		{Fault: process.Duplication, How: "a label of a phase that is over is discarded, and one of this phase replaces its twin"},
	},
}

// least is one phase with several candidates, the last phase and ELECTED.
var least = process.PerProcess("5N", 5)

var most = process.OfN("2N floor(log2 N)+3N", func(n float64) float64 { return 2*n*float64(bits.Len(uint(n))-1) + 3*n })

// fromStart is when the maximum has the labels of its neighbors, then N hops of its
// labels, and N-1 of ELECTED. The farther neighbor of the maximum starts one hop after
// the maximum, unless the maximum is the farthest of all.
var fromStart = &process.Formula{Text: "2N+1+s", Eval: func(p process.Params) float64 {
	s := min(p.Distance, p.N-p.Distance)
	alone := s + 2
	if s == p.N/2 {
		alone = (p.N + 1) / 2
	}
	return float64(alone + 2*p.N - 1)
}}

var (
	id        = process.FieldUse{Field: process.FieldSubject, Symbol: "id"}
	round     = process.FieldUse{Field: process.FieldTerm, Symbol: "round"}
	direction = process.FieldUse{Field: process.FieldValue, Symbol: "to", Names: []string{"right", "left"}}
)

const (
	label process.Type = iota + 1
	elected
)

const (
	ruleF1 process.Rule = iota + 1
	ruleF2
	ruleF3
	ruleF4a
	ruleF4b
	ruleF4c
	ruleF5
	ruleF6
	ruleF7
	ruleF7a
	ruleF8
)

// right is the direction of the ring, left the other one.
const (
	right = iota
	left
)

type role uint8

const (
	idle role = iota // no election is in progress
	candidate
	relay
)

var roleNames = []string{"IDLE", "CANDIDATE", "RELAY"}

// labels are by the direction in which they travelled here; None: not here yet.
type labels [2]process.ID

var none = labels{process.None, process.None}

func (l *labels) both() bool { return l[right] != process.None && l[left] != process.None }

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	NoPhase       bool // a candidate takes the latest label from each side, whatever its phase
	SleepersRelay bool // F2 makes a relay of a process that has not started
}

type machine struct {
	c        *process.Config
	self     process.ID
	flaw     Flaw
	neighbor [2]process.ID // by direction; self if this process is alone

	round   uint64 // the highest seen; rises before any message of a new one is sent
	role    role
	phase   uint64       // the last in which this process was a candidate; 0 while idle
	got     labels       // candidate: of this phase; not both
	early   labels       // candidate: of the next phase
	elected process.Term // of the latest leader, or 0
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := &machine{c: c, self: self, flaw: flaw, got: none, early: none}
	m.neighbor[right] = c.Topology.Next(self, c.N)
	before := self
	for p := m.neighbor[right]; p != self; p = c.Topology.Next(p, c.N) {
		before = p
	}
	m.neighbor[left] = before
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

// start is F1.
func (m *machine) start(fx *process.Effects) {
	if m.role != idle {
		return
	}
	fx.Rule(ruleF1)
	m.join(m.round+1, fx)
}

// join makes this process a candidate. A process that is alone has won.
func (m *machine) join(round uint64, fx *process.Effects) {
	m.see(round, candidate, fx)
	if m.neighbor[right] == m.self {
		m.win(fx)
		return
	}
	m.stand(fx)
}

// see notes a round and the role of this process in it, and saves the round before any
// message of it is sent.
func (m *machine) see(round uint64, as role, fx *process.Effects) {
	m.round, m.role = round, as
	m.phase, m.got, m.early = 0, none, none
	fx.Save()
}

// stand begins the next phase, in which some labels may be here already.
func (m *machine) stand(fx *process.Effects) {
	m.phase++
	m.got, m.early = m.early, none
	for _, to := range []int{left, right} {
		m.send(m.self, m.phase, to, fx)
	}
	if m.got.both() {
		m.judge(fx)
	}
}

func (m *machine) send(of process.ID, phase uint64, to int, fx *process.Effects) {
	fx.Send(m.neighbor[to], process.Message{
		Type: label, Subject: of, Term: process.MakeTerm(m.round, of), Seq: phase, Value: int64(to),
	})
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	r := msg.Term.Round()
	switch {
	case msg.Type == elected:
		m.onElected(msg, fx)
		return
	case r < m.round || r == m.round && m.role == idle:
		fx.Rule(ruleF8)
		return
	case r > m.round:
		m.wake(r, fx)
	}
	if m.flaw.NoPhase && m.role == candidate {
		m.onLabel(msg, fx)
		return
	}
	switch {
	case msg.Seq < m.phase || msg.Seq == m.phase && m.role == relay:
		fx.Rule(ruleF8)
	case m.role == relay:
		fx.Rule(ruleF6)
		m.send(msg.Subject, msg.Seq, int(msg.Value), fx)
	case msg.Seq > m.phase:
		process.Assert(msg.Seq == m.phase+1, "a candidate is at most one phase ahead of the next one")
		fx.Rule(ruleF5)
		m.early[msg.Value] = msg.Subject
	default:
		m.onLabel(msg, fx)
	}
}

// wake is F2.
func (m *machine) wake(round uint64, fx *process.Effects) {
	if m.flaw.SleepersRelay {
		m.see(round, relay, fx)
		return
	}
	fx.Rule(ruleF2)
	m.join(round, fx)
}

// onLabel is F3.
func (m *machine) onLabel(msg *process.Message, fx *process.Effects) {
	m.got[msg.Value] = msg.Subject
	if !m.got.both() {
		fx.Rule(ruleF3)
		return
	}
	m.judge(fx)
}

// judge is F4.
func (m *machine) judge(fx *process.Effects) {
	switch {
	case m.got[right] == m.self && m.got[left] == m.self:
		m.win(fx)
	case ring.Better(m.got[right], m.self, m.c) || ring.Better(m.got[left], m.self, m.c):
		m.giveUp(fx)
	default:
		fx.Rule(ruleF4a)
		m.stand(fx)
	}
}

// giveUp is F4b. A label of the next phase is not for this process any more.
func (m *machine) giveUp(fx *process.Effects) {
	fx.Rule(ruleF4b)
	kept := m.early
	m.role, m.got, m.early = relay, none, none
	for to, p := range kept {
		if p != process.None {
			m.send(p, m.phase+1, to, fx)
		}
	}
}

// win is F4c.
func (m *machine) win(fx *process.Effects) {
	fx.Rule(ruleF4c)
	m.record(process.MakeTerm(m.round, m.self), fx)
	m.announce(m.self, fx)
}

func (m *machine) announce(leader process.ID, fx *process.Effects) {
	if m.neighbor[right] != m.self {
		fx.Send(m.neighbor[right], process.Message{Type: elected, Subject: leader, Term: process.MakeTerm(m.round, leader)})
	}
}

// onElected is F7.
func (m *machine) onElected(msg *process.Message, fx *process.Effects) {
	if msg.Term <= m.elected {
		fx.Rule(ruleF7a)
		return
	}
	fx.Rule(ruleF7)
	if r := msg.Term.Round(); r > m.round {
		m.see(r, idle, fx)
	}
	m.record(msg.Term, fx)
	m.announce(msg.Subject, fx)
}

// record notes the leader and announces it.
func (m *machine) record(t process.Term, fx *process.Effects) {
	m.role, m.phase, m.got, m.early = idle, 0, none, none
	m.elected = t
	fx.Elect(t.Leader(), t)
}

// Fields names the state. Only the round must survive a crash: a process that forgot it
// could lead twice in one term.
func (m *machine) Fields(f *process.Fields) {
	f.Durable().Seq("round", &m.round)
	process.Enum(f, "st", &m.role, roleNames)
	f.Seq("phase", &m.phase)
	f.ID("right", &m.got[right])
	f.ID("left", &m.got[left])
	f.ID("early right", &m.early[right])
	f.ID("early left", &m.early[left])
	f.Term("elected", &m.elected)
}
