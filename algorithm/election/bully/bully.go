// Package bully is Garcia-Molina's election of the live process with the highest label.
//
// # Problem and idea
//
// The leader has crashed and exactly one of the others must replace it. Every process
// knows all others, and the highest label shall win. A process that notices the crash
// asks all processes above it whether they are up. If none answers in time, it has won
// and announces that. If one answers, that process asks in turn, and so on up to the
// highest live process. Elections are numbered by rounds, and a leadership is
// identified by its term, (round, leader). So late messages of an old election cannot
// overwrite the result of a newer one.
//
// # Rules
//
//	B1  start: take the next round, send ELECTION to all processes above and wait T
//	    for an answer. If there are none: B5.
//	B2  on ELECTION from below: answer OK, and start an election unless one is in
//	    progress. B2a: if this process leads, in that round or a later one, answer
//	    COORDINATOR instead and start nothing.
//	B3  on OK: a process above is up; wait T' for its announcement.
//	B4  T is over: no process above is up, B5. B4a: T' is over: the process that
//	    sent OK has crashed; start again.
//	B5  win: lead in this round, send COORDINATOR to all below (or to all others).
//	B6  on COORDINATOR from above: it leads. B6a: if a later term is on record,
//	    ignore it, but tell the sender the round; the sender then starts again (B8c).
//	B7  on COORDINATOR from below: its sender won without hearing this process. Do
//	    not accept it, start an election.
//	B8  restart: send HELLO to all; each receiver answers WELCOME(round) (B8a).
//	    When all have answered, or after T, start (B8b). If this process has the
//	    highest label, it announces itself at once.
//	B9  the leader has failed or is suspected: start, a little later, unless another
//	    process has. B9a: a process above the leader is trusted again: the leader
//	    starts an election, which that process will win.
//
// # Why it is safe
//
// Two leaders never share a term, because a term names its leader. The round is
// durable, so no process leads twice in one. While messages take at most D, every live
// process above answers within T = 2D plus processing, so only the highest live process
// gets past T. Its announcement reaches all processes below before T' = T+2D is over.
// T' counts from an OK, and no OK is sent before the winner of the election has begun.
//
// # Cost
//
// N processes, the highest is down and does not answer, and the starter is the r-th
// from below. The cost is (N-r)(N-r+1)/2 ELECTION, (N-r)(N-r-1)/2 OK and N-2
// COORDINATOR, which is (N-r)^2+N-2 in all: N-1 at best and N^2-N-1 at worst, also when
// all start at once. A restarted process with the highest label announces itself with
// N-1. The time is T+D in the best case, otherwise T+2D.
//
// # Deviations
//
// The documents give N-2 as the best case ([D1] and [D2]), which leaves out the
// ELECTION to the crashed leader; it is exact if a reliable detector below has reported
// the crash. Rounds, and HELLO for the round, are additions; without them a restarted
// process does not know which round is current. [D0] and [D3] have no T', so a process
// that crashes after its OK blocks the starter forever. Two rules are misprinted. In
// [D4] the process that started an election must be the lower one. In [D3] the process
// that leaves the contest is the asking one, not the answering one. [D1] accepts an
// announcement from below; B7 is that of [D4].
//
// Not survived: if delays exceed D, a process that answers too late is passed over, and
// there are two leaders, of different terms, until B6a, B7 or B9a resolves the
// conflict. What a leader does must be ordered by its term. Lost messages have the same
// effect. Each restart costs an election.
//
// Sources: H. Garcia-Molina: Elections in a distributed computing system, 1982; all
// five lecture documents.
package bully

