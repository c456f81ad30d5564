// Package lamport is mutual exclusion by a request queue at every process, in the order
// of logical time.
//
// # Problem and idea
//
// Processes compete for one resource, and no process is in charge. Every process keeps
// the queue of all requests, sorted by logical time. The process whose request is at
// the head enters. The queues need not be equal at any moment. A process only has to be
// sure that it knows every older request before it enters. It is sure of that once it
// has received from every other process a message younger than its own request.
//
// # Rules
//
// Every message carries the logical time of its sending. The clock ticks before each
// event of the process itself, and goes beyond the time of each received message.
//
//	R1  request: put (T, rank), T being the time, into the queue and send REQ(T) to
//	    all others.
//	R2  on REQ(T) from j: put (T, j) into the queue.
//	    R2a send REPLY to j.
//	    R2b mode skip: no REPLY if a message younger than (T, j) was sent to j before.
//	R3  on REPLY: remember its time, as with every message.
//	R4  on REL from j: remove the request of j from the queue.
//	R5  after each of these: enter if this process's request is the head of the
//	    queue and a younger message has come from every other process.
//	R6  release: remove the request from the queue and send REL to all others.
//	R7  j has crashed: remove its request from the queue, and wait for no message
//	    from it.
//
// # Why it is safe
//
// Links keep the order of messages. So when a message younger than the request of i has
// come from j, all older requests of j have come too, and later ones of j are younger. So
// if two processes want to enter, the one with the younger request knows the older
// request, and finds it ahead of its own until REL comes. Every process answers or has
// already sent a younger message, and the oldest request of all has none before it, so
// some process always makes progress.
//
// Fences: a REL carries the largest fence that its sender has seen. A process that
// enters has the REL of every process before it, so 1 + the largest is new. A crashed
// holder sends no REL. A process that enters without that REL uses as its fence the
// number of all stamps up to its own. Entries occur in the order of stamps, and each
// fence is at most the number of its stamp, so this fence is larger than all earlier
// ones.
//
// # Cost
//
// 3(N-1) messages per entry at any load; client delay 2, synchronization delay 1. Mode
// skip saves a REPLY for each request that crosses an older request of its receiver:
// between 2(N-1) and 3(N-1).
//
// # Assumptions and deviations
//
// No message is lost, and links are FIFO: if a REPLY overtakes a REQ, two processes can
// be inside (see the script unordered). Messages may be duplicated: the times on a link
// grow, so a message whose time does not grow is a duplicate. Crashes need a reliable
// detector: a process that is only slow but is declared crashed may be inside together
// with another, and only the fence stops it. A process that was declared crashed stays
// out for good. A restart without memory is not survived.
//
// REL needs no request number, because a process has one request at a time and links
// are FIFO. [D1] prints the cost of this algorithm beside the rules of Ricart and
// Agrawala's.
//
// Sources: L. Lamport (1978); [D4].
package lamport

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "lamport",
	Title:     "Lamport",
	Paper:     "L. Lamport: Time, Clocks, and the Ordering of Events in a Distributed System, Communications of the ACM 21(7), 1978, doi:10.1145/359545.359563",
	Documents: []string{"[D1]", "[D2]", "[D4]"},
	Family:    process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "REQ", Fields: []process.FieldUse{sent}},
		{Name: "REPLY", Fields: []process.FieldUse{sent}},
		{Name: "REL", Fields: []process.FieldUse{sent, {Field: process.FieldFence, Symbol: "F"}}},
	},
	State: []process.StateSpec{
		{Name: "st", Text: "whether it wants to enter: IDLE, WAIT or IN"},
		{Name: "C", Text: "its clock: the logical time of its latest event"},
		{Name: "own", Text: "the time of its request; 0 if it has none"},
		{Name: "q", Text: "all requests that it knows, oldest first: time and process"},
		{Name: "last", Text: "for each process, the time of the latest message from it"},
		{Name: "told", Text: "for each process, the time of the latest message to it; used only in mode skip"},
		{Name: "F", Text: "the largest fence that it has seen; inside, the fence of the entry"},
		{Name: "failed", Text: "the processes that it knows to have crashed"},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "request: queue it, send REQ to all others"},
		{Name: "R2a", Text: "REQ: queue it, send REPLY"},
		{Name: "R2b", Text: "REQ: queue it; no REPLY, because a younger message was sent before"},
		{Name: "R3", Text: "REPLY: remember its time"},
		{Name: "R4", Text: "REL: remove the sender's request from the queue"},
		{Name: "R5", Text: "first in the queue, and a younger message has come from every process: enter"},
		{Name: "R6", Text: "release: remove the request from the queue, send REL to all others"},
		{Name: "R7", Text: "a process crashed: remove its request from the queue, do not wait for it"},
	},
	Options: []process.Option{{
		Name: "mode", Default: answer, Values: []string{answer, skip},
		Text: "whether a REQ is answered even if its sender needs no answer",
	}},
	Needs:  process.Needs{FIFO: true, Reliable: true, Detector: process.ReliableDetector},
	Claims: claims,
	New:    Flaw{}.New,
}

