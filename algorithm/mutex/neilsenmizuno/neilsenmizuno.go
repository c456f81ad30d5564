// Package neilsenmizuno is mutual exclusion by a token on a tree of fixed edges, whose
// requests turn the edges that they pass (Neilsen and Mizuno).
//
// # Problem and idea
//
// The process that has the token may enter. The waiting processes form a queue, and each
// knows only the next one. A new request must find the end of the queue. The processes
// form a tree, and each one points to the neighbor that leads to the process that asked
// last. A request follows the pointers, and each process on the way turns its pointer to
// the neighbor from which the request came. The token does not use the tree: it goes
// directly to the next process.
//
// In Raymond's algorithm the token also travels along the tree, so each process must keep
// a queue of its neighbors. Naimi and Trehel turn pointers to the requester itself, so
// the edges of their tree change. Here they do not change: no path is longer than the
// longest path of the tree.
//
// # Rules
//
// The process is the sink if its pointer "last" is empty: it asked last.
//
//	M1  request: M1a the token is here: enter.
//	    M1b otherwise send REQ(i) to last. This process is the sink now, before the
//	        token comes.
//	M2  on REQ(k) from the neighbor j:
//	    M2a the sink that waits or is inside: k is next.
//	    M2b the sink that has the token and does not need it: send it to k.
//	    M2c not the sink: pass REQ(k) on to last.
//	    In all cases: last := j.
//	M3  on PRIV: enter.
//	M4  release: M4a send PRIV to the next process, and forget that process.
//	    M4b No process is next: keep the token.
//
// # Why it is safe and live
//
// PRIV is the token: a process that sends it no longer has it, and only a process that
// has it enters.
//
// Each edge of the tree is in one of three states: one of its ends points to the other, or
// a REQ is on its way along it. M1b and M2c put a REQ in place of a pointer, and M2 a
// pointer in place of a REQ. So a REQ meets no other REQ on its edge, and never returns
// along an edge that it has passed. So it reaches a sink. A sink that needs the token is
// not a sink afterwards, so it has one process behind it. Each process in the queue gets
// the token from the one before it.
//
// # Cost
//
// A requester d edges away from the sink causes d REQ and one PRIV. In a quiet system the
// sink has the token, and the requester waits d+1 message times. A star is the best tree:
// at most three messages for an entry, for any N. While a process waits and its request
// has arrived, the next entry follows one message time after the last.
//
// When all processes ask, each REQ goes to the process that asked before. So the REQ of a
// round, in which everyone enters once, form a closed walk through all processes. It
// crosses each of the N-1 edges at least once in both directions: 3-2/N messages per
// entry with PRIV. It crosses an edge at most as often as there are processes on the
// smaller side. That is most on a line: N/2+1 messages per entry.
//
// # Assumptions and deviations
//
// Links lose and copy nothing. They need not keep the order of messages: an edge carries
// one REQ at a time, and a REQ that overtakes the token finds a process that waits. The
// tree is given (Topology.Parent). The token also goes between processes that are no
// neighbors on the tree. The coordinator of the topology has the token at the start; in
// the paper, a message through the tree sets the pointers. The fence that the token
// carries is an addition.
//
// Not survived: any crash. It cuts the tree or the queue, or loses the token. A process
// that restarts has forgotten its pointers.
//
// Source: M. L. Neilsen and M. Mizuno: A DAG-based algorithm for distributed mutual
// exclusion, 1991. The lecture documents do not name it.
package neilsenmizuno

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:   "neilsen-mizuno",
	Title:  "Neilsen-Mizuno's turning tree",
	Paper:  "M. L. Neilsen, M. Mizuno: A DAG-based algorithm for distributed mutual exclusion, 11th International Conference on Distributed Computing Systems, 1991, doi:10.1109/ICDCS.1991.148689",
	Family: process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "REQ", Fields: []process.FieldUse{{Field: process.FieldSubject, Symbol: "k"}}},
		{Name: "PRIV", Fields: []process.FieldUse{{Field: process.FieldFence, Symbol: "f"}}},
	},
	Rules: []process.RuleSpec{
		{Name: "M1a", Text: "request while the token is here: enter"},
		{Name: "M1b", Text: "request: send REQ to last, and be the sink"},
		{Name: "M2a", Text: "REQ(k) at the sink that waits or is inside: k is next, last is the neighbor that sent REQ"},
		{Name: "M2b", Text: "REQ(k) at the sink with an unused token: send PRIV to k, last is the neighbor that sent REQ"},
		{Name: "M2c", Text: "REQ(k) elsewhere: pass it on to last, which is the neighbor that sent REQ from now on"},
		{Name: "M3", Text: "PRIV: enter"},
		{Name: "M4a", Text: "release: send PRIV to the next process"},
		{Name: "M4b", Text: "release and no process is next: keep the token"},
	},
	Needs:     process.Needs{Reliable: true, NoDuplication: true, Topology: process.Tree},
	Claims:    claims,
	Invariant: invariant,
	New:       Flaw{}.New,
}

