// Package totalorder is mutual exclusion by a request queue at every process. All
// queues are equal, because a layer below delivers all requests and releases in one
// sequence.
//
// # Problem and idea
//
// Lamport's algorithm keeps a queue at every process and ensures the right order only
// where it matters. If a multicast delivers everything to every process in one order,
// none of that is needed. A process that wants to enter multicasts REQUEST, a process
// that leaves multicasts RELEASE, and every process applies them to its queue. The
// process whose request is at the head enters. There are no replies, clocks or
// permissions.
//
// This is the top layer of a stack. The layer below may be Lamport's clocks and
// acknowledgements, or a sequencer.
//
// # Rules
//
//	R1  request: multicast REQUEST(r), r being the number of the request.
//	R2  on REQUEST(r) from j, at position f of the sequence: append (j, r, f) to the
//	    queue.
//	R3  on RELEASE(r) from j: remove (j, r) from the queue.
//	R4  after each of these: if this process's request is the head of the queue,
//	    enter, with fence f.
//	R5  release, or withdraw a request: multicast RELEASE(r).
//	R6  j has crashed: remove its requests from the queue, and add none of it.
//
// # Why it is safe
//
// All queues go through the same states. So if two processes see different heads, they
// see them at different points of the sequence. The earlier head was removed by a
// RELEASE, which its process multicast after it had left. R6 removes requests of
// crashed processes at different moments at different processes, which does not change
// the order of the others.
//
// Fences: positions grow along the sequence, and the queue is in its order. A REQUEST
// may have been delivered only to its sender, which then crashed as the holder. The
// layer below does not reuse its position, and all later positions are larger.
//
// # Cost
//
// Two multicasts for an entry: 2N(N-1) messages over Lamport's order, 2N over a
// sequencer. Client delay and synchronization delay are those of a delivery: 2.
// Lamport's own algorithm needs only 3(N-1), because the processes agree only on the
// head of the queue, not on the whole sequence.
//
// # Assumptions and deviations
//
// The layer below delivers to every process, the sender included, in one sequence. It
// delivers the multicasts of each process in their order, and reports the position of
// each as its Fence. Crashes need a reliable detector: a process that is only slow but
// is declared crashed may be inside together with another, and only the fence stops it.
//
// [D0] heads its permission algorithm "based on Lamport clocks (totally ordered
// multicast)", and [D1] heads it "using multicast and logical clocks". Those algorithms
// compare the stamps of requests and deliver nothing in order; they are Ricart and
// Agrawala's. This package does what the headings say.
//
// Sources: L. Lamport (1978), whose state machines these are; F. B. Schneider:
// Implementing Fault-Tolerant Services Using the State Machine Approach (1990); [D0];
// [D1].
package totalorder

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the layer. It works only above one that delivers in total order.
var Spec = &process.Spec{
	Name:      "request-queue",
	Title:     "Mutual exclusion by a replicated queue",
	Paper:     "L. Lamport: Time, Clocks, and the Ordering of Events in a Distributed System, Communications of the ACM 21(7), 1978, doi:10.1145/359545.359563",
	Documents: []string{"[D0]", "[D1]"},
	Family:    process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "REQUEST", Fields: []process.FieldUse{{Field: process.FieldSeq, Symbol: "r"}}},
		{Name: "RELEASE", Fields: []process.FieldUse{{Field: process.FieldSeq, Symbol: "r"}}},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "request: multicast REQUEST"},
		{Name: "R2", Text: "REQUEST: queue it; its position in the sequence is its fence"},
		{Name: "R3", Text: "RELEASE: remove its request from the queue"},
		{Name: "R4", Text: "this process's request is the head: enter"},
		{Name: "R5", Text: "release or withdraw: multicast RELEASE"},
		{Name: "R6", Text: "a process crashed: remove its requests from the queue"},
	},
	Needs:   process.Needs{Detector: process.ReliableDetector},
	Claims:  claims,
	Cancels: true,
	New:     newMachine,
}

// claims hold above any layer that delivers in total order.
var claims = process.Claims{
	Properties: process.Promises(process.MutualExclusion, process.Progress, process.FencesGrow),
}

