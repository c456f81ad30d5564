// Package reliable is multicast that is delivered by all live processes or by none.
//
// # Problem and idea
//
// To multicast is to send the same message to every process in a group. A process does
// that with one send after another, and may crash between two of them. Then some have
// the message and others do not, and no process knows which. So a process that gets a
// message for the first time sends it on to all others, before it does anything else
// with it. If one process that stays up has the message, all get it.
//
// # Rules
//
//	R1  multicast m: number it, send it to all others, deliver it.
//	R2  on m, for the first time: deliver it.
//	    R2a mode echo: send it on to all others first.
//	R3  on m again: drop it.
//
// In mode plain no process sends on; this is basic multicast, for comparison.
//
// # Why it is safe
//
// A process that delivers m has sent it to all others before, and links lose nothing.
// So all that stay up get it, even if the process that delivered crashes right after. A
// multicast is identified by its sender and the sender's number for it, so duplicates
// are recognised, however late they come.
//
// # Cost
//
// N(N-1) messages for a multicast: N-1 by the sender, N-1 by each of the N-1 that
// send on. Delivered everywhere after one message delay. Mode plain: N-1.
//
// # Assumptions and deviations
//
// Links lose nothing; order does not matter. Processes that crash do not restart. No
// order is promised: of two multicasts of one sender the second may be delivered first.
// The sender delivers its own multicast after it has sent it, not when a copy returns;
// other processes cannot see the difference. The documents name the problem and give no
// rules.
//
// A layer above passes its broadcasts to this one and gets them back at every process,
// including its own. What it sends to one process is multicast too, and passed up by
// that process alone.
//
// Sources: V. Hadzilacos, S. Toueg (1994); [D1].
package reliable

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "reliable-multicast",
	Title:     "Reliable multicast by echo",
	Paper:     "V. Hadzilacos, S. Toueg: A Modular Approach to Fault-Tolerant Broadcasts and Related Problems, Cornell University, 1994",
	Documents: []string{"[D1]"},
	Family:    process.Multicast,
	Messages: []process.MessageSpec{
		{Name: "MSG", Fields: []process.FieldUse{from, number, {Field: process.FieldValue, Symbol: "value"}, data}},
		{Name: "CARRIED", Fields: []process.FieldUse{from, number, inner}},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "multicast: number it, send it to all others, deliver it"},
		{Name: "R2", Text: "a multicast for the first time: deliver it"},
		{Name: "R2a", Text: "mode echo: before that, send it on to all others"},
		{Name: "R3", Text: "a duplicate: drop it"},
	},
	Options: []process.Option{{
		Name: "mode", Default: echo, Values: []string{echo, plain},
		Text: "whether receivers send a multicast on",
	}},
	Needs:   process.Needs{Reliable: true},
	Claims:  claims,
	Carrier: true,
	New:     newMachine,
}

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MulticastAgreement, Mode: echo},
		{Property: process.MulticastAgreement, Mode: plain, Fails: true, When: "a sender that crashes between two sends has told only some processes"},
		{Property: process.OrderFIFO, Fails: true, When: "a multicast may overtake an earlier one of its sender"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerMulticast, Regime: process.AnyLoad, Mode: echo,
			Exact: process.OfN("N(N-1)", func(n float64) float64 { return n * (n - 1) })},
		{Metric: process.MessagesPerMulticast, Regime: process.AnyLoad, Mode: plain,
			Exact: process.PerOther("N-1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "nothing depends on the order of messages"},
		{Fault: process.Duplication, How: "a multicast is identified by its sender and number"},
		{Fault: process.CrashAny, Mode: echo, How: "a process sends a multicast to all others before it delivers it"},
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
	ruleR2a
	ruleR3
)

// The values of the mode option.
const (
	echo  = "echo"
	plain = "plain"
)

// mark is the number of one multicast of one sender.
type mark struct {
	from process.ID
	n    uint64
}

type machine struct {
	c    *process.Config
	self process.ID
	echo bool

	sent uint64   // multicasts of this process
	seen []uint64 // by sender: all of its multicasts up to this number are delivered
	// early are the delivered multicasts whose number is larger than seen of their
	// sender by 2 or more, in no order: messages overtake each other.
	early []mark

	scratch        []byte
	scratchMessage process.Message
}

func newMachine(self process.ID, c *process.Config) process.Machine {
	return &machine{c: c, self: self, echo: c.Option("mode", echo) == echo, seen: make([]uint64, c.N)}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Propose:
		m.multicast(&process.Message{Type: msg, Value: ev.Value, Data: ev.Data}, fx)
	case process.Transmit:
		m.scratch = ev.Message.AppendRaw(m.scratch[:0])
		m.multicast(&process.Message{Type: carried, Data: m.scratch}, fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	}
}

// multicast is R1.
func (m *machine) multicast(content *process.Message, fx *process.Effects) {
	fx.Rule(ruleR1)
	m.sent++
	content.Subject, content.Seq = m.self, m.sent
	m.note(mark{m.self, m.sent})
	fx.Broadcast(*content)
	m.deliver(content, fx)
}

// onMessage is R2 and R3. Sending on comes before delivery: a process that crashes in
// between has delivered nothing.
func (m *machine) onMessage(content *process.Message, fx *process.Effects) {
	if !m.note(mark{content.Subject, content.Seq}) {
		fx.Rule(ruleR3)
		return
	}
	fx.Rule(ruleR2)
	if m.echo {
		fx.Rule(ruleR2a)
		fx.Broadcast(*content)
	}
	m.deliver(content, fx)
}

// note remembers a multicast and reports whether it is new.
func (m *machine) note(k mark) bool {
	if k.n <= m.seen[k.from] || slices.Contains(m.early, k) {
		return false
	}
	m.early = append(m.early, k)
	for at := 0; at >= 0; {
		next := mark{k.from, m.seen[k.from] + 1}
		if at = slices.Index(m.early, next); at >= 0 {
			m.early = slices.Delete(m.early, at, at+1)
			m.seen[k.from]++
		}
	}
	return true
}

// deliver passes a multicast to the application, or to its layer. A multicast that a
// layer above has sent to another process is only passed on.
func (m *machine) deliver(content *process.Message, fx *process.Effects) {
	if content.Type == msg {
		delivered := *content
		delivered.From, delivered.To = content.Subject, process.None
		fx.Deliver(&delivered)
		return
	}
	inner := &m.scratchMessage
	if inner.DecodeRaw(content.Data, m.c.N) == nil && (inner.To == process.None || inner.To == m.self) {
		fx.Deliver(inner)
	}
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	f.Seq("sent", &m.sent)
	f.Array("seen", m.seen)
	process.List(f, "early", &m.early, markFields)
}

func markFields(f *process.Fields, k *mark) {
	f.ID("from", &k.from)
	f.Seq("n", &k.n)
}
