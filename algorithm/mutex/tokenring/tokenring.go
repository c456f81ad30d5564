// Package tokenring is mutual exclusion by a token that circulates on a logical
// ring (Le Lann), with the repairs that keep it going when processes crash.
//
// # Problem and idea
//
// The processes form a logical ring, whatever the network looks like. One token goes
// round. A process that has it may enter once before passing it on. No process asks for
// the token, so it also moves while none wants it.
//
// # Rules
//
//	R1  start: one process has the token.
//	R2  on TOKEN(hop) with a hop above the last one seen: take it.
//	    R2b Otherwise it is a duplicate, or of an older term: destroy it.
//	R3  the token is here and the client waits: enter with the next fence.
//	R4  the token is here and the client is idle: pass it on, after a while if
//	    the option delta says so.
//	R5  release: pass it on at once, so that no process enters twice in a row.
//	R6  mode acks: every TOKEN is answered by ACK. Without one the TOKEN is sent
//	    again, at most three times; then R7.
//	    R6b The process to which an unanswered TOKEN went has crashed: purge it
//	    from the ring and send the TOKEN to the next.
//	R7  the token may be lost: the successor or the leader of an election crashed
//	    or is suspected, or the client has waited very long. Call an election.
//	R8  restart: take part in nothing, call an election, and wait for its QUERY.
//	R9  a process alone on the ring keeps the token.
//
// The winner of an election makes the only token of the new term:
//
//	T1  it sends QUERY(e) to every live process; e is the term it won.
//	T2  on QUERY(e): promise to accept no term older than e, destroy an unused
//	    token and send STATE, which says whether the process is inside. From now
//	    on a process that leaves does not pass the old token on.
//	    T2b If the process has promised a newer term, it sends NACK.
//	T3  every process has answered or crashed: send NEWEPOCH(e). If a process is
//	    inside, NEWEPOCH names it as the holder of the new token; otherwise the
//	    winner makes the token.
//	T4  two are inside: the one with the larger fence stays.
//	T6  on NEWEPOCH(e): the term begins. The named process has the token, and
//	    passes it on if it has left since.
//	T7  on NACK: give up; another process has won a later term.
//
// # Why it is safe
//
// A process passes the token on and keeps nothing. A hop is a position on the unrolled
// ring: passing to the k-th process behind adds k. So a token and its duplicate reach a
// process with the same hop, whichever members their senders had purged, and the second
// is destroyed. A new token is made only when every live process has promised to
// destroy the old one and has reported whether it is inside. So there is one token, and
// a process that is inside has it. R6b raises the fence by the number of processes
// passed over, because each of them may have entered once without a report. T3
// continues in a higher round of fences.
//
// # Cost
//
// One message per entry when every process waits. When none waits the token still
// moves, so the rarer the requests, the more messages each one costs. ACKs double all
// figures but are counted separately. The client delay is 0 to N message times. The
// synchronization delay is one if the next process waits, and N if only the same
// process does.
//
// # Assumptions and deviations
//
// Links lose nothing; order and duplicates do not matter. Mode acks repairs a lost
// TOKEN or ACK, but the messages of a takeover are not repeated. Recovery needs an
// election in a layer below, and a reliable detector from which every process hears
// that a process is back before that process does anything. Without them no crash is
// survived. Suspicions only start elections. If Fail is wrong, two processes may be
// inside; then the larger fence of the second stops the first.
//
// A loss timer never makes a token, because two timers that expired would make two. No
// timeout can bound how long other processes are inside ([D3] and [D4]). The timer runs
// only while a client waits. No message announces a purge: each process hears from its
// own detector, and hops need no agreement on who is on the ring. A process comes back
// through the election that it calls, because it has forgotten which hops it has seen.
//
// Sources: G. Le Lann: Distributed systems, towards a formal approach, 1977; [D0], [D3]
// (ACKs, purge of dead members) and [D4] (a unique process, found by an election,
// regenerates the lost token).
package tokenring

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "token-ring",
	Title:     "Token ring",
	Paper:     "G. Le Lann: Distributed systems, towards a formal approach, IFIP Congress 1977",
	Documents: []string{"[D0]", "[D1]", "[D2]", "[D3]", "[D4]"},
	Family:    process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "TOKEN", Fields: []process.FieldUse{hop, fence, epoch}},
		{Name: "ACK", Class: process.Acknowledgement, Fields: []process.FieldUse{hop, epoch}},
		{Name: "QUERY", Class: process.Recovery, Fields: []process.FieldUse{epoch}},
		{Name: "STATE", Class: process.Recovery, Fields: []process.FieldUse{
			{Field: process.FieldValue, Symbol: "st", Names: process.PhaseNames}, fence, epoch}},
		{Name: "NACK", Class: process.Recovery, Fields: []process.FieldUse{epoch}},
		{Name: "NEWEPOCH", Class: process.Recovery, Fields: []process.FieldUse{
			{Field: process.FieldSubject, Symbol: "holder"}, fence, epoch}},
	},
	Timers: []string{"idle", "ack", "loss"},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "start: one process has the token"},
		{Name: "R2", Text: "TOKEN with a hop above the last one seen: take it"},
		{Name: "R2b", Text: "TOKEN that is a duplicate or of an older term: destroy it"},
		{Name: "R3", Text: "the token is here and the client waits: enter"},
		{Name: "R4", Text: "the token is here and the client is idle: pass it on"},
		{Name: "R5", Text: "release: pass the token on"},
		{Name: "R6", Text: "no ACK: send the TOKEN again"},
		{Name: "R6b", Text: "the receiver of an unanswered TOKEN crashed: send it to the next process"},
		{Name: "R7", Text: "the token may be lost: call an election"},
		{Name: "R8", Text: "restart: take part in nothing before the next takeover"},
		{Name: "R9", Text: "alone on the ring: keep the token"},
		{Name: "T1", Text: "elected: send QUERY to every live process"},
		{Name: "T2", Text: "QUERY: promise, destroy an unused token, send STATE"},
		{Name: "T2b", Text: "QUERY older than a promise: NACK"},
		{Name: "T3", Text: "every process has answered or crashed: send NEWEPOCH, with the new token"},
		{Name: "T4", Text: "two were inside: the one with the larger fence stays"},
		{Name: "T6", Text: "NEWEPOCH: the term begins"},
		{Name: "T7", Text: "NACK: give up the takeover"},
	},
	Options: []process.Option{
		{Name: "mode", Default: plain, Values: []string{plain, acks}, Text: "whether each TOKEN is acknowledged"},
		{Name: "delta", Default: "0", Max: 60_000_000, Text: "how long an idle process keeps the token, in microseconds"},
	},
	Needs: process.Needs{
		Reliable: true, Elector: true, Awake: true,
		Detector: process.ReliableDetector, Topology: process.RingTopology,
	},
	Claims:  claims,
	Cancels: true,
	Normal:  &process.Normal{State: hopsOfState, Message: hopOfMessage},
	New:     Flaw{}.New,
}

