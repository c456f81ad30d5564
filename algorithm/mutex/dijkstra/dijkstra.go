// Package dijkstra is mutual exclusion on a ring that recovers from any state.
//
// # Problem and idea
//
// A transient fault may set any variable of any process to any value, and leave
// anything on the links. No process notices it. An algorithm is self-stabilizing if it
// returns from every such state to a legitimate one without help (convergence) and
// stays legitimate until the next fault (closure).
//
// Each process of a ring has a number S from 0 to K-1 and compares it with that of its
// predecessor. One process, the bottom, is privileged if the two are equal; it moves by
// increasing S modulo K. Any other process is privileged if they differ; it moves by
// copying the predecessor's number. If exactly one process is privileged, its move
// passes the privilege on. Otherwise moves reduce the number of privileges: a
// difference that has gone round the ring disappears. When the bottom reaches a number
// that no other process has, copying it round the ring removes all others.
//
// # Rules
//
// Processes do not read each other's memory. Each keeps the last value that it
// received.
//
//	D1  start: set the timer to tau.
//	D2  VAL(v) from the predecessor: cache := v.
//	    After D2, D6 and D7, if the process is privileged (the bottom if cache = S,
//	    any other if cache differs from S):
//	    D3  its client waits: enter.
//	    D4  its client is idle: move as in D5.
//	D5  move: the bottom S := S+1 mod K, any other S := cache; VAL(S) to the successor.
//	    The same at a release, if the process is still privileged.
//	D6  the timer: VAL(S) to the successor again, and set it to tau.
//	D7  request: wait.
//
// Without D6 a lost message would stop the ring forever. D6 also starts the ring.
//
// # Why it converges
//
// A value on a link or in a cache acts as one more machine that copies: a ring of n
// processes with at most c values between two neighbours is a ring of n(1+c) machines.
// They have at most n(1+c) different numbers. So if K is at least that, the bottom
// reaches a number that no other machine has, or one that all of them have. Machines
// cannot move forever without the bottom, because every other move carries a value on
// towards it. K may be smaller if only one machine moves at a time, which is the case
// here; the page has the bounds that a search of all states finds.
//
// A state is legitimate if exactly one of all these machines is privileged. Then at
// most one process is privileged, so at most one client that entered after convergence
// is inside. Before convergence there is no mutual exclusion, and no fence can help,
// because a counter is a variable like any other. A client that entered before
// convergence may still be inside together with another.
//
// # Cost
//
// One message per entry if all processes want to enter; otherwise one for each process
// on the way. The privilege goes round even if no process asks. The retransmissions add
// n messages in each tau.
//
// # Assumptions and deviations
//
// Links keep order and duplicate nothing. No process stops: a process that is down cuts
// the ring. A process that comes back with arbitrary values in its variables is a
// transient fault.
//
// The paper's processes read their neighbours. File state.go has that model, in which
// one or several machines move at a time, and the paper's machines with three and four
// states. The cache and tau are the usual replacement for shared memory.
//
// Sources: E. W. Dijkstra: Self-stabilizing systems in spite of distributed control, 1974.
package dijkstra

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "dijkstra",
	Title:     "Dijkstra's self-stabilizing ring",
	Paper:     "E. W. Dijkstra: Self-stabilizing Systems in Spite of Distributed Control, Communications of the ACM 17(11), 1974, doi:10.1145/361179.361202",
	Documents: []string{"[D2]"},
	Family:    process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "VAL", Fields: []process.FieldUse{{Field: process.FieldValue, Symbol: "S"}}},
	},
	Timers: []string{"tau"},
	Rules: []process.RuleSpec{
		{Name: "D1", Text: "start: set the timer"},
		{Name: "D2", Text: "VAL of the predecessor: keep it"},
		{Name: "D3", Text: "privileged, and the client waits: enter"},
		{Name: "D4", Text: "privileged, and the client is idle: move"},
		{Name: "D5", Text: "move: count up or copy, VAL to the successor"},
		{Name: "D6", Text: "the timer: VAL again"},
		{Name: "D7", Text: "request: wait for the privilege"},
	},
	Options: []process.Option{
		{Name: "values", Default: "0", Max: 1_000_000, Text: "number of values of S (the paper's K), at least 2; 0: four per process"},
		{Name: "tau", Default: "20", Min: 1, Max: 1_000_000, Text: "time in D after which a value is sent again"},
	},
	Needs:      process.Needs{FIFO: true, NoDuplication: true, Topology: process.RingTopology},
	Claims:     claims,
	Cancels:    true,
	Invariant:  &process.Invariant{Text: "exactly one of all processes, caches and messages is privileged", Wrong: wrong},
	Corruption: &process.Corruption{States: states, Messages: messages},
	Check:      check,
	New:        Flaw{}.New,
}

