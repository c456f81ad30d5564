// Package ricartagrawala is mutual exclusion by permission from everybody, in
// the order of logical time.
//
// # Problem and idea
//
// Processes compete for one resource and nobody is in charge. Who wants to enter
// stamps its request with a logical time and asks all others for permission. Who
// is asked permits at once, unless it is inside or its own request is older; then
// it permits when it leaves. So one message serves as the answer to a request and
// as the news of a release, which Lamport's algorithm sends separately.
//
// # Rules
//
//	R1  request: take a time larger than all seen, T = (t, rank), and send REQ(t)
//	    to everybody whose permission is missing; enter when none is.
//	R2  on REQ(t) from j, whatever follows: no own request from now on is older.
//	    R2a inside, or waiting with T < (t, j): defer the answer.
//	    R2b otherwise: REPLY at once.
//	    R2c mode keep: that gave j's own permission back; if waiting, ask j for it.
//	R3  on REPLY to this very request: one permission less is missing; enter when
//	    none is.
//	R4  release: REPLY to all that were deferred.
//	R5  j has crashed: what it asked for is void, and its permission is not needed
//	    any more.
//
// In mode fresh, which is the algorithm of 1981, all permissions are missing
// again after an entry. In mode keep, the refinement of Carvalho and Roucairol, a
// permission stays valid until its giver asks for it.
//
// # Why it is safe
//
// Of two processes that both want to enter, the one with the older request does
// not permit the other before it has left: when it sees the younger request it
// is waiting or inside (R2a), and it cannot have permitted it before it made its
// own, which would then be younger (R2). Nobody waits for ever, because everybody
// waits only for older requests, and the oldest of all for nobody. With kept
// permissions at most one of two processes has the other's, so they cannot both
// be inside.
//
// Fences: a REPLY carries the largest fence that its sender has seen. Whoever
// entered before has sent one after that, so 1 + the largest is new. A crashed
// holder sends nothing; who enters without it takes the number of all stamps up
// to its own instead. Entries occur in the order of stamps, each with a fence of
// at most the number of its stamp, so this is larger than all that went before.
//
// # Cost
//
// 2(N-1) messages per entry at any load; client delay 2, synchronization delay 1.
// Mode keep: from none, if the same process enters again, to 2(N-1), if all take
// turns; N-1 on average if the next to enter is drawn at random.
//
// # Assumptions and deviations
//
// No message is lost; order does not matter. Crashes need a reliable detector: a
// process that is only slow but declared crashed may be inside together with
// another, and only the fence stops it. Who was declared crashed stays out for
// good. A restart without memory is not survived: back with clock 0, a process
// makes a request older than those that it has permitted before (see the script
// amnesia). With kept permissions no crash is survived: the fence of a holder
// that enters unseen dies with it, so the others wait for ever instead.
//
// The number n of a request and its echo in REPLY are ours, and keep a repeated
// REPLY from counting for a later request. The clock c in REPLY is ours too: REQ
// alone does not carry it to a process that hears of a request from a third one,
// and then entries could contradict happened-before. Two documents cost or state
// the algorithm otherwise: [D1] prints 3(N-1), which is
// Lamport's; [D0] also asks itself, breaks no ties, and its
// first rule alone, to defer only when inside, lets two in.
//
// Sources: G. Ricart and A. K. Agrawala (1981); O. S. F. Carvalho and G. Roucairol
// (1983) for mode keep; [D4], by name;
// [D1] (multicast and logical clocks) and
// [D0] (decentralized).
package ricartagrawala

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:  "ricart-agrawala",
	Title: "Ricart-Agrawala",
	Paper: "G. Ricart, A. K. Agrawala: An Optimal Algorithm for Mutual Exclusion in Computer Networks, Communications of the ACM 24(1), 1981, doi:10.1145/358527.358537; " +
		"O. S. F. Carvalho, G. Roucairol: On Mutual Exclusion in Computer Networks, Communications of the ACM 26(2), 1983 (mode keep)",
	Documents: []string{doc000, doc001, "[D2]", doc004},
	Family:    process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "REQ", Fields: []process.FieldUse{{Field: process.FieldClock, Symbol: "t"}, number}},
		{Name: "REPLY", Fields: []process.FieldUse{number,
			{Field: process.FieldClock, Symbol: "c"}, {Field: process.FieldFence, Symbol: "F"}}},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "request: stamp it, send REQ to everybody whose permission is missing"},
		{Name: "R2a", Text: "REQ while inside, or younger than the own request: defer the answer"},
		{Name: "R2b", Text: "REQ otherwise: REPLY at once"},
		{Name: "R2c", Text: "a kept permission went back while waiting: ask for it again"},
		{Name: "R3", Text: "REPLY: one permission less is missing; enter when none is"},
		{Name: "R4", Text: "release: REPLY to all that were deferred"},
		{Name: "R5", Text: "a peer crashed: do not wait for it, forget its request"},
	},
	Options: []process.Option{{
		Name: "mode", Default: fresh, Values: []string{fresh, keep},
		Text: "whether a permission is for one entry or kept until its giver asks for it",
	}},
	Needs:  process.Needs{Reliable: true, Detector: process.ReliableDetector},
	Claims: claims,
	New:    newMachine,
}

