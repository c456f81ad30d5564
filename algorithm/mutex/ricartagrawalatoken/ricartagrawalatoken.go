// Package ricartagrawalatoken is mutual exclusion by a token that processes ask for by
// broadcast. The token stays where it is while no other process wants it (Ricart and
// Agrawala's second algorithm).
//
// # Problem and idea
//
// The process that has the token may enter. A process without it asks all others,
// because it does not know which process has it. The token stores, for each process,
// the logical time at which that process last passed it on. A request stamped later
// than that is still open.
//
// # Rules
//
//	R1  start: one process has the token, unused. The others do not have it.
//	R2  request: without the token, tick and send REQ(C) to all others; with it,
//	    enter.
//	R3  on REQ(t) from j: set the clock past t and remember the latest stamp of
//	    j. If the token is here unused: R5.
//	R4  release: tick; the token is unused; R5.
//	R5  give: look through i+1, ..., N, 1, ..., i-1 for the first process whose
//	    latest stamp is later than its entry in the token. Store the clock in
//	    entry i and send the token there. If there is none, keep the token.
//	R6  on TOKEN: set the clock past that of the sender; enter.
//	    R6b A token with a lower fence than one already seen is a duplicate: drop it.
//	R7  a process crashed: its open request is over.
//	R8  no token for a long time: send the same REQ again (option retry).
//
// # Why it is safe
//
// Only the process that has the token is inside, and R5 sends it away whole. Nothing
// creates a second token. It reaches every process that waits, because the search
// starts behind the giver: each other process gets it at most once before.
//
// # Cost
//
// N messages per entry, N-1 requests and the token; none if the token is here.
// Client delay two message times or none; synchronization delay one.
//
// # Assumptions and deviations
//
// Links lose nothing; order and duplicates do not matter. Only the crash of a process
// that neither waits nor has the token is fully survived. [D4] says that only the
// holder's crash matters, but the token is also sent to a process that crashed while it
// waited, and is lost. With a reliable detector, R7 keeps the token from being sent to
// a process known to have crashed. A token lost with its holder, or in flight to a
// crashed process, is not replaced. A process that restarts has forgotten its clock:
// its requests look old and are not served.
//
// The document does not tick the clock before a request. The first request would then
// carry 0, which is not later than the token's entry 0, and would be lost. Its rules
// and its summary use two names, TOKEN-HELD and TOKEN-HOLD, for one state.
//
// Source: G. Ricart, A. K. Agrawala, author's response to "On mutual exclusion in
// computer networks" by Carvalho and Roucairol, 1983, as described in [D4].
package ricartagrawalatoken

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "ricart-agrawala-token",
	Title:     "Ricart-Agrawala, second algorithm (token)",
	Paper:     "G. Ricart, A. K. Agrawala: author's response to \"On mutual exclusion in computer networks\", Communications of the ACM 26(2), 1983",
	Documents: []string{"[D4]"},
	Family:    process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "REQ", Fields: []process.FieldUse{{Field: process.FieldClock, Symbol: "t"}}},
		{Name: "TOKEN", Fields: []process.FieldUse{
			{Field: process.FieldVector, Symbol: "token"},
			{Field: process.FieldFence, Symbol: "f"},
			{Field: process.FieldClock, Symbol: "C"},
		}},
	},
	Timers: []string{"retry"},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "start: one process has the token, unused"},
		{Name: "R2", Text: "request without the token: tick, send REQ to all others, wait"},
		{Name: "R2b", Text: "request with the token: enter"},
		{Name: "R3", Text: "REQ: remember the latest stamp of its sender"},
		{Name: "R4", Text: "release: the token is unused"},
		{Name: "R5", Text: "give the unused token to the next process with an open request"},
		{Name: "R6", Text: "TOKEN: enter"},
		{Name: "R6b", Text: "duplicate TOKEN: drop it"},
		{Name: "R6c", Text: "TOKEN while not waiting: keep it unused"},
		{Name: "R7", Text: "a process crashed: its open request is over"},
		{Name: "R8", Text: "no token for a long time: send the same REQ again"},
	},
	Options: []process.Option{{
		Name: "retry", Default: "0", Max: 1_000_000,
		Text: "send a REQ again after this many times (delay + section); 0: never",
	}},
	Needs:  process.Needs{Reliable: true},
	Claims: claims,
	Normal: &process.Normal{Ordered: true, State: stampsOfState, Message: stampsOfMessage},
	New:    Flaw{}.New,
}

