// Package hirschbergsinclair is the election of Hirschberg and Sinclair on a
// bidirectional ring: candidates look twice as far in each phase.
//
// # Problem and idea
//
// A process knows its two neighbors on the ring, not how many processes there are. A
// candidate sends its label in both directions, but not all the way round: 1 hop in the
// first phase, then 2, 4, 8. Only a label that meets no higher one reaches the end of
// its path, and the process there sends a reply. A candidate with both replies is the
// highest as far as it has looked, and looks twice as far. Two candidates of one phase
// cannot be close to each other, so there are fewer candidates the farther they look. A
// label that returns from the other side has passed every process.
//
// # Rules
//
//	H1  start: unless this process takes part already, become a candidate with reach 1, and
//	    send PROBE(i, 1) left and right.
//	H2  on PROBE(j, h) with j better than i: give up.
//	    H2a h > 1: pass PROBE(j, h-1) on.
//	    H2b h = 1: send REPLY(j) back.
//	H3  on PROBE(j, h) with j worse: discard.
//	    H3a If this process does not take part yet: start as in H1.
//	H4  on PROBE(i, h): it has completed the ring. i leads, send ELECTED(i) right.
//	H5  on REPLY(j): pass it on. H5a REPLY(i) from only one side: wait for the other.
//	    H5b From both sides: double the reach, send PROBE(i, reach) left and right.
//	H6  on ELECTED(j): j leads, pass it on. H6a it has completed the ring: stop it.
//	H7  a message of a round that is over, or a reply to a candidate that gave up: discard.
//
// Each message carries the direction in which it travels.
//
// # Why it is safe
//
// A PROBE that completes the ring has passed every process, and every better one would
// have discarded it. A candidate that is not the best of all looks farther until its
// PROBE meets a better process. That process takes part from then on: it is a
// candidate, or has heard of a better one. So eventually the best process is a
// candidate. It never gives up and gets every reply, and when its reach is N or more,
// its PROBE completes the ring. Elections are numbered by rounds, and a higher round
// ends a lower one.
//
// # Cost
//
// A candidate sends at most 4 r messages in a phase of reach r. It is in that phase
// only if it is the best of r+1 processes in a row, itself in the middle. So there are
// at most N/(r/2+1) candidates: at most 8N messages in each of 1+log2(N) phases, log2
// rounded up. Add N ELECTED. Let k be log2(N) rounded up. At least 6N+2^(k+2)-8
// messages are sent if all start. The leader needs k phases of 2, 4, 8, ... message
// times, N until its last PROBE has completed the ring, and N-1 for the announcement:
// all know after 2^(k+1)+2N-3.
//
// # Assumptions and deviations
//
// Links work in both directions and lose nothing. Order does not matter. N is not
// known. In a ring of two there are two links between the same two processes, so a
// message carries its direction: the sender does not determine it. The first message
// from a worse process wakes a process that has not started, so that the highest of all
// wins. A discarded PROBE is not answered: the candidate never gets both replies, which
// is enough. The announcement and the rounds are additions.
//
// Not survived: any crash, because it cuts the ring.
//
// Source: D. S. Hirschberg and J. B. Sinclair: Decentralized extrema-finding in circular
// configurations of processors, 1980.
package hirschbergsinclair

import (
	"math/bits"

	"github.com/conclave-io/conclave/algorithm/election/ring"
	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:   "hirschberg-sinclair",
	Title:  "Bidirectional ring election of Hirschberg and Sinclair",
	Paper:  "D. S. Hirschberg, J. B. Sinclair: Decentralized extrema-finding in circular configurations of processors, CACM 23(11), 1980, doi:10.1145/359024.359029",
	Family: process.Election,
	Messages: []process.MessageSpec{
		{Name: "PROBE", Fields: []process.FieldUse{id, round, {Field: process.FieldSeq, Symbol: "h"}, direction}},
		{Name: "REPLY", Fields: []process.FieldUse{id, round, direction}},
		{Name: "ELECTED", Fields: []process.FieldUse{id, round}},
	},
	Rules: []process.RuleSpec{
		{Name: "H1", Text: "start: become a candidate, send PROBE with its own label left and right"},
		{Name: "H2a", Text: "PROBE of a better label: give up, pass it on"},
		{Name: "H2b", Text: "PROBE of a better label at the end of its path: give up, send REPLY"},
		{Name: "H3", Text: "PROBE of a worse label: discard it"},
		{Name: "H3a", Text: "PROBE of a worse label at a process that does not take part: start instead"},
		{Name: "H4", Text: "PROBE of its own label has completed the ring: lead, send ELECTED"},
		{Name: "H5", Text: "REPLY to another: pass it on"},
		{Name: "H5a", Text: "REPLY from one side: wait for the other"},
		{Name: "H5b", Text: "REPLY from both sides: look twice as far"},
		{Name: "H6", Text: "ELECTED: record the leader, pass it on"},
		{Name: "H6a", Text: "ELECTED that has completed the ring: stop it"},
		{Name: "H7", Text: "a message that is too late: discard it"},
	},
	Needs:  process.Needs{Reliable: true, Topology: process.RingTopology},
	Claims: claims,
	New:    Flaw{}.New,
}

