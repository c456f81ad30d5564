// Package ringlist is the election on a ring by a list of senders, which skips
// processes that are down.
//
// # Problem and idea
//
// The leader has crashed. Every process knows the whole ring, but not which processes
// are up. The process that notices sends a list with its own label round the ring, and
// every process adds its label. When the list is back it names all live processes. The
// starter picks the highest, and a second message tells all.
//
// # Rules
//
//	L1  start: take the next round and send ELECTION([i]) to the next process.
//	L2  on ELECTION of another process: add its own label to the list, pass it on.
//	    L2a with merge=yes a starter drops the ELECTION of one with a lower label.
//	    L2b the starter is down: start again instead of passing it on.
//	    L2c an ELECTION that its starter has given up: drop it.
//	L3  its own ELECTION is back: the best of the list leads. Record it, send
//	    COORDINATOR round the ring.
//	L4  on COORDINATOR: record the leader, pass it on.
//	    L4a its own COORDINATOR is back, or has been here before: stop it.
//	    L4b this process beats the winner, which did not know of it: start.
//	    L4c a later leadership of another is on record: start, to settle it.
//	L5  no acknowledgement within R: pass the message to the process behind.
//	L6  the winner does not acknowledge its COORDINATOR: it has crashed, start again.
//	L7  no COORDINATOR for very long: the process that had the message has crashed.
//	    Start again.
//	L8  restart, or the leader has failed or is suspected: start.
//
// # Why it is safe
//
// A list that comes back has passed every live process, so starters of one round find
// the same winner. A leadership is identified by its term, (round, leader), and
// replaces only an earlier one. A list collects the highest round in which any process
// on its path has a leader on record. The new leadership is in a later round, so that
// it is not ignored as old. A process that has added itself to a list waits for the
// COORDINATOR, and starts if that does not come.
//
// # Cost
//
// With n processes up n ELECTION and n COORDINATOR for each starter, so 2n s for s
// starters; each message carries up to n labels. There are as many ACKs, counted
// separately. Each crashed process costs one lost message, and the time R, in each
// election. All know after 2n-1 message times.
//
// # Deviations
//
// [D0], [D3] and [D4] stop both messages only at the starter, so they circulate forever
// when it has crashed. L2b and L4a are additions, and so are rounds, L4b, L4c, L6 and
// L7. The documents do not say how a process finds out that its successor is down; here
// an ACK is missing. The list in COORDINATOR names the processes that it has passed.
// The worked example of [D4] leaves out that the last process passes the COORDINATOR
// on.
//
// Not survived: lost messages and delays beyond D. A process that acknowledges too late
// is passed over, and if it was the best, there are two leaders.
//
// Sources: [D0], [D3] and [D4], which name no author; its ancestors are E. G. Chang and
// R. Roberts, 1979, and G. Le Lann, 1977.
package ringlist

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/election/ring"
	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "ring-list",
	Title:     "Ring election by a list of senders",
	Paper:     "after G. Le Lann: Distributed systems, towards a formal approach, IFIP Congress 1977",
	Documents: []string{"[D0]", "[D3]", "[D4]"},
	Family:    process.Election,
	Messages: []process.MessageSpec{
		{Name: "ELECTION", Fields: []process.FieldUse{
			{Field: process.FieldIDs, Symbol: "list"}, {Field: process.FieldSeq, Symbol: "last"}, round}},
		{Name: "COORDINATOR", Fields: []process.FieldUse{
			{Field: process.FieldSubject, Symbol: "leader"}, {Field: process.FieldIDs, Symbol: "passed"}, round}},
		{Name: "ACK", Class: process.Acknowledgement, Fields: ring.AckFields("ELECTION", "COORDINATOR")},
	},
	Timers: []string{"ack", "result"},
	Rules: []process.RuleSpec{
		{Name: "L1", Text: "start: send ELECTION with a list of its own label"},
		{Name: "L2", Text: "ELECTION of another process: add its own label, pass it on"},
		{Name: "L2a", Text: "ELECTION of a lower starter, with merge: drop it"},
		{Name: "L2b", Text: "the starter is down: start again"},
		{Name: "L2c", Text: "ELECTION that was given up: drop it"},
		{Name: "L3", Text: "its own ELECTION is back: the best of the list leads"},
		{Name: "L4", Text: "COORDINATOR: record the leader, pass it on"},
		{Name: "L4a", Text: "COORDINATOR that has been here: stop it"},
		{Name: "L4b", Text: "COORDINATOR of a process that this one beats: start"},
		{Name: "L4c", Text: "COORDINATOR of an old term: start if it names another leader"},
		{Name: "L5", Text: "no ACK: pass the message to the process behind"},
		{Name: "L6", Text: "the winner has crashed: start again"},
		{Name: "L7", Text: "no COORDINATOR in time: start again"},
		{Name: "L8", Text: "restart, or the leader has failed: start"},
	},
	Options: []process.Option{
		{Name: "merge", Default: no, Values: []string{no, yes}, Text: "whether a starter drops the elections of starters with lower labels"},
	},
	Needs:  process.Needs{Reliable: true, Synchrony: true, Topology: process.RingTopology},
	Claims: claims,
	New:    Flaw{}.New,
}