const (
	elsewhere = "the token is elsewhere, and N >= 2"
	anywhere  = "none if the token is here; the mean is over requesters drawn uniformly"
	several   = "N >= 2"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.OneToken},
		{Property: process.FencesGrow},
		{Property: process.Progress},
		{Property: process.BoundedBypass, Bound: others, Since: process.SinceKnown, When: "counted from when the request is known everywhere"},
		{Property: process.OrderHappenedBefore, Fails: true, When: "the search follows the ranks, not the stamps"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, When: several, Exact: all,
			Said: []process.Figure{{Document: "[D4]", Text: "n"}}},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: elsewhere, Exact: all,
			Said: []process.Figure{{Document: "[D4]", Text: "n", Wrong: "leaves out the process that has the token, which sends nothing"}}},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: anywhere, Lo: process.Constant("0", 0), Hi: all, Mean: others},
		{Metric: process.ClientDelay, Regime: process.Idle, When: elsewhere, Exact: process.Constant("2", 2)},
		{Metric: process.ClientDelay, Regime: process.Idle, When: anywhere, Lo: process.Constant("0", 0), Hi: process.Constant("2", 2)},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1)},
		{Metric: process.Throughput, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "stamps tell open requests from served ones"},
		{Fault: process.Duplication, How: "a duplicate REQ is not later than the token's entry, a duplicate TOKEN has an old fence"},
		{Fault: process.CrashBystander, How: "no process waits for its answer"},
	},
}

// all is N-1 requests and one token.
var all = process.PerProcess("N", 1)

var others = process.PerOther("N-1", 1)

const (
	req process.Type = iota + 1
	token
)

const retryTimer process.Timer = 1

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR2b
	ruleR3
	ruleR4
	ruleR5
	ruleR6
	ruleR6b
	ruleR6c
	ruleR7
	ruleR8
)

type possession uint8

const (
	noToken possession = iota
	present            // here and unused
	held               // here, and its holder is inside
)

var possessionNames = []string{"NO-TOKEN", "TOKEN-PRESENT", "TOKEN-HELD"}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	NoTick      bool // R2 does not tick before it stamps a request
	GivesInside bool // R3 gives the token away even while its holder is inside
}

type machine struct {
	c     *process.Config
	self  process.ID
	flaw  Flaw
	retry process.Duration // 0: never

	tok     possession
	waiting bool          // implies NO-TOKEN
	clock   uint64        // the logical clock, never behind a stamp seen
	stamp   uint64        // that of this process's latest request
	request []uint64      // by rank: the latest stamp seen of each
	token   []uint64      // by rank: when each last passed the token on; all 0 without the token
	fence   process.Fence // the largest seen; with the token, that of the last entry
	failed  []process.ID  // known to have crashed
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{
		c: c, self: self, flaw: flaw,
		retry:   process.Duration(c.IntOption("retry", 0)) * (c.D() + c.E()),
		clock:   c.Base.Clock,
		request: make([]uint64, c.N), token: make([]uint64, c.N),
		fence: c.Base.Fence,
	}
}

// Step dispatches the event to the handler of its rule. A restarted process does not
// get the first token again: it may have passed it on.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start:
		m.onStart(fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	case process.Fire:
		m.onRetry(fx)
	case process.Acquire:
		m.onAcquire(fx)
	case process.Release:
		m.onRelease(fx)
	case process.Fail:
		m.onFail(ev.Peer, fx)
	}
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	switch msg.Type {
	case req:
		m.onReq(msg, fx)
	case token:
		m.onToken(msg, fx)
	}
}

// onStart is R1.
func (m *machine) onStart(fx *process.Effects) {
	if m.c.Topology.Coordinator != m.self {
		return
	}
	fx.Rule(ruleR1)
	m.tok = present
}

// onAcquire is R2. Without the tick the first request would carry 0 and look
// served.
func (m *machine) onAcquire(fx *process.Effects) {
	process.Assert(m.tok != held && !m.waiting, "a process has one request at a time")
	if m.tok == present {
		fx.Rule(ruleR2b)
		m.enter(fx)
		return
	}
	fx.Rule(ruleR2)
	if !m.flaw.NoTick {
		m.clock++
	}
	m.stamp, m.waiting = m.clock, true
	m.ask(fx)
}

func (m *machine) ask(fx *process.Effects) {
	fx.Broadcast(process.Message{Type: req, Clock: m.stamp})
	if m.retry > 0 {
		fx.Arm(retryTimer, m.retry, m.retry)
	}
}

