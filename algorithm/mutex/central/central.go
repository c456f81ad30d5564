// Package central is mutual exclusion by a central coordinator.
//
// # Problem and idea
//
// Processes compete for one resource. One process, the coordinator, grants permission
// to one process at a time and queues the others. Any process may be the coordinator,
// and the coordinator may itself be a client.
//
// # Rules
//
//	R1  request: take the next request number (rid), send REQUEST and wait.
//	R2  coordinator on REQUEST(rid) from c:
//	    R2a c holds with this rid: send the same GRANTED again.
//	    R2b c is queued with this rid: send DENIED again, if it sends any.
//	    R2c the rid is over (released, withdrawn or replaced): ignore it.
//	    R2d nobody holds: c becomes the holder; send GRANTED with the next fence.
//	    R2e somebody holds: queue c (silent), queue c and send DENIED
//	        (deny-queue), or only send DENIED (deny-poll).
//	R3  on GRANTED: enter if it answers the request that is waiting. Otherwise
//	    return the grant by RELEASE at once. A grant is never ignored.
//	R4  on DENIED while waiting: the coordinator is alive. Wait for the grant
//	    (deny-queue) or ask again after a while (deny-poll).
//	R5  release: send RELEASE(rid). Withdraw: send CANCEL(rid).
//	R6  coordinator on RELEASE or CANCEL: remove the request. If it was the
//	    holder's, the head of the queue becomes the holder: send it GRANTED.
//	R7  no answer in time, or the coordinator is suspected: ask once more, then
//	    start an election.
//	R8  coordinator, when c has crashed: act as if c had released or withdrawn.
//	R9  coordinator crashed: start an election. Its winner takes over:
//	    T1 It sends QUERY(e) to every live process; e is the term it won.
//	    T2 on QUERY(e): promise to obey no term older than e and send STATE. From
//	       now on, an exit is reported only to the new coordinator. If the process
//	       has promised a newer term, it sends NACK instead.
//	    T3 when every process has answered or crashed: the process that is inside
//	       is the holder; those that wait are queued in the order of (rid, rank).
//	       Send NEWEPOCH(e).
//	    T6 on NEWEPOCH(e): obey the new coordinator, send a release that was
//	       held back, and ask again if waiting but not listed.
//	    T7 on NACK: give up; another process has won a later term.
//
// # Why it is safe
//
// Within a term one process decides who holds. It forgets a holder only when that
// holder has left, never entered, or crashed. A new term begins only when every live
// process has promised to ignore grants of older terms and has reported whether it is
// inside. So a grant of the old coordinator that is still in flight has no effect, and
// the new coordinator knows who is inside. Fences grow because numbering continues from
// the largest fence that any live process has seen, in a round above all fences that
// crashed processes may have seen.
//
// # Cost
//
// Three messages per entry; four in deny-queue mode if the resource was taken;
// 2p+1 in deny-poll mode for p REQUESTs; none if the client is the coordinator.
// Client delay and synchronization delay are both two message times.
//
// # Deviations
//
// [D4] states three messages, but its pseudo-code also sends DENIED to every queued
// client. It also does not free the resource on a RELEASE when the queue is empty; here
// it is freed. Request numbers and the rules about them (R2a to R2c, R3) are additions:
// without them, links that reorder or duplicate messages break the algorithm. This
// algorithm has no timestamps, so T3 serves first the processes that have asked less
// often. A process that restarts starts an election, because the takeover tells it
// everything that it forgot.
//
// Sources: [D0], [D3] (queueing without an answer, and polling) and [D4] (DENIED, and
// the election when the coordinator fails).
package central

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:  "central",
	Title: "Central coordinator",
	Paper: "folklore; A. S. Tanenbaum, M. van Steen: Distributed Systems: Principles and Paradigms, 2nd edition, 2007, section 6.3.2",
	Documents: []string{
		"[D0]", "[D1]", "[D2]", "[D3]", "[D4]",
	},
	Family: process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "REQUEST", Fields: []process.FieldUse{rid, epoch}},
		{Name: "GRANTED", Fields: []process.FieldUse{rid, fence, epoch}},
		{Name: "DENIED", Fields: []process.FieldUse{rid, {Field: process.FieldValue, Symbol: "position"}, epoch}},
		{Name: "RELEASE", Fields: []process.FieldUse{rid, epoch}},
		{Name: "CANCEL", Fields: []process.FieldUse{rid, epoch}},
		{Name: "QUERY", Class: process.Recovery, Fields: []process.FieldUse{epoch}},
		{Name: "STATE", Class: process.Recovery, Fields: []process.FieldUse{
			{Field: process.FieldValue, Symbol: "st", Names: process.PhaseNames}, rid, fence, epoch}},
		{Name: "NACK", Class: process.Recovery, Fields: []process.FieldUse{epoch}},
		{Name: "NEWEPOCH", Class: process.Recovery, Fields: []process.FieldUse{
			{Field: process.FieldSubject, Symbol: "holder"},
			{Field: process.FieldIDs, Symbol: "queue"},
			{Field: process.FieldVector, Symbol: "rids"}, epoch}},
	},
	Timers: []string{"reply", "alive", "poll"},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "request: number it, send REQUEST, wait"},
		{Name: "R2a", Text: "REQUEST of the holder again: send the same GRANTED"},
		{Name: "R2b", Text: "REQUEST that is queued already: send DENIED again"},
		{Name: "R2c", Text: "REQUEST that is over: ignore"},
		{Name: "R2d", Text: "REQUEST while the resource is free: grant it"},
		{Name: "R2e", Text: "REQUEST while the resource is taken: queue or deny it"},
		{Name: "R3", Text: "GRANTED for the waiting request: enter"},
		{Name: "R3b", Text: "GRANTED for any other request: return it"},
		{Name: "R4", Text: "DENIED: the coordinator is alive; wait or poll"},
		{Name: "R4b", Text: "the polling interval is over: ask again"},
		{Name: "R5", Text: "release or withdraw: tell the coordinator"},
		{Name: "R6", Text: "RELEASE or CANCEL: remove the request, grant to the head of the queue"},
		{Name: "R7", Text: "no answer: ask once more"},
		{Name: "R7b", Text: "no answer again: start an election"},
		{Name: "R8", Text: "a client crashed: remove its requests"},
		{Name: "R9", Text: "the coordinator crashed: start an election"},
		{Name: "T1", Text: "elected: send QUERY to every live process"},
		{Name: "T2", Text: "QUERY: promise, send STATE"},
		{Name: "T2b", Text: "QUERY older than a promise: NACK"},
		{Name: "T3", Text: "every process has answered or crashed: rebuild the queue, send NEWEPOCH"},
		{Name: "T4", Text: "two were inside: the one with the larger fence stays"},
		{Name: "T6", Text: "NEWEPOCH: obey the new coordinator"},
		{Name: "T7", Text: "NACK: give up the takeover"},
	},
	Options: []process.Option{{
		Name: "mode", Default: silent, Values: []string{silent, denyQueue, denyPoll},
		Text: "what the coordinator tells a client while the resource is taken",
	}},
	Needs: process.Needs{
		Reliable: true, Elector: true,
		Detector: process.ReliableDetector, Topology: process.Centre,
	},
	Claims:  claims,
	Cancels: true,
	New:     Flaw{}.New,
}