const (
	several   = "N >= 2"
	noRest    = "N >= 2 and delta = 0"
	fullRound = "a request just after the token has left waits for a full round of N deliveries"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.OneToken, When: "in each term; a TOKEN that is sent again because no ACK came is the same token"},
		{Property: process.FencesGrow},
		{Property: process.Progress},
		{Property: process.BoundedBypass, Bound: others, When: "no takeover begins during the wait"},
		{Property: process.OrderHappenedBefore, Fails: true, When: "entries follow the ring, not the order of requests"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1),
			Said: []process.Figure{{Document: "[D0]", Text: "1..."}, {Document: "[D1]", Text: "1 to N"}, {Document: "[D3]", Text: "1 to ∞"},
				{Document: "[D4]", Text: "1 to n-1", Wrong: "0 if the token is here, and N deliveries if it has just left"}}},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: "no bound: the token moves even if no process asks", Lo: process.Constant("0", 0),
			Said: []process.Figure{{Document: "[D0]", Text: "1..."}, {Document: "[D3]", Text: "1 to ∞"},
				{Document: "[D1]", Text: "1 to N", Wrong: "leaves out the rounds in which no process enters"}}},
		{Metric: process.ClientDelay, Regime: process.Idle, When: noRest + "; the mean is over requests at random times",
			Lo: process.Constant("0", 0), Hi: all, Mean: half,
			Said: []process.Figure{
				{Document: "[D0]", Text: "0 ... N-1", Wrong: fullRound},
				{Document: "[D1]", Text: "0 to N-1", Wrong: fullRound},
				{Document: "[D3]", Text: "0 to (n-1)", Wrong: fullRound}}},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1)},
		{Metric: process.SyncDelay, Regime: process.AnyLoad, When: noRest + "; N if only the process that left asks again",
			Lo: process.Constant("1", 1), Hi: all},
		{Metric: process.Throughput, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "hop numbers"},
		{Fault: process.Duplication, How: "hop numbers: the second copy is destroyed"},
		{Fault: process.CrashBystander, How: "R6b or R7, with a reliable detector and an election below"},
		{Fault: process.CrashWaiter, How: "R6b or R7, with a reliable detector and an election below"},
		{Fault: process.CrashHolder, How: "R7 and the takeover, with a reliable detector and an election below"},
		{Fault: process.CrashSpecial, How: "R7 and the takeover, with a reliable detector and an election below"},
		{Fault: process.CrashAny, How: "R6b or R7, with a reliable detector and an election below"},
		{Fault: process.AmnesiaRestart, How: "R8: a restarted process calls an election; the winner's takeover restores its state"},
	},
}