var number = process.FieldUse{Field: process.FieldSeq, Symbol: "n"}

const (
	req process.Type = iota + 1
	reply
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2a
	ruleR2b
	ruleR2c
	ruleR3
	ruleR4
	ruleR5
)

// The values of the mode option.
const (
	fresh = "fresh"
	keep  = "keep"
)

type phase uint8

const (
	idle phase = iota
	waiting
	inside
)

var phaseNames = []string{"IDLE", "WAIT", "IN"}

type machine struct {
	c    *process.Config
	self process.ID
	flaw Flaw
	keep bool

	phase    phase
	clock    uint64        // the largest logical time seen or used
	request  uint64        // the time of the own request, or 0 when idle
	number   uint64        // of the latest own request
	fence    process.Fence // the largest seen; inside, that of the entry
	missing  process.Set   // whose permission this process lacks; empty when inside
	deferred []uint64      // by rank: the number of the request to answer on leaving, or 0; all 0 when idle
	failed   process.Set   // known to have crashed; never missing, never deferred
}

// newMachine starts the clock no lower than the fences allow: the number of all
// stamps up to the clock's is at least the largest fence, here and ever after.
func newMachine(self process.ID, c *process.Config) process.Machine {
	m := &machine{
		c: c, self: self, keep: c.Option("mode", fresh) == keep,
		clock: max(c.Base.Clock, (uint64(c.Base.Fence)+uint64(c.N)-1)/uint64(c.N)),
		fence: c.Base.Fence, number: c.Base.Clock,
		missing: process.NewSet(c.N), failed: process.NewSet(c.N), deferred: make([]uint64, c.N),
	}
	m.missing.FillOthers(c.N, self)
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
		msg := ev.Message
		switch {
		case m.failed.Has(msg.From):
		case msg.Type == req:
			m.onReq(msg, fx)
		case msg.Type == reply:
			m.onReply(msg, fx)
		}
	}
}

// onAcquire is R1.
func (m *machine) onAcquire(fx *process.Effects) {
	process.Assert(m.phase == idle, "a process has one request at a time")
	fx.Rule(ruleR1)
	m.phase = waiting
	m.clock++
	m.number++
	m.request = m.clock
	if m.missing.Len() == m.c.N-1 {
		fx.Broadcast(m.asking())
	} else {
		for p := range m.missing.All() {
			fx.Send(p, m.asking())
		}
	}
	m.enterIfPermitted(fx)
}

func (m *machine) asking() process.Message {
	return process.Message{Type: req, Clock: m.request, Seq: m.number}
}