const several = "N >= 2, k is log2 N rounded up"

var claims = process.Claims{
	Properties: process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence),
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: several + ", the labels rise to the right",
			Lo: formula("3N+2^(k+2)-4", func(n, span float64) float64 { return 3*n + 4*span - 4 }), Hi: least},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: several + "; the mean is over all arrangements of the labels, and w is the number of processes among which a candidate must be the best for a hop", Mean: mean,
			Lo: least, Hi: most},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: several + "; until the last process knows the leader",
			Lo: formula("2^(k+1)+2N-3", func(n, span float64) float64 { return 2*span + 2*n - 3 }),
			Hi: formula("2^(k+1)+3N-4", func(n, span float64) float64 { return 2*span + 3*n - 4 })},
		{Metric: process.ElectionTime, Regime: process.AllStart, When: several + "; until the last process knows the leader",
			Exact: formula("2^(k+1)+2N-3", func(n, span float64) float64 { return 2*span + 2*n - 3 })},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a message of a round that is over is discarded, and a phase ends when both replies have come"},
		{Fault: process.Duplication, How: "replies are counted by direction; a late duplicate is discarded"},
	},
}

// least is the cost of a ring on which labels rise or fall: 3N messages in the first
// phase, and then those of the leader.
var least = formula("6N+2^(k+2)-8", func(n, span float64) float64 { return 6*n + 4*span - 8 })

// most is 8N messages in each phase, and ELECTED.
var most = formula("8N(k+1)+N", func(n, span float64) float64 {
	return 8*n*float64(bits.Len(uint(span))) + n
})

// mean sums, over the hops of a PROBE and the REPLY, the probability that a candidate
// gets that far. A candidate sends a PROBE of a phase of reach r, and the PROBE passes
// j processes, under one condition: it is the best of the r/2 processes behind it (none
// in the first phase), and of the j or r/2 in front of it, whichever is more. A
// candidate is the best of w processes with the probability 1/w.
var mean = &process.Formula{Text: "N+2N sum of 1/w over hops", Eval: func(p process.Params) float64 {
	hops := 0.0
	for reach := 1; reach/2 < p.N; reach *= 2 {
		behind := reach / 2
		likely := func(passed int) float64 { return 1 / float64(min(p.N, behind+max(behind, passed)+1)) }
		for j := range min(reach, p.N) {
			hops += likely(j)
		}
		if reach < p.N {
			hops += float64(reach) * likely(reach)
		}
	}
	return float64(p.N) + 2*float64(p.N)*hops
}}

// formula is a formula in N and in the reach of the last phase, 2^k.
func formula(text string, eval func(n, span float64) float64) *process.Formula {
	return &process.Formula{Text: text, Eval: func(p process.Params) float64 {
		span := 1
		for span < p.N {
			span *= 2
		}
		return eval(float64(p.N), float64(span))
	}}
}

var (
	id        = process.FieldUse{Field: process.FieldSubject, Symbol: "id"}
	round     = process.FieldUse{Field: process.FieldTerm, Symbol: "round"}
	direction = process.FieldUse{Field: process.FieldValue, Symbol: "to", Names: []string{"right", "left"}}
)

const (
	probe process.Type = iota + 1
	reply
	elected
)

const (
	ruleH1 process.Rule = iota + 1
	ruleH2a
	ruleH2b
	ruleH3
	ruleH3a
	ruleH4
	ruleH5
	ruleH5a
	ruleH5b
	ruleH6
	ruleH6a
	ruleH7
)

// right is the direction of the ring, left the other one.
const (
	right = iota
	left
)

type role uint8

const (
	idle role = iota // no election is in progress
	candidate
	beaten
)

var roleNames = []string{"IDLE", "CANDIDATE", "BEATEN"}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	SideBySender    bool // the direction of a message is taken from its sender
	SleepersDiscard bool // H3a is missing: a process that does not take part discards a PROBE with a worse label
}

type machine struct {
	c        *process.Config
	self     process.ID
	flaw     Flaw
	neighbor [2]process.ID // by direction; self if this process is alone

	round   uint64 // the highest seen; rises before any message of a new one is sent
	role    role
	reach   uint64       // candidate: how many hops its PROBEs may go; else 0
	replied [2]bool      // candidate: by the direction of the PROBE; not both
	elected process.Term // of the latest leader, or 0
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := &machine{c: c, self: self, flaw: flaw}
	m.neighbor[right] = c.Topology.Next(self, c.N)
	before := self
	for p := m.neighbor[right]; p != self; p = c.Topology.Next(p, c.N) {
		before = p
	}
	m.neighbor[left] = before
	return m
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Campaign:
		m.start(fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	}
}

