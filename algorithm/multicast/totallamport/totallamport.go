// Package totallamport is multicast that all processes deliver in one sequence, the
// order of logical time.
//
// # Problem and idea
//
// Replicas that do the same things in the same order stay equal. So all processes must
// deliver all multicasts in one sequence, without a process in charge of it. The
// sequence is that of their timestamps. Every process keeps received multicasts in a
// queue sorted by timestamp. It delivers the head once nothing older can come: when a
// younger message has come from every process. So that it need not wait for others to
// send something, every process acknowledges every multicast to all others.
//
// # Rules
//
// Every message carries the logical time of its sending. The clock ticks before each
// event of the process itself, and goes beyond the time of each received message.
//
//	R1  multicast m: its stamp is (T, rank), T being the time. Queue it, send it to all
//	    others.
//	R2  on m, or an ACK that carries m, for the first time: queue it, send ACK with
//	    m to all others.
//	R3  on an ACK of a known multicast: remember its time, as with every message.
//	R4  after each of these: while a message younger than the head of the queue has
//	    come from every process except its sender, deliver the head.
//	R5  j has crashed: send FLUSH(j) to all others, and accept nothing more from j
//	    itself. Stop waiting for j once FLUSH has come from every live process, for
//	    every crashed process.
//
// # Why it is safe
//
// Links keep the order of messages. So when a message younger than m has come from j,
// everything that j has sent before has come too, and what it sends later is younger.
// Then no process misses anything older than m, and all deliver m at the same position.
// The clock makes a multicast younger than everything that was delivered before it: the
// order is causal, and also FIFO.
//
// Crashes: a multicast that j did not complete is known to some processes. An ACK
// carries the multicast and goes to all others, so every process that has it passes it
// on. On a FIFO link that comes before the FLUSH(j) of the same process. So once the
// FLUSH of all live processes is here, everything is here that any of them ever
// accepted from j, and all know the same. If k crashes too, what only k had told was
// either passed on by its receivers, before their FLUSH(k), or reached no one.
//
// # Cost
//
// N(N-1) messages for a multicast: N-1 by its sender and N-1 ACKs by each of the N-1
// others. It is delivered everywhere after two message delays. A crash costs a FLUSH on
// every link between live processes.
//
// # Assumptions and deviations
//
// Links are FIFO and lose nothing. Messages may be duplicated: the times on a link
// grow, so a message whose time does not grow is a duplicate. Without FIFO links an ACK
// may overtake a multicast, and the order breaks (see the script unordered). Crashes
// need a reliable detector; a process that was declared crashed stays out for good.
//
// [D0] calls a permission algorithm "totally ordered multicast"; that algorithm orders
// requests and delivers nothing. This package is the multicast; package totalorder is
// mutual exclusion above it. The usual textbook form has no crashes, and ACKs without
// content. The content makes messages longer but not more, and makes the multicast
// reliable.
//
// A layer above passes its broadcasts to this one and gets them back at every process,
// including its own. What it sends to one process is multicast too, and passed up by
// that process alone. Each is passed up with its position in the sequence as its Fence:
// the number of its stamp.
//
// Sources: L. Lamport (1978); [D0] and [D4] (names only).
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
	Documents: []string{"[D0]", "[D4]"},
	Family:    process.Multicast,
	Messages: []process.MessageSpec{
		{Name: "MSG", Fields: []process.FieldUse{sent, value, data}},
		{Name: "CARRIED", Fields: []process.FieldUse{sent, inner}},
		{Name: "ACK", Fields: []process.FieldUse{sent, from, stamped, value, data}},
		{Name: "CARRIED-ACK", Fields: []process.FieldUse{sent, from, stamped, inner}},
		{Name: "FLUSH", Class: process.Recovery, Fields: []process.FieldUse{sent, {Field: process.FieldSubject, Symbol: "of"}}},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "multicast: queue it, send it to all others"},
		{Name: "R2", Text: "a multicast for the first time: queue it, send ACK with it to all others"},
		{Name: "R3", Text: "an ACK of a known multicast: remember its time"},
		{Name: "R4", Text: "first in the queue, and a younger message has come from every process: deliver"},
		{Name: "R5", Text: "a process crashed: send FLUSH to all others, accept nothing more from it"},
		{Name: "R5a", Text: "FLUSH: its sender accepts nothing more from the crashed process"},
	},
	Needs:   process.Needs{FIFO: true, Reliable: true, Detector: process.ReliableDetector},
	Claims:  claims,
	Carrier: true,
	New:     newMachine,
}

var claims = process.Claims{
	Properties: process.Promises(process.OrderTotal, process.OrderCausal, process.OrderFIFO, process.MulticastAgreement),
	Costs: []process.Cost{
		{Metric: process.MessagesPerMulticast, Regime: process.AnyLoad,
			Exact: process.OfN("N(N-1)", func(n float64) float64 { return n * (n - 1) })},
	},
	Survives: []process.Survival{
		{Fault: process.Duplication, How: "the times on a link grow, so a duplicate is recognised"},
		{Fault: process.CrashAny, How: "ACKs carry what they acknowledge, and R5, with a reliable detector"},
	},
}

var (
	sent    = process.FieldUse{Field: process.FieldClock, Symbol: "t"}
	from    = process.FieldUse{Field: process.FieldSubject, Symbol: "from"}
	stamped = process.FieldUse{Field: process.FieldSeq, Symbol: "T"}
	value   = process.FieldUse{Field: process.FieldValue, Symbol: "value"}
	data    = process.FieldUse{Field: process.FieldData, Symbol: "data"}
	inner   = process.FieldUse{Field: process.FieldData, Symbol: "of", Carried: true}
)

// A multicast comes from the application or from a layer above; its ACK is two types
// higher.
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

// flushed says that one process accepts nothing more from another.
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

// newMachine starts the clock high enough that positions are above the fences of the
// base.
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

// onMessage does what R2, R3 and R5 have in common: it updates the clock and the time
// last heard from the sender. A message that is not younger than the sender's last one
// is a duplicate.
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

// learn is R2 and R3. The multicasts of one sender become known in their order, from
// the sender and from each process that acknowledges them. So the time of the latest
// tells which are new.
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

// enqueue stores a multicast, whose data is lent.
func (m *machine) enqueue(it item) {
	m.seen[it.stamp.ID] = it.stamp.Clock
	it.data = slices.Clone(it.data)
	at := len(m.queue)
	for at > 0 && it.stamp.Less(m.queue[at-1].stamp) { // few multicasts are younger than one that arrives
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

// ripe reports whether nothing older than the stamp can come any more. The sender of
// the stamp has sent everything older before it.
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

// settled reports whether everything that any live process has accepted from crashed
// ones is known here.
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

// handUp passes a multicast to the application, or to its layer. A multicast that a
// layer above has sent to another process only takes its position in the order.
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

// place is the number of a stamp among all possible stamps. It grows along the
// sequence. Processes agree on it even if they have not delivered all earlier
// multicasts.
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
