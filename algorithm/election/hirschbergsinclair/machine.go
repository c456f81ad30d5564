package hirschbergsinclair

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
	beaten
)

var roleNames = []string{"IDLE", "CANDIDATE", "BEATEN"}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	SideBySender    bool // the direction of a message is taken from its sender
	SleepersDiscard bool // H3a is missing: a process that does not take part discards a PROBE with a worse label
}

type machine struct {
	c        *process.Config
	self     process.ID
	flaw     Flaw
	neighbor [2]process.ID // by direction; self if this process is alone

	round   uint64 // the highest seen; rises before any message of a new one is sent
	role    role
	reach   uint64       // candidate: how many hops its PROBEs may go; else 0
	replied [2]bool      // candidate: by the direction of the PROBE; not both
	elected process.Term // of the latest leader, or 0
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := &machine{c: c, self: self, flaw: flaw}
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

// start is H1.
func (m *machine) start(fx *process.Effects) {
	if m.role != idle {
		return
	}
	m.see(m.round+1, fx)
	m.run(fx)
}

// see notes a round, and saves it before any message of it is sent.
func (m *machine) see(round uint64, fx *process.Effects) {
	m.round, m.role, m.reach = round, idle, 0
	fx.Save()
}

// run makes this process a candidate of the present round.
func (m *machine) run(fx *process.Effects) {
	fx.Rule(ruleH1)
	m.role, m.reach = candidate, 1
	if m.neighbor[right] == m.self {
		m.win(fx)
		return
	}
	m.probe(fx)
}

// probe sends PROBE in both directions.
func (m *machine) probe(fx *process.Effects) {
	m.replied = [2]bool{}
	for _, to := range []int{left, right} {
		m.send(probe, m.self, m.reach, to, fx)
	}
}

func (m *machine) send(kind process.Type, of process.ID, hops uint64, to int, fx *process.Effects) {
	fx.Send(m.neighbor[to], process.Message{
		Type: kind, Subject: of, Term: process.MakeTerm(m.round, of), Seq: hops, Value: int64(to),
	})
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	r := msg.Term.Round()
	if r > m.round {
		m.see(r, fx)
	}
	switch {
	case msg.Type == elected:
		m.onElected(msg, fx)
	case r < m.round || r == m.elected.Round():
		fx.Rule(ruleH7)
	case msg.Type == probe:
		m.onProbe(msg, m.travels(msg), fx)
	default:
		m.onReply(msg, m.travels(msg), fx)
	}
}

// travels returns the direction of a message.
func (m *machine) travels(msg *process.Message) int {
	if m.flaw.SideBySender {
		if msg.From == m.neighbor[left] {
			return right
		}
		return left
	}
	return int(msg.Value)
}

// onProbe is H2, H3 and H4.
func (m *machine) onProbe(msg *process.Message, to int, fx *process.Effects) {
	j := msg.Subject
	switch {
	case j == m.self && m.role == candidate:
		m.win(fx)
	case ring.Better(m.self, j, m.c) && m.role == idle && !m.flaw.SleepersDiscard:
		fx.Rule(ruleH3a)
		m.run(fx)
	case !ring.Better(j, m.self, m.c):
		fx.Rule(ruleH3)
	case msg.Seq > 1:
		fx.Rule(ruleH2a)
		m.giveUp()
		m.send(probe, j, msg.Seq-1, to, fx)
	default:
		fx.Rule(ruleH2b)
		m.giveUp()
		m.send(reply, j, 0, left-to, fx)
	}
}

func (m *machine) giveUp() { m.role, m.reach, m.replied = beaten, 0, [2]bool{} }

// win is H4.
func (m *machine) win(fx *process.Effects) {
	fx.Rule(ruleH4)
	m.record(process.MakeTerm(m.round, m.self), fx)
	m.announce(m.self, fx)
}

func (m *machine) announce(leader process.ID, fx *process.Effects) {
	if m.neighbor[right] != m.self {
		fx.Send(m.neighbor[right], process.Message{Type: elected, Subject: leader, Term: process.MakeTerm(m.round, leader)})
	}
}

// onReply is H5. A REPLY travels against the PROBE that it answers.
func (m *machine) onReply(msg *process.Message, to int, fx *process.Effects) {
	if msg.Subject != m.self {
		fx.Rule(ruleH5)
		m.send(reply, msg.Subject, 0, to, fx)
		return
	}
	if m.role != candidate {
		fx.Rule(ruleH7)
		return
	}
	m.replied[left-to] = true
	if !m.replied[to] {
		fx.Rule(ruleH5a)
		return
	}
	fx.Rule(ruleH5b)
	m.reach *= 2
	m.probe(fx)
}

// onElected is H6.
func (m *machine) onElected(msg *process.Message, fx *process.Effects) {
	if msg.Term <= m.elected {
		fx.Rule(ruleH6a)
		return
	}
	fx.Rule(ruleH6)
	m.record(msg.Term, fx)
	m.announce(msg.Subject, fx)
}

// record notes the leader and announces it.
func (m *machine) record(t process.Term, fx *process.Effects) {
	m.giveUp()
	m.role, m.elected = idle, t
	fx.Elect(t.Leader(), t)
}

// Fields names the state. Only the round must survive a crash: a process that forgot it
// could lead twice in one term.
func (m *machine) Fields(f *process.Fields) {
	f.Durable().Seq("round", &m.round)
	process.Enum(f, "st", &m.role, roleNames)
	f.Uint("reach", &m.reach)
	f.Bool("right", &m.replied[right])
	f.Bool("left", &m.replied[left])
	f.Term("elected", &m.elected)
}
