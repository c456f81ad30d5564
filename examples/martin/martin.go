// Command martin is the command line of Conclave with one more algorithm: mutual exclusion
// by a token that is called along a ring (Martin). It is the example of an algorithm in a
// module of its own.
//
// # Problem and idea
//
// Only the process with the token may enter. A token that circulates costs messages while
// nobody asks. Here it rests where it was used last. A process that wants it asks the next
// process on the ring, which asks the one after it, up to the process that has the token.
// The token comes back the same way.
//
// # Rules
//
//	M1  request: enter if the token is here; otherwise ask the next process.
//	M2  REQ: remember that the process before wants the token. Send it if it is here and
//	    nobody is inside; otherwise ask the next process.
//	M3  TOKEN: enter if this process wants to; otherwise send the token on.
//	M4  release: send the token to the process before if that wants it.
//
// A process asks once, and again only when it has had the token and sent it away.
//
// # Why it is safe
//
// TOKEN is the token: the process that sends it does not have it any more, and only a
// process that has it is inside. A request reaches the token: each process that passes it on
// has asked the next one, and the ring leads past every process. A process that has been
// inside sends the token on before it enters again, so nobody waits forever.
//
// # Cost
//
// If the token is d processes further on the ring, an entry takes d REQ and d TOKEN: 2d
// messages and a delay of 2d. If all processes ask, one REQ and one TOKEN move the token by
// one process, so an entry costs 2 messages, and a delay of 1 passes between two entries.
//
// # Assumptions and deviations
//
// Links lose and copy nothing. Their order does not matter: between two processes there are
// at most one REQ and one TOKEN. No crash is survived.
//
// Source: A. J. Martin: Distributed mutual exclusion on a ring of processes, 1985.
package main

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:   "martin",
	Title:  "Martin's ring",
	Paper:  "A. J. Martin: Distributed mutual exclusion on a ring of processes, Science of Computer Programming 5, 1985, doi:10.1016/0167-6423(85)90015-0",
	Family: process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "REQ"},
		{Name: "TOKEN", Fields: []process.FieldUse{{Field: process.FieldFence, Symbol: "f"}}},
	},
	Rules: []process.RuleSpec{
		{Name: "M1", Text: "request: enter if the token is here, otherwise ask the next process"},
		{Name: "M2", Text: "REQ: send the token to the process before if it is here and idle, otherwise ask the next process"},
		{Name: "M3", Text: "TOKEN: enter if this process wants to, otherwise send the token on"},
		{Name: "M4", Text: "release: send the token to the process before if that wants it"},
	},
	Needs: process.Needs{Reliable: true, NoDuplication: true, Topology: process.RingTopology},
	Claims: process.Claims{
		Properties: []process.Claim{
			{Property: process.MutualExclusion},
			{Property: process.OneToken},
			{Property: process.FencesGrow},
			{Property: process.Progress},
		},
		Costs: []process.Cost{
			{Metric: process.MessagesPerEntry, Regime: process.Idle, When: "the token is anywhere; the mean is over all places", Lo: process.Constant("0", 0), Hi: farthest, Mean: halfway},
			{Metric: process.MessagesPerEntry, Regime: process.Saturated, When: "N >= 2", Exact: process.Constant("2", 2)},
			{Metric: process.ClientDelay, Regime: process.Idle, When: "the token is anywhere; the mean is over all places", Lo: process.Constant("0", 0), Hi: farthest, Mean: halfway},
			{Metric: process.SyncDelay, Regime: process.Saturated, When: "N >= 2", Exact: process.Constant("1", 1)},
		},
	},
	New: func(self process.ID, c *process.Config) process.Machine {
		return &machine{c: c, self: self, before: process.None}
	},
}

// farthest is for a token that has just left the process.
var farthest = process.PerOther("2(N-1)", 2)

var halfway = process.PerOther("N-1", 1)

const (
	req process.Type = iota + 1
	token
)

const (
	ruleM1 process.Rule = iota + 1
	ruleM2
	ruleM3
	ruleM4
)

type machine struct {
	c    *process.Config
	self process.ID

	here   bool          // the token
	wants  bool          // the client waits
	inside bool          // implies here
	asked  bool          // REQ was sent, and TOKEN has not come; implies not here
	before process.ID    // the process before, if it wants the token, or None
	fence  process.Fence // with the token, that of the last entry
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start:
		m.here, m.fence = m.self == m.c.Topology.Coordinator, m.c.Base.Fence
	case process.Acquire:
		fx.Rule(ruleM1)
		m.wants = true
		m.proceed(fx)
	case process.Release:
		fx.Rule(ruleM4)
		m.inside = false
		m.proceed(fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	}
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	switch msg.Type {
	case req:
		process.Assert(m.before == process.None, "a process asks once")
		fx.Rule(ruleM2)
		m.before = msg.From
	case token:
		process.Assert(!m.here, "there is one token")
		fx.Rule(ruleM3)
		m.here, m.asked, m.fence = true, false, msg.Fence
	}
	m.proceed(fx)
}

// proceed enters, sends the token on, or asks for it. The own client comes first: when it
// leaves, the token goes to the process before.
func (m *machine) proceed(fx *process.Effects) {
	switch {
	case m.inside:
	case m.here && m.wants:
		m.wants, m.inside = false, true
		m.fence++
		fx.Grant(m.fence)
	case m.here && m.before != process.None:
		fx.Send(m.before, process.Message{Type: token, Fence: m.fence})
		m.here, m.before = false, process.None
	case !m.here && !m.asked && (m.wants || m.before != process.None):
		m.asked = true
		fx.Send(m.c.Topology.Next(m.self, m.c.N), process.Message{Type: req})
	}
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	f.Bool("here", &m.here)
	f.Bool("wants", &m.wants)
	f.Bool("inside", &m.inside)
	f.Bool("asked", &m.asked)
	f.ID("before", &m.before)
	f.Fence("fence", &m.fence)
}

// HasToken reports whether the token is here.
func (m *machine) HasToken() bool { return m.here }