import (
	"github.com/conclave-io/conclave/algorithm/election/ring"
	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "bully",
	Title:     "Bully election",
	Paper:     "H. Garcia-Molina: Elections in a distributed computing system, 1982, doi:10.1109/TC.1982.1675885",
	Documents: []string{"[D0]", "[D1]", "[D2]", "[D3]", "[D4]"},
	Family:    process.Election,
	Messages: []process.MessageSpec{
		{Name: "ELECTION", Fields: round},
		{Name: "OK", Fields: round},
		{Name: "COORDINATOR", Fields: round},
		{Name: "HELLO", Class: process.Recovery},
		{Name: "WELCOME", Class: process.Recovery, Fields: round},
	},
	Timers: []string{"answer", "victory", "hello", "start"},
	Rules: []process.RuleSpec{
		{Name: "B1", Text: "start: send ELECTION to all above, wait T"},
		{Name: "B2", Text: "ELECTION from below: OK, and start unless an election is in progress"},
		{Name: "B2a", Text: "ELECTION to the leader: COORDINATOR again"},
		{Name: "B3", Text: "OK: wait T' for the winner"},
		{Name: "B4", Text: "T is over: no process above is up"},
		{Name: "B4a", Text: "T' is over: start again"},
		{Name: "B5", Text: "win: COORDINATOR"},
		{Name: "B6", Text: "COORDINATOR from above: it leads"},
		{Name: "B6a", Text: "COORDINATOR of an old term: ignore it, tell its sender the round"},
		{Name: "B7", Text: "COORDINATOR from below: refuse it, start"},
		{Name: "B8", Text: "restart: HELLO to all"},
		{Name: "B8a", Text: "HELLO: WELCOME with the round"},
		{Name: "B8b", Text: "the round is known: start"},
		{Name: "B8c", Text: "the leader learns that its term is old: start"},
		{Name: "B9", Text: "the leader has failed: start, a little later"},
		{Name: "B9a", Text: "a process above the leader is up after all: start"},
	},
	Options: []process.Option{
		{Name: "announce", Default: lower, Values: []string{lower, all}, Text: "which processes the winner tells: those below, or all"},
		{Name: "skip-failed", Default: yes, Values: []string{yes, no}, Text: "whether to send nothing to processes that a reliable detector declared failed"},
		{Name: "answer-time", Default: "3", Min: 1, Max: 1_000_000, Text: "T, in D; with less than 2 plus the processing time there may be several leaders"},
		{Name: "stagger", Default: "0", Min: 0, Max: 1_000_000, Text: "largest random delay of B9, in D, so that not all processes start at once"},
	},
	Needs:  process.Needs{Reliable: true, Synchrony: true},
	Claims: claims,
	New:    Flaw{}.New,
}

const (
	silentHighest = "the highest of the N labels is down and not known to have failed; announce=lower; one message more with announce=all"
	unitDelays    = "every message takes D, T = 3D, the highest is down, N >= 3"
)

var claims = process.Claims{
	Properties: process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence),
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: silentHighest, Exact: fromRank,
			Said: []process.Figure{
				{Document: "[D1]", Text: "N-2 at best", Wrong: "leaves out the ELECTION to the crashed leader"},
				{Document: "[D2]", Text: "N-2 at best", Wrong: "leaves out the ELECTION to the crashed leader"}}},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: silentHighest, Exact: everyone},
		{Metric: process.MessagesPerElection, Regime: process.Worst, When: silentHighest, Exact: everyone,
			Said: []process.Figure{{Document: "[D1]", Text: "O(N^2)"}, {Document: "[D2]", Text: "O(N^2)"}, {Document: "[D3]", Text: "O(N^2)"}}},
		{Metric: process.MessagesPerElection, Regime: process.Idle,
			When:  "the process with the highest label restarts, all others are up; HELLO and WELCOME count as recovery",
			Exact: process.PerOther("N-1", 1)},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: unitDelays, Exact: timeFromRank},
		{Metric: process.ElectionTime, Regime: process.AllStart, When: unitDelays, Exact: &process.Formula{
			Text: "T+D = 4", Eval: timeOfBest}},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "rounds"},
		{Fault: process.Duplication, How: "rounds; a duplicate costs at worst another election"},
		{Fault: process.CrashAny, How: "T and T'; after the election, a detector below or a call for a new election"},
		{Fault: process.AmnesiaRestart, How: "B8, and the round on disk"},
	},
	Worst: lowestStarts,
}

func lowestStarts(int) process.Arrangement { return process.Arrangement{Starters: []int{0}} }

// fromRank: N-r processes, from the starter up, ask all above them. Each pair of live
// ones exchanges one answer, and the winner tells the other N-2.
var fromRank = &process.Formula{Text: "(N-r)^2+N-2", Eval: func(p process.Params) float64 {
	asking := p.N - p.Rank
	return float64(asking*asking + p.N - 2)
}}

var everyone = process.OfN("N^2-N-1", func(n float64) float64 { return n*n - n - 1 })

var timeFromRank = &process.Formula{Text: "T+2D = 5; T+D = 4 if r = N-1", Eval: func(p process.Params) float64 {
	if p.Rank == p.N-1 {
		return timeOfBest(p)
	}
	return 5
}}

// timeOfBest: with two processes, the one that is up has no process to tell.
func timeOfBest(p process.Params) float64 {
	if p.N == 2 {
		return 3
	}
	return 4
}

