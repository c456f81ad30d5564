// Package paxos is consensus by numbered ballots: a leader asks a majority twice, and
// two leaders at once do no harm.
//
// # Problem and idea
//
// Every process proposes a value. All must decide the same one, although messages may
// take any time and a minority may crash. One process, the leader, proposes its value,
// and a majority accepts it. But a slow leader looks like a crashed one, so there may
// be two leaders. Therefore each attempt of a leader is a ballot with a number, and it
// has two phases. First the leader asks a majority to promise to accept nothing in a
// lower ballot; each process that promises reports what it has accepted last. Then the
// leader asks a majority to accept a value. That is the value of the highest ballot
// reported, or the leader's own if none was reported. So if a majority has accepted a
// value, every later ballot learns it and proposes the same.
//
// # Rules
//
//	P1  propose v: keep v as this process's value.
//	    P1a If another process leads, send it PROPOSE(v).
//	    P1b If no leader is known, ask for an election.
//	P2  lead, with a value and undecided: take the number b above all numbers seen,
//	    promise b, send PREPARE(b) to all.
//	P3  on PREPARE(b) above the promise: promise b, answer PROMISE(b, vb, v) with the
//	    last acceptance. P3a Otherwise answer NACK with the promise.
//	P4  PROMISE(b) from a majority: take the value of the highest vb reported, or the
//	    leader's own if there is none; accept it, send ACCEPT(b, v) to all.
//	P5  on ACCEPT(b, v) not below the promise: promise and accept, answer ACCEPTED(b).
//	    P5a Otherwise answer NACK with the promise.
//	P6  ACCEPTED(b) from a majority: decide v, send DECIDE(v) to all.
//	P7  on DECIDE(v): decide v. P7a A process that has decided answers every PROPOSE,
//	    PREPARE and ACCEPT with DECIDE.
//	P8  all have answered and there was no majority: P2 with a higher number.
//	P9  undecided for a long time: a leader applies P2. P9a Any other process sends
//	    PROPOSE to the leader again and asks for an election.
//
// Promises and acceptances are saved before they are sent. In paxos-proposers there is
// no election: every process that proposes leads (P2 follows P1).
//
// # Why it is safe
//
// Suppose that a majority has accepted v in ballot b. Take the next higher ballot in
// which a value is proposed. A majority promised it, and this majority has a member in
// common with the first. That member accepted v in b before it promised the higher
// ballot, since afterwards it would have refused. So it reported v with b, which is the
// highest acceptance that any process could report, and v is proposed again. By
// induction no majority ever accepts another value. The argument uses neither time nor
// a single leader: the election is for progress only.
//
// # Why it may never end
//
// Two leaders that each begin a higher ballot before the other gets its acceptances can
// continue like this forever. Fischer, Lynch and Paterson proved that every
// deterministic consensus in an asynchronous system has such a schedule if one process
// may crash. The model checker finds one as a loop:
//
//	conclave check paxos-proposers -n 3 --requesters 1,2 --liveness --states 60000
//
// Add --trace svg for a picture of it.
//
// # Cost
//
// A known leader that proposes: PREPARE, PROMISE, ACCEPT, ACCEPTED and DECIDE, N-1 of
// each. It decides after 4 delays, the others after 5. If all propose, each of the
// others also sends PROPOSE: 6(N-1).
//
// # Deviations
//
// Lamport separates proposers, acceptors and learners; here every process is all three.
// NACK, P7a and P9 are for progress, and make lost messages and restarts harmless. A
// leader waits for all answers before it tries again (P8), or for the timer, so it
// never has two ballots in progress. The ballot number is a round and the rank of the
// leader. The round of the election is not used: ballots are safe whatever the election
// says.
//
// Sources: L. Lamport: The part-time parliament, 1998; L. Lamport: Paxos made simple,
// 2001; M. Fischer, N. Lynch, M. Paterson: Impossibility of distributed consensus with
// one faulty process, 1985; [D0] states the problem.
package paxos

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm with a leader that an election below it names.
var Spec = spec("paxos", "Paxos: consensus by ballots of a leader", true)

// Proposers describes the algorithm in which every proposer leads.
var Proposers = spec("paxos-proposers", "Paxos in which every proposer leads", false)

func spec(name, title string, led bool) *process.Spec {
	return &process.Spec{
		Name:      name,
		Title:     title,
		Paper:     "L. Lamport: The part-time parliament, ACM Transactions on Computer Systems 16(2), 1998, doi:10.1145/279227.279229",
		Documents: []string{"[D0]", "[D1]"},
		Family:    process.Agreement,
		Messages: []process.MessageSpec{
			{Name: "PROPOSE", Fields: []process.FieldUse{value}},
			{Name: "PREPARE", Fields: []process.FieldUse{round}},
			{Name: "PROMISE", Fields: []process.FieldUse{round, {Field: process.FieldClock, Symbol: "vb"}, by, value}},
			{Name: "NACK", Fields: []process.FieldUse{round, {Field: process.FieldClock, Symbol: "promised"}, by}},
			{Name: "ACCEPT", Fields: []process.FieldUse{round, value}},
			{Name: "ACCEPTED", Fields: []process.FieldUse{round}},
			{Name: "DECIDE", Fields: []process.FieldUse{value}},
		},
		Timers: []string{"retry"},
		Rules:  rules(led),
		Options: []process.Option{
			{Name: "retry-time", Default: "20", Min: 1, Max: 1_000_000, Text: "shortest wait for a decision before P9, in D; the longest is twice that"},
		},
		Needs:  process.Needs{Elector: led},
		Claims: claims(led),
		Normal: &process.Normal{State: roundsOfState, Message: roundsOfMessage},
		New:    Flaw{Alone: !led}.New,
	}
}

