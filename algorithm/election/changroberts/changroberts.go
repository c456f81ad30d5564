// Package changroberts is the election of Chang and Roberts on a unidirectional ring:
// only the highest label travels all the way round.
//
// # Problem and idea
//
// A process knows only the next process on the ring, not how many there are. Every
// starter sends its label round the ring. A process with a higher label sends its own
// label on instead. So only the highest label completes the round, and its owner knows
// that it has won.
//
// # Rules
//
//	C1  start: unless this process participates already, participate and send
//	    ELECTION(i) to the next.
//	C2  on ELECTION(j) with j better than i: participate, pass it on.
//	    C2a j worse, and this process does not participate: participate, send
//	    ELECTION(i) instead.
//	    C2b j worse, and it does: discard; a better label is in flight.
//	    C2c of a round that is over: discard.
//	C3  on ELECTION(i): this process leads. It stops participating and sends
//	    ELECTED(i).
//	C4  on ELECTED(j): j leads. Stop participating, pass it on.
//	    C4a on ELECTED(i), or one of a round that is over: stop it.
//
// chang-roberts-repaired adds what the documents leave out:
//
//	C5  no acknowledgement within R: pass the message to the process behind.
//	C6  the owner of a label is down: start again instead of passing it on.
//	C7  a participant has waited very long: start again, in the next round.
//	C8  restart, or the leader has failed or is suspected: start. So does a process
//	    that beats a leader who did not know of it, and one that gets an ELECTION of
//	    a round that is over, since its sender is behind.
//
// # Why it is safe
//
// An ELECTION(j) that completes the round has passed every process, and every better
// one would have stopped it. Elections are numbered by rounds: a message of a higher
// round ends the lower one. A leadership is identified by its term, (round, leader), so
// a late message cannot overwrite a newer result. The repaired variant may leave two
// leaders of one round when one of them crashed. The higher term counts, and a process
// that finds a lower one in progress starts again.
//
// # Cost
//
// One starter, d hops before the maximum: d ELECTION until the maximum is reached, N
// for its label to complete the round, N ELECTED. That is 2N+d, between 2N and 3N-1. If
// all start: 2N-1 ELECTION if labels rise in the direction of sending, N(N+1)/2 if they
// fall, and N H_N on average over random rings, with H_N = 1 + 1/2 + ... + 1/N; plus N
// ELECTED in each case. The last process learns the leader after 2N+d-1 message times.
//
// # Deviations
//
// The figures of the documents, 2N to 3N-1 ([D1]) and 3N-1 at worst ([D2]), are for a
// single starter. The pseudo-code of [D1] has its comparison reversed;
// chang-roberts-printed shows the effect. [D2] does not say which process stops
// ELECTED; [D4] does (C4a). Rounds are an addition.
//
// Not survived: without the repairs, any crash. If the maximum crashes after its label
// has passed, no process removes the label: it is lost in the gap, or, if the ring is
// repaired without rule C6, it circulates forever. Whichever process crashes, the
// others remain participants and discard all later labels. The repaired variant needs
// synchrony.
//
// Sources: E. Chang and R. Roberts: An improved algorithm for decentralized
// extrema-finding in circular configurations of processes, CACM 22(5), 1979;
// [D1], [D2] and
// [D4].
package changroberts

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/election/ring"
	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm as published.
var Spec = &process.Spec{
	Name:      "chang-roberts",
	Title:     "Ring election of Chang and Roberts",
	Paper:     paper,
	Documents: []string{"[D1]", "[D2]", "[D4]"},
	Family:    process.Election,
	Messages:  messages[:2],
	Rules:     rules[:8],
	Needs:     process.Needs{Reliable: true, Topology: process.RingTopology},
	Claims:    claims,
	New:       func(self process.ID, c *process.Config) process.Machine { return newMachine(self, c, false, false) },
}

// Repaired describes the variant that survives crashes.
var Repaired = &process.Spec{
	Name:      "chang-roberts-repaired",
	Title:     "Ring election of Chang and Roberts that survives crashes",
	Paper:     paper,
	Documents: []string{"[D1]", "[D2]", "[D4]"},
	Family:    process.Election,
	Messages:  messages,
	Timers:    []string{"ack", "result"},
	Rules:     rules,
	Needs:     process.Needs{Reliable: true, Synchrony: true, Topology: process.RingTopology},
	Claims:    repairedClaims,
	New:       func(self process.ID, c *process.Config) process.Machine { return newMachine(self, c, false, true) },
}

