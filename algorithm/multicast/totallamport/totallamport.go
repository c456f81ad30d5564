// Package totallamport is multicast that all deliver in one sequence, the order of
// logical time.
//
// # Problem and idea
//
// Replicas that do the same things in the same order stay equal. So everybody must
// deliver all multicasts in one sequence, though nobody is in charge of it. The
// sequence is that of their time stamps. Everybody keeps what has come in a queue
// sorted by them, and delivers the head once it is sure that nothing older can
// come: when it has heard something younger from everybody. So that it need not
// wait for others to have something to say, everybody acknowledges every multicast
// to everybody.
//
// # Rules
//
// Every message carries the logical time of its sending. The clock ticks before
// each own event, and goes beyond the time of each message that comes.
//
//	R1  multicast m: its stamp is (T, rank), T being the time. Queue it, send it to
//	    everybody else.
//	R2  on m, or an ACK that carries m, for the first time: queue it, send ACK with
//	    m to everybody else.
//	R3  on an ACK of what is known: remember its time, as with every message.
//	R4  after each of these: while from everybody but the sender of the head of the
//	    queue something younger than the head has come, deliver the head.
//	R5  j has crashed: send FLUSH(j) to everybody else, and take nothing from j
//	    itself any more. Wait for j no longer once FLUSH has come from everybody
//	    alive, for everybody who has crashed.
//
// # Why it is safe
//
// Links keep the order of messages, so when something younger than m has come from
// j, all that j has sent before has come too, and what it sends later is younger.
// Then nothing older than m is missing, anywhere, and all deliver m at the same
// place. The clock makes a multicast younger than all that was delivered before it:
// the order is causal, and FIFO as well.
//
// Crashes. A multicast of j that was cut short is known to some. Because an ACK
// carries what it acknowledges, and goes to everybody, whoever has it passes it on;
// on a FIFO link that comes before the FLUSH(j) of the same process. So once the
// FLUSH of all who live is here, all is here that any of them ever took from j, and
// all know the same. If k crashes meanwhile, what only k had told is either told by
// those that it reached, before their FLUSH(k), or reached nobody.
//
// # Cost
//
// N(N-1) messages for a multicast: N-1 by its sender and N-1 ACKs by each of the
// N-1 others. It is delivered everywhere after two message delays. A crash costs a
// FLUSH on every link of those who are left.
//
// # Assumptions and deviations
//
// Links are FIFO and lose nothing; messages may come twice: the times on a link
// grow, so one that does not is a repetition. Without FIFO links an ACK overtakes a
// multicast, and the order breaks (see the script unordered). Crashes need a
// reliable detector; who was declared crashed stays out for good.
//
// [D0] calls an algorithm of permissions "totally ordered
// multicast"; that one puts requests in order and delivers nothing. Here is the
// multicast; the mutual exclusion that it makes is package totalorder. The usual
// textbook form has no crashes, and ACKs without content; the content costs size,
// not messages, and makes the multicast reliable.
//
// A layer above hands its broadcasts to this one and gets them back at every
// process, its own included. What it sends to one process is multicast too, and
// handed up by that process alone. Each is handed up with its place in the sequence
// as its Fence: the number of its stamp.
//
// Sources: L. Lamport (1978); [D0] and
// [D4] (names only).
package totallamport

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "total-lamport",
	Title:     "Total order by Lamport's clocks and acknowledgements",
	Paper:     "L. Lamport: Time, Clocks, and the Ordering of Events in a Distributed System, Communications of the ACM 21(7), 1978, doi:10.1145/359545.359563",
	Documents: []string{doc000, doc004},
	Family:    process.Multicast,
	Messages: []process.MessageSpec{
		{Name: "MSG", Fields: []process.FieldUse{sent, value, data}},
		{Name: "CARRIED", Fields: []process.FieldUse{sent, inner}},
		{Name: "ACK", Fields: []process.FieldUse{sent, from, stamped, value, data}},
		{Name: "CARRIED-ACK", Fields: []process.FieldUse{sent, from, stamped, inner}},
		{Name: "FLUSH", Class: process.Recovery, Fields: []process.FieldUse{sent, {Field: process.FieldSubject, Symbol: "of"}}},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "multicast: queue it, send it to everybody else"},
		{Name: "R2", Text: "a multicast for the first time: queue it, send ACK with it to everybody else"},
		{Name: "R3", Text: "an ACK of what is known: remember its time"},
		{Name: "R4", Text: "first in the queue, and something younger has come from everybody: deliver"},
		{Name: "R5", Text: "a peer crashed: send FLUSH to everybody else, take nothing from it any more"},
		{Name: "R5a", Text: "FLUSH: its sender takes nothing from the crashed any more"},
	},
	Needs:   process.Needs{FIFO: true, Reliable: true, Detector: process.ReliableDetector},
	Claims:  claims,
	Carrier: true,
	New:     newMachine,
}

