// Package causal is multicast in causal order: a message is delivered after everything
// it may depend on.
//
// # Problem and idea
//
// One process asks by multicast, another answers by multicast, and a third gets the
// answer first. To prevent that, each multicast carries what its sender had delivered
// when it sent it: a vector with the number of multicasts delivered from each process.
// A receiver waits until it has delivered as much.
//
// # Rules
//
// V counts the multicasts delivered, by sender; at process i, V[i] also counts its
// own.
//
//	R1  multicast m at i: V[i]++, send m with V to all others, deliver it.
//	R2  on m with V' from j, if V'[j] = V[j]+1, and V'[k] <= V[k] for all others k:
//	    deliver it, V[j]++, and then the held multicasts that may be delivered now.
//	R3  otherwise, if V'[j] > V[j]: hold it.
//	R4  on m that was delivered or is held: drop it.
//	R5  mode echo: on m that is not dropped, before anything else, send it on to all
//	    others.
//
// # Why it is safe
//
// If multicast m happened before m', a chain of multicasts leads from one to the other.
// Each of them was delivered by the sender of the next before it sent that, or came
// from the same sender. Along the chain V only grows, so V' of m' counts m, and no
// process delivers m' without m. Causal order includes FIFO order, which is the case of
// one sender.
//
// # Cost
//
// N-1 messages for a multicast, each with N numbers; delivered everywhere after one
// message delay. Mode echo: N(N-1).
//
// # Assumptions and deviations
//
// Links lose nothing; order does not matter. Concurrent multicasts are delivered in
// different orders at different processes (see the script concurrent). Happened-before
// counts deliveries: a message that has come but is held has not yet happened for the
// application.
//
// In mode plain a sender that crashes in the middle of a multicast has told only some
// processes. If one of these answers, the others hold the answer forever: the crash
// also costs multicasts of live processes (see the script crash). Mode echo does not
// have this problem. The outline of [D4] names causal order and gives no rules; these
// are the rules of Birman, Schiper and Stephenson.
//
// A layer above passes its broadcasts to this one and gets them back at every process,
// including its own. What it sends to one process is multicast too, and passed up by
// that process alone.
//
// Sources: K. Birman, A. Schiper, P. Stephenson (1991); [D4].
package causal

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "causal-multicast",
	Title:     "Causal multicast with vector clocks",
	Paper:     "K. Birman, A. Schiper, P. Stephenson: Lightweight Causal and Atomic Group Multicast, ACM Transactions on Computer Systems 9(3), 1991, doi:10.1145/128738.128742",
	Documents: []string{"[D4]"},
	Family:    process.Multicast,
	Messages: []process.MessageSpec{
		{Name: "MSG", Fields: []process.FieldUse{from, vector, {Field: process.FieldValue, Symbol: "value"}, data}},
		{Name: "CARRIED", Fields: []process.FieldUse{from, vector, inner}},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "multicast: count it, send it to all others with the delivery counts, deliver it"},
		{Name: "R2", Text: "everything that happened before is delivered: deliver it, and the multicasts that waited for it"},
		{Name: "R3", Text: "a multicast that happened before is missing: hold it"},
		{Name: "R4", Text: "a duplicate: drop it"},
		{Name: "R5", Text: "mode echo: send a new multicast on to all others"},
	},
	Options: []process.Option{{
		Name: "mode", Default: plain, Values: []string{plain, echo},
		Text: "whether receivers send a multicast on",
	}},
	Needs:   process.Needs{Reliable: true},
	Claims:  claims,
	Carrier: true,
	New:     newMachine,
}

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.OrderCausal},
		{Property: process.OrderFIFO},
		{Property: process.MulticastAgreement, Mode: echo},
		{Property: process.MulticastAgreement, Mode: plain, Fails: true, When: "a sender that crashes between two sends has told only some processes, and the others hold their answers forever"},
		{Property: process.OrderTotal, Fails: true, When: "concurrent multicasts are delivered in different orders"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerMulticast, Regime: process.AnyLoad, Mode: plain,
			Exact: process.PerOther("N-1", 1)},
		{Metric: process.MessagesPerMulticast, Regime: process.AnyLoad, Mode: echo,
			Exact: process.OfN("N(N-1)", func(n float64) float64 { return n * (n - 1) })},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "an early multicast is held until everything before it is delivered"},
		{Fault: process.Duplication, How: "a multicast is identified by its sender and number"},
		{Fault: process.CrashAny, How: "the order does not depend on it; in mode echo, delivery does not either"},
	},
}

var (
	from   = process.FieldUse{Field: process.FieldSubject, Symbol: "from"}
	vector = process.FieldUse{Field: process.FieldVector, Symbol: "V"}
	data   = process.FieldUse{Field: process.FieldData, Symbol: "data"}
	inner  = process.FieldUse{Field: process.FieldData, Symbol: "of", Carried: true}
)

