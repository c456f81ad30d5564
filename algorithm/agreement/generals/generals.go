// Package generals is agreement while some processes lie: the Byzantine
// generals with oral messages, and interactive consistency.
//
// # Problem and idea
//
// A commander gives an order to its lieutenants. Up to m of these generals are
// traitors, who send anything to anyone, or nothing. All loyal lieutenants must obey
// the same order (IC1), and if the commander is loyal, they must obey its order (IC2).
// Messages are oral: the receiver knows the sender of a message, but has no proof of
// what that sender says about the words of another general.
//
// A traitorous commander may give different orders, so the lieutenants tell each other
// what they were told. But they may lie about that, too. So what each lieutenant says
// about the order is agreed on in the same way, with one traitor less. That is the
// recursion OM(m). Unrolled, it is a tree: the value of the path [c i j] is what j says
// that i says that the commander c has ordered.
//
// # Rules
//
//	R1  the commander proposes v: keep it until round 1 begins. Other processes propose
//	    nothing.
//	R2  round 1 begins: the commander sends ORDER([c], v) to all.
//	R3  on ORDER(p, v): keep v as the value of path p.
//	    R3a If p does not end with the sender, repeats a process, contains the receiver
//	    or belongs to an earlier round: ignore it.
//	R4  round r+1 begins: for each path p of length r without the process itself, send
//	    ORDER(p + itself, value of p) to all that are not in it. A value that has not come
//	    is RETREAT.
//	R5  round m+1 is over: decide the result of [c]. The result of a path of length m+1 is
//	    its value. The result of a shorter path p is the majority of its own value and the
//	    results of all paths that extend p by one process, or RETREAT without a majority.
//
// Interactive consistency does this with every process as the commander of its own
// agreement: R2 applies to all, and there are N decisions, in the order of the ranks.
// The decision for a loyal process is what it has proposed.
//
// # Why it is safe
//
// IC2: if the commander is loyal, every loyal lieutenant has its order as the value of
// [c] and passes it on. More than half of the N-1 lieutenants are loyal. Each level
// removes one process, and that stays true as long as N > 2k+m, where k counts the
// traitors and m the levels. So by induction all loyal results are the order, and so is
// the majority. IC1: if the commander is a traitor, at most m-1 lieutenants are, and
// N-1 > 3(m-1). So by induction the loyal lieutenants agree on the result of each [c
// i], and take the majority of the same values.
//
// A path never repeats a process; otherwise a traitor would vote on its own words.
//
// # No solution for N <= 3m
//
// Suppose that one of three generals is a traitor. A lieutenant that hears ATTACK from
// the commander and RETREAT from the other lieutenant cannot tell which of the two
// lies. If it obeys the commander, a traitorous commander makes the two disagree. If it
// does not, a traitorous lieutenant breaks IC2. The model checker shows both.
//
// # Cost
//
// In round r every path of length r-1 is sent on by each process that is not in it, to
// each other process that is not in it: (N-1)(N-2)...(N-r) messages. In all rounds that
// is 9 for N=4 and m=1, and 156 for N=7 and m=2. Interactive consistency takes N times
// as many. There are m+1 rounds.
//
// # Assumptions and deviations
//
// A timer that starts with the process ends the rounds. All processes start within less
// than one delay of each other, so a round lasts twice the longest delay. Proposals are
// made in the round before the first. A path has at most N-1 processes, so with m > N-2
// there are N-1 rounds. A process that restarts does not take part. The paper sends one
// message with all values of a round to each process; here each value is a message, as
// the paper counts them. Values may be any numbers; RETREAT is 0.
//
// The machines do not know which processes are traitors. A host replaces the messages
// of a traitor by any that the Spec allows (Spec.Lies): the values RETREAT and ATTACK
// for each path and each receiver, or silence. Anything else that a traitor could send
// is ignored by R3a, or has the same effect as one of these.
//
// Sources: L. Lamport, R. Shostak, M. Pease: The Byzantine generals problem, 1982; M.
// Pease, R. Shostak, L. Lamport: Reaching agreement in the presence of faults, 1980;
// [D1].
package generals

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the agreement on the order of one commander, the coordinator of the
// topology.
var Spec = &process.Spec{
	Name:      "generals",
	Title:     "Byzantine generals with oral messages",
	Paper:     "L. Lamport, R. Shostak, M. Pease: The Byzantine generals problem, ACM Transactions on Programming Languages and Systems 4(3), 1982, doi:10.1145/357172.357176",
	Documents: []string{"[D1]"},
	Family:    process.Agreement,
	Messages:  []process.MessageSpec{{Name: "ORDER", Fields: content(orders)}},
	Timers:    []string{"round"},
	Rules:     rules("the commander sends its order to all"),
	Options:   options,
	Needs:     process.Needs{Reliable: true, NoDuplication: true, Synchrony: true, Topology: process.Commander},
	Claims:    claimsOfOne,
	Values:    orders,
	Lies:      lies,
	New:       Flaw{}.New,
}

