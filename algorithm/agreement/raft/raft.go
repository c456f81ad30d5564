// Package raft is consensus on a log: a leader appends, a majority stores, and all
// decide the entries in the same order.
//
// # Problem and idea
//
// A replicated service needs a sequence of decisions, and every process must make the
// same decisions in the same order. Raft lets one leader at a time decide what comes
// next. The leader keeps a log, sends each new entry to all others, and commits it when
// a majority has stored it. If the leader falls silent, another process becomes a
// candidate in a higher term and asks for votes. A process votes once in a term, and
// only for a candidate whose log is at least as new as its own. So a leader has every
// entry that was committed before, and entries flow only from the leader to the others.
//
// # Rules
//
//	R1  start: follow no leader yet, wait for a random time.
//	R2  no message from a leader in that time: enter the next term as a candidate,
//	    vote for itself, send REQUESTVOTE(term, end of the log) to all.
//	R3  on REQUESTVOTE of the same term: vote for the candidate if no vote was given
//	    to another in this term, and if its log ends in a higher term, or in the same
//	    term and is not shorter. R3a Otherwise refuse.
//	R4  votes of a majority: lead. APPEND to all at once, and again after each
//	    heartbeat period.
//	R5  on APPEND(prev, entries, commit) from the leader, with the same entry at prev:
//	    remove entries that differ from the new ones, append these, answer yes. Decide
//	    what is committed. R5a Another entry at prev, or none: answer no.
//	R6  yes from a follower: note which entries it has. If a majority has an entry of the
//	    present term: commit up to it, decide, and tell all. R6a On no: step back, send
//	    more.
//	R7  on a higher term in any message: enter it as a follower. R7a A message of a
//	    lower term is refused.
//	R8  propose v: keep v until it is decided. A leader appends it and sends it to all.
//	    R8a Others send it to the leader once they know one, and again whenever they
//	    hear from it while the log has no entry of this term for v.
//
// Term, vote and log are saved before any message that depends on them is sent.
//
// # Why it is safe
//
// Two candidates cannot both have the votes of a majority in one term. So a term has
// one leader, and an entry is identified by its term and position. By R5 two logs that
// have the same entry at a position agree on all entries before it. Suppose a majority
// has stored an entry of term t when the leader of t commits it, and take the first
// leader of a later term without it. It got the vote of a process that had stored the
// entry before it voted. By R3 the new leader's log ended at least as new. Either it
// ended in term t: then it is at least as long and has the entry. Or it ended in a term
// above t: then the leader of that term had the entry, and so does this one. Both
// contradict the assumption. R6 counts only entries of the present term, because an
// older entry that a majority has can still lose to a log that ends in a higher term.
// It is committed with the next entry.
//
// # Cost
//
// A leader that proposes: APPEND and its answer, N-1 of each, and the same again to
// announce the commit: 4(N-1). It decides after two delays, the others after three.
// Without proposals 2(N-1) messages in a heartbeat period.
//
// # Assumptions and deviations
//
// Only progress depends on time. Membership does not change, and old entries are never
// removed from the log. A proposal is identified by its value, which replaces the
// serial numbers of clients. A leader does not append a value again that its log has in
// the present term or has committed. A process decides a value where it first occurs. A
// process that restarts decides its log again, from the beginning.
//
// Sources: D. Ongaro, J. Ousterhout: In search of an understandable consensus algorithm,
// 2014.
package raft

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:   "raft",
	Title:  "Raft: consensus on a log",
	Paper:  "D. Ongaro, J. Ousterhout: In search of an understandable consensus algorithm, USENIX ATC 2014",
	Family: process.Agreement,
	Messages: []process.MessageSpec{
		{Name: "REQUESTVOTE", Fields: []process.FieldUse{term, {Field: process.FieldSeq, Symbol: "last"}, {Field: process.FieldClock, Symbol: "lastTerm"}}},
		{Name: "VOTE", Fields: []process.FieldUse{term, granted}},
		{Name: "APPEND", Fields: []process.FieldUse{
			term, {Field: process.FieldSeq, Symbol: "prev"}, {Field: process.FieldClock, Symbol: "prevTerm"},
			{Field: process.FieldVector, Symbol: "entries"}, {Field: process.FieldValue, Symbol: "commit"},
		}},
		{Name: "ANSWER", Fields: []process.FieldUse{term, {Field: process.FieldValue, Symbol: "ok", Names: noYes}, {Field: process.FieldSeq, Symbol: "has"}}},
		{Name: "PROPOSE", Fields: []process.FieldUse{{Field: process.FieldValue, Symbol: "v"}}},
	},
	Timers: []string{"election", "heartbeat"},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "start: wait for a leader"},
		{Name: "R2", Text: "no message from a leader: REQUESTVOTE in the next term"},
		{Name: "R3", Text: "REQUESTVOTE with a log at least as new as the receiver's: vote for it"},
		{Name: "R3a", Text: "REQUESTVOTE otherwise: refuse"},
		{Name: "R4", Text: "a majority votes: lead"},
		{Name: "R5", Text: "APPEND that fits: store the entries"},
		{Name: "R5a", Text: "APPEND that does not fit: refuse"},
		{Name: "R6", Text: "a majority has an entry of this term: commit, decide"},
		{Name: "R6a", Text: "a follower lacks earlier entries: send more"},
		{Name: "R7", Text: "a higher term: follow"},
		{Name: "R7a", Text: "a lower term: refuse"},
		{Name: "R8", Text: "propose: append it, send it to all"},
		{Name: "R8a", Text: "propose: send it to the leader"},
	},
	Options: []process.Option{
		{Name: "election-time", Default: "12", Min: 1, Max: 1_000_000, Text: "shortest wait for a leader, in D; the longest is twice that"},
		{Name: "heartbeat-time", Default: "4", Min: 1, Max: 1_000_000, Text: "the period of heartbeats, in D"},
	},
	Claims:    claims,
	Invariant: invariant,
	New:       Flaw{}.New,
}

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ValueAgreement},
		{Property: process.ValueValidity},
		{Property: process.Decision, When: "a majority is up, and eventually one of them leads for long enough"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerDecision, Regime: process.OneStarter, When: "the leader proposes; its heartbeats are not counted", Exact: process.PerOther("4(N-1)", 4)},
		{Metric: process.DecisionTime, Regime: process.OneStarter, When: "the leader proposes, N >= 2", Exact: process.Constant("3", 3)},
		{Metric: process.MessagesPerPeriod, Regime: process.Steady, When: "a heartbeat period is at least 2D", Exact: process.PerOther("2(N-1)", 2)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "an entry is named by its term and position"},
		{Fault: process.Loss, How: "heartbeats repeat missing entries, R8a repeats missing proposals"},
		{Fault: process.Duplication, How: "an entry that is stored is not stored again"},
		{Fault: process.CrashAny, When: "a majority stays up", How: "R3: a new leader has all committed entries"},
		{Fault: process.AmnesiaRestart, How: "term, vote and log are on disk"},
		{Fault: process.Slowness, When: "except decisions, which may wait forever", How: "only progress depends on time"},
	},
}

