// Package vector is the vector clock: a time for each event by which every process can
// tell which events happened before others, and which are concurrent.
//
// # Problem and idea
//
// Lamport's number shows that an event cannot have influenced one with a smaller
// number, but not that it has influenced one with a larger number. So each process
// keeps one count for every process: how many events of each it knows to have happened,
// including its own. Messages carry all counts. One event is in the past of another
// exactly if the other knows of it.
//
// # Rules
//
//	R1  before each event: V[i] := V[i]+1.
//	R2  a message carries V. A multicast is one event.
//	R3  on receipt of W: V[k] := max(V[k],W[k]) for all k, and then R1.
//
// To compare: V <= W if that holds for each component; V < W if V <= W and they differ;
// concurrent if neither is below the other.
//
// # What it promises
//
// V(a) < V(b) exactly if a happened before b. If it did, the vector grew along the
// process (R1) and along the messages (R3) that lead from a to b. Conversely the i-th
// component counts only events of i, and it travels only with messages. So a process
// that counts an event of i has heard of it through a chain of messages. Hence V_j[i]
// <= V_i[i] at any time.
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
// No messages of its own, and N numbers in each message. Fewer are not enough in
// general (Charron-Bost 1991).
//
// # Deviations
//
// [D4] only names the clock. The set of processes is fixed; a growing set would need a
// list of members instead of ranks. A process that restarts without its counts repeats
// numbers, which then stand for two events: a restart is not survived.
//
// Sources: C. J. Fidge: Timestamps in Message-Passing Systems That Preserve the
// Partial Ordering, 1988; F. Mattern: Virtual Time and Global States of Distributed
// Systems, 1989; [D4] (outline).
package vector

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "vector-clock",
	Title:     "Vector clock",
	Paper:     "C. J. Fidge: Timestamps in Message-Passing Systems That Preserve the Partial Ordering, 1988; F. Mattern: Virtual Time and Global States of Distributed Systems, 1989",
	Documents: []string{"[D4]"},
	Family:    process.ClockSync,
	Messages: []process.MessageSpec{
		{Name: "MSG", Fields: []process.FieldUse{times}},
		{Name: "CARRY", Fields: []process.FieldUse{times, {Field: process.FieldData, Symbol: "m", Carried: true}}},
		{Name: "EVENT", Fields: []process.FieldUse{times, {Field: process.FieldValue, Symbol: "of", Names: eventNames}}},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "before each event: V[i] := V[i]+1"},
		{Name: "R2", Text: "a message carries V"},
		{Name: "R3", Text: "on receipt of W: V[k] := max(V[k],W[k]) for all k"},
	},
	Carrier: true,
	Claims:  claims,
	New:     newMachine,
}

var claims = process.Claims{
	Properties: process.Promises(process.ClockCondition, process.StrongClock),
	Costs: []process.Cost{
		{Metric: process.MessageCount, Regime: process.AnyLoad, When: "it sends none itself; each message carries N numbers",
			Exact: process.Constant("0", 0)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a receipt takes the maximum of each component"},
		{Fault: process.Loss, How: "a lost message has no effect"},
		{Fault: process.Duplication, How: "the second receipt is one more event"},
		{Fault: process.CrashAny, How: "no process waits for another"},
		{Fault: process.Slowness, How: "no process waits for another"},
	},
}

var times = process.FieldUse{Field: process.FieldVector, Symbol: "V"}

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

	clock []uint64 // by rank: how many events of each are known, including its own
}

func newMachine(self process.ID, c *process.Config) process.Machine {
	m := &machine{c: c, self: self, clock: make([]uint64, c.N)}
	m.clock[self] = c.Base.Clock
	return m
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
		m.happen(local, fx)
	default:
		m.send(to, process.Message{Type: message}, fx)
	}
}

// send is R2, to one process or to all others. The effects copy the vector.
func (m *machine) send(to process.ID, msg process.Message, fx *process.Effects) {
	m.happen(sending, fx)
	fx.Rule(ruleR2)
	msg.Vector = m.clock
	if to == process.None {
		fx.Broadcast(msg)
		return
	}
	fx.Send(to, msg)
}

// onMessage is R3. A carried message goes up after its receipt has its time. A vector
// of another length is not from this group.
func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	if len(msg.Vector) != len(m.clock) {
		return
	}
	fx.Rule(ruleR3)
	for k, v := range msg.Vector {
		m.clock[k] = max(m.clock[k], v)
	}
	m.happen(receipt, fx)
	if msg.Type != carry {
		return
	}
	var inner process.Message
	if inner.DecodeRaw(msg.Data, m.c.N) == nil {
		inner.From, inner.To = msg.From, m.self
		fx.Deliver(&inner)
	}
}

// happen is R1.
func (m *machine) happen(what int64, fx *process.Effects) {
	fx.Rule(ruleR1)
	m.clock[m.self]++
	fx.Report(process.Message{Type: event, Vector: m.clock, Value: what})
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) { f.Clocks("V", m.clock) }
