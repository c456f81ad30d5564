// Package requests is a layer in which processes wait for each other's answers, so that
// deadlock detectors have something to detect.
//
// # Problem and idea
//
// Each process has something that others need. When a client asks, its process asks the
// next processes in the ring of ranks; the option "ask" sets their number. A process
// that neither waits nor is inside answers at once. One that waits or is inside answers
// when it has left. In the AND model all answers are needed, in the OR model one is
// enough.
//
// # Rules
//
//	Q1  request: ASK to the next processes.
//	Q2  on ASK while idle: ANSWER.
//	    Q2b While waiting or inside: owe it.
//	Q3  on ANSWER: count it. AND model: enter with the last. OR model: enter with the
//	    first, and withdraw the other requests.
//	    Q3b It belongs to an earlier request: ignore it.
//	Q4  release: send the answers that are owed.
//	Q5  give up: withdraw the requests with WITHDRAW, then Q4.
//	Q6  on WITHDRAW: owe nothing to its sender.
//
// # What it is for
//
// This layer does not provide mutual exclusion. It is the model in which Chandy, Misra
// and Haas describe their detectors: an edge of the wait-for graph leads to the process
// that has to answer. It deadlocks if all processes ask at once; that is its purpose.
//
// Sources: K. M. Chandy, J. Misra, L. M. Haas: Distributed deadlock detection, ACM
// Transactions on Computer Systems 1(2), 1983.
package requests

import (
	"slices"
	"strconv"

	"github.com/conclave-io/conclave/process"
)

// The models.
var (
	And = spec("and-requests", "Requests that need all answers", 1, false)
	Or  = spec("or-requests", "Requests that need one answer", 2, true)
)

func spec(name, title string, ask int, any bool) *process.Spec {
	return &process.Spec{
		Name:   name,
		Title:  title,
		Paper:  "K. M. Chandy, J. Misra, L. M. Haas: Distributed deadlock detection, ACM Transactions on Computer Systems 1(2), 1983, doi:10.1145/357360.357365",
		Family: process.Deadlock,
		Messages: []process.MessageSpec{
			{Name: "ASK", Fields: number}, {Name: "ANSWER", Fields: number}, {Name: "WITHDRAW", Fields: number},
		},
		Rules: []process.RuleSpec{
			{Name: "Q1", Text: "request: ASK to the next processes"},
			{Name: "Q2", Text: "ASK while idle: ANSWER"},
			{Name: "Q2b", Text: "ASK while waiting or inside: owe the answer"},
			{Name: "Q3", Text: "ANSWER: count it, enter if it is enough"},
			{Name: "Q3b", Text: "ANSWER to an earlier request: ignore it"},
			{Name: "Q4", Text: "release: send the answers that are owed"},
			{Name: "Q5", Text: "give up: WITHDRAW, and the answers that are owed"},
			{Name: "Q6", Text: "WITHDRAW: owe nothing to its sender"},
		},
		Options: []process.Option{
			{Name: "ask", Default: strconv.Itoa(ask), Min: 1, Max: 1_000_000, Text: "number of processes that a request asks: the next ones in the ring of ranks, at most all others"},
		},
		Needs: process.Needs{FIFO: true, Reliable: true, NoDuplication: true},
		Claims: process.Claims{Properties: []process.Claim{
			{Property: process.Progress, Fails: true, When: "processes that wait for each other never answer"},
		}},
		New: func(self process.ID, c *process.Config) process.Machine {
			return &machine{c: c, self: self, any: any, missing: process.NewSet(c.N), ask: min(c.N-1, c.IntOption("ask", ask))}
		},
	}
}

var number = []process.FieldUse{{Field: process.FieldSeq, Symbol: "r"}}

const (
	ask process.Type = iota + 1
	answer
	withdraw
)

const (
	ruleQ1 process.Rule = iota + 1
	ruleQ2
	ruleQ2b
	ruleQ3
	ruleQ3b
	ruleQ4
	ruleQ5
	ruleQ6
)

const idle, waiting, inside = process.PhaseIdle, process.PhaseWaiting, process.PhaseInside

// debt is an answer that is owed.
type debt struct {
	to     process.ID
	number uint64 // of the request
}

type machine struct {
	c    *process.Config
	self process.ID
	any  bool // one answer is enough
	ask  int  // the number of processes that it asks

	phase   process.Phase
	number  uint64      // of its latest request
	missing process.Set // the processes whose answers are missing; empty unless it waits
	debts   []debt      // empty while it is idle; at most one to each process
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Acquire:
		m.onAcquire(fx)
	case process.Release:
		fx.Rule(ruleQ4)
		m.settle(fx)
	case process.Cancel:
		m.onCancel(fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	}
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	switch msg.Type {
	case ask:
		m.onAsk(debt{msg.From, msg.Seq}, fx)
	case answer:
		m.onAnswer(msg.From, msg.Seq, fx)
	case withdraw:
		fx.Rule(ruleQ6)
		m.debts = slices.DeleteFunc(m.debts, func(d debt) bool { return d == debt{msg.From, msg.Seq} })
	}
}