var (
	noYes   = []string{"no", "yes"}
	term    = process.FieldUse{Field: process.FieldTerm, Symbol: "term"}
	granted = process.FieldUse{Field: process.FieldValue, Symbol: "granted", Names: noYes}
)

const (
	askVote process.Type = iota + 1
	vote
	appendEntries
	answer
	propose
)

const (
	no  = 0
	yes = 1
)

const (
	electionTimer process.Timer = iota + 1
	heartbeatTimer
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR3
	ruleR3a
	ruleR4
	ruleR5
	ruleR5a
	ruleR6
	ruleR6a
	ruleR7
	ruleR7a
	ruleR8
	ruleR8a
)

type role uint8

const (
	follower role = iota
	candidate
	leading
)

var roleNames = []string{"FOLLOWER", "CANDIDATE", "LEADER"}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	VotesTwice      bool // R3: votes for every candidate of a term
	IgnoresLogs     bool // R3: votes without comparing logs
	CommitsOldTerms bool // R6: counts entries of earlier terms, too
}

type machine struct {
	c         *process.Config
	self      process.ID
	flaw      Flaw
	election  process.Duration
	heartbeat process.Duration

	// On disk.
	term     uint64
	votedFor process.ID // in this term, or None
	terms    []uint64   // of the log: the term of each entry
	values   []uint64   // of the log: the value of each entry, as int64

	role    role
	leader  process.ID  // of this term, or None
	votes   process.Set // a candidate's votes, its own included
	commit  uint64      // number of decided entries; at most the length of the log
	pending []uint64    // values that this process has proposed and not yet decided

	// A leader's knowledge of each follower; 0 for others.
	next  []uint64 // the entry to send next, from 1
	match []uint64 // number of entries that it certainly has; below next

	scratch []uint64 // the entries of a message
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{
		c: c, self: self, flaw: flaw,
		election:  process.Duration(c.IntOption("election-time", 12)) * c.D(),
		heartbeat: process.Duration(c.IntOption("heartbeat-time", 4)) * c.D(),
		votedFor:  process.None, leader: process.None, votes: process.NewSet(c.N),
		next: make([]uint64, c.N), match: make([]uint64, c.N),
	}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start, process.Restart:
		fx.Rule(ruleR1)
		m.wait(fx)
	case process.Propose:
		m.propose(uint64(ev.Value), fx)
	case process.Fire:
		m.onTimer(ev.Timer, fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	}
}

