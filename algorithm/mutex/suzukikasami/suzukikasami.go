// Package suzukikasami is mutual exclusion by a token that processes ask for by
// broadcast. The token carries the queue of waiting processes (Suzuki and Kasami).
//
// # Problem and idea
//
// The process that has the token may enter. A process without it asks all others with
// the number of its request. The token stores, for each process, the number of its last
// request that was served; a request with the next number is open. When a critical
// section ends, open requests join the queue in the token, and the token goes to its
// head.
//
// # Rules
//
//	R1  request: with the token, enter. Without it, take the next number and send
//	    REQ(n) to all others.
//	R2  on REQ(n) from j: remember the highest number of j (RN). If the token is
//	    here, this process is not inside and j's request is open, send j the token.
//	R3  on TOKEN: enter.
//	    R3b A token with a lower fence than one already seen is a duplicate: drop it.
//	    R3c A token that comes while not waiting goes to the next open request.
//	R4  release: this process's request is served (LN := RN). Of i+1, ..., N, 1,
//	    ..., i-1 append those whose request is open and that are not in the queue.
//	    Send the token to the head of the queue; keep it if the queue is empty.
//	R5  a process crashed: its open request is over.
//	R6  no token for a long time: send the same REQ again (option retry).
//
// # Why it is safe
//
// Only the process that has the token is inside, and R2, R3c and R4 send it away whole.
// Nothing creates a second token. A request that the holder knows is in the queue after
// the present critical section, and no process is in the queue twice. So each other
// process enters at most once before.
//
// # Cost
//
// N messages per entry, N-1 requests and the token; none if the token is here.
// Client delay two message times or none; synchronization delay one. The token
// is as long as the list of processes.
//
// # Assumptions and deviations
//
// Links lose nothing; order and duplicates do not matter. Only the crash of a process
// that neither waits nor has the token is fully survived. With a reliable detector, R5
// keeps the token from being sent to a process known to have crashed. A token lost with
// its holder, or in flight to a crashed process, is not replaced. A process that
// restarts has forgotten its numbers: its requests look old and are not served.
//
// The paper calls a request open if RN = LN+1; here it is open if RN > LN. Both mean
// the same while numbers go up by one, but RN > LN does not starve a process forever if
// one of its numbers is skipped. The fence identifies duplicates of the token.
//
// The lecture documents only name the algorithm: [D2], which lists it under time-based
// event ordering, and [D4].
//
// Source: I. Suzuki, T. Kasami: A distributed mutual exclusion algorithm, 1985.
package suzukikasami

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "suzuki-kasami",
	Title:     "Suzuki-Kasami",
	Paper:     "I. Suzuki, T. Kasami: A distributed mutual exclusion algorithm, ACM Transactions on Computer Systems 3(4), 1985, doi:10.1145/6110.214406",
	Documents: []string{"[D2]", "[D4]"},
	Family:    process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "REQ", Fields: []process.FieldUse{{Field: process.FieldSeq, Symbol: "n"}}},
		{Name: "TOKEN", Fields: []process.FieldUse{
			{Field: process.FieldVector, Symbol: "LN"},
			{Field: process.FieldIDs, Symbol: "Q"},
			{Field: process.FieldFence, Symbol: "f"},
		}},
	},
	Timers: []string{"retry"},
	State: []process.StateSpec{
		{Name: "st", Text: "whether it wants to enter: IDLE, WAIT or IN"},
		{Name: "RN", Text: "for each process, the highest request number that it has seen"},
		{Name: "fence", Text: "the largest fence that it has seen; with the token, the fence of the last entry"},
		{Name: "failed", Text: "the processes that it knows to have crashed"},
		{Name: "token", Text: "whether it has the token"},
		{Name: "LN", Text: "in the token: for each process, the number of its last request that was served"},
		{Name: "Q", Text: "in the token: the processes that get it next, in this order"},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "request without the token: number it, send REQ to all others, wait"},
		{Name: "R1b", Text: "request with the token: enter"},
		{Name: "R2", Text: "REQ: remember the highest number of its sender"},
		{Name: "R2b", Text: "open request while the token is here and unused: send the token"},
		{Name: "R3", Text: "TOKEN: enter"},
		{Name: "R3b", Text: "duplicate TOKEN: drop it"},
		{Name: "R3c", Text: "TOKEN while not waiting: pass it on as after a release"},
		{Name: "R4", Text: "release: the request is served, open requests join the queue"},
		{Name: "R4b", Text: "send the token to the head of the queue"},
		{Name: "R5", Text: "a process crashed: its open request is over"},
		{Name: "R6", Text: "no token for a long time: send the same REQ again"},
	},
	Options: []process.Option{{
		Name: "retry", Default: "0", Max: 1_000_000,
		Text: "send a REQ again after this many times (delay + section); 0: never",
	}},
	Needs:  process.Needs{Reliable: true},
	Claims: claims,
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
		{Property: process.OrderHappenedBefore, Fails: true, When: "the queue is filled by rank, not by time"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, When: several, Exact: all},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: elsewhere, Exact: all},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: anywhere, Lo: process.Constant("0", 0), Hi: all, Mean: others},
		{Metric: process.ClientDelay, Regime: process.Idle, When: elsewhere, Exact: process.Constant("2", 2)},
		{Metric: process.ClientDelay, Regime: process.Idle, When: anywhere, Lo: process.Constant("0", 0), Hi: process.Constant("2", 2)},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1)},
		{Metric: process.Throughput, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "numbers tell open requests from served ones"},
		{Fault: process.Duplication, How: "a duplicate REQ has a number that was served, a duplicate TOKEN an old fence"},
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
	ruleR1b
	ruleR2
	ruleR2b
	ruleR3
	ruleR3b
	ruleR3c
	ruleR4
	ruleR4b
	ruleR5
	ruleR6
)