var (
	sent    = process.FieldUse{Field: process.FieldClock, Symbol: "t"}
	from    = process.FieldUse{Field: process.FieldSubject, Symbol: "from"}
	stamped = process.FieldUse{Field: process.FieldSeq, Symbol: "T"}
	value   = process.FieldUse{Field: process.FieldValue, Symbol: "value"}
	data    = process.FieldUse{Field: process.FieldData, Symbol: "data"}
	inner   = process.FieldUse{Field: process.FieldData, Symbol: "of", Carried: true}
)

// A multicast is either the application's or a layer's above; its ACK is two types
// further on.
const (
	msg process.Type = iota + 1
	carried
	ack
	carriedAck
	flush
)

const toAck = ack - msg

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR3
	ruleR4
	ruleR5
	ruleR5a
)

// item is a multicast.
type item struct {
	kind  process.Type // msg or carried
	stamp process.Stamp
	value int64
	data  []byte
}

// flushed says that a process takes nothing from another any more.
type flushed struct{ by, of process.ID }

type machine struct {
	c    *process.Config
	self process.ID

	clock   uint64      // the logical time of the latest event
	queue   []item      // known and not delivered, sorted by stamp
	seen    []uint64    // by sender: the time of its latest multicast that is known
	last    []uint64    // by rank: the time of the latest message from it
	failed  process.Set // known to have crashed
	flushes []flushed   // told by peers, each once

	scratch        []byte
	scratchMessage process.Message
}

// newMachine starts the clock so high that places are above the fences of the base.
func newMachine(self process.ID, c *process.Config) process.Machine {
	return &machine{
		c: c, self: self, clock: max(c.Base.Clock, (uint64(c.Base.Fence)+uint64(c.N)-1)/uint64(c.N)),
		seen: make([]uint64, c.N), last: make([]uint64, c.N), failed: process.NewSet(c.N),
	}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Propose:
		m.multicast(item{kind: msg, value: ev.Value, data: ev.Data}, fx)
	case process.Transmit:
		m.scratch = ev.Message.AppendRaw(m.scratch[:0])
		m.multicast(item{kind: carried, data: m.scratch}, fx)
	case process.Fail:
		m.onFail(ev.Peer, fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	}
}

// multicast is R1.
func (m *machine) multicast(it item, fx *process.Effects) {
	fx.Rule(ruleR1)
	m.clock++
	it.stamp = process.Stamp{Clock: m.clock, ID: m.self}
	m.enqueue(it)
	fx.Broadcast(process.Message{Type: it.kind, Clock: m.clock, Value: it.value, Data: it.data})
	m.deliverRipe(fx)
}

// onMessage is what R2, R3 and R5 have in common: the clock, and who has been heard
// of. What is not younger than the last message of its sender is a repetition.
func (m *machine) onMessage(in *process.Message, fx *process.Effects) {
	if m.failed.Has(in.From) || in.Clock <= m.last[in.From] {
		return
	}
	m.clock = max(m.clock, in.Clock) + 1
	m.last[in.From] = in.Clock
	switch in.Type {
	case msg, carried:
		m.learn(item{in.Type, process.Stamp{Clock: in.Clock, ID: in.From}, in.Value, in.Data}, fx)
	case ack, carriedAck:
		m.learn(item{in.Type - toAck, process.Stamp{Clock: in.Seq, ID: in.Subject}, in.Value, in.Data}, fx)
	case flush:
		fx.Rule(ruleR5a)
		if f := (flushed{in.From, in.Subject}); !slices.Contains(m.flushes, f) {
			m.flushes = append(m.flushes, f)
		}
	}
	m.deliverRipe(fx)
}