func (m *machine) onTimer(t process.Timer, fx *process.Effects) {
	if t == electionTimer {
		m.stand(fx)
		return
	}
	if m.role == leading {
		m.sendAll(fx)
	}
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	if msg.Type == propose {
		m.append(uint64(msg.Value), fx)
		return
	}
	if msg.Term.Round() > m.term {
		fx.Rule(ruleR7)
		m.enter(msg.Term.Round(), fx)
	}
	switch msg.Type {
	case askVote:
		m.onAskVote(msg, fx)
	case vote:
		m.onVote(msg, fx)
	case appendEntries:
		m.onAppend(msg, fx)
	case answer:
		m.onAnswer(msg, fx)
	}
}

// Fields names the state. A process that forgot its vote could vote twice in a term. A
// process that forgot its log could elect a leader without entries that it had stored.
func (m *machine) Fields(f *process.Fields) {
	f.Durable().Uint("term", &m.term)
	f.Durable().ID("voted for", &m.votedFor)
	f.Durable().Uints("log terms", &m.terms)
	f.Durable().Uints("log", &m.values)
	process.Enum(f, "role", &m.role, roleNames)
	f.ID("leader", &m.leader)
	f.Set("votes", m.votes)
	f.Uint("commit", &m.commit)
	f.Uints("pending", &m.pending)
	f.Array("next", m.next)
	f.Array("match", m.match)
}

// invariant is three of the five promises of the paper: election safety, log matching
// and leader completeness. State machine safety is what clients see as agreement.
var invariant = &process.Invariant{
	Text:  "a term has one leader; logs that share an entry share all entries before it; a leader has all committed entries",
	Wrong: wrong,
}

func wrong(g *process.Global) string {
	for p := range process.ID(g.Config.N) {
		for q := range process.ID(g.Config.N) {
			a, b := at(g, p), at(g, q)
			if p == q || a == nil || b == nil {
				continue
			}
			text := lacks(a, b)
			if text == "" && p < q {
				text = disagree(a, b)
			}
			if text != "" {
				return fmt.Sprintf(text, g.Config.Text(p), g.Config.Text(q))
			}
		}
	}
	return ""
}

func at(g *process.Global, p process.ID) *machine {
	m, _ := g.Machines[p].(*machine)
	return m
}

// disagree reports a difference between two processes, with placeholders for their
// labels.
func disagree(a, b *machine) string {
	if a.role == leading && b.role == leading && a.term == b.term {
		return fmt.Sprintf("%%s and %%s lead in term %d", a.term)
	}
	same := true
	for i := range min(len(a.terms), len(b.terms)) {
		equal := a.terms[i] == b.terms[i] && a.values[i] == b.values[i]
		if a.terms[i] == b.terms[i] && !(equal && same) {
			return fmt.Sprintf("%%s and %%s have an entry of term %d at position %d, and differ there or before", a.terms[i], i+1)
		}
		same = same && equal
	}
	return ""
}

// lacks reports what a leader lacks that another process has committed.
func lacks(a, b *machine) string {
	if a.role == leading && a.term >= b.term {
		for i := range b.commit {
			if i >= a.last() || a.terms[i] != b.terms[i] {
				return fmt.Sprintf("%%s leads without the entry at position %d that %%s has committed", i+1)
			}
		}
	}
	return ""
}
