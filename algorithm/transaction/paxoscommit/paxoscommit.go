// Package paxoscommit is atomic commitment without a coordinator that all must wait
// for: a majority of acceptors keeps the votes.
//
// # Problem and idea
//
// Two-phase commit blocks because the decision is in one log. Replace that log by 2f+1
// acceptors, and run one consensus for each vote: the vote of a process is yes if the
// process says so before another gives up waiting, otherwise no. The transaction
// commits if all these decisions are yes. Each consensus is Paxos whose first ballot,
// 0, belongs to the process that votes: it needs no promises and sends its vote to the
// acceptors at once. A process that waits too long begins a higher ballot in all of
// them together. It asks a majority what it has accepted, and proposes no for the
// missing votes. So no process waits for a single other one.
//
// # Rules
//
//	C1  the coordinator votes yes: PREPARE to all, then C2. C1a It votes no: abort,
//	    DECISION(abort) to all.
//	C2  asked, and the vote is yes: log PREPARED, send VOTE yes to all acceptors.
//	    C2a The vote is no: log ABORT, abort, and if asked, send VOTE no to all acceptors.
//	    C2b Not asked before the vote timer expires: abort.
//	C3  an acceptor that has promised nothing keeps a VOTE. C3a With all votes, or a no:
//	    log them, ACCEPTED(0, W) to the coordinator.
//	C4  the coordinator, on ACCEPTED(0, W) with a no: abort, DECISION(abort) to all.
//	    C4a All yes from a majority of acceptors: log COMMIT, commit, DECISION(commit).
//	C5  PREPARED and the retry timer expires: take a number b above all numbers seen,
//	    log it, RECOVER(b) to all acceptors.
//	C6  on RECOVER(b) above the promise: log the promise b, answer REPORT(b, vb, d, W)
//	    with the last outcome accepted and the votes kept. C6a Otherwise answer REFUSE.
//	C7  REPORT(b) from a majority: propose the outcome of the highest vb; if there is
//	    none, commit if the reports together have yes from all, otherwise abort. Send ACCEPT(b, d)
//	    to all acceptors.
//	C8  on ACCEPT(b, d) not below the promise: log it, answer ACCEPTED(b). C8a Otherwise
//	    answer REFUSE.
//	C9  ACCEPTED(b) from a majority: log d, do it, DECISION(d) to all.
//	C10 on DECISION: log it, do it. C10a Decided: answer VOTE, RECOVER and ACCEPT with it.
//	C11 restart: COMMIT or ABORT is logged: do it. C11a PREPARED: C5 at once.
//	    C11b Nothing: abort.
//
// # Why it is safe
//
// Each vote is a consensus by Paxos, so it has one value; see package paxos for the
// argument. In ballots above 0 all votes are proposed together, so it is enough to keep
// their outcome: commit if all are yes. A later ballot proposes the same outcome if a
// majority may have accepted it. If all votes are yes in ballot 0 and a majority has
// kept each of them, every later leader learns all of them and proposes to commit. An
// acceptor that has promised a higher ballot keeps no more votes, so a vote that a
// leader has not learned never gets a majority.
//
// # Cost
//
// With A = 2f+1 acceptors, at most N: PREPARE N-1, VOTE (N-1)A, ACCEPTED A-1 and
// DECISION N-1, and 4 delays. With f = 0 that is two-phase commit without ACK: 3(N-1)
// messages and 3 delays, and it also blocks. Each process logs twice, each acceptor
// once more.
//
// # Deviations
//
// The acceptors are the first processes, starting with the coordinator, which leads
// ballot 0. An acceptor sends one message for all votes, as in Gray and Lamport. Their
// optimization that f+1 acceptors are enough while nothing fails is left out. Any
// process may lead a ballot, after a random time. Two leaders at once may delay each
// other, as in paxos-proposers, but do no harm.
//
// Sources: J. Gray, L. Lamport: Consensus on transaction commit, 2006.
package paxoscommit

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "paxos-commit",
	Title:     "Paxos Commit",
	Paper:     "J. Gray, L. Lamport: Consensus on transaction commit, ACM Transactions on Database Systems 31(1), 2006, doi:10.1145/1132863.1132867",
	Documents: []string{"[D2]"},
	Family:    process.Transaction,
	Messages: []process.MessageSpec{
		{Name: "PREPARE"},
		{Name: "VOTE", Fields: []process.FieldUse{{Field: process.FieldValue, Symbol: "v", Names: process.VoteNames}}},
		{Name: "ACCEPTED", Fields: []process.FieldUse{round, votes}},
		{Name: "RECOVER", Class: process.Recovery, Fields: []process.FieldUse{round}},
		{Name: "REPORT", Class: process.Recovery, Fields: []process.FieldUse{round, {Field: process.FieldClock, Symbol: "vb"}, {Field: process.FieldSubject, Symbol: "by"}, outcome, votes}},
		{Name: "REFUSE", Class: process.Recovery, Fields: []process.FieldUse{round, {Field: process.FieldClock, Symbol: "promised"}}},
		{Name: "ACCEPT", Class: process.Recovery, Fields: []process.FieldUse{round, outcome}},
		{Name: "DECISION", Fields: []process.FieldUse{outcome}},
	},
	Timers: []string{"vote", "retry"},
	Rules: []process.RuleSpec{
		{Name: "C1", Text: "the coordinator votes yes: PREPARE to all"},
		{Name: "C1a", Text: "the coordinator votes no: abort, DECISION"},
		{Name: "C2", Text: "asked, and the vote is yes: log PREPARED, VOTE yes to the acceptors"},
		{Name: "C2a", Text: "the vote is no: log ABORT, abort, VOTE no"},
		{Name: "C2b", Text: "not asked before the vote timer expires: abort"},
		{Name: "C3", Text: "VOTE without a promise: keep it"},
		{Name: "C3a", Text: "all votes have come, or a no: log them, ACCEPTED to the coordinator"},
		{Name: "C4", Text: "ACCEPTED with a no: abort, DECISION"},
		{Name: "C4a", Text: "a majority has accepted all votes as yes: commit, DECISION"},
		{Name: "C5", Text: "PREPARED for long: RECOVER with a number above all numbers seen"},
		{Name: "C6", Text: "RECOVER above the promise: REPORT"},
		{Name: "C6a", Text: "RECOVER not above the promise: REFUSE"},
		{Name: "C7", Text: "a majority reports: ACCEPT with the resulting outcome"},
		{Name: "C8", Text: "ACCEPT not below the promise: ACCEPTED"},
		{Name: "C8a", Text: "ACCEPT below the promise: REFUSE"},
		{Name: "C9", Text: "a majority has accepted an outcome: do it, DECISION"},
		{Name: "C10", Text: "DECISION: log it, do it"},
		{Name: "C10a", Text: "decided: answer DECISION"},
		{Name: "C11", Text: "restart with a decision: do it"},
		{Name: "C11a", Text: "restart PREPARED: RECOVER"},
		{Name: "C11b", Text: "restart without a vote of yes: abort"},
	},
	Options: []process.Option{
		{Name: "f", Default: "1", Min: 0, Max: 1_000_000, Text: "number of acceptors that may crash; there are 2f+1 acceptors, at most N"},
		{Name: "vote-time", Default: "4", Min: 1, Max: 1_000_000, Text: "time to wait for PREPARE, in D"},
		{Name: "retry-time", Default: "8", Min: 1, Max: 1_000_000, Text: "shortest wait for the decision before C5, in D; the longest is twice that"},
	},
	Needs:  process.Needs{Topology: process.Centre},
	Claims: claims,
	New:    Flaw{}.New,
}