var (
	rid   = process.FieldUse{Field: process.FieldSeq, Symbol: "rid"}
	fence = process.FieldUse{Field: process.FieldFence, Symbol: "fence"}
	epoch = process.FieldUse{Field: process.FieldTerm, Symbol: "e"}
)

const (
	request process.Type = iota + 1
	granted
	denied
	release
	cancel
	query
	state
	nack
	newEpoch
)

const (
	replyTimer process.Timer = iota + 1
	aliveTimer
	pollTimer
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2a
	ruleR2b
	ruleR2c
	ruleR2d
	ruleR2e
	ruleR3
	ruleR3b
	ruleR4
	ruleR4b
	ruleR5
	ruleR6
	ruleR7
	ruleR7b
	ruleR8
	ruleR9
	ruleT1
	ruleT2
	ruleT2b
	ruleT3
	ruleT4
	ruleT6
	ruleT7
)

// The values of the mode option.
const (
	silent    = "silent"
	denyQueue = "deny-queue"
	denyPoll  = "deny-poll"
)

const idle, waiting, inside = process.PhaseIdle, process.PhaseWaiting, process.PhaseInside

// entry is one request at the coordinator.
type entry struct {
	id  process.ID
	rid uint64
}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	OwnFirst         bool // R2 grants the coordinator's own REQUEST even while the resource is taken
	BaseSeen         bool // a client treats its Base as a fence that it has seen
	UnnumberedEnding bool // R6 treats any RELEASE of the holder as that of its present entry
}

