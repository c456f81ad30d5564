// Package signedgenerals is the agreement of the Byzantine generals with signed messages.
//
// # Problem and idea
//
// The problem is that of package generals. A commander gives an order, and up to m of
// the generals are traitors. All loyal lieutenants must obey the same order (IC1), and
// the commander's order if it is loyal (IC2). With oral messages that needs N > 3m.
// Here every general signs what it sends, no process can forge the signature of a loyal
// general, and every process can verify it. So a traitor that passes on a changed order
// is detected, and any number of traitors can be survived.
//
// The order travels with the signatures of all that have passed it on. In round r a
// lieutenant accepts an order only with r signatures, and passes it on with its own. In
// the last round, at least one of the m+1 signatures is that of a loyal general, who
// has passed the order on to every process in time.
//
// # Rules
//
//	R1  the commander proposes v: keep it until round 1 begins. Other processes propose
//	    nothing.
//	R2  round 1 begins: the commander sends ORDER(v, [c]) to all.
//	R3  on ORDER(v, S): keep it until the round is over.
//	    R3a If S does not begin with the commander or end with the sender, repeats a
//	    process, contains the receiver or has fewer signatures than the round: ignore it.
//	R4  round r is over: accept each order that came with r signatures, up to two orders.
//	    R4a If it is not the last round, sign each newly accepted order and send it to
//	    all that have not signed it.
//	R5  round m+1 is over: decide the accepted order, or RETREAT if there are none or two.
//
// # Why it is safe
//
// IC2: a loyal commander signs one order, so no other can be accepted, and all get it
// in round 1. IC1: all loyal lieutenants accept the same orders, or two each. Suppose
// one accepts v in round r. If r <= m, it passes v on, and all others accept it in
// round r+1, unless they have two already. If r = m+1, the order has m+1 signatures.
// One of them is that of a loyal lieutenant, which has passed the order on before.
//
// The number of signatures must equal the round. Otherwise a traitor could hold an
// order back and show it to one lieutenant in the last round, too late to pass it on.
//
// # Cost
//
// (N-1)(N-1) messages if there is no traitor and m > 0: N-1 from the commander, and one
// from each lieutenant to each other. Never more than N-1 + 2(N-1)(N-2), because a
// loyal lieutenant passes on at most two orders. There are m+1 rounds.
//
// # Assumptions and deviations
//
// Rounds are as in package generals. The signatures are a list of processes: a host
// lets a traitor send only what the Spec allows (Spec.Lies). If all signers are
// traitors, that is either order, or both, or none. If a loyal process has signed, it
// is the message unchanged or none. For m = 1 this covers everything that a traitor can
// do. For more traitors it leaves one case out: a traitor shows a message that another
// traitor has received, in a round in which it has nothing to pass on itself.
//
// Sources: L. Lamport, R. Shostak, M. Pease: The Byzantine generals problem, 1982; D.
// Dolev, H. R. Strong: Authenticated algorithms for Byzantine agreement, 1983, for
// passing on only two orders; [D1].
package signedgenerals

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm. The commander is the coordinator of the topology.
var Spec = &process.Spec{
	Name:      "signed-generals",
	Title:     "Byzantine generals with signed messages",
	Paper:     "L. Lamport, R. Shostak, M. Pease: The Byzantine generals problem, ACM Transactions on Programming Languages and Systems 4(3), 1982, doi:10.1145/357172.357176",
	Documents: []string{"[D1]"},
	Family:    process.Agreement,
	Messages: []process.MessageSpec{{Name: "ORDER", Fields: []process.FieldUse{
		{Field: process.FieldValue, Symbol: "v", Names: orders}, {Field: process.FieldIDs, Symbol: "signed"}}}},
	Timers: []string{"round"},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "propose: keep the order until round 1 begins"},
		{Name: "R2", Text: "round 1 begins: the commander signs its order and sends it to all"},
		{Name: "R3", Text: "an order with as many signatures as the round: keep it"},
		{Name: "R3a", Text: "signatures that do not fit the sender, the receiver or the round: ignore the order"},
		{Name: "R4", Text: "a round is over: accept the orders that came in it, at most two"},
		{Name: "R4a", Text: "it is not the last round: sign the new orders and pass them on"},
		{Name: "R5", Text: "the last round is over: decide the only order, or RETREAT"},
	},
	Options: []process.Option{
		{Name: "m", Default: "1", Min: 0, Max: 1_000_000, Text: "number of Byzantine processes that it survives; there are m+1 rounds"},
		{Name: "round", Default: "2", Min: 1, Max: 1_000_000, Text: "length of a round, in D; less than 2 only if all processes start at the same moment"},
	},
	Needs:  process.Needs{Reliable: true, NoDuplication: true, Synchrony: true, Topology: process.Commander},
	Claims: claims,
	Values: orders,
	Lies:   lies,
	New:    Flaw{}.New,
}

