// Package lamport is Lamport's logical clock: numbers for events that grow along
// happened-before.
//
// # Problem and idea
//
// No two clocks agree, and often processes need no time: they need to know which of two
// events cannot have influenced the other. So each process counts its events. Every
// message carries the count, and its receiver continues from the larger of the two
// counts. Then an event has a smaller number than every event that it could have
// influenced.
//
// # Rules
//
//	R1  before each event: C := C+1.
//	R2  a message carries the C of the event that sent it. A multicast is one event.
//	R3  on receipt of a message with t: C := max(C,t)+1, which is the time of the
//	    receipt.
//
// # What it promises
//
// If a happened before b then C(a) < C(b) (the clock condition): within a process by
// R1, along a message by R3, and every other path consists of these. With the rank as
// the tie-break, (C,i), all events are in one order that every process can compute and
// that contradicts no causality. The converse is false: C(a) < C(b) does not mean that
// a happened before b; see the vector clock for that.
//
// # How it is used
//
// As a layer it carries and stamps the messages of the layer above. It sees only the
// messages of that layer: their sending and receipt are the events. Alone it is driven
// by proposals. The label of another process sends that process a message, -1 sends one
// to all others, and any other number is an event without a message. Either way it
// reports each event with its time.
//
// # Cost
//
// No messages of its own, and one number in each message.
//
// # Deviations
//
// [D4] only names the clock; the lectures on mutual exclusion use it. Some of their
// algorithms do not count the receipt as an event, and only take the maximum. That is
// enough for them, because they compare only requests. A process that restarts without
// its count begins again below its earlier numbers, so a restart is not survived. C is
// not a time of day: that one process is ahead of another says only that it has heard
// of more events.
//
// Sources: L. Lamport: Time, Clocks, and the Ordering of Events in a Distributed
// System, Communications of the ACM 21(7), 1978; [D4] (outline).
package lamport

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "lamport-clock",
	Title:     "Lamport's logical clock",
	Paper:     "L. Lamport: Time, Clocks, and the Ordering of Events in a Distributed System, Communications of the ACM 21(7), 1978, doi:10.1145/359545.359563",
	Documents: []string{"[D0]", "[D1]", "[D2]", "[D3]", "[D4]"},
	Family:    process.ClockSync,
	Messages: []process.MessageSpec{
		{Name: "MSG", Fields: []process.FieldUse{{Field: process.FieldClock, Symbol: "t"}}},
		{Name: "CARRY", Fields: []process.FieldUse{
			{Field: process.FieldClock, Symbol: "t"},
			{Field: process.FieldData, Symbol: "m", Carried: true}}},
		{Name: "EVENT", Fields: []process.FieldUse{
			{Field: process.FieldClock, Symbol: "C"},
			{Field: process.FieldValue, Symbol: "of", Names: eventNames}}},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "before each event: C := C+1"},
		{Name: "R2", Text: "a message carries C"},
		{Name: "R3", Text: "on receipt of t: C := max(C,t)+1"},
	},
	Carrier: true,
	Claims:  claims,
	New:     newMachine,
}

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ClockCondition},
		{Property: process.StrongClock, Fails: true, When: "of two concurrent events one may have the smaller number"},
	},
	Costs: []process.Cost{
		{Metric: process.MessageCount, Regime: process.AnyLoad, When: "it sends none itself; each message carries one number",
			Exact: process.Constant("0", 0)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a receipt continues from the maximum"},
		{Fault: process.Loss, How: "a lost message has no effect"},
		{Fault: process.Duplication, How: "the second receipt is one more event"},
		{Fault: process.CrashAny, How: "no process waits for another"},
		{Fault: process.Slowness, How: "no process waits for another"},
	},
}

const (
	message process.Type = iota + 1
	carry
	event // reported, never sent
)

// The events: the values of EVENT.
const (
	local int64 = iota
	sending
	receipt
)

var eventNames = []string{"local", "send", "receipt"}

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR3
)

// everybody is the proposal that sends a message to all others.
const everybody = -1

type machine struct {
	c    *process.Config
	self process.ID

	clock uint64 // of the latest event
}

func newMachine(self process.ID, c *process.Config) process.Machine {
	return &machine{c: c, self: self, clock: c.Base.Clock}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Propose:
		m.onPropose(ev.Value, fx)
	case process.Transmit:
		inner := ev.Message
		m.send(inner.To, process.Message{Type: carry, Data: inner.AppendRaw(nil)}, fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	}
}

// onPropose makes the requested event.
func (m *machine) onPropose(value int64, fx *process.Effects) {
	to := process.None
	if value > 0 {
		to = m.c.Rank(process.Label(value))
	}
	switch {
	case value == everybody:
		m.send(process.None, process.Message{Type: message}, fx)
	case to == process.None || to == m.self:
		m.happen(m.clock, local, fx)
	default:
		m.send(to, process.Message{Type: message}, fx)
	}
}

// send is R2, to one process or to all others.
func (m *machine) send(to process.ID, msg process.Message, fx *process.Effects) {
	m.happen(m.clock, sending, fx)
	fx.Rule(ruleR2)
	msg.Clock = m.clock
	if to == process.None {
		fx.Broadcast(msg)
		return
	}
	fx.Send(to, msg)
}

// onMessage is R3. A carried message goes up after its receipt has its time.
func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	fx.Rule(ruleR3)
	m.happen(max(m.clock, msg.Clock), receipt, fx)
	if msg.Type != carry {
		return
	}
	var inner process.Message
	if inner.DecodeRaw(msg.Data, m.c.N) == nil {
		inner.From, inner.To = msg.From, m.self
		fx.Deliver(&inner)
	}
}

// happen is R1: an event that follows all events with times up to the given one.
func (m *machine) happen(after uint64, what int64, fx *process.Effects) {
	fx.Rule(ruleR1)
	m.clock = after + 1
	fx.Report(process.Message{Type: event, Clock: m.clock, Value: what})
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) { f.Clock("C", &m.clock) }