const (
	single  = "N >= 2, d hops from the starter to the maximum"
	several = "all processes start at once, N >= 2"
)

var properties = process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence)

var costs = []process.Cost{
	{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: single,
		Exact: linear("2N+d", 2, 0, 1), Lo: linear("2N", 2, 0, 0), Hi: linear("3N-1", 3, -1, 0),
		Said: []process.Figure{
			{Document: "[D1]", Text: "2N to 3N-1"},
			{Document: "[D2]", Text: "3N-1 at worst"}}},
	{Metric: process.MessagesPerElection, Regime: process.AllStart, When: several + "; the mean is over all arrangements of the labels",
		Mean: meanRing, Lo: linear("3N-1", 3, -1, 0), Hi: fallingRing},
	{Metric: process.MessagesPerElection, Regime: process.Worst, When: several + ", the labels fall in the direction of sending",
		Exact: fallingRing,
		Said: []process.Figure{
			{Document: "[D1]", Text: "3N-1", Wrong: "the largest cost of a single starter; several starters cost up to N(N+1)/2+N"},
			{Document: "[D2]", Text: "3N-1", Wrong: "the largest cost of a single starter; several starters cost up to N(N+1)/2+N"}}},
	{Metric: process.ElectionTime, Regime: process.OneStarter, When: single + "; until the last process knows the leader", Exact: linear("2N+d-1", 2, -1, 1)},
	{Metric: process.ElectionTime, Regime: process.AllStart, When: several + "; until the last process knows the leader", Exact: linear("2N-1", 2, -1, 0)},
	{Metric: process.ElectionTime, Regime: process.Worst, When: several + "; until the last process knows the leader", Exact: linear("2N-1", 2, -1, 0)},
}

var claims = process.Claims{
	Properties: properties,
	Costs:      costs,
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a message of a round that is over is discarded"},
		{Fault: process.Duplication, How: "a duplicate meets a participant, or a round that is over"},
	},
	Worst: falling,
}

var repairedClaims = process.Claims{
	Properties: properties,
	Costs:      costs,
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a message of a round that is over is discarded"},
		{Fault: process.Duplication, How: "a duplicate meets a participant, or a round that is over"},
		{Fault: process.CrashAny, How: "C5, C6 and C7; after the election, a detector below or a call for a new election"},
		{Fault: process.AmnesiaRestart, How: "C8, and the round on disk"},
	},
	Worst: falling,
}

// falling is the ring on which the labels fall in the direction of sending.
func falling(n int) process.Arrangement {
	ring := make([]int, n)
	for i := range ring {
		ring[i] = n - 1 - i
	}
	return process.Arrangement{Ring: ring}
}

// linear is a formula in N and d.
func linear(text string, perProcess, plus, perHop float64) *process.Formula {
	return &process.Formula{Text: text, Eval: func(p process.Params) float64 {
		return perProcess*float64(p.N) + plus + perHop*float64(p.Distance)
	}}
}

// fallingRing: every label travels to the maximum, the next lower one hop less.
var fallingRing = process.OfN("N(N+1)/2+N", func(n float64) float64 { return n*(n+1)/2 + n })

// meanRing: a label travels k hops if it is the highest of k in a row, which has the
// probability 1/k.
var meanRing = &process.Formula{Text: "N H_N+N", Eval: func(p process.Params) float64 {
	harmonic := 0.0
	for k := 1; k <= p.N; k++ {
		harmonic += 1 / float64(k)
	}
	return float64(p.N)*harmonic + float64(p.N)
}}

const paper = "E. Chang, R. Roberts: An improved algorithm for decentralized extrema-finding in circular configurations of processes, CACM 22(5), 1979, doi:10.1145/359104.359108"

var named = []process.FieldUse{{Field: process.FieldSubject, Symbol: "id"}, {Field: process.FieldTerm, Symbol: "round"}}

var messages = []process.MessageSpec{
	{Name: "ELECTION", Fields: named},
	{Name: "ELECTED", Fields: named},
	{Name: "ACK", Class: process.Acknowledgement, Fields: ring.AckFields("ELECTION", "ELECTED")},
}

