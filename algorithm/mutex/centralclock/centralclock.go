// Package centralclock is mutual exclusion in the order of one physical clock.
//
// # Problem and idea
//
// Processes compete for one resource, and the first to ask is the first to enter. One
// process, the clock, defines who asked first: it stamps the requests with its clock
// reading. It decides nothing else. A process that has its stamp asks the others for
// permission, as in Ricart and Agrawala's algorithm, and the older stamp goes first.
// Only this one clock is read, so clocks need not be synchronized.
//
// # Rules
//
//	R1  request: ASK the clock for a stamp.
//	R2  the clock on ASK from j: send STAMP(T) with a T above all earlier stamps and
//	    at least its reading, and with the next fence.
//	    R2a permit j to enter with it, as in R4c.
//	    R2b if the clock itself is waiting or inside, its own stamp is older: it owes
//	        j a REPLY instead.
//	R3  on STAMP(T): send REQ(T) to every process but the clock. Of the requests on
//	    hold, send REPLY to those with an older stamp and defer the others.
//	R4  on REQ(Tj) from j:
//	    R4a waiting for a stamp: put it on hold. This process's stamp may be the older
//	        one and still in flight.
//	    R4b inside, or waiting with T < Tj: defer the answer.
//	    R4c otherwise: REPLY at once.
//	R5  on REPLY to the current request: one permission less is missing; enter when
//	    none is missing.
//	R6  release: REPLY to all deferred requests.
//	R7  j has crashed: drop its request, and do not wait for its permission. If j was
//	    the clock, no stamp will come: REPLY to all requests on hold, and put no more
//	    on hold.
//
// The clock may be a client itself. It then has its stamp at once, and asks every other
// process.
//
// # Why it is safe
//
// Of two processes with stamps, the one with the older stamp does not permit the other
// before it has left. It cannot have done so before it had its stamp either: a process
// that has no request permits only requests that are stamped already, so its own stamp
// will be younger; and a process that waits for its stamp permits none. Processes wait
// only for older stamps, so there is no starvation.
//
// Fences: the clock counts its stamps, and the count is the fence. Entries occur in the
// order of stamps, whichever processes crash.
//
// # Cost
//
// With N processes including the clock: ASK, STAMP, and REQ and REPLY for the N-2
// others. That is 2(N-1) per entry of a client that is not the clock, or 2C for C
// clients with a separate clock. If the clock waits or is inside, its REPLY is one
// message more. Client delay 4, synchronization delay 1.
//
// # Assumptions and deviations
//
// No message is lost; order does not matter. Crashes need a reliable detector. The
// crash of the clock is not survived: processes that have a stamp still enter, but
// there are no new stamps. A restart without memory is not survived either: a clock
// that came back with an older reading could give the same stamp twice. Two causally
// related requests are served in their order only if they reach the clock in that
// order.
//
// [D2] only names the method; the rules are our reading of it. A clock that also grants
// and queues would be the central coordinator, with stamps as the order of its queue.
// Processes that stamp their requests by their own clocks are safe only if none uses a
// stamp below one that it has seen; that is Ricart and Agrawala's algorithm.
//
// Sources: [D2] (central physical clock).
package centralclock

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "central-clock",
	Title:     "Central physical clock",
	Paper:     "folklore; G. Ricart, A. K. Agrawala: An Optimal Algorithm for Mutual Exclusion in Computer Networks, Communications of the ACM 24(1), 1981, doi:10.1145/358527.358537",
	Documents: []string{"[D2]"},
	Family:    process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "ASK", Fields: []process.FieldUse{number}},
		{Name: "STAMP", Fields: []process.FieldUse{number, stamp,
			{Field: process.FieldFence, Symbol: "fence"},
			{Field: process.FieldValue, Symbol: "clock", Names: []string{"defers", "permits"}}}},
		{Name: "REQ", Fields: []process.FieldUse{stamp, number}},
		{Name: "REPLY", Fields: []process.FieldUse{number}},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "request: ASK the clock for a stamp"},
		{Name: "R2a", Text: "ASK: STAMP with the next stamp and fence, and the clock's permission"},
		{Name: "R2b", Text: "ASK while the clock waits or is inside: STAMP, and REPLY later"},
		{Name: "R3", Text: "STAMP: send REQ to every process but the clock, REPLY to older requests on hold"},
		{Name: "R4a", Text: "REQ while waiting for a stamp: put it on hold"},
		{Name: "R4b", Text: "REQ while inside, or while waiting with an older stamp: defer the answer"},
		{Name: "R4c", Text: "REQ otherwise: REPLY at once"},
		{Name: "R5", Text: "REPLY: count the permission; enter when none is missing"},
		{Name: "R6", Text: "release: REPLY to all deferred requests"},
		{Name: "R7", Text: "a process crashed: do not wait for it, forget its request; if it was the clock, put nothing on hold"},
	},
	Needs: process.Needs{
		Reliable: true, Clock: true,
		Detector: process.ReliableDetector, Topology: process.Centre,
	},
	Claims: claims,
	New:    Flaw{}.New,
}