// onRetry is R8. It repeats the old stamp, so that a request that was served in between
// is not open again.
func (m *machine) onRetry(fx *process.Effects) {
	if !m.waiting {
		return
	}
	fx.Rule(ruleR8)
	m.ask(fx)
}

// onReq is R3. A late copy of a request that was served is remembered too, but
// it is not later than the entry in the token.
func (m *machine) onReq(msg *process.Message, fx *process.Effects) {
	fx.Rule(ruleR3)
	m.clock = max(m.clock, msg.Clock) + 1
	m.request[msg.From] = max(m.request[msg.From], msg.Clock)
	if m.tok == present || m.flaw.GivesInside && m.tok == held {
		m.give(fx)
	}
}

// onRelease is R4.
func (m *machine) onRelease(fx *process.Effects) {
	if m.tok != held {
		return
	}
	fx.Rule(ruleR4)
	m.clock++
	m.tok = present
	m.give(fx)
}

// give is R5. The entry of this process is set now and not on entering. So a request
// that it made before it entered is not later than the entry.
func (m *machine) give(fx *process.Effects) {
	to := m.next()
	if to == process.None {
		return
	}
	fx.Rule(ruleR5)
	m.token[m.self] = m.clock
	fx.Send(to, process.Message{Type: token, Vector: m.token, Fence: m.fence, Clock: m.clock})
	m.tok = noToken
	clear(m.token)
}

// next returns the first process behind this one whose request is open, or None.
func (m *machine) next() process.ID {
	n := process.ID(m.c.N)
	for i := process.ID(1); i < n; i++ {
		if k := (m.self + i) % n; m.open(k) {
			return k
		}
	}
	return process.None
}

// open reports whether k waits, as far as the token and this process know.
func (m *machine) open(k process.ID) bool {
	return m.request[k] > m.token[k] && !slices.Contains(m.failed, k)
}

// onToken is R6. A process that gets the token enters and so raises the fence; a
// duplicate still has the old fence. A restarted process may get the token for a
// request that it has forgotten, and keeps it for others.
func (m *machine) onToken(msg *process.Message, fx *process.Effects) {
	if m.tok != noToken || msg.Fence < m.fence {
		fx.Rule(ruleR6b)
		return
	}
	m.clock = max(m.clock, msg.Clock) + 1
	m.fence = msg.Fence
	copy(m.token, msg.Vector)
	if m.waiting {
		fx.Rule(ruleR6)
		m.enter(fx)
		return
	}
	fx.Rule(ruleR6c)
	m.tok = present
	m.give(fx)
}

func (m *machine) enter(fx *process.Effects) {
	if m.waiting && m.retry > 0 {
		fx.Disarm(retryTimer)
	}
	m.tok, m.waiting = held, false
	m.fence++
	fx.Grant(m.fence)
}

// onFail is R7: a crashed process is passed over from now on.
func (m *machine) onFail(p process.ID, fx *process.Effects) {
	if slices.Contains(m.failed, p) {
		return
	}
	fx.Rule(ruleR7)
	m.failed = process.Insert(m.failed, p)
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "state", &m.tok, possessionNames)
	f.Bool("waiting", &m.waiting)
	f.Clock("C", &m.clock)
	f.Clock("T", &m.stamp)
	f.Clocks("request", m.request)
	f.Clocks("token", m.token)
	f.Fence("fence", &m.fence)
	f.IDs("failed", &m.failed)
}

// HasToken reports whether the token is here.
func (m *machine) HasToken() bool { return m.tok != noToken }

// stampsOfState and stampsOfMessage put the stamps of each process into a group of
// their own, with its clock. A stamp is compared only with others of the same process:
// its latest request with its entry in the token. New stamps come from its clock, which
// is never behind them. Messages of others move the clock further ahead, and how far
// does not matter.
func stampsOfState(m process.Machine, visit func(group uint64, p *uint64)) {
	r := m.(*machine)
	visit(uint64(r.self), &r.clock)
	if r.waiting {
		visit(uint64(r.self), &r.stamp) // R8 repeats it
	} else {
		visit(process.Void, &r.stamp)
	}
	for k := range r.request {
		visit(uint64(k), &r.request[k])
		visit(uint64(k), &r.token[k])
	}
}

func stampsOfMessage(msg *process.Message, visit func(group uint64, p *uint64)) {
	if msg.Type == req {
		visit(uint64(msg.From), &msg.Clock)
		return
	}
	visit(process.Void, &msg.Clock)
	for k := range msg.Vector {
		visit(uint64(k), &msg.Vector[k])
	}
}