// Consistency describes the agreement on the values of all processes.
var Consistency = &process.Spec{
	Name:      "interactive-consistency",
	Title:     "Interactive consistency",
	Paper:     "M. Pease, R. Shostak, L. Lamport: Reaching agreement in the presence of faults, Journal of the ACM 27(2), 1980, doi:10.1145/322186.322188",
	Documents: []string{"[D1]"},
	Family:    process.Agreement,
	Messages:  []process.MessageSpec{{Name: "VALUE", Fields: content(nil)}},
	Timers:    []string{"round"},
	Rules:     rules("every process sends its value to all"),
	Options:   options,
	Needs:     process.Needs{Reliable: true, NoDuplication: true, Synchrony: true},
	Claims:    claimsOfAll,
	Values:    []string{"0", "1"},
	Lies:      lies,
	New:       Flaw{all: true}.New,
}

// orders are the names of the orders that a commander gives. The first is the default
// if no order has come.
var orders = []string{"RETREAT", "ATTACK"}

func content(values []string) []process.FieldUse {
	return []process.FieldUse{{Field: process.FieldIDs, Symbol: "path"}, {Field: process.FieldValue, Symbol: "v", Names: values}}
}

func rules(first string) []process.RuleSpec {
	return []process.RuleSpec{
		{Name: "R1", Text: "propose: keep the value until round 1 begins"},
		{Name: "R2", Text: "round 1 begins: " + first},
		{Name: "R3", Text: "a value of a path: keep it"},
		{Name: "R3a", Text: "a path that does not fit the sender, the receiver or the round: ignore it"},
		{Name: "R4", Text: "the next round begins: pass on the value of each path"},
		{Name: "R5", Text: "the last round is over: decide by majorities, from the longest paths to the shortest"},
	}
}

var options = []process.Option{
	{Name: "m", Default: "1", Min: 0, Max: 10, Text: "number of Byzantine processes that it survives; there are m+1 rounds"},
	{Name: "round", Default: "2", Min: 1, Max: 1_000_000, Text: "length of a round, in D; less than 2 only if all processes start at the same moment"},
}

// lies are the values 0 and 1 in place of any other.
func lies(_ *process.Config, _ []process.ID, m *process.Message) [][]process.Message {
	return process.AnyValue(m, len(orders))
}

const order process.Type = 1

const roundTimer process.Timer = 1

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR3
	ruleR3a
	ruleR4
	ruleR5
)

// heard is the value of a path.
type heard struct {
	path  []process.ID
	value int64
}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	OneRoundLess bool // m rounds instead of m+1
	RepeatsIDs   bool // a path may contain a process twice
	Waits        bool // there is no default: a round ends only when every value has come

	all bool // not a flaw: every process is a commander
}