const (
	several = "N >= 2; over whole rounds, in which everyone enters once"
	apart   = "the requester is dist edges away from the token; none if it is here"
	onTree  = "any requester on any tree"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.OneToken},
		{Property: process.FencesGrow},
		{Property: process.Progress},
		{Property: process.OrderHappenedBefore, Fails: true, When: "the token goes past the tree, and the process that it reaches asks again on a shorter path"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, When: several, Lo: walk, Hi: wander},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: apart, Exact: thereAndHere},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: onTree, Lo: none, Hi: longest},
		{Metric: process.ClientDelay, Regime: process.Idle, When: apart, Exact: thereAndHere},
		{Metric: process.ClientDelay, Regime: process.Idle, When: onTree, Lo: none, Hi: longest},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: "N >= 2", Exact: one},
		{Metric: process.Throughput, Regime: process.Saturated, When: "N >= 2", Exact: one},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "an edge carries one REQ at a time, and a REQ that overtakes the token waits for it"},
	},
}

var none = process.Constant("0", 0)

var one = process.Constant("1", 1)

var thereAndHere = &process.Formula{Text: "dist+1", Eval: func(p process.Params) float64 {
	if p.Distance == 0 {
		return 0
	}
	return float64(p.Distance) + 1
}}

// longest is for the ends of a line.
var longest = process.PerProcess("N", 1)

// walk is a round in the order of a walk round the tree, which crosses each edge twice.
var walk = process.OfN("3-2/N", func(n float64) float64 { return 3 - 2/n })

// wander is a round in the worst order on a line: each edge is crossed, in both
// directions, as often as there are processes on its shorter side.
var wander = process.OfN("N/2+1", func(n float64) float64 { return n/2 + 1 })

const (
	req process.Type = iota + 1
	priv
)

const (
	ruleM1a process.Rule = iota + 1
	ruleM1b
	ruleM2a
	ruleM2b
	ruleM2c
	ruleM3
	ruleM4a
	ruleM4b
)

const idle, waiting, inside = process.PhaseIdle, process.PhaseWaiting, process.PhaseInside

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	HoldsInside bool // M1a leaves the token marked as unused while the process is inside
	RelaysKeep  bool // M2c does not turn the pointer
}

type machine struct {
	c    *process.Config
	self process.ID
	flaw Flaw

	phase   process.Phase
	holding bool          // the token is here and not in use; implies phase = idle
	last    process.ID    // the neighbor towards the process that asked last; None at the sink
	next    process.ID    // gets the token after this process; None if idle
	fence   process.Fence // the largest seen; with the token, that of the last entry
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := &machine{c: c, self: self, flaw: flaw, next: process.None, fence: c.Base.Fence}
	m.last = m.towards(c.Topology.Coordinator)
	return m
}

