// Package raymond is mutual exclusion by a token that moves along the edges of a
// tree (Raymond).
//
// # Problem and idea
//
// The process that has the token may enter. The processes form a tree, and each talks
// to its neighbours only. It knows which neighbour leads to the token, so a request
// finds its way without a broadcast. The token returns along the same path and turns
// the edges that it passes. A process asks once for all requests that it has collected
// from its neighbours.
//
// # Rules
//
//	R1  request: append this process to the queue.
//	R2  on REQ from j: append j to the queue.
//	R3  on PRIV: the token is here.
//	R4  release: leave the critical section.
//
// After each of them, in this order:
//
//	R5  assign: if the token is here, the process is not inside and the queue is not
//	    empty, remove the head of the queue. If it is this process, enter. Otherwise
//	    send PRIV to it; it is now the neighbour that leads to the token.
//	R6  ask: if the token is elsewhere, the queue is not empty and no REQ was sent
//	    since the token was last here, send REQ to the neighbour that leads to it.
//	R7  a neighbour crashed or came back: remove it from the queue.
//
// # Why it is safe
//
// PRIV is the token: a process that sends it no longer has it, and only a process that
// has it is inside. Every edge except the one that PRIV is on points to the token, so a
// REQ reaches it. Queues are first come, first served, and each holds a neighbour at
// most once, so every request reaches the head after finitely many entries.
//
// # Cost
//
// A requester d edges away from the token costs d REQ and d PRIV: 2d messages, and a
// delay of 2d. When all processes ask, the token walks round the tree: it crosses each
// of the N-1 edges in both directions, one REQ for each crossing, in N entries. That
// makes 4(N-1)/N messages per entry on any tree, and 2(N-1)/N message times from one
// critical section to the next.
//
// # Assumptions and deviations
//
// Links lose and duplicate nothing; order does not matter: a REQ that overtakes an
// earlier PRIV waits in the queue. The tree is given (Topology.Parent) and never changes.
// A leaf that neither waits nor has the token may crash and come back: its one neighbour
// leads to the token. With a reliable detector (R7) a leaf may also crash while it waits,
// unless the token is already in flight to it. No other crash is survived. An inner
// process that crashes cuts the tree. A process that restarts has forgotten for which
// neighbours it asked, and where the token is. A lost token is not replaced. Raymond's
// recovery, in which a restarted process asks its neighbours what it knew, is left out.
//
// [D2] and [D4] only name the algorithm.
//
// Source: K. Raymond: A tree-based algorithm for distributed mutual exclusion,
// 1989.
package raymond

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "raymond",
	Title:     "Raymond's tree",
	Paper:     "K. Raymond: A tree-based algorithm for distributed mutual exclusion, ACM Transactions on Computer Systems 7(1), 1989, doi:10.1145/58564.59295",
	Documents: []string{"[D2]", "[D4]"},
	Family:    process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "REQ"},
		{Name: "PRIV", Fields: []process.FieldUse{{Field: process.FieldFence, Symbol: "f"}}},
	},
	State: []process.StateSpec{
		{Name: "holder", Text: "the neighbor in the direction of the token; itself if it has the token"},
		{Name: "using", Text: "whether its client is inside"},
		{Name: "asked", Text: "whether it has asked the holder for the token"},
		{Name: "rq", Text: "who wants the token from it, in order of arrival: neighbors and itself"},
		{Name: "fence", Text: "the largest fence that it has seen; with the token, the fence of the last entry"},
		{Name: "failed", Text: "the processes that it knows to have crashed"},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "request: append this process to the queue"},
		{Name: "R2", Text: "REQ: append its sender to the queue"},
		{Name: "R3", Text: "PRIV: the token is here"},
		{Name: "R4", Text: "release: leave the critical section"},
		{Name: "R5a", Text: "the token is here and this process is at the head: enter"},
		{Name: "R5b", Text: "the token is here and a neighbour is at the head: send it PRIV"},
		{Name: "R6", Text: "the queue is not empty and no REQ is pending: send REQ towards the token"},
		{Name: "R7", Text: "a neighbour crashed or came back: remove it from the queue"},
	},
	Needs:     process.Needs{Reliable: true, NoDuplication: true, Topology: process.Tree},
	Claims:    claims,
	Invariant: invariant,
	New:       Flaw{}.New,
}