// Costs returns what an entry costs above a layer that takes the given number of
// messages for a multicast. The layer takes two delays until the sender delivers, and
// the given number until others do.
func Costs(when string, multicast, others *process.Formula) []process.Cost {
	entry := &process.Formula{
		Text: "2" + multicast.Text,
		Eval: func(p process.Params) float64 { return 2 * multicast.Eval(p) },
	}
	return []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.AnyLoad, When: when, Exact: entry,
			Said: []process.Figure{
				{Document: "[D0]", Text: "2 (N-1)", Wrong: "the cost of a permission algorithm; it is headed totally ordered multicast but delivers nothing in order"},
			}},
		{Metric: process.ClientDelay, Regime: process.Idle, When: when, Exact: process.Constant("2", 2)},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: when, Exact: others},
		{Metric: process.Throughput, Regime: process.Saturated, When: when, Exact: &process.Formula{
			Text: "1/" + others.Text,
			Eval: func(p process.Params) float64 { return 1 / others.Eval(p) },
		}},
	}
}

const (
	request process.Type = iota + 1
	release
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR3
	ruleR4
	ruleR5
	ruleR6
)

const idle, waiting, inside = process.PhaseIdle, process.PhaseWaiting, process.PhaseInside

// entry is a request that was delivered.
type entry struct {
	id    process.ID
	rid   uint64
	fence process.Fence
}

type machine struct {
	self process.ID

	phase  process.Phase
	rid    uint64        // the number of this process's latest request
	queue  []entry       // delivered and not released, in the order of delivery
	last   process.Fence // the position of the last REQUEST delivered
	failed process.Set   // known to have crashed; none of these is in the queue
}

func newMachine(self process.ID, c *process.Config) process.Machine {
	return &machine{self: self, rid: c.Base.Clock, last: c.Base.Fence, failed: process.NewSet(c.N)}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Acquire:
		m.onAcquire(fx)
	case process.Release, process.Cancel:
		m.onRelease(fx)
	case process.Fail:
		m.onFail(ev.Peer, fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	}
}

// onAcquire is R1. The request is queued when it is delivered, not before: only then is
// its position known.
func (m *machine) onAcquire(fx *process.Effects) {
	process.Assert(m.phase == idle, "a process has one request at a time")
	fx.Rule(ruleR1)
	m.phase = waiting
	m.rid++
	fx.Broadcast(process.Message{Type: request, Seq: m.rid})
}

// onMessage is R2 and R3.
func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	switch msg.Type {
	case request:
		fx.Rule(ruleR2)
		process.Assert(msg.Fence > m.last, "positions grow along the sequence")
		m.last = msg.Fence
		if !m.failed.Has(msg.From) {
			m.queue = append(m.queue, entry{msg.From, msg.Seq, msg.Fence})
		}
	case release:
		fx.Rule(ruleR3)
		m.queue = slices.DeleteFunc(m.queue, func(e entry) bool { return e.id == msg.From && e.rid == msg.Seq })
	}
	m.enterIfFirst(fx)
}

// enterIfFirst is R4. A withdrawn request may be the head until its RELEASE is
// delivered; its number differs from that of the waiting request.
func (m *machine) enterIfFirst(fx *process.Effects) {
	if m.phase != waiting || len(m.queue) == 0 {
		return
	}
	if head := m.queue[0]; head.id == m.self && head.rid == m.rid {
		fx.Rule(ruleR4)
		m.phase = inside
		fx.Grant(head.fence)
	}
}

// onRelease is R5.
func (m *machine) onRelease(fx *process.Effects) {
	process.Assert(m.phase != idle, "only a process that has asked releases")
	fx.Rule(ruleR5)
	m.phase = idle
	fx.Broadcast(process.Message{Type: release, Seq: m.rid})
}

// onFail is R6.
func (m *machine) onFail(p process.ID, fx *process.Effects) {
	if m.failed.Has(p) {
		return
	}
	fx.Rule(ruleR6)
	m.failed.Add(p)
	m.queue = slices.DeleteFunc(m.queue, func(e entry) bool { return e.id == p })
	m.enterIfFirst(fx)
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "st", &m.phase, process.PhaseNames)
	f.Seq("r", &m.rid)
	process.List(f, "q", &m.queue, entryFields)
	f.Fence("last", &m.last)
	f.Set("failed", m.failed)
}

func entryFields(f *process.Fields, e *entry) {
	f.ID("id", &e.id)
	f.Seq("r", &e.rid)
	f.Fence("fence", &e.fence)
}