// onReq is R2. The clock rises also for a request that is deferred; otherwise the
// next own request could be older than one that waits here. A repeated REQ of an
// earlier request must not hide the number of the present one, hence the maximum.
func (m *machine) onReq(msg *process.Message, fx *process.Effects) {
	m.hear(msg.Clock)
	own, other := process.Stamp{Clock: m.request, ID: m.self}, process.Stamp{Clock: msg.Clock, ID: msg.From}
	if m.phase == inside || m.phase == waiting && m.older(own, other) {
		fx.Rule(ruleR2a)
		m.deferred[msg.From] = max(m.deferred[msg.From], msg.Seq)
		return
	}
	fx.Rule(ruleR2b)
	m.permit(msg.From, msg.Seq, fx)
}

// hear raises the clock to the time in a message.
func (m *machine) hear(clock uint64) {
	if !m.flaw.DeafClock {
		m.clock = max(m.clock, clock)
	}
}

func (m *machine) older(a, b process.Stamp) bool {
	return a.Less(b) && !(m.flaw.NoTieBreak && a.Clock == b.Clock)
}

// permit answers the request of p with the given number. A kept permission is
// given back by that. It is not one that was received for the present request:
// whoever has seen that makes no older one any more.
func (m *machine) permit(p process.ID, number uint64, fx *process.Effects) {
	fx.Send(p, process.Message{Type: reply, Seq: number, Clock: m.clock, Fence: m.fence})
	if !m.keep || m.missing.Has(p) {
		return
	}
	m.missing.Add(p)
	if m.phase == waiting {
		fx.Rule(ruleR2c)
		fx.Send(p, m.asking())
	}
}

// onReply is R3.
func (m *machine) onReply(msg *process.Message, fx *process.Effects) {
	m.hear(msg.Clock)
	m.fence = max(m.fence, msg.Fence)
	if m.phase != waiting || msg.Seq != m.number || !m.missing.Has(msg.From) {
		return
	}
	fx.Rule(ruleR3)
	m.missing.Remove(msg.From)
	m.enterIfPermitted(fx)
}

func (m *machine) enterIfPermitted(fx *process.Effects) {
	if m.phase != waiting || !m.missing.Empty() {
		return
	}
	m.phase = inside
	m.fence = m.nextFence()
	fx.Grant(m.fence)
}

// nextFence is 1 + the largest seen, or, since a holder may have died with a
// larger one, the number of all stamps up to that of this request.
func (m *machine) nextFence() process.Fence {
	if m.failed.Empty() {
		return m.fence + 1
	}
	stamps := process.Fence((m.request-1)*uint64(m.c.N) + uint64(m.self) + 1)
	process.Assert(stamps > m.fence, "an entry's fence is at most the number of stamps up to its own")
	return stamps
}

// onRelease is R4.
func (m *machine) onRelease(fx *process.Effects) {
	process.Assert(m.phase == inside, "only a holder releases")
	fx.Rule(ruleR4)
	m.phase, m.request = idle, 0
	for p, number := range m.deferred {
		if number != 0 {
			m.deferred[p] = 0
			m.permit(process.ID(p), number, fx)
		}
	}
	if !m.keep {
		m.missing.FillOthers(m.c.N, m.self)
		for p := range m.failed.All() {
			m.missing.Remove(p)
		}
	}
}

// onFail is R5.
func (m *machine) onFail(p process.ID, fx *process.Effects) {
	if m.keep || m.failed.Has(p) {
		return
	}
	fx.Rule(ruleR5)
	m.failed.Add(p)
	m.missing.Remove(p)
	m.deferred[p] = 0
	m.enterIfPermitted(fx)
}

// Idle reports whether the process has no request, and nothing to remember of
// others but its marks.
func (m *machine) Idle() bool {
	return m.phase == idle && m.missing.Len() == m.c.N-1
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "st", &m.phase, phaseNames)
	f.Clock("C", &m.clock)
	f.Clock("T", &m.request)
	f.Seq("n", &m.number)
	f.Fence("F", &m.fence)
	f.Set("missing", m.missing)
	f.Array("deferred", m.deferred)
	f.Set("failed", m.failed)
}