// start is H1.
func (m *machine) start(fx *process.Effects) {
	if m.role != idle {
		return
	}
	m.see(m.round+1, fx)
	m.run(fx)
}

// see notes a round, and saves it before any message of it is sent.
func (m *machine) see(round uint64, fx *process.Effects) {
	m.round, m.role, m.reach = round, idle, 0
	fx.Save()
}

// run makes this process a candidate of the present round.
func (m *machine) run(fx *process.Effects) {
	fx.Rule(ruleH1)
	m.role, m.reach = candidate, 1
	if m.neighbor[right] == m.self {
		m.win(fx)
		return
	}
	m.probe(fx)
}

// probe sends PROBE in both directions.
func (m *machine) probe(fx *process.Effects) {
	m.replied = [2]bool{}
	for _, to := range []int{left, right} {
		m.send(probe, m.self, m.reach, to, fx)
	}
}

func (m *machine) send(kind process.Type, of process.ID, hops uint64, to int, fx *process.Effects) {
	fx.Send(m.neighbor[to], process.Message{
		Type: kind, Subject: of, Term: process.MakeTerm(m.round, of), Seq: hops, Value: int64(to),
	})
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	r := msg.Term.Round()
	if r > m.round {
		m.see(r, fx)
	}
	switch {
	case msg.Type == elected:
		m.onElected(msg, fx)
	case r < m.round || r == m.elected.Round():
		fx.Rule(ruleH7)
	case msg.Type == probe:
		m.onProbe(msg, m.travels(msg), fx)
	default:
		m.onReply(msg, m.travels(msg), fx)
	}
}

// travels returns the direction of a message.
func (m *machine) travels(msg *process.Message) int {
	if m.flaw.SideBySender {
		if msg.From == m.neighbor[left] {
			return right
		}
		return left
	}
	return int(msg.Value)
}

// onProbe is H2, H3 and H4.
func (m *machine) onProbe(msg *process.Message, to int, fx *process.Effects) {
	j := msg.Subject
	switch {
	case j == m.self && m.role == candidate:
		m.win(fx)
	case ring.Better(m.self, j, m.c) && m.role == idle && !m.flaw.SleepersDiscard:
		fx.Rule(ruleH3a)
		m.run(fx)
	case !ring.Better(j, m.self, m.c):
		fx.Rule(ruleH3)
	case msg.Seq > 1:
		fx.Rule(ruleH2a)
		m.giveUp()
		m.send(probe, j, msg.Seq-1, to, fx)
	default:
		fx.Rule(ruleH2b)
		m.giveUp()
		m.send(reply, j, 0, left-to, fx)
	}
}

func (m *machine) giveUp() { m.role, m.reach, m.replied = beaten, 0, [2]bool{} }

// win is H4.
func (m *machine) win(fx *process.Effects) {
	fx.Rule(ruleH4)
	m.record(process.MakeTerm(m.round, m.self), fx)
	m.announce(m.self, fx)
}

func (m *machine) announce(leader process.ID, fx *process.Effects) {
	if m.neighbor[right] != m.self {
		fx.Send(m.neighbor[right], process.Message{Type: elected, Subject: leader, Term: process.MakeTerm(m.round, leader)})
	}
}

// onReply is H5. A REPLY travels against the PROBE that it answers.
func (m *machine) onReply(msg *process.Message, to int, fx *process.Effects) {
	if msg.Subject != m.self {
		fx.Rule(ruleH5)
		m.send(reply, msg.Subject, 0, to, fx)
		return
	}
	if m.role != candidate {
		fx.Rule(ruleH7)
		return
	}
	m.replied[left-to] = true
	if !m.replied[to] {
		fx.Rule(ruleH5a)
		return
	}
	fx.Rule(ruleH5b)
	m.reach *= 2
	m.probe(fx)
}

// onElected is H6.
func (m *machine) onElected(msg *process.Message, fx *process.Effects) {
	if msg.Term <= m.elected {
		fx.Rule(ruleH6a)
		return
	}
	fx.Rule(ruleH6)
	m.record(msg.Term, fx)
	m.announce(msg.Subject, fx)
}

// record notes the leader and announces it.
func (m *machine) record(t process.Term, fx *process.Effects) {
	m.giveUp()
	m.role, m.elected = idle, t
	fx.Elect(t.Leader(), t)
}

// Fields names the state. Only the round must survive a crash: a process that forgot it
// could lead twice in one term.
func (m *machine) Fields(f *process.Fields) {
	f.Durable().Seq("round", &m.round)
	process.Enum(f, "st", &m.role, roleNames)
	f.Uint("reach", &m.reach)
	f.Bool("right", &m.replied[right])
	f.Bool("left", &m.replied[left])
	f.Term("elected", &m.elected)
}