var round = []process.FieldUse{{Field: process.FieldTerm, Symbol: "round"}}

// The values of the options.
const (
	lower = "lower"
	all   = "all"
	yes   = "yes"
	no    = "no"
)

const (
	election process.Type = iota + 1
	ok
	coordinator
	hello
	welcome
)

const (
	answerTimer  process.Timer = iota + 1 // T
	victoryTimer                          // T'
	helloTimer
	startTimer
)

const (
	ruleB1 process.Rule = iota + 1
	ruleB2
	ruleB2a
	ruleB3
	ruleB4
	ruleB4a
	ruleB5
	ruleB6
	ruleB6a
	ruleB7
	ruleB8
	ruleB8a
	ruleB8b
	ruleB8c
	ruleB9
	ruleB9a
)

type phase uint8

const (
	idle phase = iota
	waitOK
	waitCoordinator
	greeting
)

var phaseNames = []string{"IDLE", "WAIT_OK", "WAIT_COORD", "GREETING"}

// phaseTimers are the timers of the phases.
var phaseTimers = [...]process.Timer{waitOK: answerTimer, waitCoordinator: victoryTimer, greeting: helloTimer}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	WaitsForEver bool // B4a is missing: a process that got OK waits for the winner without a timer

	ByLoad bool // not a flaw: the least load leads
}

type machine struct {
	c          *process.Config
	self       process.ID
	flaw       Flaw
	byLoad     bool // the least load leads; labels only break ties
	toAll      bool
	skipFailed bool
	answerTime process.Duration // T
	stagger    process.Duration

	phase    phase
	round    uint64       // the highest seen; rises before any message of a new one is sent
	own      uint64       // the round of the election that this process runs; at most round
	leader   process.ID   // the leader on record, or None
	elected  process.Term // its term, or 0; of a round that is at most round
	awaiting []process.ID // those that have not answered HELLO; empty unless greeting
	failed   []process.ID // those known to have crashed
	load     ring.Load
}

// New makes a machine with the flaw that elects by label or by load. By load no process
// knows in advance which others are above it, so it asks all. ELECTION and COORDINATOR
// must then be declared to carry the load of their sender as a value.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{
		c: c, self: self, flaw: flaw, byLoad: flaw.ByLoad, leader: process.None,
		toAll:      flaw.ByLoad || c.Option("announce", lower) == all,
		skipFailed: c.Option("skip-failed", yes) == yes,
		answerTime: process.Duration(c.IntOption("answer-time", 3)) * c.D(),
		stagger:    process.Duration(c.IntOption("stagger", 0)) * c.D(),
	}
}

// Step dispatches the event to the handler of its rule. A round that was seen is saved
// before any message of it or of a later round is sent.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	before := m.round
	switch ev.Kind {
	case process.Restart:
		m.onRestart(fx)
	case process.Campaign:
		m.start(fx)
	case process.Load:
		m.load.Report(ev.Value)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	case process.Fire:
		m.onTimer(ev.Timer, fx)
	case process.Fail:
		m.onFail(ev.Peer, fx)
	case process.Suspect:
		m.onGone(ev.Peer, fx)
	case process.Trust:
		m.onTrust(ev.Peer, fx)
	case process.Rejoin:
		m.forgive(ev.Peer)
	}
	if m.round != before {
		fx.Save()
	}
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	m.round = max(m.round, msg.Term.Round())
	switch msg.Type {
	case election:
		m.onElection(msg, fx)
	case ok:
		m.onOK(msg.Term, fx)
	case coordinator:
		m.onCoordinator(msg, fx)
	case hello:
		m.onHello(msg.From, fx)
	case welcome:
		m.onWelcome(msg.From, msg.Term, fx)
	}
}

func (m *machine) onTimer(t process.Timer, fx *process.Effects) {
	switch t {
	case answerTimer:
		fx.Rule(ruleB4)
		m.win(fx)
	case victoryTimer:
		fx.Rule(ruleB4a)
		m.phase = idle
		m.start(fx)
	case helloTimer:
		m.greeted(fx)
	case startTimer:
		m.start(fx)
	}
}

// Fields names the state. Only the round must survive a crash: a process that forgot it
// could lead twice in one term.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "phase", &m.phase, phaseNames)
	f.Durable().Seq("round", &m.round)
	f.Uint("own", &m.own)
	f.ID("leader", &m.leader)
	f.Term("elected", &m.elected)
	f.IDs("awaiting", &m.awaiting)
	f.IDs("failed", &m.failed)
	m.load.Fields(f)
}
