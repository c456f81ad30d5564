// Package changroberts is the election of Chang and Roberts on a unidirectional
// ring: the highest label survives a trip round it.
//
// # Problem and idea
//
// A process knows only the next one on the ring, not how many there are. Everyone
// who starts sends its label on its way. A label that meets a higher one goes no
// further, for the higher one is sent on in its place; so only the highest comes
// round, and its owner knows that it has won.
//
// # Rules
//
//	C1  start: unless this process participates already, participate and send
//	    ELECTION(i) to the next.
//	C2  on ELECTION(j) with j better than i: participate, pass it on.
//	    C2a j worse, and this process does not participate: participate, send
//	    ELECTION(i) instead.
//	    C2b j worse, and it does: discard; a better label is on its way.
//	    C2c of a round that is over: discard.
//	C3  on ELECTION(i): this process leads. It participates no more and sends
//	    ELECTED(i).
//	C4  on ELECTED(j): j leads. Participate no more, pass it on.
//	    C4a on ELECTED(i), or one of a round that is over: stop it.
//
// chang-roberts-repaired adds what the documents leave out:
//
//	C5  no acknowledgement within R: pass the message to the one behind.
//	C6  the owner of a label is down: start anew instead of passing it on.
//	C7  a participant has waited very long: start anew, in the next round.
//	C8  restart, or the leader has failed or is suspected: start. So does one that
//	    beats a leader who did not know of it, and one that gets an ELECTION of a
//	    round that is over, since its sender is behind.
//
// # Why it is safe
//
// An ELECTION(j) that comes round has passed everyone, and everyone better would
// have stopped it. Elections are numbered by rounds: a message of a higher round
// ends what is left of the lower one, and a leadership is known by its term,
// (round, leader), so a late message cannot overwrite a newer result. The
// repaired variant may leave two leaders of one round when one of them crashed; the
// higher term counts, and who finds a lower one under way starts anew.
//
// # Cost
//
// One starter, d hops before the maximum: d ELECTION until that is reached, N for
// its label to come round, N ELECTED: 2N+d, which is 2N to 3N-1. All start: labels
// that rise in the direction of sending cost 2N-1 ELECTION, labels that fall
// N(N+1)/2, a random ring N H_N on average, with H_N = 1 + 1/2 + ... + 1/N; and N
// ELECTED in each case. The last one learns who leads after 2N+d-1 message times.
//
// # Deviations
//
// The figures of the documents, 2N to 3N-1 ([D1]) and 3N-1 at
// worst ([D2]), are of a single starter. The pseudo-code of
// [D1] has its comparison the wrong way round; see
// chang-roberts-printed for what that does. [D2] does not say
// who stops ELECTED; [D4] does (C4a). Rounds are ours.
//
// Not survived: without the repairs nothing. If the maximum crashes after its label
// has passed, nobody takes that off the ring: it is lost in the gap, and where the
// ring is mended without rule C6 it goes round for ever. Either way, and whoever
// crashes, the others remain participants and discard whatever is started later.
// The repaired variant needs synchrony.
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

// Spec describes the algorithm as its authors have it.
var Spec = &process.Spec{
	Name:      "chang-roberts",
	Title:     "Ring election of Chang and Roberts",
	Paper:     paper,
	Documents: []string{doc001, doc002, doc004},
	Family:    process.Election,
	Messages:  messages[:2],
	Rules:     rules[:8],
	Needs:     process.Needs{Reliable: true, Topology: process.RingTopology},
	Claims:    claims,
	New:       func(self process.ID, c *process.Config) process.Machine { return New(self, c, false) },
}

// Repaired describes the variant that survives crashes.
var Repaired = &process.Spec{
	Name:      "chang-roberts-repaired",
	Title:     "Ring election of Chang and Roberts that survives crashes",
	Paper:     paper,
	Documents: []string{doc001, doc002, doc004},
	Family:    process.Election,
	Messages:  messages,
	Timers:    []string{"ack", "result"},
	Rules:     rules,
	Needs:     process.Needs{Reliable: true, Synchrony: true, Topology: process.RingTopology},
	Claims:    repairedClaims,
	New: func(self process.ID, c *process.Config) process.Machine {
		m := newMachine(self, c)
		m.repair = true
		return m
	},
}

const paper = "E. Chang, R. Roberts: An improved algorithm for decentralized extrema-finding in circular configurations of processes, CACM 22(5), 1979, doi:10.1145/359104.359108"

var named = []process.FieldUse{{Field: process.FieldSubject, Symbol: "id"}, {Field: process.FieldTerm, Symbol: "round"}}

var messages = []process.MessageSpec{
	{Name: "ELECTION", Fields: named},
	{Name: "ELECTED", Fields: named},
	{Name: "ACK", Class: process.Acknowledgement, Fields: ring.AckFields("ELECTION", "ELECTED")},
}

var rules = []process.RuleSpec{
	{Name: "C1", Text: "start: participate, ELECTION of oneself"},
	{Name: "C2", Text: "ELECTION of a better one: participate, pass it on"},
	{Name: "C2a", Text: "ELECTION of a worse one: participate, put oneself in its place"},
	{Name: "C2b", Text: "ELECTION of a worse one at a participant: discard"},
	{Name: "C2c", Text: "ELECTION of a round that is over: discard"},
	{Name: "C3", Text: "ELECTION of oneself: lead, ELECTED"},
	{Name: "C4", Text: "ELECTED: record who leads, pass it on"},
	{Name: "C4a", Text: "ELECTED that has come round, or of a round that is over: stop it"},
	{Name: "C5", Text: "no ACK: pass the message to the one behind"},
	{Name: "C6", Text: "the owner of the label is down: start anew"},
	{Name: "C7", Text: "no ELECTED: start anew"},
	{Name: "C8", Text: "restart, the leader has gone, or somebody is behind: start"},
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

	round       uint64 // the highest seen; rises before anything is sent in a new one
	participant bool   // in round: has sent or passed on an ELECTION and knows no result
	leader      process.ID
	elected     process.Term // of the leader on record, or 0
	load        ring.Load
	box         ring.Box // empty without repair
}

// New makes a machine without the repairs that elects by label or by load. In the
// latter case the Spec must declare the load in both messages, as a value.
func New(self process.ID, c *process.Config, byLoad bool) process.Machine {
	m := newMachine(self, c)
	m.byLoad = byLoad
	return m
}

func newMachine(self process.ID, c *process.Config) *machine {
	return &machine{
		c: c, self: self, leader: process.None,
		hand: ring.Hand{Config: c, Self: self, Ack: ack, Timer: ackTimer},
	}
}

// Step dispatches the event to the handler of its rule. A round that was seen is
// saved before anything is sent in it or a later one.
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

// Fields names the state. The round is all that must survive a crash: a process
// that forgot it could lead twice in one term.
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

// see notes a round. A higher one ends what is left of the one before.
func (m *machine) see(round uint64, fx *process.Effects) {
	m.round = round
	m.leave(fx)
}

// join makes this process a participant.
func (m *machine) join(fx *process.Effects) {
	m.participant = true
	if m.repair {
		d := process.Duration(3*(m.c.N+1)*(ring.Patience+1)) * m.c.D()
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

// beats reports whether this process is better than the one a message names.
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

// lostWinner reports whether a process that was passed over is the one that an
// ELECTED on its way names.
func lostWinner(loss *ring.Loss) bool {
	return slices.ContainsFunc(loss.Sent, func(q ring.Parcel) bool {
		return q.Message.Type == elected && q.Message.Subject == loss.Peer
	})
}