const idle, waiting, inside = process.PhaseIdle, process.PhaseWaiting, process.PhaseInside

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	DropsInside   bool // R2 drops a REQ that comes while this process is inside
	AcceptsCopies bool // R3b is missing: a duplicate of the token counts as the token
}

type machine struct {
	c     *process.Config
	retry process.Duration // 0: never
	self  process.ID
	flaw  Flaw

	phase  process.Phase
	has    bool          // the token is here
	rn     []uint64      // by rank: the highest request number seen
	fence  process.Fence // the largest seen; with the token, that of the last entry
	failed []process.ID  // known to have crashed

	// What the token carries. inside implies has, waiting implies not has. Without the token ln
	// is all 0 and the queue is empty. No process is in the queue twice.
	ln    []uint64 // by rank: the number of the last request that was served
	queue []process.ID
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{
		c: c, self: self, flaw: flaw,
		retry: process.Duration(c.IntOption("retry", 0)) * (c.D() + c.E()),
		rn:    make([]uint64, c.N), ln: make([]uint64, c.N),
		fence: c.Base.Fence,
	}
}

// Step dispatches the event to the handler of its rule. The first token is made
// at Start and never at Restart: it may have been passed on before the crash.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start:
		m.has = m.c.Topology.Coordinator == m.self
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

// onAcquire is R1. An entry of the process that already has the token has no number: no
// other process needs to recognise it.
func (m *machine) onAcquire(fx *process.Effects) {
	process.Assert(m.phase == idle, "a process has one request at a time")
	if m.has {
		fx.Rule(ruleR1b)
		m.enter(fx)
		return
	}
	fx.Rule(ruleR1)
	m.phase = waiting
	m.rn[m.self]++
	m.ask(fx)
}

func (m *machine) ask(fx *process.Effects) {
	fx.Broadcast(process.Message{Type: req, Seq: m.rn[m.self]})
	if m.retry > 0 {
		fx.Arm(retryTimer, m.retry, m.retry)
	}
}