// towards returns the neighbor on the way to p: a child if p is below it, else the parent.
// For the process itself it is the parent, or None at the root, until Start says that the
// token is here. A process that restarts does not have the token.
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
	}
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	switch msg.Type {
	case req:
		m.onReq(msg.Subject, msg.From, fx)
	case priv:
		m.onPriv(msg.Fence, fx)
	}
}

// onStart puts the token where the topology says.
func (m *machine) onStart() {
	if m.c.Topology.Coordinator == m.self {
		m.holding, m.last = true, process.None
	}
}

// onAcquire is M1. A root that restarted does not know where the sink is, and waits.
func (m *machine) onAcquire(fx *process.Effects) {
	process.Assert(m.phase == idle, "a process has one request at a time")
	if m.holding {
		fx.Rule(ruleM1a)
		m.holding = m.flaw.HoldsInside
		m.enter(fx)
		return
	}
	fx.Rule(ruleM1b)
	m.phase = waiting
	if m.last == process.None {
		return
	}
	fx.Send(m.last, process.Message{Type: req, Subject: m.self})
	m.last = process.None
}

func (m *machine) enter(fx *process.Effects) {
	m.phase = inside
	m.fence++
	fx.Grant(m.fence)
}

// onReq is M2. The pointer turns to the neighbor that sent REQ, not to the process that
// asked: only that keeps the edges of the tree.
func (m *machine) onReq(k, from process.ID, fx *process.Effects) {
	switch {
	case m.last != process.None:
		fx.Rule(ruleM2c)
		fx.Send(m.last, process.Message{Type: req, Subject: k})
		if m.flaw.RelaysKeep {
			return
		}
	case m.holding:
		fx.Rule(ruleM2b)
		m.holding = false
		fx.Send(k, process.Message{Type: priv, Fence: m.fence})
	default:
		fx.Rule(ruleM2a)
		m.next = k
	}
	m.last = from
}

// onPriv is M3.
func (m *machine) onPriv(fence process.Fence, fx *process.Effects) {
	fx.Rule(ruleM3)
	m.fence = fence
	m.enter(fx)
}

// onRelease is M4.
func (m *machine) onRelease(fx *process.Effects) {
	if m.phase != inside {
		return
	}
	m.phase = idle
	if m.next == process.None {
		fx.Rule(ruleM4b)
		m.holding = true
		return
	}
	fx.Rule(ruleM4a)
	fx.Send(m.next, process.Message{Type: priv, Fence: m.fence})
	m.next = process.None
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "st", &m.phase, process.PhaseNames)
	f.Bool("holding", &m.holding)
	f.ID("last", &m.last)
	f.ID("next", &m.next)
	f.Fence("fence", &m.fence)
}

// HasToken reports whether the token is here.
func (m *machine) HasToken() bool { return m.holding || m.phase == inside }

// invariant holds while no process crashes and no message is lost.
var invariant = &process.Invariant{Text: "there is one token, and on each edge of the tree there is either one pointer or one REQ", Wrong: wrong}

func wrong(g *process.Global) string {
	if g.Faults {
		return ""
	}
	tokens := 0
	for p := range process.ID(g.Config.N) {
		if g.Machines[p].(*machine).HasToken() {
			tokens++
		}
	}
	for _, m := range g.Messages {
		if m.Type == priv {
			tokens++
		}
	}
	if tokens != 1 {
		return fmt.Sprintf("there are %d tokens", tokens)
	}
	for p, q := range g.Config.Topology.Parent {
		if q == process.None {
			continue
		}
		if uses := onEdge(g, process.ID(p), q) + onEdge(g, q, process.ID(p)); uses != 1 {
			return fmt.Sprintf("there are %d pointers and requests between %s and %s", uses, g.Config.Text(process.ID(p)), g.Config.Text(q))
		}
	}
	return ""
}

// onEdge counts the pointers and the requests from p to q.
func onEdge(g *process.Global, p, q process.ID) (uses int) {
	if g.Machines[p].(*machine).last == q {
		uses++
	}
	for _, m := range g.Messages {
		if m.Type == req && m.From == p && m.To == q {
			uses++
		}
	}
	return uses
}