const (
	several = "N >= 2; over whole rounds, in which everyone enters once"
	apart   = "the requester is dist edges away from the token"
	onTree  = "any requester on any tree"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.OneToken},
		{Property: process.FencesGrow},
		{Property: process.Progress},
		{Property: process.OrderHappenedBefore, Fails: true, When: "a later request that is nearer to the token is served first"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, When: several, Exact: process.OfN("4(N-1)/N", func(n float64) float64 { return 4 * (n - 1) / n })},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: apart, Exact: thereAndBack},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: onTree, Lo: none, Hi: longest},
		{Metric: process.ClientDelay, Regime: process.Idle, When: apart, Exact: thereAndBack},
		{Metric: process.ClientDelay, Regime: process.Idle, When: onTree, Lo: none, Hi: longest},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: several + "; the mean", Exact: process.OfN("2(N-1)/N", func(n float64) float64 { return 2 * (n - 1) / n })},
		{Metric: process.Throughput, Regime: process.Saturated, When: several, Exact: process.OfN("N/2(N-1)", func(n float64) float64 { return n / (2 * (n - 1)) })},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a REQ that overtakes the token waits in the queue"},
	},
}

var thereAndBack = &process.Formula{Text: "2 dist", Eval: func(p process.Params) float64 { return 2 * float64(p.Distance) }}

// longest is for the ends of a line.
var longest = process.PerOther("2(N-1)", 2)

var none = process.Constant("0", 0)

const (
	req process.Type = iota + 1
	priv
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR3
	ruleR4
	ruleR5a
	ruleR5b
	ruleR6
	ruleR7
)

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	ForgetsOthers bool // R6 is skipped when R5 has just sent the token away
	EntersAtHead  bool // R5 lets a process at the head of its own queue enter without the token
	TurnsEarly    bool // R2 turns the pointer to the sender of REQ
}

type machine struct {
	c    *process.Config
	self process.ID
	flaw Flaw

	holder process.ID    // the neighbour towards the token, or self if it is here
	using  bool          // inside; implies holder = self
	asked  bool          // REQ was sent to holder, and its PRIV has not come; implies holder != self
	queue  []process.ID  // neighbours and self, each at most once
	fence  process.Fence // the largest seen; with the token, that of the last entry
	failed []process.ID  // known to have crashed
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := &machine{c: c, self: self, flaw: flaw, fence: c.Base.Fence}
	m.holder = m.towards(c.Topology.Coordinator)
	return m
}

// towards returns the neighbour on the way to p: a child if p is below it, else the
// parent. For the process itself it is the parent, or None at the root, until Start
// says that the token is here. A process that restarts does not have the token.
func (m *machine) towards(p process.ID) process.ID {
	parent := m.c.Topology.Parent
	for p != m.self && p != process.None {
		if parent[p] == m.self {
			return p
		}
		p = parent[p]
	}
	return parent[m.self]
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start:
		m.onStart()
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	case process.Acquire:
		m.onAcquire(fx)
	case process.Release:
		m.onRelease(fx)
	case process.Fail:
		m.onFail(ev.Peer, fx)
	case process.Rejoin:
		m.onRejoin(ev.Peer, fx)
	}
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	switch msg.Type {
	case req:
		m.onReq(msg.From, fx)
	case priv:
		m.onPriv(msg, fx)
	}
}

// onStart puts the token where the topology says.
func (m *machine) onStart() {
	if m.c.Topology.Coordinator == m.self {
		m.holder = m.self
	}
}

// onAcquire is R1.
func (m *machine) onAcquire(fx *process.Effects) {
	process.Assert(!slices.Contains(m.queue, m.self) && !m.using, "a process has one request at a time")
	fx.Rule(ruleR1)
	m.queue = append(m.queue, m.self)
	m.proceed(fx)
}

// onReq is R2. A REQ of a neighbour that is known to have crashed was sent before the
// crash.
func (m *machine) onReq(from process.ID, fx *process.Effects) {
	if slices.Contains(m.failed, from) {
		return
	}
	fx.Rule(ruleR2)
	m.queue = append(m.queue, from)
	if m.flaw.TurnsEarly {
		m.holder = from
	}
	m.proceed(fx)
}