// A multicast comes from the application or from a layer above.
const (
	msg process.Type = iota + 1
	carried
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR3
	ruleR4
	ruleR5
)

// The values of the mode option.
const (
	plain = "plain"
	echo  = "echo"
)

// item is a multicast.
type item struct {
	kind  process.Type
	from  process.ID
	v     []uint64 // by process: delivered by the sender before, and this one
	value int64
	data  []byte
}

type machine struct {
	c    *process.Config
	self process.ID
	echo bool

	v    []uint64 // by sender: multicasts delivered
	held []item   // in the order of arrival; for each, an earlier multicast is missing

	scratch        []byte
	scratchMessage process.Message
}

func newMachine(self process.ID, c *process.Config) process.Machine {
	return &machine{c: c, self: self, echo: c.Option("mode", plain) == echo, v: make([]uint64, c.N)}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Propose:
		m.multicast(&item{kind: msg, value: ev.Value, data: ev.Data}, fx)
	case process.Transmit:
		m.scratch = ev.Message.AppendRaw(m.scratch[:0])
		m.multicast(&item{kind: carried, data: m.scratch}, fx)
	case process.Deliver:
		in := ev.Message
		process.Assert(len(in.Vector) == m.c.N, "a multicast counts the deliveries of every process")
		m.onMessage(&item{in.Type, in.Subject, in.Vector, in.Value, in.Data}, fx)
	}
}

// multicast is R1. The vector that it sends also counts this multicast.
func (m *machine) multicast(it *item, fx *process.Effects) {
	fx.Rule(ruleR1)
	m.v[m.self]++
	it.from, it.v = m.self, m.v
	fx.Broadcast(it.message())
	m.handUp(it, fx)
}

// onMessage is R2 to R5. The item has the vector and the data of the event, which
// are lent.
func (m *machine) onMessage(it *item, fx *process.Effects) {
	if it.n() <= m.v[it.from] || m.holds(it) {
		fx.Rule(ruleR4)
		return
	}
	if m.echo {
		fx.Rule(ruleR5)
		fx.Broadcast(it.message())
	}
	if !m.ripe(it) {
		fx.Rule(ruleR3)
		it.v, it.data = slices.Clone(it.v), slices.Clone(it.data)
		m.held = append(m.held, *it)
		return
	}
	fx.Rule(ruleR2)
	m.deliver(it, fx)
	for at := m.nextRipe(); at >= 0; at = m.nextRipe() {
		next := m.held[at]
		m.held = slices.Delete(m.held, at, at+1)
		m.deliver(&next, fx)
	}
}

// ripe reports whether a multicast is the next of its sender, and everything that its
// sender had delivered before is delivered here.
func (m *machine) ripe(it *item) bool {
	for k, n := range it.v {
		if process.ID(k) == it.from && n != m.v[k]+1 || process.ID(k) != it.from && n > m.v[k] {
			return false
		}
	}
	return true
}

// nextRipe returns the position of the first held multicast that may be delivered now,
// or -1.
func (m *machine) nextRipe() int {
	for at := range m.held {
		if m.ripe(&m.held[at]) {
			return at
		}
	}
	return -1
}

func (m *machine) holds(it *item) bool {
	return slices.ContainsFunc(m.held, func(h item) bool { return h.from == it.from && h.n() == it.n() })
}

func (m *machine) deliver(it *item, fx *process.Effects) {
	m.v[it.from]++
	m.handUp(it, fx)
}

// handUp passes a multicast to the application, or to its layer. A multicast that a
// layer above has sent to another process is only counted.
func (m *machine) handUp(it *item, fx *process.Effects) {
	if it.kind == msg {
		delivered := it.message()
		delivered.From, delivered.To = it.from, process.None
		fx.Deliver(&delivered)
		return
	}
	inner := &m.scratchMessage
	if inner.DecodeRaw(it.data, m.c.N) == nil && (inner.To == process.None || inner.To == m.self) {
		fx.Deliver(inner)
	}
}

// n is the number of the multicast among those of its sender.
func (it *item) n() uint64 { return it.v[it.from] }

func (it *item) message() process.Message {
	return process.Message{Type: it.kind, Subject: it.from, Vector: it.v, Value: it.value, Data: it.data}
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	f.Array("V", m.v)
	process.List(f, "held", &m.held, itemFields)
}

func itemFields(f *process.Fields, it *item) {
	process.Enum(f, "type", &it.kind, kindNames)
	f.ID("from", &it.from)
	f.Uints("V", &it.v)
	f.Int("value", &it.value)
	f.Bytes("data", &it.data)
}

var kindNames = []string{"", "MSG", "CARRIED"}