var (
	number = process.FieldUse{Field: process.FieldSeq, Symbol: "n"}
	stamp  = process.FieldUse{Field: process.FieldClock, Symbol: "T"}
)

const (
	ask process.Type = iota + 1
	stamped
	req
	reply
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2a
	ruleR2b
	ruleR3
	ruleR4a
	ruleR4b
	ruleR4c
	ruleR5
	ruleR6
	ruleR7
)

// The values of STAMP's field clock.
const (
	defers  = 0
	permits = 1
)

type phase uint8

const (
	idle     phase = iota
	stamping       // asked the clock
	waiting        // asked for permission
	inside
)

var phaseNames = []string{"IDLE", "STAMP", "PERM", "IN"}

// request is one of another process that has not been answered yet.
type request struct {
	id     process.ID
	stamp  uint64
	number uint64
}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	AnswersEarly  bool // R4a is missing: a process that waits for its stamp answers at once
	ForgetsItself bool // R2b is missing: the clock permits even while it waits or is inside
}

type machine struct {
	c    *process.Config
	self process.ID
	flaw Flaw

	phase    phase
	number   uint64        // of this process's latest request
	stamp    uint64        // of this process's request, or 0 before it has one
	fence    process.Fence // that came with this process's latest stamp
	missing  process.Set   // the processes whose permission is missing; empty when idle or inside
	deferred []request     // in order of arrival; all are younger than stamp, except when stamping
	failed   process.Set   // known to have crashed; never missing, never in deferred

	// The clock. These are empty at other processes.
	last  uint64        // the latest stamp given
	count process.Fence // and the fence that went with it
	asked []uint64      // by rank: the number of the latest request stamped
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := &machine{
		c: c, self: self, flaw: flaw, number: c.Base.Clock, fence: c.Base.Fence,
		missing: process.NewSet(c.N), failed: process.NewSet(c.N),
	}
	if self == c.Topology.Coordinator {
		m.last, m.count, m.asked = c.Base.Clock, c.Base.Fence, make([]uint64, c.N)
	}
	return m
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Acquire:
		m.onAcquire(ev.Now, fx)
	case process.Release:
		m.onRelease(fx)
	case process.Fail:
		m.onFail(ev.Peer, fx)
	case process.Deliver:
		if !m.failed.Has(ev.Message.From) {
			m.onMessage(ev, fx)
		}
	}
}

func (m *machine) onMessage(ev *process.Event, fx *process.Effects) {
	msg := ev.Message
	switch msg.Type {
	case ask:
		m.onAsk(msg, ev.Now, fx)
	case stamped:
		m.onStamp(msg, fx)
	case req:
		m.onReq(request{id: msg.From, stamp: msg.Clock, number: msg.Seq}, fx)
	case reply:
		m.onReply(msg, fx)
	}
}

// onAcquire is R1. All permissions are missing from now on, not only from the stamp on:
// a REPLY of the clock may overtake its STAMP.
func (m *machine) onAcquire(now process.Duration, fx *process.Effects) {
	process.Assert(m.phase == idle, "a process has one request at a time")
	fx.Rule(ruleR1)
	m.phase = stamping
	m.number++
	m.missing.FillOthers(m.c.N, m.self)
	for p := range m.failed.All() {
		m.missing.Remove(p)
	}
	if m.self != m.c.Topology.Coordinator {
		fx.Send(m.c.Topology.Coordinator, process.Message{Type: ask, Seq: m.number})
		return
	}
	m.tick(now)
	m.begin(m.last, m.count, fx)
}

// tick makes the next stamp and fence. Two requests within one clock reading get
// different stamps, and a reading that went back does not lower the stamp.
func (m *machine) tick(now process.Duration) {
	m.last = max(m.last+1, uint64(max(0, now)))
	m.count++
}