const allUp = "n processes are up; each process that is down costs one message more in each election; merge=no; N >= 2"

var claims = process.Claims{
	Properties: process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence),
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: allUp, Exact: twice,
			Said: []process.Figure{{Document: "[D3]", Text: "2n"}}},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: allUp, Exact: eachStarter},
		{Metric: process.MessagesPerElection, Regime: process.Worst, When: allUp + "; all processes start", Exact: eachStarter,
			Said: []process.Figure{{Document: "[D3]", Text: "2n", Wrong: "counts one starter; each starter has its own circulation"}}},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: "all processes are up, N >= 2; until the last process knows the leader", Exact: twiceRound},
		{Metric: process.ElectionTime, Regime: process.AllStart, When: "all processes are up, N >= 2; until the last process knows the leader", Exact: onceRound},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "messages carry their round and the processes that they have passed"},
		{Fault: process.Duplication, How: "a duplicate is stopped at a process that it has passed before"},
		{Fault: process.CrashAny, How: "ACKs and L5, L2b, L6, L7; after the election, a detector below or a call for a new election"},
		{Fault: process.AmnesiaRestart, How: "L8, and the round on disk"},
	},
}

var twice = &process.Formula{Text: "2n", Eval: func(p process.Params) float64 { return 2 * float64(p.Live) }}

var eachStarter = &process.Formula{Text: "2n^2", Eval: func(p process.Params) float64 {
	return 2 * float64(p.Live) * float64(p.Starters)
}}

var twiceRound = &process.Formula{Text: "2n-1", Eval: func(p process.Params) float64 { return 2*float64(p.Live) - 1 }}

var onceRound = &process.Formula{Text: "n", Eval: func(p process.Params) float64 { return float64(p.Live) }}

var round = process.FieldUse{Field: process.FieldTerm, Symbol: "round"}

// The values of the option.
const (
	yes = "yes"
	no  = "no"
)

const (
	election process.Type = iota + 1
	coordinator
	ack
)

const (
	ackTimer process.Timer = iota + 1 // one for each process that owes an ACK
	resultTimer
)

const (
	ruleL1 process.Rule = iota + 1
	ruleL2
	ruleL2a
	ruleL2b
	ruleL2c
	ruleL3
	ruleL4
	ruleL4a
	ruleL4b
	ruleL4c
	ruleL5
	ruleL6
	ruleL7
	ruleL8
)

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	RelayOnly  bool // L2 passes the list on without adding its own label
	NoTieBreak bool // of equals in the order of the election, the first on the list wins

	ByLoad bool // not a flaw: the least load leads
}

type machine struct {
	c      *process.Config
	self   process.ID
	flaw   Flaw
	byLoad bool // the least load leads; lists carry loads
	merge  bool
	hand   ring.Hand

	round   uint64 // the highest seen; rises before any message of a new one is sent
	own     uint64 // the round of the ELECTION that was started here and is not back yet, or 0
	awaited uint64 // the latest round in which this process waits for a COORDINATOR, or 0
	leader  process.ID
	elected process.Term // of the leader on record, or 0
	load    ring.Load
	box     ring.Box
}