// onAcquire is Q1. A process that is alone needs no answer.
func (m *machine) onAcquire(fx *process.Effects) {
	fx.Rule(ruleQ1)
	m.phase = waiting
	m.number++
	for i := range m.ask {
		p := process.ID((int(m.self) + 1 + i) % m.c.N)
		m.missing.Add(p)
		fx.Send(p, process.Message{Type: ask, Seq: m.number})
	}
	if m.ask == 0 {
		m.enter(fx)
	}
}

// onAsk is Q2.
func (m *machine) onAsk(d debt, fx *process.Effects) {
	if m.phase != idle {
		fx.Rule(ruleQ2b)
		m.debts = append(m.debts, d)
		return
	}
	fx.Rule(ruleQ2)
	fx.Send(d.to, process.Message{Type: answer, Seq: d.number})
}

// onAnswer is Q3.
func (m *machine) onAnswer(from process.ID, number uint64, fx *process.Effects) {
	if m.phase != waiting || number != m.number {
		fx.Rule(ruleQ3b)
		return
	}
	fx.Rule(ruleQ3)
	m.missing.Remove(from)
	if m.any {
		m.takeBack(fx)
	}
	if m.missing.Empty() {
		m.enter(fx)
	}
}

func (m *machine) enter(fx *process.Effects) {
	m.phase = inside
	fx.Grant(process.Fence(m.number))
}

// takeBack withdraws the requests that have no answer.
func (m *machine) takeBack(fx *process.Effects) {
	for p := range m.missing.All() {
		fx.Send(p, process.Message{Type: withdraw, Seq: m.number})
	}
	m.missing.Clear()
}

// onCancel is Q5.
func (m *machine) onCancel(fx *process.Effects) {
	if m.phase != waiting {
		return
	}
	fx.Rule(ruleQ5)
	m.takeBack(fx)
	m.settle(fx)
}

// settle sends the answers that are owed.
func (m *machine) settle(fx *process.Effects) {
	m.phase = idle
	for _, d := range m.debts {
		fx.Send(d.to, process.Message{Type: answer, Seq: d.number})
	}
	m.debts = m.debts[:0]
}

// Request returns the number of the latest request, and whether it waits.
func (m *machine) Request() (number uint64, waits bool) { return m.number, m.phase == waiting }

// Missing returns the processes whose answers the request lacks.
func (m *machine) Missing() process.Set { return m.missing }

// Owes reports whether q has asked and has no answer yet.
func (m *machine) Owes(q process.ID) bool {
	return slices.ContainsFunc(m.debts, func(d debt) bool { return d.to == q })
}

// Holder returns this process: no other can answer for it.
func (m *machine) Holder() process.ID { return m.self }

// Holds returns false: nothing is lent.
func (m *machine) Holds(process.ID) bool { return false }

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "phase", &m.phase, process.PhaseNames)
	f.Seq("r", &m.number)
	f.Set("missing", m.missing)
	process.List(f, "owes", &m.debts, debtFields)
}

func debtFields(f *process.Fields, d *debt) {
	f.ID("to", &d.to)
	f.Uint("r", &d.number)
}

// Waits returns which processes each process waits for in a state of the whole system:
// those that were asked and have not sent their answer. An answer in flight counts as
// sent.
func Waits(g *process.Global) []process.Wait {
	waits := make([]process.Wait, len(g.Machines))
	for p, top := range g.Machines {
		m := layer(top)
		if m == nil || m.phase != waiting {
			continue
		}
		w := process.Wait{Any: m.any}
		answered := slices.ContainsFunc(g.Messages, func(msg *process.Message) bool { return m.answers(top, msg) })
		for q := range m.missing.All() {
			from := func(msg *process.Message) bool { return msg.From == q && m.answers(top, msg) }
			if m.any && !answered || !m.any && !slices.ContainsFunc(g.Messages, from) {
				w.For = append(w.For, q)
			}
		}
		waits[p] = w
	}
	return waits
}

// layer returns the machine of this layer in a process, or nil.
func layer(top process.Machine) *machine {
	s, ok := top.(*process.Stack)
	for i := 0; ok && i < s.Depth(); i++ {
		if m, ok := s.Layer(i).(*machine); ok {
			return m
		}
	}
	return nil
}

// answers reports whether a message in flight is an answer to the present request.
func (m *machine) answers(top process.Machine, msg *process.Message) bool {
	s := top.(*process.Stack)
	return msg.To == m.self && msg.Type == answer && msg.Seq == m.number && s.Layer(int(msg.Layer)) == process.Machine(m)
}