var all = process.PerProcess("N", 1)

var half = process.PerProcess("N/2", 0.5)

var others = process.PerOther("N-1", 1)

var (
	hop   = process.FieldUse{Field: process.FieldSeq, Symbol: "h"}
	fence = process.FieldUse{Field: process.FieldFence, Symbol: "f"}
	epoch = process.FieldUse{Field: process.FieldTerm, Symbol: "e"}
)

const (
	token process.Type = iota + 1
	ack
	query
	state
	nack
	newEpoch
)

const (
	idleTimer process.Timer = iota + 1
	ackTimer
	lossTimer
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR2b
	ruleR3
	ruleR4
	ruleR5
	ruleR6
	ruleR6b
	ruleR7
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
	plain = "plain"
	acks  = "acks"
)

const idle, waiting, inside = process.PhaseIdle, process.PhaseWaiting, process.PhaseInside

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	AcceptsCopies bool // R2b is missing: a duplicate of the token counts as the token
	MakesTokens   bool // R7 calls no election: a process that has waited very long makes a new token
}

type machine struct {
	c     *process.Config
	self  process.ID
	flaw  Flaw
	acks  bool
	delta process.Duration

	phase  process.Phase // inside implies has, or promised > term
	has    bool          // the token is here; implies promised = term
	hop    uint64        // of the token as it was last here, or as it was passed on
	fence  process.Fence // the largest seen; with the token, that of the last entry
	failed []process.ID  // those known to have crashed

	// A TOKEN that "to" has not acknowledged, mode acks only; None if there is
	// none, which has implies. Its hop and fence are the ones above.
	to    process.ID
	tries int

	term     process.Term // that of the tokens accepted
	promised process.Term // nothing older is accepted; promised >= term
	joining  bool         // restarted, and no QUERY has come since

	// The takeover, from T1 to T3.
	taking   bool
	awaiting []process.ID  // those that have not answered
	holder   process.ID    // the process reported inside so far, or None
	held     process.Fence // its fence
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{
		c: c, self: self, flaw: flaw, acks: c.Option("mode", plain) == acks,
		delta: process.Duration(c.IntOption("delta", 0)) * process.Microsecond,
		fence: c.Base.Fence, to: process.None, holder: process.None,
	}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start:
		m.onStart(fx)
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
		m.onSuspect(ev.Peer, fx)
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
	case token:
		m.onToken(msg, fx)
	case ack:
		m.onAck(msg, fx)
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

func (m *machine) onTimer(t process.Timer, fx *process.Effects) {
	switch t {
	case idleTimer:
		m.onRested(fx)
	case ackTimer:
		m.onSilence(fx)
	case lossTimer:
		m.onLoss(fx)
	}
}

// Fields names the state. Only the promise must survive a crash: a process that forgot
// it could accept a token that was replaced.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "st", &m.phase, process.PhaseNames)
	f.Bool("has", &m.has)
	f.Uint("hop", &m.hop)
	f.Fence("fence", &m.fence)
	f.IDs("failed", &m.failed)
	f.ID("unacked", &m.to)
	f.Count("tries", &m.tries)
	f.Term("epoch", &m.term)
	f.Durable().Term("promised", &m.promised)
	f.Bool("joining", &m.joining)
	f.Bool("taking", &m.taking)
	f.IDs("awaiting", &m.awaiting)
	f.ID("holder", &m.holder)
	f.Fence("held", &m.held)
}

func (m *machine) hasFailed(p process.ID) bool { return slices.Contains(m.failed, p) }

// HasToken reports whether the token is here.
func (m *machine) HasToken() bool { return m.has }

// hopsOfState and hopOfMessage name the hops, which grow forever while the token goes
// round. Hops are only compared within one term, and only increased. A new term starts
// at 0, once.
func hopsOfState(m process.Machine, visit func(group uint64, p *uint64)) {
	ring := m.(*machine)
	visit(uint64(ring.term), &ring.hop)
}

func hopOfMessage(msg *process.Message, visit func(group uint64, p *uint64)) {
	if msg.Type == token || msg.Type == ack {
		visit(uint64(msg.Term), &msg.Seq)
	}
}
