// Package twophase is atomic commitment in two phases: a coordinator asks all for their
// votes, logs the decision and announces it.
//
// # Problem and idea
//
// A transaction has done work at several processes. Either all of them make it
// permanent (commit), or all undo it (abort), although messages are lost and processes
// crash and restart with their logs. Each process votes: no means that it cannot
// commit; yes means that it can, whatever happens to it afterwards. If all vote yes the
// coordinator decides to commit, otherwise to abort. A process that votes yes gives up
// its right to abort alone: until it learns the decision it is uncertain, and has to
// keep its locks.
//
// # Rules
//
//	T1  the coordinator votes yes: PREPARE to all participants, set the vote timer.
//	    T1a It votes no: it decides to abort (T3a).
//	T2  a participant that has been asked and votes yes: log PREPARED, VOTE yes.
//	    T2a It votes no: log ABORT, abort, and if it has been asked, send VOTE no.
//	    T2b It votes yes and has not been asked: wait; after the vote timer, abort.
//	T3  all voted yes: log COMMIT, commit, DECISION(commit) to all.
//	    T3a A process voted no, or the vote timer expires: abort, DECISION(abort) to all
//	    that did not vote no.
//	T4  on DECISION: log it, carry it out, ACK. T4a Again: ACK again.
//	T5  all have sent ACK: log END, forget. T5a After the retry timer: DECISION again to
//	    all that have not.
//	T6  PREPARED and the retry timer expires: INQUIRY to all.
//	    T6a On INQUIRY, decided: answer DECISION.
//	    T6b A participant that has not voted yes: abort, answer DECISION(abort).
//	    T6c The coordinator has forgotten the transaction: answer DECISION(abort).
//	T7  restart: COMMIT or ABORT is logged: carry it out; the coordinator continues with T5a.
//	    T7a PREPARED: T6 at once. T7b Nothing: abort.
//
// In mode presumed-abort the coordinator logs no ABORT and no process sends ACK for an
// abort: a transaction that the coordinator does not know was aborted. In mode
// presumed-nothing it logs BEGIN before it asks, logs ABORT, and waits for ACK of every
// decision.
//
// # Why it is safe
//
// Only the coordinator decides to commit, once, when all have logged PREPARED. From
// then on no process aborts: a PREPARED process does what it is told, and the
// coordinator finds COMMIT in its log. T6c answers abort only if COMMIT was never
// logged, or if all have sent ACK; then all that might ask have logged COMMIT and no
// longer listen. Everything is logged before it is sent or carried out. Otherwise a
// participant could vote yes, forget it in a crash, and abort (T7b) what the others
// commit.
//
// # Why it blocks
//
// Suppose that the coordinator crashes after the votes and before it tells any process.
// All others are PREPARED. The coordinator may have decided to commit, and done so, or
// to abort: they cannot know, so they must wait until it is back. T6 ends the wait only
// if a process knows the decision or has not voted. The checker finds the blocked
// participants as a loop:
//
//	conclave check two-phase-commit -n 3 --crashes 1 --liveness --property non-blocking
//
// Add --trace svg for a picture of it.
//
// # Cost
//
// N-1 each of PREPARE, VOTE, DECISION and ACK: 3(N-1) until all have decided, after 3
// delays, and 4(N-1) until the coordinator forgets. Each participant writes its log
// twice before it sends: PREPARED and COMMIT. The coordinator does so once, COMMIT, and
// later writes END, which no process waits for. Mode presumed-nothing adds BEGIN.
//
// # Deviations
//
// The coordinator votes as well, without messages, so N processes are a coordinator and
// the n = N-1 participants of the books. There is one transaction: its number, which
// separates it from messages of others, is the instance. After END the coordinator
// keeps the outcome for its own application, and answers others as if it had forgotten.
//
// Sources: J. Gray: Notes on data base operating systems, 1978; C. Mohan, B. Lindsay,
// R. Obermarck: Transaction management in the R* distributed database management system,
// 1986 (presumed abort); P. Bernstein, V. Hadzilacos, N. Goodman: Concurrency Control and
// Recovery in Database Systems, 1987, chapter 7 (AC1 to AC5, cooperative termination).
package twophase

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "two-phase-commit",
	Title:     "Two-phase commit with presumed abort",
	Paper:     "C. Mohan, B. Lindsay, R. Obermarck: Transaction management in the R* distributed database management system, ACM Transactions on Database Systems 11(4), 1986, doi:10.1145/7239.7266",
	Documents: []string{"[D2]"},
	Family:    process.Transaction,
	Messages: []process.MessageSpec{
		{Name: "PREPARE"},
		{Name: "VOTE", Fields: []process.FieldUse{{Field: process.FieldValue, Symbol: "v", Names: process.VoteNames}}},
		{Name: "DECISION", Fields: []process.FieldUse{{Field: process.FieldValue, Symbol: "d", Names: process.OutcomeNames}}},
		{Name: "ACK", Class: process.Acknowledgement},
		{Name: "INQUIRY", Class: process.Recovery},
	},
	Timers: []string{"vote", "retry"},
	Rules: []process.RuleSpec{
		{Name: "T1", Text: "the coordinator votes yes: PREPARE to all"},
		{Name: "T1a", Text: "the coordinator votes no: abort"},
		{Name: "T2", Text: "asked, and the vote is yes: log PREPARED, VOTE yes"},
		{Name: "T2a", Text: "the vote is no: log ABORT, abort, VOTE no"},
		{Name: "T2b", Text: "not asked before the vote timer expires: abort"},
		{Name: "T3", Text: "all voted yes: log COMMIT, commit, DECISION"},
		{Name: "T3a", Text: "a vote is no or missing: abort, DECISION"},
		{Name: "T4", Text: "DECISION: log it, carry it out, ACK"},
		{Name: "T4a", Text: "DECISION again: ACK again"},
		{Name: "T5", Text: "ACK from all: log END, forget"},
		{Name: "T5a", Text: "ACK is missing: DECISION again"},
		{Name: "T6", Text: "PREPARED for long: INQUIRY to all"},
		{Name: "T6a", Text: "INQUIRY after a decision: answer it"},
		{Name: "T6b", Text: "INQUIRY before a vote of yes: abort and answer that"},
		{Name: "T6c", Text: "INQUIRY about a forgotten transaction: presume an abort"},
		{Name: "T7", Text: "restart with a decision: carry it out, and announce it again if ACKs are missing"},
		{Name: "T7a", Text: "restart PREPARED: INQUIRY to all"},
		{Name: "T7b", Text: "restart without PREPARED or a decision: abort"},
	},
	Options: []process.Option{
		{Name: "mode", Default: presumedAbort, Values: []string{presumedAbort, presumedNothing}, Text: "presumed-abort: aborts are neither logged by the coordinator nor acknowledged"},
		{Name: "vote-time", Default: "4", Min: 1, Max: 1_000_000, Text: "time to wait for the votes, or for PREPARE, in D"},
		{Name: "retry-time", Default: "8", Min: 1, Max: 1_000_000, Text: "time to wait for ACK, or for the decision, before asking again, in D"},
	},
	Needs:     process.Needs{Topology: process.Centre},
	Claims:    claims,
	Invariant: invariant,
	New:       Flaw{}.New,
}