const (
	few  = "at most m processes are Byzantine or crash"
	calm = "no process is Byzantine"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ValueAgreement, When: few},
		{Property: process.Unanimity, When: few + ", the commander proposes before the first round"},
		{Property: process.Decision},
		{Property: process.DecideOnce},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerDecision, Regime: process.OneStarter, When: calm, Exact: &process.Formula{
			Text: "(N-1)(N-1); N-1 if m = 0", Eval: func(p process.Params) float64 {
				return float64((p.N - 1) * (1 + min(p.F, 1)*max(0, p.N-2)))
			}}},
		{Metric: process.MessagesPerDecision, Regime: process.Worst, When: few + "; counts the messages of loyal processes", Hi: &process.Formula{
			Text: "N-1 + 2(N-1)(N-2)", Eval: func(p process.Params) float64 { return float64((p.N - 1) * (1 + 2*max(0, p.N-2))) }}},
		{Metric: process.DecisionTime, Regime: process.OneStarter, When: calm + "; a round is 2D, and the proposal is made in the round before the first", Exact: &process.Formula{
			Text: "m+2 rounds = 2(m+2)", Eval: func(p process.Params) float64 { return float64(2 * (levels(p.F, p.N) + 2)) }}},
	},
	Survives: []process.Survival{
		{Fault: process.CrashAny, When: few, How: "a crash is silence, which is one of the things that a Byzantine process may do"},
	},
}

// orders are the names of the orders. The first is the default if none is accepted.
var orders = []string{"RETREAT", "ATTACK"}

// lies are what traitors can sign among themselves.
func lies(_ *process.Config, traitors []process.ID, m *process.Message) [][]process.Message {
	loyal := func(p process.ID) bool { return !slices.Contains(traitors, p) }
	if slices.ContainsFunc(m.IDs, loyal) {
		return [][]process.Message{{*m}}
	}
	one := process.AnyValue(m, len(orders))
	return append(one, slices.Concat(one[0], one[1]))
}

const order process.Type = 1

const roundTimer process.Timer = 1

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR3
	ruleR3a
	ruleR4
	ruleR4a
	ruleR5
)

// signed is an order with its signatures.
type signed struct {
	value int64
	by    []process.ID
}

func (s signed) compare(o signed) int {
	switch {
	case len(s.by) != len(o.by):
		return len(s.by) - len(o.by)
	case s.value < o.value:
		return -1
	case s.value > o.value:
		return 1
	}
	return slices.Compare(s.by, o.by)
}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	OneRoundLess bool // m rounds instead of m+1
	FirstOrder   bool // R5: decides the first of two orders
	OneOrder     bool // R4a: passes on the first order only
}

type machine struct {
	self   process.ID
	c      *process.Config
	flaw   Flaw
	rounds int              // the number of rounds
	length process.Duration // of a round

	round    int      // the present one; 0: the first has not begun
	over     bool     // it has decided, or has restarted
	value    int64    // what the commander proposed
	accepted []uint64 // V, the encoded orders, at most two
	heard    []signed // of this round and of later ones, sorted, each order of a round once
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	rounds := levels(c.IntOption("m", 1), c.N) + 1
	if flaw.OneRoundLess {
		rounds = max(1, rounds-1)
	}
	return &machine{
		self: self, c: c, flaw: flaw, rounds: rounds,
		length: process.Duration(c.IntOption("round", 2)) * c.D(),
	}
}

// levels is the number of times that an order is passed on: when all but one process
// have signed it, none is left to receive it.
func levels(m, n int) int { return max(0, min(m, n-2)) }

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start:
		fx.Arm(roundTimer, m.length, m.length)
	case process.Restart:
		m.over = true
	case process.Propose:
		m.propose(ev.Value, fx)
	case process.Deliver:
		m.onOrder(ev.Message, fx)
	case process.Fire:
		m.endRound(fx)
	}
}

