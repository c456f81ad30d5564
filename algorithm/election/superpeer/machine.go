package superpeer

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// role is what a process is.
type role int

const (
	searching role = iota // for its super-peer
	client
	super
	gone // it has left
)

// purpose is the purpose of the open question.
type purpose int

const (
	nothing purpose = iota
	join            // a search for a super-peer
	watch           // a super-peer's search for another one before it
	merge           // its search for the super-peer of the larger segment
	renew           // a client's PING
)

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	NoSplit bool // R10 is missing: a super-peer takes every client of its segment
}

// machine is one node. A super-peer has clients and no super-peer. A client has a
// super-peer and no clients. A searching node has neither. A super-peer is before its
// clients in the segment, because a search only goes to nodes before the searching one.
type machine struct {
	ring ring
	self process.ID
	flaw Flaw
	base int // k: no segment is wider
	cap  int
	// The times, in message delays D.
	answer process.Duration
	period process.Duration

	role    int // a role; an int, because Fields names it
	depth   int // bits of the segment that it serves, is served in, or searches
	sp      process.ID
	clients []process.ID // rising, never more than cap
	silent  []uint64     // for each of them, checks since it was last heard
	missed  int          // PINGs in a row without an answer
	round   uint64       // announcements

	purpose int    // of the open question
	attempt uint64 // its number
	asked   process.ID
	find    bool       // it asks for the next node on the path, not to become a client
	at      process.ID // the node that answered last on the path
	dead    process.ID // the node that has not answered since, or None
	follows int        // redirections since the search began
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	s := SizesOf(c)
	m := &machine{
		ring: ring{c, s.Bits}, self: self, flaw: flaw, base: s.Prefix, cap: s.Cap,
		answer: 3 * c.D(), period: process.Duration(s.Check) * c.D(),
	}
	m.forget()
	return m
}

// forget sets the state in which a machine begins.
func (m *machine) forget() {
	m.role, m.depth, m.sp, m.missed = int(searching), m.base, process.None, 0
	m.clients, m.silent = m.clients[:0], m.silent[:0]
	m.closeQuestion()
}

func (m *machine) is(r role) bool       { return m.role == int(r) }
func (m *machine) about(p purpose) bool { return m.purpose == int(p) }

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	if m.is(gone) && ev.Kind != process.Restart {
		return
	}
	switch ev.Kind {
	case process.Start, process.Restart:
		m.forget()
		m.startJoin(fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	case process.Fire:
		if ev.Timer == answerTimer {
			m.onSilence(fx)
		} else {
			m.onCheck(fx)
		}
	case process.Campaign, process.Neighbor:
		m.look(fx)
	case process.Rejoin:
		m.onRejoin(ev.Peer, fx)
	case process.Leave:
		m.onLeave(fx)
	}
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	switch msg.Type {
	case findType:
		m.onFind(msg, fx)
	case attachType:
		m.onAttach(msg, fx)
	case mergeType:
		m.onMerge(msg, fx)
	case pingType:
		m.onPing(msg, fx)
	case detachType:
		m.drop(msg.From)
	case redirectType:
		m.onRedirect(msg, fx)
	case splitType:
		m.onSplit(msg, fx)
	case nextType, attachedType, busyType, pongType:
		if msg.From == m.asked && msg.Seq == m.attempt {
			m.onAnswer(msg, fx)
		}
	}
}

// armCheck sets the timer of the next check to one period, or less if there is no
// super-peer yet; random, so that not all nodes check at the same time.
func (m *machine) armCheck(fx *process.Effects) {
	wait := m.period
	if m.is(searching) {
		wait = 2 * m.answer
	}
	fx.Arm(checkTimer, wait, wait+wait/4)
}

// onCheck ends a period.
func (m *machine) onCheck(fx *process.Effects) {
	m.armCheck(fx)
	if m.is(super) {
		m.forgetSilent()
	}
	m.look(fx)
}