// onPriv is R3.
func (m *machine) onPriv(msg *process.Message, fx *process.Effects) {
	process.Assert(m.holder != m.self, "there is one token")
	fx.Rule(ruleR3)
	m.holder, m.asked, m.fence = m.self, false, msg.Fence
	m.proceed(fx)
}

// onRelease is R4.
func (m *machine) onRelease(fx *process.Effects) {
	if !m.using {
		return
	}
	fx.Rule(ruleR4)
	m.using = false
	m.proceed(fx)
}

// proceed is R5 and then R6: a process that has just sent the token away, and has
// others waiting, asks for it back at once.
func (m *machine) proceed(fx *process.Effects) {
	had := m.holder == m.self
	m.assign(fx)
	if gone := had && m.holder != m.self; !gone || !m.flaw.ForgetsOthers {
		m.ask(fx)
	}
}

// assign is R5.
func (m *machine) assign(fx *process.Effects) {
	if m.using || len(m.queue) == 0 || m.holder != m.self && !m.entersAnyway() {
		return
	}
	head := m.queue[0]
	m.queue = slices.Delete(m.queue, 0, 1)
	if head == m.self {
		fx.Rule(ruleR5a)
		m.using = true
		m.fence++
		fx.Grant(m.fence)
		return
	}
	fx.Rule(ruleR5b)
	m.holder = head
	fx.Send(head, process.Message{Type: priv, Fence: m.fence})
}

func (m *machine) entersAnyway() bool { return m.flaw.EntersAtHead && m.queue[0] == m.self }

// ask is R6. A root that restarted does not know where the token is and cannot ask.
func (m *machine) ask(fx *process.Effects) {
	if m.holder == m.self || m.holder == process.None || m.asked || len(m.queue) == 0 {
		return
	}
	fx.Rule(ruleR6)
	m.asked = true
	fx.Send(m.holder, process.Message{Type: req})
}

// onFail is R7. The token that was asked for on behalf of the crashed process still
// comes, and stays if no other process wants it.
func (m *machine) onFail(p process.ID, fx *process.Effects) {
	if slices.Contains(m.failed, p) {
		return
	}
	m.failed = process.Insert(m.failed, p)
	m.strike(p, fx)
}

// onRejoin is R7 too: p has forgotten its requests.
func (m *machine) onRejoin(p process.ID, fx *process.Effects) {
	m.failed = process.Remove(m.failed, p)
	m.strike(p, fx)
}

func (m *machine) strike(p process.ID, fx *process.Effects) {
	fx.Rule(ruleR7)
	m.queue = process.Remove(m.queue, p)
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	f.ID("holder", &m.holder)
	f.Bool("using", &m.using)
	f.Bool("asked", &m.asked)
	f.IDs("rq", &m.queue)
	f.Fence("fence", &m.fence)
	f.IDs("failed", &m.failed)
}

// HasToken reports whether the token is here.
func (m *machine) HasToken() bool { return m.holder == m.self }

// invariant holds while no process crashes and no message is lost. Both ends of the
// edge that PRIV is on point at each other. Every other pointer leads there, or to the
// token.
var invariant = &process.Invariant{Text: "there is one token, and the pointers of all processes lead to it", Wrong: wrong}

func wrong(g *process.Global) string {
	if g.Faults {
		return ""
	}
	tokens, at := 0, process.None
	for p := range process.ID(g.Config.N) {
		if g.Machines[p].(*machine).holder == p {
			tokens, at = tokens+1, p
		}
	}
	for _, m := range g.Messages {
		if m.Type == priv {
			tokens, at = tokens+1, m.To
		}
	}
	if tokens == 0 {
		return "no process has the token, and no message brings it"
	}
	if tokens > 1 {
		return fmt.Sprintf("there are %d tokens", tokens)
	}
	for p := range process.ID(g.Config.N) {
		if !leads(g, p, at) {
			return fmt.Sprintf("the pointers from %s do not lead to the token, which is with %s or on its way there",
				g.Config.Text(p), g.Config.Text(at))
		}
	}
	return ""
}

// leads reports whether the pointers lead from p to where the token is.
func leads(g *process.Global, p, at process.ID) bool {
	for range g.Config.N {
		if p == at || p == process.None {
			break
		}
		p = g.Machines[p].(*machine).holder
	}
	return p == at
}