type machine struct {
	c    *process.Config
	self process.ID
	flaw Flaw
	mode string

	// The client.
	phase       process.Phase
	rid         uint64        // number of its latest request
	fence       process.Fence // the largest seen; while inside, that of the entry
	retried     bool          // the request was sent again because no answer came
	polls       int           // DENIEDs for this request, deny-poll only
	owed        uint64        // rid of a release that is held back until NEWEPOCH, or 0
	coordinator process.ID    // the one to ask; None after a restart
	term        process.Term  // of that coordinator
	promised    process.Term  // older terms are not obeyed; promised >= term

	// The coordinator. These are empty at other processes, except count before the
	// first takeover. If holder.id is None, the queue is empty. No process is in
	// the queue twice.
	holder entry
	held   process.Fence // the fence of the holder; at most count
	queue  []entry
	count  process.Fence // the last fence granted, or the Base
	floor  []uint64      // by rank: requests with a lower rid are over

	// The takeover, from T1 to T3; holder, queue and count collect the answers.
	taking   bool
	awaiting []process.ID // those that have not answered
	failed   []process.ID // those known to have crashed
}

// New makes a machine with the flaw. It counts from the Base: this process may have
// granted fences up to it, and reports it in a takeover. No client has necessarily seen
// that fence; the coordinator's may be lower.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := &machine{
		c: c, self: self, flaw: flaw, mode: c.Option("mode", silent),
		rid: c.Base.Clock, count: c.Base.Fence,
		coordinator: c.Topology.Coordinator, holder: entry{id: process.None},
	}
	if m.coordinator == self {
		m.floor = make([]uint64, c.N)
	}
	if flaw.BaseSeen {
		m.fence = c.Base.Fence
	}
	return m
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Restart:
		m.onRestart(fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	case process.Fire:
		m.onTimer(ev.Timer, fx)
	case process.Acquire:
		m.onAcquire(fx)
	case process.Cancel:
		m.onCancel(fx)
	case process.Release:
		m.onRelease(fx)
	case process.Suspect:
		if ev.Peer == m.coordinator && m.phase == waiting {
			m.onSilence(fx)
		}
	case process.Fail:
		m.onFail(ev.Peer, fx)
	case process.Rejoin:
		m.onRejoin(ev.Peer, fx)
	case process.Elected:
		m.onElected(ev.Peer, ev.Term, fx)
	}
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	switch msg.Type {
	case request, release, cancel:
		if m.serves(msg.Term) {
			m.coordinate(msg.From, msg.Type, msg.Seq, fx)
		}
	case granted:
		m.onGranted(msg, fx)
	case denied:
		m.onDenied(msg, fx)
	case query:
		m.onQuery(msg, fx)
	case state:
		m.onState(msg, fx)
	case nack:
		m.onNack(msg, fx)
	case newEpoch:
		m.onNewEpoch(msg, fx)
	}
}

// Idle reports whether the process neither waits nor holds, and coordinates no request.
// After a takeover it is not idle: it knows who coordinates, which a new machine does
// not.
func (m *machine) Idle() bool {
	return m.phase == idle && m.holder.id == process.None && m.promised == 0 && len(m.failed) == 0
}

// Fields names the state. Only the promise must survive a crash: a process that forgot
// it could obey a deposed coordinator.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "st", &m.phase, process.PhaseNames)
	f.Seq("rid", &m.rid)
	f.Fence("fence", &m.fence)
	f.Bool("retried", &m.retried)
	f.Count("polls", &m.polls)
	f.Uint("owed", &m.owed)
	f.ID("C", &m.coordinator)
	f.Term("epoch", &m.term)
	f.Durable().Term("promised", &m.promised)
	f.ID("holder", &m.holder.id)
	f.Uint("holder.rid", &m.holder.rid)
	f.Fence("held", &m.held)
	process.List(f, "queue", &m.queue, entryFields)
	f.Fence("count", &m.count)
	f.Uints("floor", &m.floor)
	f.Bool("taking", &m.taking)
	f.IDs("awaiting", &m.awaiting)
	f.IDs("failed", &m.failed)
}

func entryFields(f *process.Fields, e *entry) {
	f.ID("id", &e.id)
	f.Uint("rid", &e.rid)
}