// onAsk is R2. The ASK is also the request for the clock's own permission. The clock
// applies R4 to it: its own stamp, if it has one, is older. A repeated ASK gets no
// second stamp. Otherwise a REPLY meant for the first stamp could count for the second,
// which may be younger than a new stamp of the clock itself.
func (m *machine) onAsk(msg *process.Message, now process.Duration, fx *process.Effects) {
	if msg.Seq <= m.asked[msg.From] {
		return
	}
	m.asked[msg.From] = msg.Seq
	m.tick(now)
	answer := process.Message{Type: stamped, Seq: msg.Seq, Clock: m.last, Fence: m.count, Value: permits}
	if m.phase == idle || m.flaw.ForgetsItself {
		fx.Rule(ruleR2a)
	} else {
		fx.Rule(ruleR2b)
		answer.Value = defers
		m.deferred = append(m.deferred, request{id: msg.From, stamp: m.last, number: msg.Seq})
	}
	fx.Send(msg.From, answer)
}

// onStamp is R3, unless the stamp is a duplicate.
func (m *machine) onStamp(msg *process.Message, fx *process.Effects) {
	if m.phase != stamping || msg.Seq != m.number {
		return
	}
	if msg.Value == permits {
		m.missing.Remove(msg.From)
	}
	m.begin(msg.Clock, msg.Fence, fx)
}

// begin is the rest of R3.
func (m *machine) begin(stamp uint64, fence process.Fence, fx *process.Effects) {
	fx.Rule(ruleR3)
	m.phase, m.stamp, m.fence = waiting, stamp, fence
	for p := range m.missing.All() {
		if p != m.c.Topology.Coordinator {
			fx.Send(p, process.Message{Type: req, Clock: stamp, Seq: m.number})
		}
	}
	m.answer(stamp, fx)
	m.enterIfPermitted(fx)
}

// answer sends REPLY to the deferred requests with a stamp below the given one and
// keeps the others.
func (m *machine) answer(below uint64, fx *process.Effects) {
	kept := m.deferred[:0]
	for _, r := range m.deferred {
		if r.stamp > below {
			kept = append(kept, r)
			continue
		}
		fx.Send(r.id, process.Message{Type: reply, Seq: r.number})
	}
	m.deferred = kept
}

// onReq is R4.
func (m *machine) onReq(r request, fx *process.Effects) {
	switch {
	case m.expecting() && !m.flaw.AnswersEarly:
		fx.Rule(ruleR4a)
		m.deferred = append(m.deferred, r)
	case m.phase == inside, m.phase == waiting && m.stamp < r.stamp:
		fx.Rule(ruleR4b)
		m.deferred = append(m.deferred, r)
	default:
		fx.Rule(ruleR4c)
		fx.Send(r.id, process.Message{Type: reply, Seq: r.number})
	}
}

// expecting reports whether a stamp for this process may be in flight.
func (m *machine) expecting() bool {
	return m.phase == stamping && !m.failed.Has(m.c.Topology.Coordinator)
}

// onReply is R5.
func (m *machine) onReply(msg *process.Message, fx *process.Effects) {
	if msg.Seq != m.number || !m.missing.Has(msg.From) {
		return
	}
	fx.Rule(ruleR5)
	m.missing.Remove(msg.From)
	m.enterIfPermitted(fx)
}

func (m *machine) enterIfPermitted(fx *process.Effects) {
	if m.phase == waiting && m.missing.Empty() {
		m.phase = inside
		fx.Grant(m.fence)
	}
}

// onRelease is R6.
func (m *machine) onRelease(fx *process.Effects) {
	process.Assert(m.phase == inside, "only a holder releases")
	fx.Rule(ruleR6)
	m.phase, m.stamp = idle, 0
	m.answer(forever, fx)
}

// forever is younger than any stamp.
const forever = 1<<64 - 1

// onFail is R7.
func (m *machine) onFail(p process.ID, fx *process.Effects) {
	if m.failed.Has(p) {
		return
	}
	fx.Rule(ruleR7)
	m.failed.Add(p)
	m.missing.Remove(p)
	m.deferred = slices.DeleteFunc(m.deferred, func(r request) bool { return r.id == p })
	if m.phase == stamping && !m.expecting() {
		m.answer(forever, fx)
	}
	m.enterIfPermitted(fx)
}

// Idle reports whether the process has no request and remembers nothing of others but
// its marks. The clock is never idle.
func (m *machine) Idle() bool {
	return m.phase == idle && m.failed.Empty() && m.self != m.c.Topology.Coordinator
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "st", &m.phase, phaseNames)
	f.Seq("n", &m.number)
	f.Clock("T", &m.stamp)
	f.Fence("fence", &m.fence)
	f.Set("missing", m.missing)
	process.List(f, "deferred", &m.deferred, requestFields)
	f.Set("failed", m.failed)
	f.Clock("last", &m.last)
	f.Fence("count", &m.count)
	f.Uints("asked", &m.asked)
}

func requestFields(f *process.Fields, r *request) {
	f.ID("id", &r.id)
	f.Clock("T", &r.stamp)
	f.Uint("n", &r.number)
}