const calm = "all processes vote yes at the same moment; no process crashes and no message is lost"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.Atomicity},
		{Property: process.StableDecision},
		{Property: process.UnanimousCommit},
		{Property: process.NonTriviality},
		{Property: process.RepairTermination},
		{Property: process.NonBlocking, Fails: true, When: "a PREPARED process waits until a process that knows the decision is back"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerDecision, Regime: process.AllStart, When: calm + "; without ACK", Exact: process.PerOther("3(N-1)", 3)},
		{Metric: process.MessageCount, Regime: process.AllStart, When: calm + "; with ACK", Exact: process.PerOther("4(N-1)", 4)},
		{Metric: process.DecisionTime, Regime: process.AllStart, When: calm + ", N >= 2", Exact: process.Constant("3", 3)},
		{Metric: process.LogWrites, Regime: process.AllStart, Mode: presumedAbort, When: calm, Exact: writes("2(N-1)+2", 2)},
		{Metric: process.LogWrites, Regime: process.AllStart, Mode: presumedNothing, When: calm, Exact: writes("2(N-1)+3", 3)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a process that has decided ignores other messages"},
		{Fault: process.Loss, How: "T3a, T5a and T6"},
		{Fault: process.Duplication, How: "votes and ACKs are counted once for each process"},
		{Fault: process.CrashAny, How: "votes and decisions are in the log; others may have to wait for the restart"},
		{Fault: process.AmnesiaRestart, How: "T7"},
		{Fault: process.Slowness, How: "a late vote is a no"},
	},
}

// writes is 2 for each participant and the given number for the coordinator.
func writes(text string, own int) *process.Formula {
	return &process.Formula{Text: text, Eval: func(p process.Params) float64 { return float64(2*(p.N-1) + own) }}
}