const (
	calm     = "all processes vote yes at the same moment; no process crashes and no message is lost"
	majority = "a majority of the acceptors is up, and no other leader interferes"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.Atomicity},
		{Property: process.StableDecision},
		{Property: process.UnanimousCommit},
		{Property: process.NonTriviality},
		{Property: process.RepairTermination, When: "no other leader interferes"},
		{Property: process.NonBlocking, When: majority},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerDecision, Regime: process.AllStart, When: calm, Exact: messages},
		{Metric: process.MessageCount, Regime: process.AllStart, When: calm, Exact: messages},
		{Metric: process.DecisionTime, Regime: process.AllStart, When: calm + ", N >= 2", Exact: &process.Formula{
			Text: "4; 3 if f = 0 or N = 2", Eval: func(p process.Params) float64 { return float64(3 + min(p.F, p.N-2, 1)) }}},
		{Metric: process.LogWrites, Regime: process.AllStart, When: calm, Exact: &process.Formula{
			Text: "2N+A", Eval: func(p process.Params) float64 { return float64(2*p.N + Acceptors(p.N, p.F)) }}},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "after a promise, messages of earlier ballots are ignored"},
		{Fault: process.Loss, How: "C5"},
		{Fault: process.Duplication, How: "each process is counted once"},
		{Fault: process.CrashAny, When: "a majority of the acceptors stays up", How: "majorities have a common member"},
		{Fault: process.AmnesiaRestart, How: "votes, promises and acceptances are on disk"},
		{Fault: process.Slowness, When: "except decisions, which may wait forever", How: "a late vote is a no"},
	},
}

var messages = &process.Formula{Text: "(N-1)(A+2)+A-1, A = min(2f+1, N)", Eval: func(p process.Params) float64 {
	a := Acceptors(p.N, p.F)
	return float64((p.N-1)*(a+2) + a - 1)
}}

var (
	round   = process.FieldUse{Field: process.FieldSeq, Symbol: "b"}
	outcome = process.FieldUse{Field: process.FieldValue, Symbol: "d", Names: process.OutcomeNames}
	votes   = process.FieldUse{Field: process.FieldVector, Symbol: "W"}
)

const (
	prepare process.Type = iota + 1
	vote
	accepted
	recovery
	report
	refuse
	accept
	decision
)

const (
	voteTimer process.Timer = iota + 1
	retryTimer
)