// rules returns all rules, or those that do not mention an elected leader.
func rules(led bool) []process.RuleSpec {
	all := []process.RuleSpec{
		{Name: "P1", Text: "propose: keep the value"},
		{Name: "P2", Text: "lead: PREPARE with a number above all numbers seen"},
		{Name: "P3", Text: "PREPARE above the promise: PROMISE"},
		{Name: "P3a", Text: "PREPARE not above the promise: NACK"},
		{Name: "P4", Text: "a majority promises: ACCEPT of the highest value reported"},
		{Name: "P5", Text: "ACCEPT not below the promise: ACCEPTED"},
		{Name: "P5a", Text: "ACCEPT below the promise: NACK"},
		{Name: "P6", Text: "a majority accepts: decide, DECIDE"},
		{Name: "P7", Text: "DECIDE: decide"},
		{Name: "P7a", Text: "decided: answer DECIDE"},
		{Name: "P8", Text: "all have answered without a majority: start a higher ballot"},
		{Name: "P9", Text: "a leader has waited long: start a higher ballot"},
		// Only with an election:
		{Name: "P1a", Text: "another process leads: send it the value"},
		{Name: "P1b", Text: "no leader is known: ask for an election"},
		{Name: "P9a", Text: "a follower has waited long: ask again"},
	}
	if !led {
		return all[:len(all)-3]
	}
	return all
}

var (
	round = process.FieldUse{Field: process.FieldSeq, Symbol: "b"}
	by    = process.FieldUse{Field: process.FieldSubject, Symbol: "by"}
	value = process.FieldUse{Field: process.FieldValue, Symbol: "v"}
)

const (
	propose process.Type = iota + 1
	prepare
	promise
	nack
	accept
	accepted
	decide
)

const retryTimer process.Timer = 1

const (
	ruleP1 process.Rule = iota + 1
	ruleP2
	ruleP3
	ruleP3a
	ruleP4
	ruleP5
	ruleP5a
	ruleP6
	ruleP7
	ruleP7a
	ruleP8
	ruleP9
	ruleP1a
	ruleP1b
	ruleP9a
)

// ballot is the number of a ballot: ordered by round, then by the rank of the leader.
// The zero ballot with leader None is below all.
type ballot struct {
	round uint64
	by    process.ID
}

func (b ballot) less(o ballot) bool { return b.round < o.round || b.round == o.round && b.by < o.by }

type phase uint8

const (
	resting phase = iota
	preparing
	accepting
)

var phaseNames = []string{"RESTING", "PREPARING", "ACCEPTING"}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	Alone           bool // not a flaw: every proposer leads
	ForgetsAccepted bool // P3: a promise does not report what was accepted
	BreaksPromise   bool // P5a is missing: an acceptor accepts in a ballot below its promise
}

type machine struct {
	c     *process.Config
	self  process.ID
	flaw  Flaw
	retry process.Duration

	// The acceptor.
	promised ballot
	vb       ballot // of the last acceptance, or with leader None
	v        int64  // that was accepted in vb
	seen     uint64 // the highest round seen; at least that of promised

	// The proposer.
	leader process.ID // according to the election, or None
	has    bool       // it has a value of its own
	own    int64
	phase  phase
	round  uint64      // of its ballot; 0 if none is in progress
	yes    process.Set // those that promised or accepted in this phase
	no     process.Set // those that refused
	best   ballot      // the highest acceptance reported
	choice int64       // the value of best, then the one of the ballot

	decided  bool
	decision int64
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	none := ballot{by: process.None}
	return &machine{
		c: c, self: self, flaw: flaw, retry: process.Duration(c.IntOption("retry-time", 20)) * c.D(),
		promised: none, vb: none, best: none, leader: process.None,
		yes: process.NewSet(c.N), no: process.NewSet(c.N),
	}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Propose:
		m.propose(ev.Value, fx)
	case process.Elected:
		m.onElected(ev.Peer, fx)
	case process.Fire:
		m.onRetry(fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	}
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	if m.decided && (msg.Type == propose || msg.Type == prepare || msg.Type == accept) {
		fx.Rule(ruleP7a)
		fx.Send(msg.From, process.Message{Type: decide, Value: m.decision})
		return
	}
	switch msg.Type {
	case propose:
		m.onPropose(msg.Value, fx)
	case prepare:
		m.onPrepare(ballot{msg.Seq, msg.From}, fx)
	case accept:
		m.onAccept(ballot{msg.Seq, msg.From}, msg.Value, fx)
	case decide:
		fx.Rule(ruleP7)
		m.decide(msg.Value, fx)
	default:
		m.onAnswer(msg, fx)
	}
}

// Fields names the state. What an acceptor has promised and accepted must survive a
// crash. If it forgets, two majorities may have no common member that remembers.
func (m *machine) Fields(f *process.Fields) {
	f.Durable().Uint("promised", &m.promised.round)
	f.Durable().ID("promised by", &m.promised.by)
	f.Durable().Uint("vb", &m.vb.round)
	f.Durable().ID("vb by", &m.vb.by)
	f.Durable().Int("v", &m.v)
	f.Durable().Uint("seen", &m.seen)
	f.ID("leader", &m.leader)
	f.Bool("has", &m.has)
	f.Int("own", &m.own)
	process.Enum(f, "phase", &m.phase, phaseNames)
	f.Uint("b", &m.round)
	f.Set("yes", m.yes)
	f.Set("no", m.no)
	f.Uint("best", &m.best.round)
	f.ID("best by", &m.best.by)
	f.Int("choice", &m.choice)
	f.Bool("decided", &m.decided)
	f.Int("decision", &m.decision)
}
