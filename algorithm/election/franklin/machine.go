package franklin

import (
	"github.com/conclave-io/conclave/algorithm/election/ring"
	"github.com/conclave-io/conclave/process"
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