type machine struct {
	self   process.ID
	c      *process.Config
	flaw   Flaw
	rounds int              // the number of rounds
	length process.Duration // of a round

	round int     // the present one; 0: the first has not begun
	over  bool    // it has decided, or has restarted
	value int64   // what it proposed
	tree  []heard // the values of paths, in the order of paths; a missing value is 0
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

// levels is the number of times that a value is passed on.
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

// commands reports whether a process gives an order.
func (m *machine) commands(p process.ID) bool { return m.flaw.all || p == m.c.Topology.Coordinator }

// propose is R1.
func (m *machine) propose(value int64, fx *process.Effects) {
	if m.round > 0 || m.over || !m.commands(m.self) {
		return
	}
	fx.Rule(ruleR1)
	m.value = value
}

// onOrder is R3.
func (m *machine) onOrder(msg *process.Message, fx *process.Effects) {
	if m.over || len(msg.IDs) < m.round || !m.fits(msg) {
		fx.Rule(ruleR3a)
		return
	}
	fx.Rule(ruleR3)
	i, found := m.find(msg.IDs)
	switch {
	case found:
		m.tree[i].value = msg.Value
	case msg.Value != 0 || m.flaw.Waits:
		m.tree = slices.Insert(m.tree, i, heard{slices.Clone(msg.IDs), msg.Value})
	}
}

// fits reports whether the sender may send a value of the path to this process.
func (m *machine) fits(msg *process.Message) bool {
	path := msg.IDs
	if len(path) == 0 || len(path) > m.rounds || path[len(path)-1] != msg.From || !m.commands(path[0]) {
		return false
	}
	for i, p := range path {
		if p < 0 || int(p) >= m.c.N || !m.mayFollow(path[:i], p) {
			return false
		}
	}
	return m.mayFollow(path, m.self)
}

// mayFollow reports whether a process may pass on the value of a path, or receive it.
func (m *machine) mayFollow(path []process.ID, p process.ID) bool {
	return m.flaw.RepeatsIDs || !slices.Contains(path, p)
}

func (m *machine) find(path []process.ID) (int, bool) {
	return slices.BinarySearchFunc(m.tree, path, func(h heard, path []process.ID) int { return slices.Compare(h.path, path) })
}

// valueOf is the value of a path.
func (m *machine) valueOf(path []process.ID) int64 {
	if len(path) == 1 && path[0] == m.self {
		return m.value
	}
	if i, found := m.find(path); found {
		return m.tree[i].value
	}
	return 0
}

// endRound begins the next round, or is R5.
func (m *machine) endRound(fx *process.Effects) {
	switch {
	case m.flaw.Waits && m.round > 0 && m.lacks():
		return
	case m.round == m.rounds:
		fx.Rule(ruleR5)
		m.decide(fx)
		return
	case m.round == 0 && m.commands(m.self):
		fx.Rule(ruleR2)
		m.send([]process.ID{m.self}, m.value, fx)
	case m.round > 0:
		fx.Rule(ruleR4)
		m.each(m.round, func(path []process.ID) { m.send(append(path, m.self), m.valueOf(path), fx) })
	}
	m.round++
	fx.Arm(roundTimer, m.length, m.length)
}

// send sends a value to all that may receive it.
func (m *machine) send(path []process.ID, value int64, fx *process.Effects) {
	for p := range process.ID(m.c.N) {
		if p != m.self && m.mayFollow(path, p) {
			fx.Send(p, process.Message{Type: order, IDs: path, Value: value})
		}
	}
}

// each calls a function with each path of a length that this process passes on.
func (m *machine) each(length int, do func(path []process.ID)) {
	path := make([]process.ID, 0, m.rounds+1)
	var extend func()
	extend = func() {
		if len(path) == length {
			do(path)
			return
		}
		for p := range process.ID(m.c.N) {
			if m.follows(path, p) {
				path = append(path, p)
				extend()
				path = path[:len(path)-1]
			}
		}
	}
	extend()
}

// follows reports whether a process may be the next in a path that this one knows of.
func (m *machine) follows(path []process.ID, p process.ID) bool {
	if len(path) == 0 {
		return m.commands(p) && (p != m.self || m.flaw.RepeatsIDs)
	}
	return p != m.self && m.mayFollow(path, p)
}

// lacks reports whether the value of some path of the present round has not come.
func (m *machine) lacks() bool {
	lacks := false
	m.each(m.round, func(path []process.ID) {
		_, found := m.find(path)
		lacks = lacks || !found
	})
	return lacks
}

func (m *machine) decide(fx *process.Effects) {
	for p := range process.ID(m.c.N) {
		switch {
		case !m.commands(p):
		case p == m.self:
			fx.Decide(m.value)
		default:
			fx.Decide(m.result([]process.ID{p}))
		}
	}
	m.over, m.tree = true, nil
}

// result is the value that this process assigns to a path after the last round.
func (m *machine) result(path []process.ID) int64 {
	votes := []int64{m.valueOf(path)}
	if len(path) == m.rounds {
		return votes[0]
	}
	for p := range process.ID(m.c.N) {
		if m.follows(path, p) {
			votes = append(votes, m.result(append(path[:len(path):len(path)], p)))
		}
	}
	return majority(votes)
}

// majority returns the value of more than half of the votes, or 0.
func majority(votes []int64) int64 {
	slices.Sort(votes)
	middle := votes[len(votes)/2]
	count := 0
	for _, v := range votes {
		if v == middle {
			count++
		}
	}
	if 2*count > len(votes) {
		return middle
	}
	return 0
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	f.Count("round", &m.round)
	f.Bool("over", &m.over)
	f.Int("value", &m.value)
	process.List(f, "tree", &m.tree, heardFields)
}

func heardFields(f *process.Fields, h *heard) {
	f.IDs("path", &h.path)
	f.Int("v", &h.value)
}
