// Package totalorder is mutual exclusion by a queue that every process keeps, and
// that is the same everywhere because a layer below delivers all requests and
// releases in one sequence.
//
// # Problem and idea
//
// Lamport's algorithm keeps a queue at every process and takes care that it is in
// the right order where it matters. If a multicast already brings everything to
// everybody in one order, nothing of that is left to do: whoever wants to enter
// multicasts REQUEST, whoever leaves multicasts RELEASE, everybody runs the same
// queue on them, and whose request is at the head enters. No reply, no clock, no
// permission.
//
// This is the top layer of a stack. What delivers in one sequence may be Lamport's
// clocks and acknowledgements, or a sequencer.
//
// # Rules
//
//	R1  request: multicast REQUEST(r), r being the number of the own request.
//	R2  on REQUEST(r) from j, in place f of the sequence: put (j, r, f) at the end of
//	    the queue.
//	R3  on RELEASE(r) from j: take (j, r) out of the queue.
//	R4  after each of these: if the own request is the head of the queue, enter, with
//	    fence f.
//	R5  release, or withdraw a request: multicast RELEASE(r).
//	R6  j has crashed: take its requests out of the queue, and put none of it in.
//
// # Why it is safe
//
// All queues go through the same states, so two heads of them that differ are heads
// at different times: of these the earlier was taken out by a RELEASE, which its
// process multicast when it had left. R6 takes out what belongs to nobody who
// could be inside, at different moments at different processes, which does not
// change the order of the others.
//
// Fences: places grow along the sequence, and the queue is in its order. A holder
// that crashed may have been the only one to whom its REQUEST was delivered; the
// layer below gives its place to no other, and all that comes after it a larger one.
//
// # Cost
//
// Two multicasts for an entry. Over Lamport's order that is 2N(N-1) messages, over a
// sequencer 2N. Client delay and synchronization delay are those of a delivery: 2.
// Lamport's own algorithm needs 3(N-1) because only the queue's head must be agreed
// on at each moment, not the whole sequence.
//
// # Assumptions and deviations
//
// The layer below delivers to every process, the sender included, in one sequence,
// each process' multicasts in their order, and tells the place of each as its Fence.
// Crashes need a reliable detector; a
// process that is only slow but declared crashed may be inside together with
// another, and only the fence stops it.
//
// [D0] heads its algorithm of permissions "based on Lamport
// clocks (totally ordered multicast)", and [D1] "using multicast
// and logical clocks". Those compare the stamps of requests and deliver nothing in
// order; they are Ricart and Agrawala's. Here is what the words say.
//
// Sources: L. Lamport (1978), whose state machines these are; F. B. Schneider:
// Implementing Fault-Tolerant Services Using the State Machine Approach (1990);
// [D0]; [D1].
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
	Documents: []string{doc000, doc001},
	Family:    process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "REQUEST", Fields: []process.FieldUse{{Field: process.FieldSeq, Symbol: "r"}}},
		{Name: "RELEASE", Fields: []process.FieldUse{{Field: process.FieldSeq, Symbol: "r"}}},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "request: multicast REQUEST"},
		{Name: "R2", Text: "REQUEST: queue it, its place in the sequence is its fence"},
		{Name: "R3", Text: "RELEASE: take its request out of the queue"},
		{Name: "R4", Text: "the own request is the head: enter"},
		{Name: "R5", Text: "release or withdraw: multicast RELEASE"},
		{Name: "R6", Text: "a peer crashed: take its requests out of the queue"},
	},
	Needs:   process.Needs{Detector: process.ReliableDetector},
	Claims:  claims,
	Cancels: true,
	New:     newMachine,
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

type phase uint8

const (
	idle phase = iota
	waiting
	inside
)

var phaseNames = []string{"IDLE", "WAIT", "IN"}

// entry is a request that was delivered.
type entry struct {
	id    process.ID
	rid   uint64
	fence process.Fence
}

type machine struct {
	c    *process.Config
	self process.ID

	phase  phase
	rid    uint64        // the number of the own latest request
	queue  []entry       // delivered and not released, in the order of delivery
	last   process.Fence // the place of the last REQUEST delivered
	failed process.Set   // known to have crashed; none of these is in the queue
}

func newMachine(self process.ID, c *process.Config) process.Machine {
	return &machine{c: c, self: self, rid: c.Base.Clock, last: c.Base.Fence, failed: process.NewSet(c.N)}
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

// onAcquire is R1. The request is queued when it is delivered, not before: only then
// is its place known.
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
		process.Assert(msg.Fence > m.last, "places grow along the sequence")
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

// enterIfFirst is R4. A request that was withdrawn may be the head until its RELEASE
// is delivered; it has another number than the one that waits.
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
	process.Assert(m.phase != idle, "only who has asked releases")
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
	process.Enum(f, "st", &m.phase, phaseNames)
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
