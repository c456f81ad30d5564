// Package naimitrehel is mutual exclusion by a token that the processes find by
// path reversal (Naimi and Trehel).
//
// # Problem and idea
//
// The process that has the token may enter. The waiting processes form a queue that
// no process knows as a whole: each process in it knows the next one only. A new
// request must find the end of that queue. To find it, each process remembers the
// process that it believes asked last. A request follows these pointers to the one
// that did ask last. On its way it turns every pointer to its own sender, because
// that process asked last now. So paths that are used become short.
//
// Unlike in Raymond's algorithm the tree is not given: it changes with every request.
//
// # Rules
//
// The process is the root if its pointer "last" is empty: it asked last.
//
//	R1  request: R1a the token is here: enter.
//	    R1b otherwise send REQ(i) to last. This process is the root now, before the
//	        token comes.
//	R2  on REQ(k):
//	    R2a the root that waits or is inside: k is next.
//	    R2b the root that has the token and does not need it: send it to k.
//	    R2c not the root: pass REQ(k) on to last.
//	    In all cases k asked last: last := k.
//	R3  on TOKEN: enter.
//	R4  release: R4a send the token to the next process, and forget that process.
//	    R4b No process is next: keep the token.
//
// # Why it is safe and live
//
// TOKEN is the right to enter. A process that sends it no longer has it, and only a
// process that has it enters.
//
// Draw a line from each process to its last, and one from each process whose request is
// on its way to the process that it is sent to. In every state the lines form a tree. R1b
// puts a request in place of a pointer, between the same two. R2 at the root puts a
// pointer in place of a request. When i passes REQ(k) on to f, the request between k and i
// becomes the pointer of i, and in place of the pointer from i to f there is a request
// between k and f: the tree is cut at one line and joined again by another.
//
// Without the line of REQ(k) the tree falls into two parts. Each hop moves a process from
// the other part to that of k, and steps of other requests move none. So a request reaches
// a root after at most N-1 hops. The root is the end of a part of the queue. If it needs
// the token, it is not the root afterwards, so it has one process behind it. Each process
// in the queue gets the token from the one before it.
//
// # Cost
//
// A requester that is h edges away from the root sends or causes h REQ and one TOKEN.
// The root that has the token sends nothing. The worst tree is a line: N messages. If
// the requesters are drawn uniformly and each asks when the system is quiet, the mean
// is the harmonic number H_(N-1) = 1 + 1/2 + ... + 1/(N-1), which grows with log N.
// Messages follow each other, so the client delay in units of D is the same figure.
// While a process waits, the token goes to it directly: the synchronization delay is
// one message time if its request has arrived.
//
// # Assumptions and deviations
//
// Links lose and copy nothing. They need not keep the order of messages, because a
// process is the root before its token comes. At the start the coordinator of the
// topology has the token and every pointer leads to it, as in the paper. Only a process
// to which no pointer leads, and which neither waits nor has the token, may crash.
// A crash of any other process cuts the tree or the queue, or loses the token. The
// authors' rules for failures, which search for the token with timeouts and
// broadcasts, are not here. A restarted process has forgotten its pointers. The fence
// that the token carries is ours.
//
// Sources: M. Naimi, M. Trehel and A. Arnold: A log(N) distributed mutual exclusion
// algorithm based on path reversal, 1996; the algorithm is from M. Trehel and M. Naimi,
// 1987. The lecture documents do not name it.
package naimitrehel

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:   "naimi-trehel",
	Title:  "Naimi-Trehel's path reversal",
	Paper:  "M. Naimi, M. Trehel, A. Arnold: A log(N) distributed mutual exclusion algorithm based on path reversal, Journal of Parallel and Distributed Computing 34(1), 1996, doi:10.1006/jpdc.1996.0041",
	Family: process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "REQ", Fields: []process.FieldUse{{Field: process.FieldSubject, Symbol: "k"}}},
		{Name: "TOKEN", Fields: []process.FieldUse{{Field: process.FieldFence, Symbol: "f"}}},
	},
	Rules: []process.RuleSpec{
		{Name: "R1a", Text: "request while the token is here: enter"},
		{Name: "R1b", Text: "request: send REQ to last, and be the root"},
		{Name: "R2a", Text: "REQ(k) at the root that waits or is inside: k is next and last"},
		{Name: "R2b", Text: "REQ(k) at the root with an unused token: send TOKEN to k, which is last"},
		{Name: "R2c", Text: "REQ(k) elsewhere: pass it on to last, which is k from now on"},
		{Name: "R3", Text: "TOKEN: enter"},
		{Name: "R4a", Text: "release: send TOKEN to the next process"},
		{Name: "R4b", Text: "release and no process is next: keep the token"},
	},
	Needs:     process.Needs{Reliable: true, NoDuplication: true},
	Claims:    claims,
	Invariant: invariant,
	New:       Flaw{}.New,
}

