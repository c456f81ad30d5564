// Package threephase is atomic commitment in three phases: no process commits while
// another is uncertain, so the remaining processes can decide without the crashed ones.
//
// # Problem and idea
//
// In two-phase commit a participant that has voted yes and loses its coordinator cannot
// decide: the coordinator may have committed or aborted. Skeen adds a state between
// vote and commit. When all have voted yes the coordinator does not commit yet. It
// tells all participants that all voted yes (PRECOMMIT), and commits when all live ones
// know. So while a process is uncertain none has committed, and once one has committed
// none is uncertain. If the coordinator crashes, the next process asks the others for
// their states. If one of them knows that all voted yes, all may commit. If none does,
// none has committed, and all may abort.
//
// # Rules
//
//	Q1  the coordinator votes yes: PREPARE to all participants, set the vote timer.
//	    Q1a It votes no, or the process that leads in its place does: abort (Q3a).
//	Q2  a participant that has been asked and votes yes: log PREPARED, VOTE yes.
//	    Q2a It votes no: log ABORT, abort, and if it has been asked, send VOTE no.
//	    Q2b It votes yes and is not asked before the vote timer expires: abort.
//	Q3  all voted yes: log PRECOMMITTED, PRECOMMIT to all.
//	    Q3a A process voted no or has crashed, or the vote timer expires: log ABORT,
//	    abort, DECISION(abort) to all.
//	Q4  on PRECOMMIT of the leader: log PRECOMMITTED, ACK.
//	Q5  ACK from all that have not crashed: log COMMIT, commit, DECISION(commit) to all.
//	Q6  on DECISION: log it and carry it out. A leader sends it to all.
//	Q7  all processes before it in the order have crashed: lead, STATE-REQ to all.
//	    Q7a It has decided: DECISION to all.
//	    Q7b On STATE-REQ: obey the sender and no process before it in the order,
//	    answer STATE. Q7c Decided: answer it, and PRECOMMIT, with DECISION.
//	Q8  STATE from all that have not crashed: if one is PRECOMMITTED, become that too,
//	    and PRECOMMIT to all (Q5). Q8a If none is: abort, DECISION(abort) to all.
//	Q9  restart: COMMIT or ABORT is logged: carry it out. Q9a PREPARED or PRECOMMITTED:
//	    INQUIRY to all, repeatedly, and take part in nothing else. Q9b Nothing: abort.
//	Q10 on INQUIRY, decided: answer DECISION.
//
// The order begins with the coordinator and goes by rank from there.
//
// # Why it is safe
//
// A process commits only if all that have not crashed are PRECOMMITTED. Suppose that it
// crashes. The next leader learns of a PRECOMMITTED process, unless none is left, and
// commits. Suppose that a leader finds no PRECOMMITTED process, aborts and crashes. All
// have answered it and no longer listen to earlier leaders (Q7b), so no process becomes
// PRECOMMITTED later, and the next leader aborts as well. A process that restarts was
// left out of all this. It decides nothing; it asks.
//
// # Why it fails under a partition
//
// All of this assumes that a process reported as crashed has crashed. Suppose the
// network is partitioned while PRECOMMIT is in flight. The coordinator is told that the
// other side has crashed, and commits with its own side. The other side is told that
// the coordinator has crashed, finds no PRECOMMITTED process, and aborts. The checker
// finds this with a detector that is wrong once on each side:
//
//	conclave check three-phase-commit -n 2 --suspicions 2 --property atomicity
//
// # Cost
//
// N-1 each of PREPARE, VOTE, PRECOMMIT, ACK and DECISION, and 5 delays. Each participant
// logs three times, the coordinator twice.
//
// # Deviations
//
// Skeen elects the new coordinator. Here the detector names it, because all live
// processes eventually agree on which others are down. The simple form in many books,
// in which each participant decides by its own state when the coordinator is silent, is
// a broken variant: its participants disagree if the coordinator crashes between two
// messages. If all crash before one of them has decided, all wait after the restart: to
// decide then, a process must know which one crashed last.
//
// Sources: D. Skeen: Nonblocking commit protocols, 1981; P. Bernstein, V. Hadzilacos,
// N. Goodman: Concurrency Control and Recovery in Database Systems, 1987, chapter 7.5.
package threephase

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "three-phase-commit",
	Title:     "Three-phase commit",
	Paper:     "D. Skeen: Nonblocking commit protocols, Proceedings of the ACM SIGMOD International Conference on Management of Data, 1981, doi:10.1145/582318.582339",
	Documents: []string{"[D2]"},
	Family:    process.Transaction,
	Messages: []process.MessageSpec{
		{Name: "PREPARE"},
		{Name: "VOTE", Fields: []process.FieldUse{{Field: process.FieldValue, Symbol: "v", Names: process.VoteNames}}},
		{Name: "PRECOMMIT"},
		{Name: "ACK"},
		{Name: "DECISION", Fields: []process.FieldUse{{Field: process.FieldValue, Symbol: "d", Names: process.OutcomeNames}}},
		{Name: "STATE-REQ", Class: process.Recovery},
		{Name: "STATE", Class: process.Recovery, Fields: []process.FieldUse{{Field: process.FieldValue, Symbol: "s", Names: phaseNames}}},
		{Name: "INQUIRY", Class: process.Recovery},
	},
	Timers: []string{"vote", "retry"},
	Rules: []process.RuleSpec{
		{Name: "Q1", Text: "the coordinator votes yes: PREPARE to all"},
		{Name: "Q1a", Text: "the coordinator, or the process that leads in its place, votes no: abort, DECISION"},
		{Name: "Q2", Text: "asked, and the vote is yes: log PREPARED, VOTE yes"},
		{Name: "Q2a", Text: "the vote is no: log ABORT, abort, VOTE no"},
		{Name: "Q2b", Text: "not asked before the vote timer expires: abort"},
		{Name: "Q3", Text: "all voted yes: log PRECOMMITTED, PRECOMMIT"},
		{Name: "Q3a", Text: "a vote is no or missing: log ABORT, abort, DECISION"},
		{Name: "Q4", Text: "PRECOMMIT: log PRECOMMITTED, ACK"},
		{Name: "Q5", Text: "ACK from all live processes: log COMMIT, commit, DECISION"},
		{Name: "Q6", Text: "DECISION: log it and carry it out; a leader tells all"},
		{Name: "Q7", Text: "all processes before it have crashed: STATE-REQ to all"},
		{Name: "Q7a", Text: "all processes before it have crashed, and it has decided: DECISION to all"},
		{Name: "Q7b", Text: "STATE-REQ: obey no leader before the sender, answer STATE"},
		{Name: "Q7c", Text: "STATE-REQ or PRECOMMIT, decided: answer DECISION"},
		{Name: "Q8", Text: "a process is PRECOMMITTED: log PRECOMMITTED, PRECOMMIT to all"},
		{Name: "Q8a", Text: "no process is PRECOMMITTED: log ABORT, abort, DECISION"},
		{Name: "Q9", Text: "restart with a decision: carry it out"},
		{Name: "Q9a", Text: "restart after a vote of yes: INQUIRY to all, repeatedly"},
		{Name: "Q9b", Text: "restart without a vote: abort"},
		{Name: "Q10", Text: "INQUIRY after a decision: answer it"},
	},
	Options: []process.Option{
		{Name: "vote-time", Default: "4", Min: 1, Max: 1_000_000, Text: "time to wait for the votes, or for PREPARE, in D"},
		{Name: "retry-time", Default: "8", Min: 1, Max: 1_000_000, Text: "time after which a restarted process asks again, in D"},
	},
	Needs:     process.Needs{Reliable: true, Topology: process.Centre, Detector: process.ReliableDetector},
	Claims:    claims,
	Invariant: invariant,
	New:       Flaw{}.New,
}

