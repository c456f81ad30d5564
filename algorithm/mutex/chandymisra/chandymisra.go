// Package chandymisra is mutual exclusion by forks, one for each two processes (Chandy
// and Misra).
//
// # Problem and idea
//
// Each two processes share one fork, and a process that has the forks of all its pairs
// may enter. A fork is clean until its owner has entered with it, and dirty afterwards.
// A process that is asked for a dirty fork gives it up, and one that is asked for a
// clean fork keeps it until it has entered. So of two processes the one that entered
// last gives way. No clock is needed, and a fork stays where it was used: a process
// that enters again without being asked sends nothing.
//
// This is the solution of the dining philosophers in which each two philosophers are
// neighbours.
//
// # Rules
//
// For each pair there is one fork and one token with which the other process asks for it.
//
//	R1  request: send REQ, the token, for each missing fork; enter when none is missing.
//	R2  on REQ from j: the token is here.
//	    R2a inside, or the fork is clean, or not here yet: keep the token.
//	    R2b otherwise: clean the fork and send FORK to j.
//	    R2c R2b gave a fork away while this process waits: send REQ for it.
//	R3  on FORK: the fork is here, and clean; enter when none is missing.
//	R4  release: all forks are dirty; send FORK, cleaned, to each process that has asked.
//
// # Why it is safe
//
// A pair has one fork, so of two processes only one is inside.
//
// Nobody waits forever: say that p precedes q if p has their fork and it is clean, or q
// has it and it is dirty, or it is on its way to p. At first the order is that of the
// ranks, lowest first. A fork is cleaned only when it is sent, which changes no order;
// a process that has entered comes after all others. So the order is always total. The
// first of those that wait gets the dirty forks that it asks for, and keeps them.
//
// Fences: FORK carries the largest fence that its sender has seen. A process p that
// enters has the forks of all pairs. Whoever entered before had the fork of its pair
// with p, and has sent it to p after that. So 1 + the largest is new.
//
// # Cost
//
// Two messages for each missing fork. A process that was the last to enter has all
// forks: 0 messages. If all take turns, every fork is missing: 2(N-1) messages, and a
// client delay of 2. The synchronization delay is 1.
//
// # Assumptions and deviations
//
// Links lose and duplicate nothing; order does not matter. A REQ that overtakes a FORK
// is answered when its receiver has entered with that fork. The original guards ask again
// whenever a process has the token but not the fork; here a process asks only when it
// begins to wait (R1) and when it gives a fork away (R2c), so nothing depends on order.
// Not survived: any crash. The forks of a crashed process are lost, and all others
// wait for them forever. The fence is an addition. The original is for any graph of
// neighbours, and any first order; here the graph is complete, and each fork begins
// dirty with the higher of its two ranks.
//
// Source: K. M. Chandy and J. Misra: The drinking philosophers problem, 1984.
package chandymisra

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:   "chandy-misra",
	Title:  "Chandy and Misra's forks",
	Paper:  "K. M. Chandy, J. Misra: The Drinking Philosophers Problem, ACM Transactions on Programming Languages and Systems 6(4), 1984, doi:10.1145/1780.1804",
	Family: process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "REQ"},
		{Name: "FORK", Fields: []process.FieldUse{{Field: process.FieldFence, Symbol: "f"}}},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "request: send REQ for each missing fork"},
		{Name: "R2a", Text: "REQ while inside, or for a fork that is clean or not here: answer later"},
		{Name: "R2b", Text: "REQ for a dirty fork: send it"},
		{Name: "R2c", Text: "a fork was given away while waiting: send REQ for it"},
		{Name: "R3", Text: "FORK: it is here and clean; enter when none is missing"},
		{Name: "R4", Text: "release: all forks are dirty, send those that others have asked for"},
	},
	Needs:     process.Needs{Reliable: true, NoDuplication: true},
	Claims:    claims,
	Invariant: &process.Invariant{Text: "each two processes have one fork between them", Wrong: wrong},
	New:       newMachine,
}

const (
	several = "N >= 2"
	inTurn  = "all enter in turn, which costs most"
	barges  = "a process that has all forks enters again before it hears of an earlier request"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.Progress},
		{Property: process.FencesGrow},
		{Property: process.OrderHappenedBefore, Fails: true, When: barges},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: inTurn, Exact: process.PerOther("2(N-1)", 2)},
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, Exact: process.PerOther("2(N-1)", 2)},
		{Metric: process.MessagesPerEntry, Regime: process.AnyLoad,
			When: "the mean if one enters at a time, drawn at random",
			Lo:   process.Constant("0", 0), Hi: process.PerOther("2(N-1)", 2), Mean: process.PerOther("N-1", 1)},
		{Metric: process.ClientDelay, Regime: process.Idle, When: several + "; " + inTurn, Exact: process.Constant("2", 2)},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1)},
		{Metric: process.Throughput, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a REQ that overtakes a FORK is answered after the entry"},
	},
}

