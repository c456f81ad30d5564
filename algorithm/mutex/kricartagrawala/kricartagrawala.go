// Package kricartagrawala is mutual exclusion for k identical units of a resource: at
// most k processes are inside.
//
// # Problem and idea
//
// As in Ricart and Agrawala's algorithm a process asks all others, and those with an
// older request answer only when they leave. But with k units, at most k-1 others may
// be inside, so the answers of N-k others are enough: each of the k-1 that have not
// answered may be inside. A late answer must not count for the next request, so a
// process counts how many answers each other process owes it.
//
// # Rules
//
//	R1  request: take a time above all times seen, T = (t, rank), and send REQ(t)
//	    to every other process; each owes one more answer.
//	R2  on REQ(t) from j, in all cases: raise the clock above t.
//	    R2a inside, or waiting with T < (t, j): owe j one more answer.
//	    R2b otherwise: REPLY(1) at once.
//	R3  on REPLY(count) from j: j owes count answers less.
//	R4  after R1, R3 and R6: waiting, and N-k others owe nothing: enter.
//	R5  release: REPLY(count) to each process that is owed answers, for all of them.
//	R6  j has crashed: it owes nothing and is owed nothing.
//
// # Why it is safe
//
// Of two processes whose entries overlap, the one with the younger request has no
// answer to it from the other. That other process was waiting with an older request, or
// inside, and does not answer before it leaves. Take the youngest request of all
// processes that are inside at some moment. None of the others inside has answered it,
// and at most k-1 answers were missing when it entered. So at most k processes are
// inside. Processes wait only for older requests, so there is no starvation.
//
// Fences: with several processes inside there is no order that all see. A fence is the
// next number above all that a process has seen whose remainder modulo N is its rank,
// so it is unique. REQ and REPLY carry the largest fence seen, so fences grow along
// happened-before. In particular, a unit that is passed on by a REPLY gets a larger
// fence. A process that gets in because another has crashed does not know the crashed
// process's last fence, and its own may be smaller.
//
// # Cost
//
// N-1 REQ and up to N-1 REPLY per entry. Owed answers to several requests travel
// together, but N-k answers are needed to enter. So an entry costs between 2N-k-1 and
// 2(N-1) messages, and 2(N-1) if requests come one at a time. Client delay 2,
// synchronization delay 1.
//
// # Assumptions and deviations
//
// No message is lost or duplicated; order does not matter. Up to k-1 processes may be
// silent forever if each holds at most its own unit. With a reliable detector any
// number may crash. A restart without memory is not survived. With k >= N every process
// enters at once. Entries are not in the order of time: a process that needs only N-k
// answers may get them before one with an older request. Fences and R6 are additions.
//
// Sources: K. Raymond (1989), an extension of G. Ricart and A. K. Agrawala (1981);
// named in [D2].
package kricartagrawala

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "k-ricart-agrawala",
	Title:     "Ricart-Agrawala for k units",
	Paper:     "K. Raymond: A Distributed Algorithm for Multiple Entries to a Critical Section, Information Processing Letters 30(4), 1989",
	Documents: []string{"[D2]"},
	Family:    process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "REQ", Fields: []process.FieldUse{{Field: process.FieldClock, Symbol: "t"}, highest}},
		{Name: "REPLY", Fields: []process.FieldUse{{Field: process.FieldValue, Symbol: "count"}, highest}},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "request: stamp it, send REQ to all others; each owes one more answer"},
		{Name: "R2a", Text: "REQ while inside, or while waiting with an older request: owe an answer"},
		{Name: "R2b", Text: "REQ otherwise: REPLY(1) at once"},
		{Name: "R3", Text: "REPLY(count): its sender owes count answers less"},
		{Name: "R4", Text: "waiting, and N-k others owe nothing: enter"},
		{Name: "R5", Text: "release: REPLY(count) to each process that is owed answers"},
		{Name: "R6", Text: "a process crashed: it owes nothing and is owed nothing"},
	},
	Options: []process.Option{{
		Name: "k", Default: "2", Min: 1, Max: process.MaxProcesses, Text: "the number of units",
	}},
	Needs:  process.Needs{Reliable: true, NoDuplication: true, Detector: process.ReliableDetector},
	Claims: claims,
	New:    Flaw{}.New,
}

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.AtMostK},
		{Property: process.MutualExclusion, Fails: true, When: "unless k = 1"},
		{Property: process.Progress},
		{Property: process.FencesGrowCausally},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Idle, Exact: process.PerOther("2(N-1)", 2)},
		{Metric: process.MessagesPerEntry, Regime: process.AnyLoad, Lo: least, Hi: process.PerOther("2(N-1)", 2)},
		{Metric: process.ClientDelay, Regime: process.Idle, When: "0 if k >= N", Exact: &process.Formula{
			Text: "2", Eval: func(p process.Params) float64 {
				if p.K >= p.N {
					return 0
				}
				return 2
			}}},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: "k < N", Exact: process.Constant("1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "answers are counted"},
		{Fault: process.CrashAny, How: "R6, with a reliable detector, frees its unit; without one, up to k-1 bystanders"},
	},
}