// New makes a machine with the flaw that elects by label or by load. For load the Spec
// must declare the loads in ELECTION, as a vector, and in COORDINATOR, as a value.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{
		c: c, self: self, flaw: flaw, byLoad: flaw.ByLoad, leader: process.None,
		merge: c.Option("merge", no) == yes,
		hand:  ring.Hand{Config: c, Self: self, Ack: ack, Timer: ackTimer},
	}
}

// Step dispatches the event to the handler of its rule. A round that was seen is saved
// before any message of it or of a later round is sent.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	before := m.round
	switch ev.Kind {
	case process.Campaign:
		m.start(fx)
	case process.Load:
		m.load.Report(ev.Value)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	case process.Fire:
		m.onTimer(ev.Timer, fx)
	case process.Restart:
		fx.Rule(ruleL8)
		m.start(fx)
	case process.Fail:
		m.afterLoss(m.box.OnFail(&m.hand, ev.Peer, fx), fx)
		m.onGone(ev.Peer, fx)
	case process.Suspect:
		m.onGone(ev.Peer, fx)
	case process.Rejoin:
		m.box.OnRejoin(&m.hand, ev.Peer, fx)
	case process.Trust:
		m.box.Heard(ev.Peer)
	}
	if m.round != before {
		fx.Save()
	}
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	if msg.Type == ack {
		m.box.OnAck(&m.hand, msg, fx)
		return
	}
	if msg.Term.Round() > m.round {
		m.round = msg.Term.Round()
		m.box.Renew()
	}
	m.box.Met(msg.From, msg.IDs[0])
	if msg.Type == election {
		m.onElection(msg, fx)
	} else {
		m.onCoordinator(msg, fx)
	}
	m.box.Acknowledge(&m.hand, msg, msg.IDs[0], fx)
}

func (m *machine) onTimer(t process.Timer, fx *process.Effects) {
	if t != resultTimer {
		fx.Rule(ruleL5)
		m.afterLoss(m.box.OnSilence(&m.hand, t.Peer(), fx), fx)
		return
	}
	fx.Rule(ruleL7)
	m.own, m.awaited = 0, 0
	m.start(fx)
}

// Fields names the state. Only the round must survive a crash: a process that forgot it
// could lead twice in one term.
func (m *machine) Fields(f *process.Fields) {
	f.Durable().Seq("round", &m.round)
	f.Uint("own", &m.own)
	f.Uint("awaited", &m.awaited)
	f.ID("leader", &m.leader)
	f.Term("elected", &m.elected)
	m.load.Fields(f)
	m.box.Fields(f)
}

// candidate is this process in the comparison.
func (m *machine) candidate() ring.Candidate {
	if !m.byLoad {
		return ring.Candidate{ID: m.self}
	}
	return ring.Candidate{ID: m.self, Load: m.load.In(m.round)}
}

// enrol returns the list of a message with this process appended, and the loads that
// belong to it.
func (m *machine) enrol(msg *process.Message) ([]process.ID, []uint64) {
	if m.flaw.RelayOnly && len(msg.IDs) > 0 {
		return slices.Clone(msg.IDs), slices.Clone(msg.Vector)
	}
	ids, loads := append(slices.Clone(msg.IDs), m.self), slices.Clone(msg.Vector)
	if m.byLoad {
		loads = append(loads, uint64(m.candidate().Load))
	}
	return ids, loads
}

// best returns the winner of a list.
func (m *machine) best(ids []process.ID, loads []uint64) ring.Candidate {
	var winner ring.Candidate
	for i, p := range ids {
		other := ring.Candidate{ID: p}
		if m.byLoad {
			other.Load = int64(loads[i])
		}
		if i == 0 || m.better(other, winner) {
			winner = other
		}
	}
	return winner
}

func (m *machine) better(a, b ring.Candidate) bool {
	return a.Beats(b, m.c) && !(m.flaw.NoTieBreak && a.Load == b.Load)
}
