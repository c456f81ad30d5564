// Package fifo is multicast that is delivered in the order of its sender.
//
// # Problem and idea
//
// Links may let one message overtake another. Then two multicasts of one sender are
// delivered in different orders at different processes. So each sender numbers its
// multicasts, and each process delivers those of one sender by number: an early one is
// held until its turn.
//
// # Rules
//
//	R1  multicast m: number it, send it to all others, deliver it.
//	R2  on m with the number after that of the last one delivered from its sender:
//	    deliver it, and then the held multicasts whose turn it is.
//	R3  on m with a larger number: hold it.
//	R4  on m that was delivered or is held: drop it.
//	R5  mode echo: on m that is not dropped, before anything else, send it on to all
//	    others.
//
// # Why it is safe
//
// The rules enforce the promise directly: number n of a sender is delivered right after
// its number n-1. A held multicast waits only for earlier ones, and links lose nothing.
//
// # Cost
//
// N-1 messages for a multicast, delivered everywhere after one message delay. Mode
// echo: N(N-1).
//
// # Assumptions and deviations
//
// Links lose nothing; order does not matter. FIFO order does not relate two senders: an
// answer may be delivered before its question (see the script answer). In mode plain a
// sender that crashes in the middle of a multicast has told only some processes; those
// deliver it and others do not. Mode echo combines reliable multicast and FIFO order: a
// process that delivers has sent the message to all others first. The documents name
// the problem and give no rules; these are the usual ones.
//
// A layer above passes its broadcasts to this one and gets them back at every process,
// including its own. What it sends to one process is multicast too, and passed up by
// that process alone.
//
// Sources: V. Hadzilacos, S. Toueg (1994); [D1] and [D4] (names only).
package fifo

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "fifo-multicast",
	Title:     "FIFO multicast",
	Paper:     "V. Hadzilacos, S. Toueg: A Modular Approach to Fault-Tolerant Broadcasts and Related Problems, Cornell University, 1994",
	Documents: []string{"[D1]", "[D4]"},
	Family:    process.Multicast,
	Messages: []process.MessageSpec{
		{Name: "MSG", Fields: []process.FieldUse{from, number, {Field: process.FieldValue, Symbol: "value"}, data}},
		{Name: "CARRIED", Fields: []process.FieldUse{from, number, inner}},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "multicast: number it, send it to all others, deliver it"},
		{Name: "R2", Text: "the next multicast of its sender: deliver it, and the multicasts that waited for it"},
		{Name: "R3", Text: "a later multicast of its sender: hold it"},
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
		{Property: process.OrderFIFO},
		{Property: process.MulticastAgreement, Mode: echo},
		{Property: process.MulticastAgreement, Mode: plain, Fails: true, When: "a sender that crashes between two sends has told only some processes"},
		{Property: process.OrderCausal, Fails: true, When: "an answer may be delivered before another process's question"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerMulticast, Regime: process.AnyLoad, Mode: plain,
			Exact: process.PerOther("N-1", 1)},
		{Metric: process.MessagesPerMulticast, Regime: process.AnyLoad, Mode: echo,
			Exact: process.OfN("N(N-1)", func(n float64) float64 { return n * (n - 1) })},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "an early multicast is held until its turn"},
		{Fault: process.Duplication, How: "a multicast is identified by its sender and number"},
		{Fault: process.CrashAny, How: "the order does not depend on it; in mode echo, delivery does not either"},
	},
}

var (
	from   = process.FieldUse{Field: process.FieldSubject, Symbol: "from"}
	number = process.FieldUse{Field: process.FieldSeq, Symbol: "n"}
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
	n     uint64
	value int64
	data  []byte
}

type machine struct {
	c    *process.Config
	self process.ID
	echo bool

	sent      uint64   // multicasts of this process
	delivered []uint64 // by sender: the number of the last multicast delivered
	held      []item   // in the order of arrival; each is later than the next of its sender

	scratch        []byte
	scratchMessage process.Message
}

func newMachine(self process.ID, c *process.Config) process.Machine {
	return &machine{c: c, self: self, echo: c.Option("mode", plain) == echo, delivered: make([]uint64, c.N)}
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
		m.onMessage(&item{in.Type, in.Subject, in.Seq, in.Value, in.Data}, fx)
	}
}

// multicast is R1.
func (m *machine) multicast(it *item, fx *process.Effects) {
	fx.Rule(ruleR1)
	m.sent++
	it.from, it.n = m.self, m.sent
	fx.Broadcast(it.message())
	m.deliver(it, fx)
}

// onMessage is R2 to R5. The item has the data of the event, which is lent.
func (m *machine) onMessage(it *item, fx *process.Effects) {
	if it.n <= m.delivered[it.from] || m.find(it.from, it.n) >= 0 {
		fx.Rule(ruleR4)
		return
	}
	if m.echo {
		fx.Rule(ruleR5)
		fx.Broadcast(it.message())
	}
	if it.n > m.delivered[it.from]+1 {
		fx.Rule(ruleR3)
		it.data = slices.Clone(it.data)
		m.held = append(m.held, *it)
		return
	}
	fx.Rule(ruleR2)
	m.deliver(it, fx)
	for at := m.find(it.from, it.n+1); at >= 0; at = m.find(it.from, m.delivered[it.from]+1) {
		next := m.held[at]
		m.held = slices.Delete(m.held, at, at+1)
		m.deliver(&next, fx)
	}
}

// find returns the position of a multicast among those held, or -1.
func (m *machine) find(p process.ID, n uint64) int {
	return slices.IndexFunc(m.held, func(it item) bool { return it.from == p && it.n == n })
}

// deliver passes a multicast to the application, or to its layer. A multicast that a
// layer above has sent to another process is only counted.
func (m *machine) deliver(it *item, fx *process.Effects) {
	m.delivered[it.from] = it.n
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

func (it *item) message() process.Message {
	return process.Message{Type: it.kind, Subject: it.from, Seq: it.n, Value: it.value, Data: it.data}
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	f.Seq("S", &m.sent)
	f.Array("R", m.delivered)
	process.List(f, "held", &m.held, itemFields)
}

func itemFields(f *process.Fields, it *item) {
	process.Enum(f, "type", &it.kind, kindNames)
	f.ID("from", &it.from)
	f.Seq("n", &it.n)
	f.Int("value", &it.value)
	f.Bytes("data", &it.data)
}

var kindNames = []string{"", "MSG", "CARRIED"}