const (
	ruleC1 process.Rule = iota + 1
	ruleC1a
	ruleC2
	ruleC2a
	ruleC2b
	ruleC3
	ruleC3a
	ruleC4
	ruleC4a
	ruleC5
	ruleC6
	ruleC6a
	ruleC7
	ruleC8
	ruleC8a
	ruleC9
	ruleC10
	ruleC10a
	ruleC11
	ruleC11a
	ruleC11b
)

type phase uint8

const (
	working phase = iota
	prepared
	committed
	aborted
)

var phaseNames = []string{"WORKING", "PREPARED", "COMMITTED", "ABORTED"}

func (p phase) decided() bool { return p >= committed }

// ballot is the number of a ballot: ordered by round, then by the rank of the leader. In
// round 0 votes are accepted, and in the others outcomes.
type ballot struct {
	round uint64
	by    process.ID
}

func (b ballot) less(o ballot) bool { return b.round < o.round || b.round == o.round && b.by < o.by }

// The values that an acceptor keeps for a vote.
const (
	missing uint64 = iota
	votedNo
	votedYes
)

type stage uint8

const (
	resting stage = iota
	recovering
	accepting
)

var stageNames = []string{"RESTING", "RECOVERING", "ACCEPTING"}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	ReportsNothing bool // C6: a REPORT has neither votes nor an outcome
	OneAcceptor    bool // C4a: the coordinator commits when one acceptor has all votes
}

type machine struct {
	c           *process.Config
	self        process.ID
	coordinator process.ID
	acceptors   int
	flaw        Flaw
	voteTime    process.Duration
	retryTime   process.Duration

	phase phase // the durable value is the last one logged
	voted bool  // yes
	asked bool

	// The acceptor.
	votes    []uint64 // by process, as they came in ballot 0
	promised ballot
	vb       ballot // of the last outcome accepted, or of round 0
	vd       int64  // that outcome
	seen     uint64 // the highest round seen

	// The leader: the coordinator in ballot 0, or a process that has waited too
	// long.
	stage  stage
	round  uint64
	yes    process.Set // acceptors that have agreed in this stage
	best   ballot
	choice int64
	merged []uint64 // the reported votes
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	none := ballot{by: process.None}
	return &machine{
		c: c, self: self, coordinator: c.Topology.Coordinator, flaw: flaw,
		acceptors: Acceptors(c.N, c.IntOption("f", 1)),
		voteTime:  process.Duration(c.IntOption("vote-time", 4)) * c.D(),
		retryTime: process.Duration(c.IntOption("retry-time", 8)) * c.D(),
		votes:     make([]uint64, c.N), merged: make([]uint64, c.N),
		promised: none, vb: none, best: none, yes: process.NewSet(c.N),
	}
}

// Acceptors returns the number of acceptors among n processes if f acceptors may crash.
func Acceptors(n, f int) int { return min(n, 2*min(f, n)+1) }

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Propose:
		m.vote(ev.Value == process.Commit, fx)
	case process.Fire:
		m.onTimer(ev.Timer, fx)
	case process.Restart:
		m.restart(fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	}
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	asks := msg.Type == vote || msg.Type == recovery || msg.Type == accept
	if asks && m.phase.decided() && msg.From != m.self && !(msg.Type == vote && msg.Value == process.Abort) {
		fx.Rule(ruleC10a)
		fx.Send(msg.From, process.Message{Type: decision, Value: m.outcome()})
		return
	}
	switch msg.Type {
	case prepare:
		m.onPrepare(fx)
	case vote:
		m.onVote(msg.From, msg.Value == process.Commit, fx)
	case recovery:
		m.onRecover(ballot{msg.Seq, msg.From}, fx)
	case accept:
		m.onAccept(ballot{msg.Seq, msg.From}, msg.Value, fx)
	case accepted:
		m.onAccepted(msg, fx)
	case report:
		m.onReport(msg, fx)
	case refuse:
		m.seen = max(m.seen, msg.Clock)
	case decision:
		m.onDecision(msg.Value, fx)
	}
}

// Fields names the state. The log consists of the phase, and what an acceptor has
// promised and accepted. A leader logs the number of its ballot, so that it never
// reuses one.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f.Durable(), "phase", &m.phase, phaseNames)
	f.Bool("voted", &m.voted)
	f.Bool("asked", &m.asked)
	f.Durable().Array("W", m.votes)
	f.Durable().Uint("promised", &m.promised.round)
	f.Durable().ID("promised by", &m.promised.by)
	f.Durable().Uint("vb", &m.vb.round)
	f.Durable().ID("vb by", &m.vb.by)
	f.Durable().Int("vd", &m.vd)
	f.Durable().Uint("seen", &m.seen)
	process.Enum(f, "stage", &m.stage, stageNames)
	f.Uint("b", &m.round)
	f.Set("yes", m.yes)
	f.Uint("best", &m.best.round)
	f.ID("best by", &m.best.by)
	f.Int("choice", &m.choice)
	f.Array("reported", m.merged)
}