const recovered = "no transient fault happened, or it is over and the ring has converged"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion, When: recovered},
		{Property: process.Progress},
		{Property: process.BoundedBypass, Bound: process.PerOther("N-1", 1), When: recovered},
		{Property: process.Convergence, When: "K >= n(1+c), where at most c values are in a cache or on its way to it"},
		{Property: process.FencesGrow, Fails: true, When: "there are none: a fault may change any counter"},
		{Property: process.OrderHappenedBefore, Fails: true, When: "entries follow the ring, not the order of requests"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, When: "N >= 2; plus N for each tau that passes", Lo: process.Constant("1", 1)},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: "N >= 2", Exact: process.Constant("1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Loss, How: "D6"},
		{Fault: process.Slowness, How: "no rule depends on time"},
	},
}

const val process.Type = 1

const tauTimer process.Timer = 1

const (
	ruleD1 process.Rule = iota + 1
	ruleD2
	ruleD3
	ruleD4
	ruleD5
	ruleD6
	ruleD7
)

const idle, waiting, inside = process.PhaseIdle, process.PhaseWaiting, process.PhaseInside

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	SendsOnce bool // D6 does not send again
	Alike     bool // the bottom uses the rule of the others
}

type machine struct {
	c    *process.Config
	self process.ID
	flaw Flaw
	next process.ID
	k    int64

	phase process.Phase
	s     int64 // from 0 to k-1
	cache int64 // the S of the predecessor, as last received
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{c: c, self: self, flaw: flaw, next: c.Topology.Next(self, c.N), k: K(c)}
}

// K returns the number of values of S.
func K(c *process.Config) int64 {
	if k := c.IntOption("values", 0); k != 0 {
		return int64(k)
	}
	return 4 * int64(c.N)
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start, process.Restart:
		fx.Rule(ruleD1)
		m.arm(fx)
	case process.Deliver:
		if m.c.Topology.Next(ev.Message.From, m.c.N) == m.self {
			fx.Rule(ruleD2)
			m.cache = ev.Message.Value
			m.evaluate(fx)
		}
	case process.Fire:
		m.onTimer(fx)
	case process.Acquire:
		process.Assert(m.phase == idle, "a process has one request at a time")
		fx.Rule(ruleD7)
		m.phase = waiting
		m.evaluate(fx)
	case process.Cancel:
		if m.phase == waiting {
			m.phase = idle
		}
	case process.Release:
		m.onRelease(fx)
	}
}

func (m *machine) arm(fx *process.Effects) {
	if tau := process.Duration(m.c.IntOption("tau", 20)) * m.c.D(); m.next != m.self {
		fx.Arm(tauTimer, tau, tau)
	}
}

// privileged reports whether the process may enter. A process that is alone always may.
func (m *machine) privileged() bool {
	return m.next == m.self || privileged(m.bottom(), m.cache, m.s)
}

func (m *machine) bottom() bool { return m.self == m.c.Topology.Coordinator && !m.flaw.Alike }

// evaluate is D3 and D4.
func (m *machine) evaluate(fx *process.Effects) {
	switch {
	case m.phase == inside || !m.privileged():
	case m.phase == waiting:
		fx.Rule(ruleD3)
		m.phase = inside
		fx.Grant(0)
	case m.next != m.self:
		fx.Rule(ruleD4)
		m.move(fx)
	}
}

// move is D5.
func (m *machine) move(fx *process.Effects) {
	fx.Rule(ruleD5)
	m.s = moved(m.bottom(), m.cache, m.s, m.k)
	m.send(fx)
}

func (m *machine) send(fx *process.Effects) {
	fx.Send(m.next, process.Message{Type: val, Value: m.s})
}

// onTimer is D6. A fault may have left a privilege that no process was told of.
func (m *machine) onTimer(fx *process.Effects) {
	fx.Rule(ruleD6)
	m.arm(fx)
	before := m.s
	m.evaluate(fx)
	if m.s == before && !m.flaw.SendsOnce {
		m.send(fx)
	}
}

// onRelease is D5. A client that entered before convergence may have lost the privilege
// since.
func (m *machine) onRelease(fx *process.Effects) {
	if m.phase != inside {
		return
	}
	m.phase = idle
	if m.privileged() && m.next != m.self {
		m.move(fx)
	}
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "st", &m.phase, process.PhaseNames)
	f.Int("S", &m.s)
	f.Int("cache", &m.cache)
}