// The values of the mode option.
const (
	presumedAbort   = "presumed-abort"
	presumedNothing = "presumed-nothing"
)

const (
	prepare process.Type = iota + 1
	vote
	decision
	ack
	inquiry
)

const (
	voteTimer process.Timer = iota + 1
	retryTimer
)

const (
	ruleT1 process.Rule = iota + 1
	ruleT1a
	ruleT2
	ruleT2a
	ruleT2b
	ruleT3
	ruleT3a
	ruleT4
	ruleT4a
	ruleT5
	ruleT5a
	ruleT6
	ruleT6a
	ruleT6b
	ruleT6c
	ruleT7
	ruleT7a
	ruleT7b
)

type phase uint8

const (
	working  phase = iota
	voting         // the coordinator, after PREPARE
	prepared       // a participant, after VOTE yes
	committed
	aborted
)

var phaseNames = []string{"WORKING", "VOTING", "PREPARED", "COMMITTED", "ABORTED"}

func (p phase) decided() bool { return p >= committed }

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	VotesUnlogged  bool // T2: VOTE yes is sent, and PREPARED is not logged
	AbortsAlone    bool // T6: a process that is PREPARED for long aborts
	CommitUnlogged bool // T3: DECISION(commit) is sent, and COMMIT is not logged
}

type machine struct {
	c           *process.Config
	self        process.ID
	coordinator process.ID
	flaw        Flaw
	nothing     bool // presumed
	voteTime    process.Duration
	retryTime   process.Duration

	phase phase // the durable value is the last one logged
	ended bool  // the coordinator has logged END or needs none

	voted bool // yes
	asked bool // a participant has received PREPARE

	// Of the coordinator: the participants that have voted, and those that have
	// sent ACK.
	yes, no, acked process.Set
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{
		c: c, self: self, coordinator: c.Topology.Coordinator, flaw: flaw,
		nothing:   c.Option("mode", presumedAbort) == presumedNothing,
		voteTime:  process.Duration(c.IntOption("vote-time", 4)) * c.D(),
		retryTime: process.Duration(c.IntOption("retry-time", 8)) * c.D(),
		yes:       process.NewSet(c.N), no: process.NewSet(c.N), acked: process.NewSet(c.N),
	}
}

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
	switch msg.Type {
	case prepare:
		m.onPrepare(fx)
	case vote:
		m.onVote(msg.From, msg.Value == process.Commit, fx)
	case decision:
		m.onDecision(msg.From, msg.Value == process.Commit, fx)
	case ack:
		m.onAck(msg.From, fx)
	case inquiry:
		m.onInquiry(msg.From, fx)
	}
}

// Fields names the state. The phase and the end are the log.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f.Durable(), "phase", &m.phase, phaseNames)
	f.Durable().Bool("ended", &m.ended)
	f.Bool("voted", &m.voted)
	f.Bool("asked", &m.asked)
	f.Set("yes", m.yes)
	f.Set("no", m.no)
	f.Set("acked", m.acked)
}

// invariant is atomicity over all machines and messages. A process that has committed
// may still be told to abort, by a coordinator that has forgotten the transaction; it
// ignores that.
var invariant = &process.Invariant{
	Text:  "if a process has committed or is told to, no other process has aborted or might abort",
	Wrong: wrong,
}

func wrong(g *process.Global) string {
	commits := process.None // a process that has committed, or is told to
	for _, msg := range g.Messages {
		if msg.Type == decision && msg.Value == process.Commit {
			commits = msg.To
		}
	}
	for p := range process.ID(g.Config.N) {
		if m := at(g, p); m != nil && m.phase == committed {
			commits = p
		}
	}
	if commits == process.None {
		return ""
	}
	for p := range process.ID(g.Config.N) {
		if m := at(g, p); m != nil && m.phase != committed && m.phase != prepared {
			return fmt.Sprintf("%s commits, and %s is %s", g.Config.Text(commits), g.Config.Text(p), phaseNames[m.phase])
		}
	}
	for _, msg := range g.Messages {
		if m := at(g, msg.To); msg.Type == decision && msg.Value == process.Abort && m != nil && m.phase == prepared {
			return fmt.Sprintf("%s commits, and %s is told to abort", g.Config.Text(commits), g.Config.Text(msg.To))
		}
	}
	return ""
}

func at(g *process.Global, p process.ID) *machine {
	m, _ := g.Machines[p].(*machine)
	return m
}
