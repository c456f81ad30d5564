// Package ricartagrawala is mutual exclusion by permission from all other processes, in
// the order of logical time.
//
// # Problem and idea
//
// Processes compete for one resource, and no process is in charge. A process that wants
// to enter stamps its request with a logical time and asks all others for permission. A
// process that is asked permits at once, unless it is inside or its own request is
// older; then it permits when it leaves. So one message answers a request and also
// announces a release; Lamport's algorithm needs two.
//
// # Rules
//
//	R1  request: take a time above all times seen, T = (t, rank), and send REQ(t)
//	    to every process whose permission is missing; enter when none is missing.
//	R2  on REQ(t) from j, in all cases: raise the clock above t.
//	    R2a inside, or waiting with T < (t, j): defer the answer.
//	    R2b otherwise: REPLY at once.
//	    R2c mode keep: R2b returned j's own permission; if waiting, ask j for it.
//	R3  on REPLY to the current request: count the permission; enter when none is
//	    missing.
//	R4  release: REPLY to all deferred requests.
//	R5  j has crashed: drop its request, and do not wait for its permission.
//	    any more.
//
// In mode fresh, the algorithm of 1981, all permissions are missing again after an
// entry. In mode keep, the refinement of Carvalho and Roucairol, a permission stays
// valid until the process that gave it asks for it.
//
// # Why it is safe
//
// Of two processes that both want to enter, the one with the older request does not
// permit the other before it has left. When it sees the younger request it is waiting
// or inside (R2a). It cannot have permitted the younger request before it made its own,
// because its own would then be younger (R2). Processes wait only for older requests,
// and the oldest waits for none, so there is no starvation. With kept permissions at
// most one of two processes has the other's, so they cannot both be inside.
//
// Fences: a REPLY carries the largest fence that its sender has seen. Every process
// that entered before has sent a REPLY after its entry, so 1 + the largest is new. A
// crashed holder sends no REPLY. A process that enters without it uses as its fence the
// number of all stamps up to its own. Entries occur in the order of stamps, and each
// fence is at most the number of its stamp, so this fence is larger than all earlier
// ones.
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
// process that is only slow but is declared crashed may be inside together with
// another, and only the fence stops it. A process that was declared crashed stays out
// for good. A restart without memory is not survived: back with clock 0, a process
// makes a request older than those it has already permitted (see the script amnesia).
// With kept permissions no crash is survived: the fence of a holder that entered
// unnoticed is lost with it, so the others wait forever instead.
//
// The request number n and its echo in REPLY are additions: they keep a duplicate REPLY
// from counting for a later request. The clock c in REPLY is an addition too. REQ alone
// does not carry the time to a process that hears of a request from a third one, and
// then entries could contradict happened-before. Two documents differ: [D1] prints
// 3(N-1), the cost of Lamport's algorithm. In [D0] a process also asks itself and
// breaks no ties, and its first rule alone, to defer only when inside, lets two in.
//
// Sources: G. Ricart and A. K. Agrawala (1981); O. S. F. Carvalho and G. Roucairol
// (1983) for mode keep; [D4], by name; [D1] (multicast and logical clocks) and [D0]
// (decentralized).
package ricartagrawala

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:  "ricart-agrawala",
	Title: "Ricart-Agrawala",
	Paper: "G. Ricart, A. K. Agrawala: An Optimal Algorithm for Mutual Exclusion in Computer Networks, Communications of the ACM 24(1), 1981, doi:10.1145/358527.358537; " +
		"O. S. F. Carvalho, G. Roucairol: On Mutual Exclusion in Computer Networks, Communications of the ACM 26(2), 1983 (mode keep)",
	Documents: []string{"[D0]", "[D1]", "[D2]", "[D4]"},
	Family:    process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "REQ", Fields: []process.FieldUse{{Field: process.FieldClock, Symbol: "t"}, number}},
		{Name: "REPLY", Fields: []process.FieldUse{number,
			{Field: process.FieldClock, Symbol: "c"}, {Field: process.FieldFence, Symbol: "F"}}},
	},
	State: []process.StateSpec{
		{Name: "st", Text: "whether it wants to enter: IDLE, WAIT or IN"},
		{Name: "C", Text: "its clock: the largest logical time that it has seen or used"},
		{Name: "T", Text: "the time of its request; 0 if it has none"},
		{Name: "n", Text: "the number of its latest request"},
		{Name: "F", Text: "the largest fence that it has seen; inside, the fence of the entry"},
		{Name: "missing", Text: "the processes whose REPLY it still needs"},
		{Name: "deferred", Text: "for each process, the number of the request that it answers when it leaves; 0 for none"},
		{Name: "failed", Text: "the processes that it knows to have crashed"},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "request: stamp it, send REQ to every process whose permission is missing"},
		{Name: "R2a", Text: "REQ while inside, or while waiting with an older request: defer the answer"},
		{Name: "R2b", Text: "REQ otherwise: REPLY at once"},
		{Name: "R2c", Text: "a kept permission was returned while waiting: ask for it again"},
		{Name: "R3", Text: "REPLY: count the permission; enter when none is missing"},
		{Name: "R4", Text: "release: REPLY to all deferred requests"},
		{Name: "R5", Text: "a process crashed: do not wait for it, forget its request"},
	},
	Options: []process.Option{{
		Name: "mode", Default: fresh, Values: []string{fresh, keep},
		Text: "whether a permission is valid for one entry (fresh) or until its giver asks for it (keep)",
	}},
	Needs:  process.Needs{Reliable: true, Detector: process.ReliableDetector},
	Claims: claims,
	New:    Flaw{}.New,
}