const (
	anywhere = "none if the token is here; the mean is over requesters drawn uniformly"
	several  = "N >= 2"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.OneToken},
		{Property: process.FencesGrow},
		{Property: process.Progress},
		{Property: process.OrderHappenedBefore, Fails: true, When: "a later request with a shorter path reaches the root first"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: anywhere, Lo: none, Hi: line, Mean: harmonic},
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, When: several + "; the mean is (4N-2)/(N+1) over N+1 rounds in which all enter in turn", Lo: there, Hi: line},
		{Metric: process.ClientDelay, Regime: process.Idle, When: anywhere, Lo: none, Hi: line, Mean: harmonic},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: several, Exact: one},
		{Metric: process.Throughput, Regime: process.Saturated, When: several, Exact: one},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a process is the root before its token comes, and takes the REQ that overtakes it"},
	},
}

var none = process.Constant("0", 0)

var one = process.Constant("1", 1)

// there is a REQ to the root and the token.
var there = process.Constant("2", 2)

// line is N-1 REQ from the end of a line, and the token.
var line = process.PerProcess("N", 1)

var harmonic = &process.Formula{Text: "H_(N-1)", Eval: func(p process.Params) float64 {
	sum := 0.0
	for k := 1; k < p.N; k++ {
		sum += 1 / float64(k)
	}
	return sum
}}

const (
	req process.Type = iota + 1
	token
)

const (
	ruleR1a process.Rule = iota + 1
	ruleR1b
	ruleR2a
	ruleR2b
	ruleR2c
	ruleR3
	ruleR4a
	ruleR4b
)

const idle, waiting, inside = process.PhaseIdle, process.PhaseWaiting, process.PhaseInside

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	RootGives bool // R2a applies only to a root that is inside: one that waits acts as if it had the token
	StaysRoot bool // R2a does not set last: a root that waits or is inside stays the root
}

type machine struct {
	c    *process.Config
	self process.ID
	flaw Flaw

	phase process.Phase
	here  bool          // the token; implied by phase inside, excluded by phase waiting
	last  process.ID    // the process that asked last as far as this one knows; None at the root
	next  process.ID    // gets the token from here; None unless this process waits or is inside, and is not the root
	fence process.Fence // the largest seen; with the token, that of the last entry
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := &machine{c: c, self: self, flaw: flaw, last: c.Topology.Coordinator, next: process.None, fence: c.Base.Fence}
	if m.last == self {
		m.last = process.None
	}
	return m
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start:
		m.here = m.c.Topology.Coordinator == m.self
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
		m.onReq(msg.Subject, fx)
	case token:
		m.onToken(msg.Fence, fx)
	}
}

// onAcquire is R1. A root that restarted knows no process to ask, and waits.
func (m *machine) onAcquire(fx *process.Effects) {
	process.Assert(m.phase == idle, "a process has one request at a time")
	if m.here {
		fx.Rule(ruleR1a)
		m.enter(fx)
		return
	}
	fx.Rule(ruleR1b)
	m.phase = waiting
	if m.last != process.None {
		fx.Send(m.last, process.Message{Type: req, Subject: m.self})
		m.last = process.None
	}
}