// learn is R2 and R3. The multicasts of one sender become known in their order,
// from itself and from each that acknowledges them, so the time of the latest tells
// which are new.
func (m *machine) learn(it item, fx *process.Effects) {
	if it.stamp.Clock <= m.seen[it.stamp.ID] {
		fx.Rule(ruleR3)
		return
	}
	fx.Rule(ruleR2)
	m.enqueue(it)
	m.clock++
	fx.Broadcast(process.Message{
		Type: it.kind + toAck, Clock: m.clock,
		Subject: it.stamp.ID, Seq: it.stamp.Clock, Value: it.value, Data: it.data,
	})
}

// enqueue keeps a multicast, whose data is lent.
func (m *machine) enqueue(it item) {
	m.seen[it.stamp.ID] = it.stamp.Clock
	it.data = slices.Clone(it.data)
	at := len(m.queue)
	for at > 0 && it.stamp.Less(m.queue[at-1].stamp) { // few are younger than one that comes
		at--
	}
	m.queue = slices.Insert(m.queue, at, it)
}

// deliverRipe is R4.
func (m *machine) deliverRipe(fx *process.Effects) {
	settled := m.settled()
	for len(m.queue) > 0 && m.ripe(m.queue[0].stamp, settled) {
		fx.Rule(ruleR4)
		head := m.queue[0]
		m.queue = slices.Delete(m.queue, 0, 1)
		m.handUp(&head, fx)
	}
}

// ripe reports whether nothing older than the stamp can come any more. Its sender
// itself has sent all that is older before.
func (m *machine) ripe(s process.Stamp, settled bool) bool {
	for k, heard := range m.last {
		k := process.ID(k)
		if k == m.self || k == s.ID || m.failed.Has(k) && settled {
			continue
		}
		if !s.Less(process.Stamp{Clock: heard, ID: k}) {
			return false
		}
	}
	return true
}

// settled reports whether all that anybody alive has taken from the crashed is
// known here.
func (m *machine) settled() bool {
	for of := range m.failed.All() {
		for by := range process.ID(m.c.N) {
			if by != m.self && !m.failed.Has(by) && !slices.Contains(m.flushes, flushed{by, of}) {
				return false
			}
		}
	}
	return true
}

// onFail is R5.
func (m *machine) onFail(p process.ID, fx *process.Effects) {
	if m.failed.Has(p) {
		return
	}
	fx.Rule(ruleR5)
	m.failed.Add(p)
	m.clock++
	fx.Broadcast(process.Message{Type: flush, Clock: m.clock, Subject: p})
	m.deliverRipe(fx)
}

// handUp gives a multicast to the application, or to the layer that it is of. One
// that a layer above has sent to somebody else only takes its place in the order.
func (m *machine) handUp(it *item, fx *process.Effects) {
	if it.kind == msg {
		fx.Deliver(&process.Message{
			Type: msg, From: it.stamp.ID, To: process.None, Clock: it.stamp.Clock, Value: it.value, Data: it.data,
		})
		return
	}
	inner := &m.scratchMessage
	if inner.DecodeRaw(it.data, m.c.N) == nil && (inner.To == process.None || inner.To == m.self) {
		inner.Fence = m.place(it.stamp)
		fx.Deliver(inner)
	}
}

// place is the number of a stamp among all stamps that there can be. It grows along
// the sequence, and those who deliver a multicast need not have delivered all before
// it to agree on it.
func (m *machine) place(s process.Stamp) process.Fence {
	return process.Fence((s.Clock-1)*uint64(m.c.N) + uint64(s.ID) + 1)
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	f.Clock("C", &m.clock)
	process.List(f, "q", &m.queue, itemFields)
	f.Clocks("seen", m.seen)
	f.Clocks("last", m.last)
	f.Set("failed", m.failed)
	process.List(f, "flushes", &m.flushes, flushedFields)
}

func itemFields(f *process.Fields, it *item) {
	process.Enum(f, "type", &it.kind, kindNames)
	f.Stamp("stamp", &it.stamp)
	f.Int("value", &it.value)
	f.Bytes("data", &it.data)
}

var kindNames = []string{"", "MSG", "CARRIED"}

func flushedFields(f *process.Fields, w *flushed) {
	f.ID("by", &w.by)
	f.ID("of", &w.of)
}