const (
	req process.Type = iota + 1
	fork
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2a
	ruleR2b
	ruleR2c
	ruleR3
	ruleR4
)

const idle, waiting, inside = process.PhaseIdle, process.PhaseWaiting, process.PhaseInside

type machine struct {
	c    *process.Config
	self process.ID

	phase process.Phase
	forks process.Set   // the processes whose fork is here; all others when inside
	clean process.Set   // those of them whose fork is clean; empty when idle or inside
	asked process.Set   // the processes that have asked for a fork and wait for it
	fence process.Fence // the largest seen; inside, that of the entry
}

func newMachine(self process.ID, c *process.Config) process.Machine {
	return &machine{
		c: c, self: self, fence: c.Base.Fence,
		forks: process.NewSet(c.N), clean: process.NewSet(c.N), asked: process.NewSet(c.N),
	}
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
		m.onReq(msg.From, fx)
	case fork:
		m.onFork(msg, fx)
	}
}

// onStart gives the process the forks that it shares with lower ranks, which are dirty. A
// process that restarts does not know which forks it had: it has none.
func (m *machine) onStart() {
	for p := range m.self {
		m.forks.Add(p)
	}
}

// onAcquire is R1.
func (m *machine) onAcquire(fx *process.Effects) {
	process.Assert(m.phase == idle, "a process has one request at a time")
	fx.Rule(ruleR1)
	m.phase = waiting
	for p := range process.ID(m.c.N) {
		if p != m.self && !m.forks.Has(p) {
			fx.Send(p, process.Message{Type: req})
		}
	}
	m.enterIfComplete(fx)
}

// onReq is R2. An idle process has no clean fork: it became dirty in the entry.
func (m *machine) onReq(from process.ID, fx *process.Effects) {
	if m.phase == inside || !m.forks.Has(from) || m.clean.Has(from) {
		fx.Rule(ruleR2a)
		m.asked.Add(from)
		return
	}
	fx.Rule(ruleR2b)
	m.give(from, fx)
	if m.phase == waiting {
		fx.Rule(ruleR2c)
		fx.Send(from, process.Message{Type: req})
	}
}

func (m *machine) give(to process.ID, fx *process.Effects) {
	m.forks.Remove(to)
	m.asked.Remove(to)
	fx.Send(to, process.Message{Type: fork, Fence: m.fence})
}

// onFork is R3.
func (m *machine) onFork(msg *process.Message, fx *process.Effects) {
	process.Assert(!m.forks.Has(msg.From), "each two processes have one fork")
	fx.Rule(ruleR3)
	m.forks.Add(msg.From)
	m.clean.Add(msg.From)
	m.fence = max(m.fence, msg.Fence)
	m.enterIfComplete(fx)
}

func (m *machine) enterIfComplete(fx *process.Effects) {
	if m.phase != waiting || m.forks.Len() < m.c.N-1 {
		return
	}
	m.phase = inside
	m.clean.Clear()
	m.fence++
	fx.Grant(m.fence)
}

// onRelease is R4.
func (m *machine) onRelease(fx *process.Effects) {
	process.Assert(m.phase == inside, "only a holder releases")
	fx.Rule(ruleR4)
	m.phase = idle
	for p := range m.asked.All() {
		m.give(p, fx)
	}
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "st", &m.phase, process.PhaseNames)
	f.Set("forks", m.forks)
	f.Set("clean", m.clean)
	f.Set("asked", m.asked)
	f.Fence("F", &m.fence)
}

// wrong counts the forks of each pair while no process crashes and no message is lost.
func wrong(g *process.Global) string {
	if g.Faults {
		return ""
	}
	n := process.ID(g.Config.N)
	for p := range n {
		for q := p + 1; q < n; q++ {
			if forks := between(g, p, q); forks != 1 {
				return fmt.Sprintf("%s and %s have %d forks between them", g.Config.Text(p), g.Config.Text(q), forks)
			}
		}
	}
	return ""
}

func between(g *process.Global, p, q process.ID) int {
	forks := 0
	if g.Machines[p].(*machine).forks.Has(q) {
		forks++
	}
	if g.Machines[q].(*machine).forks.Has(p) {
		forks++
	}
	for _, m := range g.Messages {
		if m.Type == fork && (m.From == p && m.To == q || m.From == q && m.To == p) {
			forks++
		}
	}
	return forks
}