// least is what an entry costs if all answers that it did not need travel together with
// others: every process is asked, and N-k must answer.
var least = &process.Formula{Text: "2N-k-1", Eval: func(p process.Params) float64 { return float64(p.N - 1 + max(0, p.N-p.K)) }}

var highest = process.FieldUse{Field: process.FieldFence, Symbol: "F"}

const (
	req process.Type = iota + 1
	reply
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2a
	ruleR2b
	ruleR3
	ruleR4
	ruleR5
	ruleR6
)

const idle, waiting, inside = process.PhaseIdle, process.PhaseWaiting, process.PhaseInside

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	ForgetsDebts bool // R1 forgets the answers that are still owed to earlier requests
	EntersEarly  bool // R4 counts N others instead of N-1, and enters with one answer less
}

type machine struct {
	c    *process.Config
	self process.ID
	flaw Flaw
	k    int

	phase  process.Phase
	clock  uint64        // the largest logical time seen or used
	own    uint64        // the time of this process's request, or 0 when idle
	fence  process.Fence // the largest seen
	owing  []uint64      // by rank: answers it owes to this process, over all requests so far (out)
	owed   []uint64      // by rank: answers this process owes it; all 0 when idle (def)
	failed process.Set   // known to have crashed; they owe nothing and are owed nothing
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{
		c: c, self: self, flaw: flaw, k: c.IntOption("k", 2),
		clock: c.Base.Clock, fence: c.Base.Fence,
		owing: make([]uint64, c.N), owed: make([]uint64, c.N), failed: process.NewSet(c.N),
	}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Acquire:
		m.onAcquire(fx)
	case process.Release:
		m.onRelease(fx)
	case process.Fail:
		m.onFail(ev.Peer, fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	}
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	if m.failed.Has(msg.From) {
		return
	}
	m.fence = max(m.fence, msg.Fence)
	switch msg.Type {
	case req:
		m.onReq(msg, fx)
	case reply:
		m.onReply(msg, fx)
	}
}

// onAcquire is R1. Answers that are still owed to earlier requests stay counted. If
// they were forgotten, an old answer would count for this request, and the process
// could enter as number k+1.
func (m *machine) onAcquire(fx *process.Effects) {
	process.Assert(m.phase == idle, "a process has one request at a time")
	fx.Rule(ruleR1)
	m.phase = waiting
	m.clock++
	m.own = m.clock
	asking := process.Message{Type: req, Clock: m.own, Fence: m.fence}
	everybody := m.failed.Empty()
	if everybody {
		fx.Broadcast(asking)
	}
	for p := range process.ID(m.c.N) {
		if p == m.self || m.failed.Has(p) {
			continue
		}
		m.charge(p)
		if !everybody {
			fx.Send(p, asking)
		}
	}
	m.enterIfFree(fx)
}