const (
	calm = "all processes vote yes at the same moment; no process crashes and no message is lost"
	left = "at least one process never crashes"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.Atomicity},
		{Property: process.StableDecision},
		{Property: process.UnanimousCommit},
		{Property: process.NonTriviality},
		{Property: process.RepairTermination, When: left},
		{Property: process.NonBlocking, When: left},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerDecision, Regime: process.AllStart, When: calm, Exact: times},
		{Metric: process.MessageCount, Regime: process.AllStart, When: calm, Exact: times},
		{Metric: process.DecisionTime, Regime: process.AllStart, When: calm + ", N >= 2", Exact: process.Constant("5", 5)},
		{Metric: process.LogWrites, Regime: process.AllStart, When: calm, Exact: &process.Formula{
			Text: "3(N-1)+2", Eval: func(p process.Params) float64 { return float64(3*(p.N-1) + 2) }}},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a process that has answered a leader ignores earlier leaders"},
		{Fault: process.Duplication, How: "each process is counted once"},
		{Fault: process.CrashAny, When: left, How: "Q5, Q7 and Q8 leave out crashed processes"},
		{Fault: process.AmnesiaRestart, How: "a restarted process asks"},
		{Fault: process.Slowness, When: "the detector is right", How: "a late vote is a no"},
	},
}

