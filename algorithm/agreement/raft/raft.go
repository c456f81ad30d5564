// Package raft is consensus on a log: a leader appends, a majority stores, and all
// decide the entries in the same order.
//
// # Problem and idea
//
// A replicated service needs not one decision but a sequence of them, and every process
// must make the same ones in the same order. Raft lets one leader at a time decide what
// comes next. It keeps a log, sends each new entry to all others, and commits it when a
// majority has stored it. If the leader falls silent, another process becomes a
// candidate in a higher term and asks for votes. A process votes once in a term, and
// only for a candidate whose log is at least as new as its own. So a leader has
// everything that was committed before, and entries flow in one direction only, from
// the leader to the others.
//
// # Rules
//
//	R1  start: follow nobody yet, wait for a random time.
//	R2  nothing heard from a leader in that time: enter the next term as a candidate,
//	    vote for oneself, REQUESTVOTE(term, end of the log) to all.
//	R3  on REQUESTVOTE of one's own term, not yet voted for another in it, and the
//	    candidate's log ends in a higher term, or in the same one and is not shorter:
//	    vote for it. R3a else refuse.
//	R4  votes of a majority: lead. APPEND to all at once, and again after each
//	    heartbeat period.
//	R5  on APPEND(prev, entries, commit) from the leader, with the same entry at prev:
//	    drop what differs from the entries, append them, answer yes. Decide what is
//	    committed. R5a another entry at prev, or none: answer no.
//	R6  yes from a follower: note what it has. If a majority has an entry of the
//	    present term: commit up to it, decide, and tell all. R6a no: step back, send
//	    more.
//	R7  on a higher term in any message: enter it as a follower. R7a A message of a
//	    lower term is refused.
//	R8  propose v: keep v until it is decided. A leader appends it and sends it to all.
//	    R8a Others send it to the leader, when they know one and whenever they hear
//	    from it and the log has no entry of this term for v.
//
// Term, vote and log are saved before anything is sent that depends on them.
//
// # Why it is safe
//
// Two candidates cannot both have the votes of a majority in one term, so a term has one
// leader, and an entry is named by its term and position. By R5 two logs that agree on
// the name of an entry agree on all before it. Suppose a majority has stored an entry of
// term t when the leader of t commits it, and take the first leader of a later term
// without it. It got the vote of a process that had stored the entry before it voted.
// By R3 its log ended at least as new: in term t, then it is longer and has the entry;
// or in a term above t, then the leader of that term had the entry, and so has it. Both
// contradict. Only entries of the present term are counted (R6), since an older one
// that a majority has can still lose to a log that ends in a higher term; it is
// committed with the next one.
//
// # Cost
//
// A leader that proposes: APPEND and its answer, N-1 of each, and the same again to tell
// that it is committed: 4(N-1). It decides after two delays, the others after three.
// Without proposals 2(N-1) messages in a heartbeat period.
//
// # Assumptions and deviations
//
// Nothing but progress depends on time. Membership does not change, and the log is never
// cut short from the front. A proposal is known by its value: a leader appends a value
// that its log has in the present term, or has committed, no second time, and a process
// decides a value where it stands first. That is in place of the serial numbers of
// clients. A process that comes back decides its log again, from the beginning.
//
// Sources: D. Ongaro, J. Ousterhout: In search of an understandable consensus algorithm,
// 2014.
package raft

import "github.com/conclave-io/conclave/process"

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
		{Name: "R2", Text: "no leader is heard: REQUESTVOTE in the next term"},
		{Name: "R3", Text: "REQUESTVOTE of a log that is as new as one's own: vote for it"},
		{Name: "R3a", Text: "REQUESTVOTE otherwise: refuse"},
		{Name: "R4", Text: "a majority votes: lead"},
		{Name: "R5", Text: "APPEND that fits: store the entries"},
		{Name: "R5a", Text: "APPEND that does not fit: refuse"},
		{Name: "R6", Text: "a majority has an entry of this term: commit, decide"},
		{Name: "R6a", Text: "a follower lacks what is before: send more"},
		{Name: "R7", Text: "a higher term: follow"},
		{Name: "R7a", Text: "a lower term: refuse"},
		{Name: "R8", Text: "propose: append it, send it to all"},
		{Name: "R8a", Text: "propose: send it to the leader"},
	},
	Options: []process.Option{
		{Name: "election-time", Default: "12", Min: 1, Max: 1_000_000, Text: "how long, in D, a process waits for a leader at least; at most twice as long"},
		{Name: "heartbeat-time", Default: "4", Min: 1, Max: 1_000_000, Text: "the period of heartbeats, in D"},
	},
	Claims:    claims,
	Invariant: invariant,
	New:       func(self process.ID, c *process.Config) process.Machine { return Flaw{}.New(self, c) },
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
	votes   process.Set // for a candidate, its own included
	commit  uint64      // so many entries are decided; at most as long as the log
	pending []uint64    // values that this process has proposed and not yet decided

	// A leader's knowledge of each follower; 0 for others.
	next  []uint64 // the entry to send next, from 1
	match []uint64 // so many entries it has for certain; below next

	scratch []uint64 // the entries of a message
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

// Fields names the state. A process that forgot its vote could vote twice in a term;
// one that forgot its log could elect a leader without what it had stored.
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