func (m *machine) enter(fx *process.Effects) {
	m.phase = inside
	m.fence++
	fx.Grant(m.fence)
}

// onReq is R2. The root asked last, so it is the end of the queue.
func (m *machine) onReq(k process.ID, fx *process.Effects) {
	process.Assert(k != m.self, "a request does not come back to its sender")
	switch {
	case m.last != process.None:
		fx.Rule(ruleR2c)
		fx.Send(m.last, process.Message{Type: req, Subject: k})
	case m.phase == inside, m.phase == waiting && !m.flaw.RootGives:
		fx.Rule(ruleR2a)
		m.next = k
		if m.flaw.StaysRoot {
			return
		}
	case m.here, m.flaw.RootGives:
		m.give(ruleR2b, k, fx)
	}
	m.last = k
}

// give is R2b and R4a.
func (m *machine) give(why process.Rule, to process.ID, fx *process.Effects) {
	fx.Rule(why)
	m.here = false
	fx.Send(to, process.Message{Type: token, Fence: m.fence})
}

// onToken is R3.
func (m *machine) onToken(f process.Fence, fx *process.Effects) {
	process.Assert(m.phase == waiting, "the token goes to a process that waits for it")
	fx.Rule(ruleR3)
	m.here, m.fence = true, f
	m.enter(fx)
}

// onRelease is R4.
func (m *machine) onRelease(fx *process.Effects) {
	if m.phase != inside {
		return
	}
	m.phase = idle
	if m.next == process.None {
		fx.Rule(ruleR4b)
		return
	}
	m.give(ruleR4a, m.next, fx)
	m.next = process.None
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "st", &m.phase, process.PhaseNames)
	f.Bool("token", &m.here)
	f.ID("last", &m.last)
	f.ID("next", &m.next)
	f.Fence("fence", &m.fence)
}

// HasToken reports whether the token is here.
func (m *machine) HasToken() bool { return m.here }

// invariant holds while no process crashes and no message is lost. The package comment
// says why.
var invariant = &process.Invariant{
	Text: "there is one token, and the pointers of all processes, together with the requests in flight, form a tree",
	Wrong: func(g *process.Global) string {
		if g.Faults {
			return ""
		}
		if text := wrongTokens(g); text != "" {
			return text
		}
		return wrongTree(g)
	},
}

func wrongTokens(g *process.Global) string {
	at := process.None
	for p := range process.ID(g.Config.N) {
		if !g.Machines[p].(*machine).here {
			continue
		}
		if at != process.None {
			return g.Config.Text(at) + " and " + g.Config.Text(p) + " have a token each"
		}
		at = p
	}
	for _, m := range g.Messages {
		if m.Type != token {
			continue
		}
		if at != process.None {
			return "a token is in flight to " + g.Config.Text(m.To) + ", and another one with " + g.Config.Text(at) + " or on its way there"
		}
		at = m.To
	}
	if at == process.None {
		return "no process has the token, and no message brings it"
	}
	return ""
}

// wrongTree draws a line from each process to its last, and from each process whose
// request is on its way to the process that the request is sent to.
func wrongTree(g *process.Global) string {
	parts := make([]process.ID, g.Config.N) // of each process, one that stands for its part
	for p := range parts {
		parts[p] = process.ID(p)
	}
	lines := 0
	join := func(p, q process.ID) bool {
		lines++
		p, q = parts[p], parts[q]
		for i := range parts {
			if parts[i] == p {
				parts[i] = q
			}
		}
		return p != q
	}
	for p := range process.ID(g.Config.N) {
		if last := g.Machines[p].(*machine).last; last != process.None && !join(p, last) {
			return "the pointer of " + g.Config.Text(p) + " closes a cycle"
		}
	}
	for _, m := range g.Messages {
		if m.Type == req && !join(m.Subject, m.To) {
			return "the request of " + g.Config.Text(m.Subject) + " in flight to " + g.Config.Text(m.To) + " closes a cycle"
		}
	}
	if lines != g.Config.N-1 {
		return fmt.Sprintf("the pointers and requests leave %d parts", g.Config.N-lines)
	}
	return ""
}