// look is R8: a node that has a super-peer checks that it is up, and a super-peer
// checks whether it should still be one. An open question is completed first.
func (m *machine) look(fx *process.Effects) {
	switch {
	case !m.about(nothing):
	case m.is(client):
		fx.Rule(ruleR8)
		m.ping(fx)
	case m.is(searching):
		m.startJoin(fx)
	case m.ring.first(m.self, m.depth):
		m.purpose = int(watch)
		m.onFirst(fx)
	default:
		m.search(watch, fx)
	}
}

// become is R3: no live node is before this one in its segment.
func (m *machine) become(fx *process.Effects) {
	m.closeQuestion()
	fx.Disarm(answerTimer)
	if m.is(super) {
		return
	}
	fx.Rule(ruleR3)
	m.role, m.missed = int(super), 0
	m.clients, m.silent = m.clients[:0], m.silent[:0]
	m.announce(m.self, fx)
	m.armCheck(fx)
}

// announce tells the layer above who serves this process.
func (m *machine) announce(sp process.ID, fx *process.Effects) {
	if m.sp == sp {
		return
	}
	m.sp = sp
	m.round++
	fx.Elect(sp, process.MakeTerm(m.round, sp))
}

// adopt is R5: another node has accepted this one as its client.
func (m *machine) adopt(sp process.ID, depth int, fx *process.Effects) {
	if m.is(super) {
		m.handOver(sp, fx)
	}
	m.closeQuestion()
	fx.Disarm(answerTimer)
	was := m.role
	m.role, m.depth, m.missed = int(client), depth, 0
	m.announce(sp, fx)
	if was != int(client) {
		m.armCheck(fx)
	}
}

// handOver is R7: the clients go to another super-peer.
func (m *machine) handOver(to process.ID, fx *process.Effects) {
	fx.Rule(ruleR7)
	for _, p := range m.clients {
		if p != to {
			fx.Send(p, process.Message{Type: redirectType, Subject: to, Value: int64(m.depth)})
		}
	}
	m.clients, m.silent = m.clients[:0], m.silent[:0]
}

// onRejoin: a node that is back has forgotten its clients and its super-peer.
func (m *machine) onRejoin(p process.ID, fx *process.Effects) {
	m.drop(p)
	if m.is(client) && m.sp == p && m.about(nothing) {
		m.lose(fx)
	}
}

// onLeave is R9. The first of the clients is next in the segment.
func (m *machine) onLeave(fx *process.Effects) {
	fx.Rule(ruleR9)
	if m.is(super) && len(m.clients) > 0 {
		heir := m.clients[0]
		fx.Send(heir, process.Message{Type: redirectType, Subject: heir, Value: int64(m.depth)})
		m.handOver(heir, fx)
	}
	if m.is(client) {
		fx.Send(m.sp, process.Message{Type: detachType})
	}
	m.forget()
	m.role = int(gone)
	fx.Disarm(answerTimer)
	fx.Disarm(checkTimer)
}

// drop forgets a client.
func (m *machine) drop(p process.ID) {
	if i, found := slices.BinarySearch(m.clients, p); found {
		m.clients = slices.Delete(m.clients, i, i+1)
		m.silent = slices.Delete(m.silent, i, i+1)
	}
}

// Fields names the state. None of it survives a crash: a node that is back asks again.
func (m *machine) Fields(f *process.Fields) {
	f.Count("role", &m.role)
	f.Count("k", &m.depth)
	f.ID("sp", &m.sp)
	f.IDs("clients", &m.clients)
	f.Uints("silent", &m.silent)
	f.Count("missed", &m.missed)
	f.Seq("round", &m.round)
	f.Count("purpose", &m.purpose)
	f.Seq("attempt", &m.attempt)
	f.ID("asked", &m.asked)
	f.Bool("find", &m.find)
	f.ID("at", &m.at)
	f.ID("dead", &m.dead)
	f.Count("follows", &m.follows)
}