var times = process.PerOther("5(N-1)", 5)

const (
	prepare process.Type = iota + 1
	vote
	precommit
	ack
	decision
	stateReq
	state
	inquiry
)

const (
	voteTimer process.Timer = iota + 1
	retryTimer
)

const (
	ruleQ1 process.Rule = iota + 1
	ruleQ1a
	ruleQ2
	ruleQ2a
	ruleQ2b
	ruleQ3
	ruleQ3a
	ruleQ4
	ruleQ5
	ruleQ6
	ruleQ7
	ruleQ7a
	ruleQ7b
	ruleQ7c
	ruleQ8
	ruleQ8a
	ruleQ9
	ruleQ9a
	ruleQ9b
	ruleQ10
)

type phase uint8

const (
	working  phase = iota
	voting         // the coordinator, after PREPARE
	prepared       // a participant, after VOTE yes
	precommitted
	committed
	aborted
)

var phaseNames = []string{"WORKING", "VOTING", "PREPARED", "PRECOMMITTED", "COMMITTED", "ABORTED"}

func (p phase) decided() bool { return p >= committed }

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	DecidesAlone  bool // Q7: a participant that loses its coordinator decides by its own state
	CommitsAtOnce bool // Q5: the coordinator commits when it sends PRECOMMIT
}

type machine struct {
	c           *process.Config
	self        process.ID
	coordinator process.ID
	flaw        Flaw
	voteTime    process.Duration
	retryTime   process.Duration

	phase phase // the durable value is the last one logged
	voted bool  // yes
	asked bool  // a participant has received PREPARE
	out   bool  // it has restarted undecided

	leader process.ID  // the leader that it obeys
	failed process.Set // crashed processes, which no longer take part
	// Of a leader: the processes that have answered its last question, whether that
	// question was for states, and whether one of them was PRECOMMITTED.
	answered process.Set
	states   bool
	found    bool
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{
		c: c, self: self, coordinator: c.Topology.Coordinator, leader: c.Topology.Coordinator, flaw: flaw,
		voteTime:  process.Duration(c.IntOption("vote-time", 4)) * c.D(),
		retryTime: process.Duration(c.IntOption("retry-time", 8)) * c.D(),
		failed:    process.NewSet(c.N), answered: process.NewSet(c.N),
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
	case process.Fail, process.Rejoin:
		m.onFailed(ev.Peer, fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	}
}

// onMessage ignores messages of a leader that has been replaced. A process that has
// restarted undecided ignores everything but a decision.
func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	from := msg.From
	obeyed := !m.out && m.place(from) >= m.place(m.leader)
	switch msg.Type {
	case prepare:
		m.onPrepare(obeyed, fx)
	case vote:
		m.onVote(from, msg.Value == process.Commit, fx)
	case precommit:
		m.onPrecommit(from, obeyed, fx)
	case stateReq:
		m.onStateReq(from, obeyed, fx)
	case ack, state:
		m.onAnswer(msg, fx)
	case decision:
		m.onDecision(msg.Value == process.Commit, fx)
	case inquiry:
		m.onInquiry(from, fx)
	}
}

// place is the position of a process in the order of leaders.
func (m *machine) place(p process.ID) int { return (int(p-m.coordinator) + m.c.N) % m.c.N }

// Fields names the state. The phase is the log.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f.Durable(), "phase", &m.phase, phaseNames)
	f.Bool("voted", &m.voted)
	f.Bool("asked", &m.asked)
	f.Bool("out", &m.out)
	f.ID("leader", &m.leader)
	f.Set("failed", m.failed)
	f.Set("answered", m.answered)
	f.Bool("states", &m.states)
	f.Bool("found", &m.found)
}

// invariant explains why the remaining processes can decide: a committed and an
// uncertain process never exist at the same time.
var invariant = &process.Invariant{
	Text:  "once a process has committed, all that have not crashed are PRECOMMITTED or have committed",
	Wrong: wrong,
}

func wrong(g *process.Global) string {
	for p := range process.ID(g.Config.N) {
		a := at(g, p)
		if a == nil || a.phase != committed {
			continue
		}
		for q := range process.ID(g.Config.N) {
			if b := at(g, q); b != nil && (b.phase < precommitted && !b.out || b.phase == aborted) {
				return fmt.Sprintf("%s has committed, and %s is %s", g.Config.Text(p), g.Config.Text(q), phaseNames[b.phase])
			}
		}
	}
	return ""
}

func at(g *process.Global, p process.ID) *machine {
	m, _ := g.Machines[p].(*machine)
	return m
}