// onReq is R2. The clock also rises for a request that has to wait. Otherwise the next
// request of this process could get an older stamp.
func (m *machine) onReq(msg *process.Message, fx *process.Effects) {
	m.clock = max(m.clock, msg.Clock)
	own, other := process.Stamp{Clock: m.own, ID: m.self}, process.Stamp{Clock: msg.Clock, ID: msg.From}
	if m.phase == inside || m.phase == waiting && own.Less(other) {
		fx.Rule(ruleR2a)
		m.owed[msg.From]++
		return
	}
	fx.Rule(ruleR2b)
	fx.Send(msg.From, m.answering(1))
}

func (m *machine) answering(count uint64) process.Message {
	return process.Message{Type: reply, Value: int64(count), Fence: m.fence}
}

// onReply is R3.
func (m *machine) onReply(msg *process.Message, fx *process.Effects) {
	fx.Rule(ruleR3)
	m.settle(msg.From, uint64(msg.Value))
	m.enterIfFree(fx)
}

// charge notes that p owes one more answer.
func (m *machine) charge(p process.ID) {
	if m.flaw.ForgetsDebts {
		m.owing[p] = 0
	}
	m.owing[p]++
}

// settle subtracts the answers of p.
func (m *machine) settle(p process.ID, answers uint64) {
	if m.flaw.ForgetsDebts {
		m.owing[p] -= min(answers, m.owing[p])
		return
	}
	process.Assert(0 < answers && answers <= m.owing[p], "no process answers more than it was asked")
	m.owing[p] -= answers
}

// enterIfFree is R4. A process that has answered this request but owes an earlier
// answer counts as one that has not answered: the two answers cannot be told apart.
func (m *machine) enterIfFree(fx *process.Effects) {
	if m.phase != waiting || m.free() < m.enough() {
		return
	}
	fx.Rule(ruleR4)
	m.phase = inside
	m.fence = m.nextFence()
	fx.Grant(m.fence)
}

// enough is the number of others that must owe nothing.
func (m *machine) enough() int {
	if m.flaw.EntersEarly {
		return m.c.N - 1 - m.k
	}
	return m.c.N - m.k
}

// free returns the number of others that owe nothing.
func (m *machine) free() int {
	n := -1 // not counting this process, which owes itself nothing
	for _, answers := range m.owing {
		if answers == 0 {
			n++
		}
	}
	return n
}

// nextFence is the next number above the largest seen that belongs to this process.
func (m *machine) nextFence() process.Fence {
	n, rank := process.Fence(m.c.N), process.Fence(m.self)
	next := m.fence + 1
	return next + (rank+n-next%n)%n
}

// onRelease is R5.
func (m *machine) onRelease(fx *process.Effects) {
	process.Assert(m.phase == inside, "only a holder releases")
	fx.Rule(ruleR5)
	m.phase, m.own = idle, 0
	for p, count := range m.owed {
		if count > 0 {
			m.owed[p] = 0
			fx.Send(process.ID(p), m.answering(count))
		}
	}
}

// onFail is R6.
func (m *machine) onFail(p process.ID, fx *process.Effects) {
	if m.failed.Has(p) {
		return
	}
	fx.Rule(ruleR6)
	m.failed.Add(p)
	m.owing[p], m.owed[p] = 0, 0
	m.enterIfFree(fx)
}

// Idle reports whether the process has no request, is owed nothing, and remembers
// nothing of others but its marks.
func (m *machine) Idle() bool {
	return m.phase == idle && m.free() == m.c.N-1 && m.failed.Empty()
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "st", &m.phase, process.PhaseNames)
	f.Clock("C", &m.clock)
	f.Clock("T", &m.own)
	f.Fence("F", &m.fence)
	f.Array("out", m.owing)
	f.Array("def", m.owed)
	f.Set("failed", m.failed)
}