var rules = []process.RuleSpec{
	{Name: "C1", Text: "start: participate, send ELECTION with its own label"},
	{Name: "C2", Text: "ELECTION of a better label: participate, pass it on"},
	{Name: "C2a", Text: "ELECTION of a worse label: participate, send its own label instead"},
	{Name: "C2b", Text: "ELECTION of a worse label at a participant: discard it"},
	{Name: "C2c", Text: "ELECTION of a round that is over: discard it"},
	{Name: "C3", Text: "ELECTION of its own label: lead, send ELECTED"},
	{Name: "C4", Text: "ELECTED: record the leader, pass it on"},
	{Name: "C4a", Text: "ELECTED that has completed the ring, or of a round that is over: stop it"},
	{Name: "C5", Text: "no ACK: pass the message to the process behind"},
	{Name: "C6", Text: "the owner of the label is down: start again"},
	{Name: "C7", Text: "no ELECTED in time: start again"},
	{Name: "C8", Text: "restart, the leader has failed, or another process is behind: start"},
}

const (
	election process.Type = iota + 1
	elected
	ack
)

const (
	ackTimer process.Timer = iota + 1 // one for each process that owes an ACK
	resultTimer
)

const (
	ruleC1 process.Rule = iota + 1
	ruleC2
	ruleC2a
	ruleC2b
	ruleC2c
	ruleC3
	ruleC4
	ruleC4a
	ruleC5
	ruleC6
	ruleC7
	ruleC8
)

type machine struct {
	c      *process.Config
	self   process.ID
	byLoad bool // the least load leads; labels travel with loads
	repair bool
	hand   ring.Hand

	round       uint64 // the highest seen; rises before any message of a new one is sent
	participant bool   // in round: has sent or passed on an ELECTION and does not know the result
	leader      process.ID
	elected     process.Term // of the leader on record, or 0
	load        ring.Load
	box         ring.Box // empty without repair
}

// NewByLoad makes a machine without the repairs that elects by load. The Spec must declare
// the load in both messages, as a value.
func NewByLoad(self process.ID, c *process.Config) process.Machine {
	return newMachine(self, c, true, false)
}

func newMachine(self process.ID, c *process.Config, byLoad, repair bool) process.Machine {
	return &machine{
		c: c, self: self, byLoad: byLoad, repair: repair, leader: process.None,
		hand: ring.Hand{Config: c, Self: self, Ack: ack, Timer: ackTimer},
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
	default:
		if m.repair {
			m.onNews(ev, fx)
		}
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
		m.see(msg.Term.Round(), fx)
		m.box.Renew()
	}
	m.box.Met(msg.From, msg.Subject)
	if msg.Type == election {
		m.onElection(msg, fx)
	} else {
		m.onElected(msg, fx)
	}
	if m.repair {
		m.box.Acknowledge(&m.hand, msg, msg.Subject, fx)
	}
}

// Fields names the state. Only the round must survive a crash: a process that forgot it
// could lead twice in one term.
func (m *machine) Fields(f *process.Fields) {
	f.Durable().Seq("round", &m.round)
	f.Bool("participant", &m.participant)
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

// see notes a round. A higher round ends the lower one.
func (m *machine) see(round uint64, fx *process.Effects) {
	m.round = round
	m.leave(fx)
}

// join makes this process a participant.
func (m *machine) join(fx *process.Effects) {
	m.participant = true
	if m.repair {
		d := process.Duration(3*(m.c.N+1)*(ring.AckTimeout+1)) * m.c.D()
		fx.Arm(resultTimer, d, d)
	}
}

// leave makes it a non-participant.
func (m *machine) leave(fx *process.Effects) {
	if m.participant && m.repair {
		fx.Disarm(resultTimer)
	}
	m.participant = false
}

// beats reports whether this process is better than the one that a message names.
func (m *machine) beats(msg *process.Message) bool {
	return m.candidate().Beats(ring.Candidate{ID: msg.Subject, Load: msg.Value}, m.c)
}

// pass sends a message to the next process, and reports whether there is one.
func (m *machine) pass(msg process.Message, fx *process.Effects) bool {
	if m.repair {
		return m.box.Pass(&m.hand, msg, msg.Subject, fx)
	}
	to := m.c.Topology.Next(m.self, m.c.N)
	if to != m.self {
		fx.Send(to, msg)
	}
	return to != m.self
}

// lostWinner reports whether a process that was passed over is the one named by an
// ELECTED in flight.
func lostWinner(loss *ring.Loss) bool {
	return slices.ContainsFunc(loss.Sent, func(q ring.Parcel) bool {
		return q.Message.Type == elected && q.Message.Subject == loss.Peer
	})
}