// onRetry is R6. It repeats the old number, so that a request that was served in
// between is not open again.
func (m *machine) onRetry(fx *process.Effects) {
	if m.phase != waiting {
		return
	}
	fx.Rule(ruleR6)
	m.ask(fx)
}

// onReq is R2. While this process is inside it only remembers the request; R4 finds it.
// A late duplicate of a request that was served is not open.
func (m *machine) onReq(msg *process.Message, fx *process.Effects) {
	if m.flaw.DropsInside && m.phase == inside {
		return
	}
	fx.Rule(ruleR2)
	m.rn[msg.From] = max(m.rn[msg.From], msg.Seq)
	if m.has && m.phase == idle && m.open(msg.From) {
		fx.Rule(ruleR2b)
		m.send(msg.From, fx)
	}
}

// onToken is R3. A process that gets the token enters and so raises the fence; a
// duplicate still has the old fence. A restarted process may get the token for a
// request that it has forgotten.
func (m *machine) onToken(msg *process.Message, fx *process.Effects) {
	if m.has || msg.Fence < m.fence && !m.flaw.AcceptsCopies {
		fx.Rule(ruleR3b)
		return
	}
	m.has, m.fence = true, msg.Fence
	copy(m.ln, msg.Vector)
	m.queue = append(m.queue[:0], msg.IDs...)
	if m.phase == waiting {
		fx.Rule(ruleR3)
		m.enter(fx)
		return
	}
	fx.Rule(ruleR3c)
	m.collect()
	m.pass(fx)
}

func (m *machine) enter(fx *process.Effects) {
	if m.phase == waiting && m.retry > 0 {
		fx.Disarm(retryTimer)
	}
	m.phase = inside
	m.fence++
	fx.Grant(m.fence)
}

// onRelease is R4.
func (m *machine) onRelease(fx *process.Effects) {
	if m.phase != inside {
		return
	}
	fx.Rule(ruleR4)
	m.phase = idle
	m.ln[m.self] = m.rn[m.self]
	m.collect()
	m.pass(fx)
}

// collect appends every process whose request is open to the queue, starting behind
// this process, and removes crashed processes. A process that is already in the queue
// stays, even if its REQ has not arrived here yet.
func (m *machine) collect() {
	m.queue = slices.DeleteFunc(m.queue, m.hasFailed)
	n := process.ID(m.c.N)
	for i := process.ID(1); i < n; i++ {
		if j := (m.self + i) % n; m.open(j) && !slices.Contains(m.queue, j) {
			m.queue = append(m.queue, j)
		}
	}
}

// pass sends the token to the head of the queue, if there is one.
func (m *machine) pass(fx *process.Effects) {
	if len(m.queue) == 0 {
		return
	}
	fx.Rule(ruleR4b)
	head := m.queue[0]
	m.queue = slices.Delete(m.queue, 0, 1)
	m.send(head, fx)
}

func (m *machine) send(to process.ID, fx *process.Effects) {
	fx.Send(to, process.Message{Type: token, Vector: m.ln, IDs: m.queue, Fence: m.fence})
	m.has = false
	clear(m.ln)
	m.queue = m.queue[:0]
}

// open reports whether j waits, as far as the token and this process know.
func (m *machine) open(j process.ID) bool {
	return m.rn[j] > m.ln[j] && !m.hasFailed(j)
}

// onFail is R5: a crashed process is passed over from now on.
func (m *machine) onFail(p process.ID, fx *process.Effects) {
	if m.hasFailed(p) {
		return
	}
	fx.Rule(ruleR5)
	m.failed = process.Insert(m.failed, p)
}

func (m *machine) hasFailed(p process.ID) bool { return slices.Contains(m.failed, p) }

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "st", &m.phase, process.PhaseNames)
	f.Array("RN", m.rn)
	f.Fence("fence", &m.fence)
	f.IDs("failed", &m.failed)
	f.Bool("token", &m.has)
	f.Array("LN", m.ln)
	f.IDs("Q", &m.queue)
}

// HasToken reports whether the token is here.
func (m *machine) HasToken() bool { return m.has }