const several = "N >= 2"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.Progress},
		{Property: process.FencesGrow},
		{Property: process.OrderTimestamp},
		{Property: process.OrderHappenedBefore},
		{Property: process.BoundedBypass, Bound: process.PerOther("2(N-1)", 2),
			When: "counted from the request; N-1 once every process has heard of it"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.AnyLoad, Mode: answer, Exact: process.PerOther("3(N-1)", 3),
			Said: []process.Figure{
				{Document: "[D1]", Text: "3(N-1)", Wrong: "right for this algorithm, but printed for Ricart and Agrawala's"},
				{Document: "[D4]", Text: "3(n-1)"},
			}},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, Mode: skip, Exact: process.PerOther("3(N-1)", 3)},
		{Metric: process.MessagesPerEntry, Regime: process.AnyLoad, Mode: skip, Lo: process.PerOther("2(N-1)", 2), Hi: process.PerOther("3(N-1)", 3)},
		{Metric: process.ClientDelay, Regime: process.Idle, When: several, Exact: process.Constant("2", 2),
			Said: []process.Figure{
				{Document: "[D1]", Text: "2(N-1)", Wrong: "counts the messages one after another; N-1 of them travel at the same time"},
			}},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1),
			Said: []process.Figure{{Document: "[D4]", Text: "maximal message transmission time"}}},
		{Metric: process.Throughput, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Duplication, How: "the times on a link grow, so a duplicate is recognised"},
		{Fault: process.CrashAny, How: "R7, with a reliable detector"},
	},
}

var sent = process.FieldUse{Field: process.FieldClock, Symbol: "t"}

const (
	req process.Type = iota + 1
	reply
	rel
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2a
	ruleR2b
	ruleR3
	ruleR4
	ruleR5
	ruleR6
	ruleR7
)

// The values of the mode option.
const (
	answer = "reply"
	skip   = "skip"
)

const idle, waiting, inside = process.PhaseIdle, process.PhaseWaiting, process.PhaseInside

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	NoTieBreak bool // of two requests of the same time each process treats its own as the older one
	HeadOnly   bool // R5 does not wait for a younger message from every other process
}

type machine struct {
	c    *process.Config
	self process.ID
	flaw Flaw
	skip bool

	phase  process.Phase
	clock  uint64          // the logical time of the latest event
	own    uint64          // the time of this process's request, or 0 when idle
	queue  []process.Stamp // all known requests, sorted; at most one per process
	last   []uint64        // by rank: the time of the latest message from it
	told   []uint64        // by rank: the time of the latest message to it; only in mode skip
	fence  process.Fence   // the largest seen; inside, that of the entry
	failed process.Set     // known to have crashed; none of these is in the queue
}

// New makes a machine with the flaw. It starts the clock no lower than the fences allow:
// the number of all stamps up to the clock's is at least the largest fence, here and ever
// after.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := &machine{
		c: c, self: self, flaw: flaw, skip: c.Option("mode", answer) == skip,
		clock: max(c.Base.Clock, (uint64(c.Base.Fence)+uint64(c.N)-1)/uint64(c.N)),
		last:  make([]uint64, c.N), fence: c.Base.Fence, failed: process.NewSet(c.N),
	}
	if m.skip {
		m.told = make([]uint64, c.N)
	}
	return m
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

// onAcquire is R1.
func (m *machine) onAcquire(fx *process.Effects) {
	process.Assert(m.phase == idle, "a process has one request at a time")
	fx.Rule(ruleR1)
	m.phase = waiting
	m.clock++
	m.own = m.clock
	m.enqueue(m.ownStamp())
	m.tellAll(process.Message{Type: req, Clock: m.clock}, fx)
	m.enterIfFirst(fx)
}

// onMessage does what R2, R3 and R4 have in common: it updates the clock and the time
// last heard from the sender. A message that is not younger than the sender's last one
// is a duplicate.
func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	if m.failed.Has(msg.From) || msg.Clock <= m.last[msg.From] {
		return
	}
	m.clock = max(m.clock, msg.Clock) + 1
	m.last[msg.From] = msg.Clock
	switch msg.Type {
	case req:
		m.onReq(process.Stamp{Clock: msg.Clock, ID: msg.From}, fx)
	case reply:
		fx.Rule(ruleR3)
	case rel:
		fx.Rule(ruleR4)
		m.strike(msg.From)
		m.fence = max(m.fence, msg.Fence)
	}
	m.enterIfFirst(fx)
}