const (
	several  = "N >= 2"
	inTurn   = "all enter in turn, which costs most"
	noCrash  = "nobody has crashed"
	oneByOne = "counts one message after another; N-1 of them travel at the same time"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.Progress, Mode: fresh},
		{Property: process.Progress, Mode: keep, When: noCrash},
		{Property: process.FencesGrow},
		{Property: process.OrderTimestamp, Mode: fresh},
		{Property: process.OrderHappenedBefore, Mode: fresh},
		{Property: process.BoundedBypass, Mode: fresh, Bound: process.PerOther("2(N-1)", 2),
			When: "counted from the request; N-1 once everybody has heard of it"},
		{Property: process.OrderTimestamp, Mode: keep, Fails: true,
			When: "who has all permissions enters again before it hears of an older request"},
		{Property: process.OrderHappenedBefore, Mode: keep, Fails: true,
			When: "who has all permissions enters again before it hears of an older request"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.AnyLoad, Mode: fresh, Exact: process.PerOther("2(N-1)", 2),
			Said: []process.Figure{
				{Document: "[D0]", Text: "2(N-1)"},
				{Document: "[D1]", Text: "3(N-1)", Wrong: "its own pseudo-code needs 2(N-1): releasing is answering the queued requests; 3(N-1) is Lamport's algorithm"},
				{Document: "[D4]", Text: "2(n-1)"},
			}},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, Mode: keep, When: inTurn, Exact: process.PerOther("2(N-1)", 2)},
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, Mode: keep, Exact: process.PerOther("2(N-1)", 2)},
		{Metric: process.MessagesPerEntry, Regime: process.AnyLoad, Mode: keep,
			When: "the mean if one enters at a time, drawn at random",
			Lo:   process.Constant("0", 0), Hi: process.PerOther("2(N-1)", 2), Mean: process.PerOther("N-1", 1)},
		{Metric: process.ClientDelay, Regime: process.Idle, Mode: fresh, When: several, Exact: process.Constant("2", 2),
			Said: []process.Figure{
				{Document: "[D0]", Text: "2(N-1)", Wrong: oneByOne},
				{Document: "[D1]", Text: "2(N-1)", Wrong: oneByOne},
			}},
		{Metric: process.ClientDelay, Regime: process.Idle, Mode: keep, When: several + "; " + inTurn, Exact: process.Constant("2", 2)},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1),
			Said: []process.Figure{{Document: "[D4]", Text: "maximal message transmission time"}}},
		{Metric: process.Throughput, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "no rule depends on the order of messages"},
		{Fault: process.Duplication, How: "a REPLY echoes the number of its request"},
		{Fault: process.CrashAny, Mode: fresh, How: "R5, with a reliable detector"},
	},
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

const idle, waiting, inside = process.PhaseIdle, process.PhaseWaiting, process.PhaseInside

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	NoTieBreak bool // a request of the same time as the own one is answered at once, whoever made it
	DeafClock  bool // the clock counts the own requests and is not raised by those of others
}

type machine struct {
	c    *process.Config
	self process.ID
	flaw Flaw
	keep bool

	phase    process.Phase
	clock    uint64        // the largest logical time seen or used
	request  uint64        // the time of this process's request, or 0 when idle
	number   uint64        // of this process's latest request
	fence    process.Fence // the largest seen; inside, that of the entry
	missing  process.Set   // the processes whose permission is missing; empty when inside
	deferred []uint64      // by rank: the number of the request to answer on leaving, or 0; all 0 when idle
	failed   process.Set   // known to have crashed; never missing, never deferred
}

// New makes a machine with the flaw. It starts the clock no lower than the fences allow:
// from here on, the number of all stamps up to the clock is at least the largest fence.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := &machine{
		c: c, self: self, flaw: flaw, keep: c.Option("mode", fresh) == keep,
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

// onReq is R2. The clock also rises for a request that is deferred. Otherwise the next
// request of this process could be older than one that waits here. A duplicate of an
// earlier REQ must not replace the number of the current request, so the larger number is
// kept.
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

// permit answers the request of p with the given number. The answer returns a kept
// permission, but never one received for the current request: a process that has seen
// that request makes no older one any more.
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

// nextFence is 1 + the largest fence seen. A crashed holder may have had a larger one;
// then it is the number of all stamps up to that of this request.
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

// Idle reports whether the process has no request and remembers nothing of others but
// its marks.
func (m *machine) Idle() bool {
	return m.phase == idle && m.missing.Len() == m.c.N-1
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "st", &m.phase, process.PhaseNames)
	f.Clock("C", &m.clock)
	f.Clock("T", &m.request)
	f.Seq("n", &m.number)
	f.Fence("F", &m.fence)
	f.Set("missing", m.missing)
	f.Array("deferred", m.deferred)
	f.Set("failed", m.failed)
}