func (m *machine) commands() bool { return m.self == m.c.Topology.Coordinator }

// propose is R1.
func (m *machine) propose(value int64, fx *process.Effects) {
	if m.round > 0 || m.over || !m.commands() {
		return
	}
	fx.Rule(ruleR1)
	m.value = value
}

// onOrder is R3. If the same order comes with different signatures, the least list is
// kept, so that the order of arrival does not matter.
func (m *machine) onOrder(msg *process.Message, fx *process.Effects) {
	if m.over || len(msg.IDs) < m.round || !m.fits(msg) {
		fx.Rule(ruleR3a)
		return
	}
	fx.Rule(ruleR3)
	if m.has(msg.Value) {
		return
	}
	s := signed{msg.Value, slices.Clone(msg.IDs)}
	at, _ := slices.BinarySearchFunc(m.heard, s, signed.compare)
	same := func(i int) bool {
		return i >= 0 && i < len(m.heard) && m.heard[i].value == s.value && len(m.heard[i].by) == len(s.by)
	}
	switch {
	case same(at):
		m.heard[at] = s
	case !same(at - 1):
		m.heard = slices.Insert(m.heard, at, s)
	}
}

// fits reports whether the signatures are those of an order that comes from its sender.
func (m *machine) fits(msg *process.Message) bool {
	by := msg.IDs
	if len(by) == 0 || len(by) > m.rounds || by[len(by)-1] != msg.From || by[0] != m.c.Topology.Coordinator || slices.Contains(by, m.self) {
		return false
	}
	for i, p := range by {
		if p < 0 || int(p) >= m.c.N || slices.Contains(by[:i], p) {
			return false
		}
	}
	return true
}

func (m *machine) has(value int64) bool { return slices.Contains(m.accepted, uint64(value)) }

// endRound begins the next round, and before that is R4.
func (m *machine) endRound(fx *process.Effects) {
	last := m.round == m.rounds
	switch {
	case m.round == 0 && m.commands():
		fx.Rule(ruleR2)
		m.accepted = append(m.accepted, uint64(m.value))
		m.send(signed{value: m.value}, fx)
	case m.round > 0:
		fx.Rule(ruleR4)
		m.accept(last, fx)
	}
	if last {
		fx.Rule(ruleR5)
		fx.Decide(m.choice())
		m.over, m.accepted, m.heard = true, nil, nil
		return
	}
	m.round++
	fx.Arm(roundTimer, m.length, m.length)
}

// accept takes in the orders of this round, and is R4a.
func (m *machine) accept(last bool, fx *process.Effects) {
	most := 2
	if m.flaw.OneOrder {
		most = 1
	}
	ofLater := slices.IndexFunc(m.heard, func(s signed) bool { return len(s.by) > m.round })
	if ofLater < 0 {
		ofLater = len(m.heard)
	}
	for _, s := range m.heard[:ofLater] {
		if m.has(s.value) || len(m.accepted) == 2 {
			continue
		}
		m.accepted = append(m.accepted, uint64(s.value))
		if !last && len(m.accepted) <= most {
			fx.Rule(ruleR4a)
			m.send(s, fx)
		}
	}
	m.heard = slices.Delete(m.heard, 0, ofLater)
}

// send signs an order and sends it to all that have not signed it.
func (m *machine) send(s signed, fx *process.Effects) {
	by := append(slices.Clone(s.by), m.self)
	for p := range process.ID(m.c.N) {
		if !slices.Contains(by, p) {
			fx.Send(p, process.Message{Type: order, IDs: by, Value: s.value})
		}
	}
}

// choice returns the decision that follows from the accepted orders.
func (m *machine) choice() int64 {
	if len(m.accepted) == 1 || len(m.accepted) > 1 && m.flaw.FirstOrder {
		return int64(m.accepted[0])
	}
	return 0
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	f.Count("round", &m.round)
	f.Bool("over", &m.over)
	f.Int("value", &m.value)
	f.Uints("V", &m.accepted)
	process.List(f, "heard", &m.heard, signedFields)
}

func signedFields(f *process.Fields, s *signed) {
	f.Int("v", &s.value)
	f.IDs("signed", &s.by)
}