// onReq is R2. The answer has a new time: the time of the REQ would not be younger than
// the REQ itself.
func (m *machine) onReq(request process.Stamp, fx *process.Effects) {
	m.enqueue(request)
	if m.skip && request.Less(process.Stamp{Clock: m.told[request.ID], ID: m.self}) {
		fx.Rule(ruleR2b)
		return
	}
	fx.Rule(ruleR2a)
	m.clock++
	m.tell(request.ID, process.Message{Type: reply, Clock: m.clock}, fx)
}

// enterIfFirst is R5. It compares stamps, not bare times: with equal times the
// rank decides.
func (m *machine) enterIfFirst(fx *process.Effects) {
	own := m.ownStamp()
	if m.phase != waiting || m.queue[0] != own || !m.flaw.HeadOnly && !m.heardSince(own) {
		return
	}
	fx.Rule(ruleR5)
	m.phase = inside
	m.fence = m.nextFence()
	fx.Grant(m.fence)
}

// heardSince reports whether a message younger than a request of this process has come
// from every other process.
func (m *machine) heardSince(own process.Stamp) bool {
	for p, heard := range m.last {
		p := process.ID(p)
		if p != m.self && !m.failed.Has(p) && !own.Less(process.Stamp{Clock: heard, ID: p}) {
			return false
		}
	}
	return true
}

// nextFence is 1 + the largest seen, or, since a holder may have died with a
// larger one, the number of all stamps up to that of this request.
func (m *machine) nextFence() process.Fence {
	if m.failed.Empty() {
		return m.fence + 1
	}
	stamps := process.Fence((m.own-1)*uint64(m.c.N) + uint64(m.self) + 1)
	process.Assert(stamps > m.fence, "an entry's fence is at most the number of stamps up to its own")
	return stamps
}

// onRelease is R6.
func (m *machine) onRelease(fx *process.Effects) {
	process.Assert(m.phase == inside, "only a holder releases")
	fx.Rule(ruleR6)
	m.phase, m.own = idle, 0
	m.strike(m.self)
	m.clock++
	m.tellAll(process.Message{Type: rel, Clock: m.clock, Fence: m.fence}, fx)
}

// onFail is R7.
func (m *machine) onFail(p process.ID, fx *process.Effects) {
	if m.failed.Has(p) {
		return
	}
	fx.Rule(ruleR7)
	m.failed.Add(p)
	m.strike(p)
	m.enterIfFirst(fx)
}

func (m *machine) ownStamp() process.Stamp {
	return process.Stamp{Clock: m.own, ID: m.self}
}

func (m *machine) enqueue(s process.Stamp) {
	at := len(m.queue)
	for at > 0 && m.older(s, m.queue[at-1]) { // few requests are younger than one that arrives
		at--
	}
	m.queue = slices.Insert(m.queue, at, s)
}

func (m *machine) older(a, b process.Stamp) bool {
	return a.Less(b) && !(m.flaw.NoTieBreak && a.Clock == b.Clock)
}

// strike removes the request of p from the queue, if there is one.
func (m *machine) strike(p process.ID) {
	if i := slices.IndexFunc(m.queue, func(s process.Stamp) bool { return s.ID == p }); i >= 0 {
		m.queue = slices.Delete(m.queue, i, i+1)
	}
}

// tellAll sends to every live process. It is one event, so all messages have the same
// time.
func (m *machine) tellAll(msg process.Message, fx *process.Effects) {
	for p := range m.told {
		m.told[p] = msg.Clock
	}
	if m.failed.Empty() {
		fx.Broadcast(msg)
		return
	}
	for p := range process.ID(m.c.N) {
		if p != m.self && !m.failed.Has(p) {
			fx.Send(p, msg)
		}
	}
}

func (m *machine) tell(p process.ID, msg process.Message, fx *process.Effects) {
	if m.skip {
		m.told[p] = msg.Clock
	}
	fx.Send(p, msg)
}

// Idle reports whether the process has no request and knows of none. It may forget when
// it last heard from the others: what they send from now on is younger than the marks,
// or answers a request that is.
func (m *machine) Idle() bool {
	return m.phase == idle && len(m.queue) == 0 && m.failed.Empty()
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "st", &m.phase, process.PhaseNames)
	f.Clock("C", &m.clock)
	f.Clock("own", &m.own)
	process.List(f, "q", &m.queue, stampFields)
	f.Clocks("last", m.last)
	process.List(f, "told", &m.told, clockField)
	f.Fence("F", &m.fence)
	f.Set("failed", m.failed)
}

func stampFields(f *process.Fields, s *process.Stamp) {
	f.Clock("t", &s.Clock)
	f.ID("id", &s.ID)
}

func clockField(f *process.Fields, clock *uint64) { f.Clock("t", clock) }
