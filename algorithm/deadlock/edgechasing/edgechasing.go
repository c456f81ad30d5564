// Package edgechasing finds deadlocks of the AND model with probes, after Chandy, Misra
// and Haas.
//
// # Problem and idea
//
// A process that needs answers of several others, and gets none for a while, checks
// whether it is part of a deadlock. It sends a probe to each process that it waits for.
// A blocked process passes the probe on to every process that it waits for itself. If
// the probe returns to its initiator, it has gone round a cycle of processes that wait
// for each other.
//
// # Rules
//
//	D1  the client asks: pass the request down, wait for the suspicion time.
//	    D1a granted: forget all probes, pass the grant up.
//	    D1b release: pass it down.
//	D2  the suspicion time is over and the request is not granted: begin detection n+1
//	    with PROBE to every process whose answer is missing. Mode break: D2 again after the same
//	    time.
//	D3  on PROBE(a, n) from b: if this process waits, owes b an answer, and has not
//	    passed on detection n of a: PROBE(a, n) to every process whose answer is missing.
//	    D3a Otherwise ignore it.
//	    D3b What b asked for is lent to another process h: HELD(a, n) to h, once.
//	    D3c On HELD from b: if this process waits and has what b lent, as D3.
//	D4  this process's PROBE of the present detection is back: a deadlock.
//	    Mode declare: report it. Mode break: send VICTIM to the process with the largest
//	    rank on the cycle; the probe carries that rank and the number of its request.
//	D5  on VICTIM with the number of the present request: give it up, report the
//	    deadlock, and ask again. D5a With another number: ignore it.
//
// # Why it is right
//
// Suppose that k passes on a probe from b. Then k waits, and has not answered b. It can
// answer b only after it gets the answer that it waits for itself. So when the probe is
// back, no process on the cycle can have answered its predecessor: each waited for its
// successor when it passed the probe on, and can continue only after the successor. The
// test "owes b an answer" is needed because the request of b may be answered already,
// with the answer still in flight. In the other direction, the process whose request
// closes a cycle begins a detection after that, and each process on the cycle passes
// its probe on.
//
// Links keep the order of messages: a probe must not overtake the request before it.
//
// # One victim
//
// Several processes on a cycle may find the same deadlock. All of them name the same
// victim, and the number of the request keeps it from giving up twice. If two cycles
// have a process in common, the victim of one may also break the other while the probe
// of that cycle is in flight; then that cycle's victim gives up unnecessarily. With ask
// = 1 a process waits for only one other, and cycles have no process in common.
//
// # Cost
//
// At most one probe for each edge of the wait-for graph and each detection. On a cycle of
// N processes a detection takes N messages and N delays, after the suspicion time.
//
// # Assumptions and deviations
//
// D3b and D3c are additions. They follow an edge through a process that has lent what
// it was asked for, such as its vote. The paper does not say which process gives up;
// the victim by the largest number on the cycle is that of Mitchell and Merritt.
//
// Sources: K. M. Chandy, J. Misra, L. M. Haas: Distributed deadlock detection, ACM
// Transactions on Computer Systems 1(2), 1983; D. P. Mitchell, M. J. Merritt: A distributed
// algorithm for deadlock detection and resolution, 1984; [D2].
package edgechasing

import (
	"github.com/conclave-io/conclave/algorithm/deadlock"
	"github.com/conclave-io/conclave/process"
)

// Spec describes the detector. It works only above a deadlock.Waiter.
var Spec = &process.Spec{
	Name:      "probes",
	Title:     "Detection of deadlocks by edge chasing",
	Paper:     "K. M. Chandy, J. Misra, L. M. Haas: Distributed deadlock detection, ACM Transactions on Computer Systems 1(2), 1983, doi:10.1145/357360.357365",
	Documents: []string{"[D2]"},
	Family:    process.Deadlock,
	Messages: []process.MessageSpec{
		{Name: "PROBE", Fields: content}, {Name: "HELD", Fields: content},
		{Name: "VICTIM", Fields: []process.FieldUse{request}},
		deadlock.Report,
	},
	Timers: []string{"suspicion"},
	Rules: []process.RuleSpec{
		{Name: "D1", Text: "the client asks: pass the request down, wait for the suspicion time"},
		{Name: "D1a", Text: "granted: forget all probes, pass the grant up"},
		{Name: "D1b", Text: "release: pass it down"},
		{Name: "D2", Text: "the suspicion time is over: PROBE to every process whose answer is missing"},
		{Name: "D3", Text: "PROBE while waiting, from a process to which an answer is owed: pass it on"},
		{Name: "D3a", Text: "another PROBE: ignore it"},
		{Name: "D3b", Text: "PROBE to a process that has lent what it was asked for: HELD to the holder"},
		{Name: "D3c", Text: "HELD while waiting, from the process that lent it: pass it on"},
		{Name: "D4", Text: "its own PROBE is back: a deadlock; report it, or send VICTIM to the largest rank on the cycle"},
		{Name: "D5", Text: "VICTIM for the present request: give it up and ask again"},
		{Name: "D5a", Text: "VICTIM for an earlier request: ignore it"},
	},
	Options: deadlock.Options,
	Needs:   process.Needs{FIFO: true, Reliable: true, NoDuplication: true},
	Claims:  claims,
	Normal:  &process.Normal{Ordered: true, State: numbersOfState, Message: numbersOfMessage},
	New:     Flaw{}.New,
}

const cycle = "a cycle of N processes, one of them looks for a deadlock"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.NoPhantom, When: "mode declare, or no two cycles have a process in common"},
		{Property: process.DeadlockFound},
		{Property: process.Progress, Mode: deadlock.Break},
	},
	Costs: []process.Cost{
		{Metric: process.MessageCount, Regime: process.OneStarter, Mode: deadlock.Declare, When: cycle,
			Exact: process.PerProcess("N", 1)},
		{Metric: process.MessageCount, Regime: process.AllStart, Mode: deadlock.Declare, When: "all N processes of a cycle look for a deadlock",
			Exact: process.OfN("N^2", func(n float64) float64 { return n * n })},
		{Metric: process.MessageCount, Regime: process.Worst, When: "one probe for each edge, if one process looks for a deadlock and all wait for all",
			Hi: process.OfN("N(N-1)", func(n float64) float64 { return n * (n - 1) })},
		{Metric: process.DetectionTime, Regime: process.OneStarter, Mode: deadlock.Declare, When: cycle + ", after its suspicion time",
			Exact: process.PerProcess("N", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Slowness, How: "no rule depends on the suspicion time being long enough"},
	},
}

var (
	request = process.FieldUse{Field: process.FieldValue, Symbol: "r"}
	content = []process.FieldUse{
		{Field: process.FieldSubject, Symbol: "of"}, {Field: process.FieldSeq, Symbol: "n"},
		{Field: process.FieldIDs, Symbol: "max"}, request,
	}
)

const (
	probe process.Type = iota + 1
	held
	victim
	found // reported, never sent
)

const suspicionTimer process.Timer = 1

const (
	ruleD1 process.Rule = iota + 1
	ruleD1a
	ruleD1b
	ruleD2
	ruleD3
	ruleD3a
	ruleD3b
	ruleD3c
	ruleD4
	ruleD5
	ruleD5a
)

// chase is what a probe carries: the detection, and the largest rank on its path.
type chase struct {
	of     process.ID
	number uint64
	max    deadlock.Victim
}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	NoDebt      bool // D3 does not check whether the answer is still owed
	KeepsPassed bool // D1a forgets nothing, and a new number does not count
	OwnVictim   bool // D4: the process that finds the deadlock gives up itself
}

type machine struct {
	self process.ID
	flaw Flaw
	deadlock.Detector

	number uint64 // of its latest detection
	open   bool   // that detection is for the present request, and has found nothing
	// By initiator: the highest detection number that this process has passed on,
	// for itself since it waits, and for what it has lent.
	passed []uint64
	lent   []uint64
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{
		self: self, flaw: flaw, Detector: deadlock.NewDetector(c),
		passed: make([]uint64, c.N), lent: make([]uint64, c.N),
	}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Acquire:
		fx.Rule(ruleD1)
		m.ask(fx)
	case process.Granted:
		fx.Rule(ruleD1a)
		m.forget()
		fx.Disarm(suspicionTimer)
		fx.Grant(ev.Fence)
	case process.Release:
		fx.Rule(ruleD1b)
		fx.Release()
	case process.Fire:
		m.suspect(fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	}
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	switch msg.Type {
	case victim:
		m.onVictim(uint64(msg.Value), fx)
	case probe:
		m.onProbe(msg.From, chaseOf(msg), fx)
	case held:
		if m.Below.Holds(msg.From) {
			m.pass(chaseOf(msg), ruleD3c, fx)
			return
		}
		fx.Rule(ruleD3a)
	}
}

func chaseOf(msg *process.Message) chase {
	process.Assert(len(msg.IDs) == 1, "a probe carries one victim")
	return chase{msg.Subject, msg.Seq, deadlock.Victim{ID: msg.IDs[0], Request: uint64(msg.Value)}}
}

func (m *machine) ask(fx *process.Effects) {
	fx.Acquire()
	fx.Arm(suspicionTimer, m.Wait, m.Wait)
}

// forget ends everything that belongs to one request.
func (m *machine) forget() {
	m.open = false
	if m.flaw.KeepsPassed {
		return
	}
	for p := range m.passed {
		m.passed[p] = 0
	}
}

// suspect is D2.
func (m *machine) suspect(fx *process.Effects) {
	fx.Rule(ruleD2)
	m.number++
	m.open = true
	m.probe(chase{of: m.self, number: m.number, max: deadlock.Victim{ID: process.None}}, fx)
	if m.Breaks {
		fx.Arm(suspicionTimer, m.Wait, m.Wait)
	}
}

// probe sends a probe along each edge that leaves this process.
func (m *machine) probe(c chase, fx *process.Effects) {
	own, _ := m.Below.Request()
	c.max = c.max.Max(deadlock.Victim{ID: m.self, Request: own})
	for p := range m.Below.Missing().All() {
		if p == m.self {
			m.onProbe(m.self, c, fx)
			continue
		}
		m.send(p, probe, c, fx)
	}
}

func (m *machine) send(to process.ID, kind process.Type, c chase, fx *process.Effects) {
	ids := [1]process.ID{c.max.ID}
	fx.Send(to, process.Message{Type: kind, Subject: c.of, Seq: c.number, IDs: ids[:], Value: int64(c.max.Request)})
}

// onProbe is D3.
func (m *machine) onProbe(from process.ID, c chase, fx *process.Effects) {
	if !m.flaw.NoDebt && !m.Below.Owes(from) {
		fx.Rule(ruleD3a)
		return
	}
	holder := m.Below.Holder()
	if holder == m.self {
		m.pass(c, ruleD3, fx)
		return
	}
	if holder == process.None || c.number <= m.lent[c.of] {
		fx.Rule(ruleD3a)
		return
	}
	fx.Rule(ruleD3b)
	m.lent[c.of] = c.number
	m.send(holder, held, c, fx)
}

// pass is D3 and D3c for a process that may have to wait itself, and D4.
func (m *machine) pass(c chase, by process.Rule, fx *process.Effects) {
	_, waits := m.Below.Request()
	switch {
	case waits && c.of == m.self && m.open && c.number == m.number:
		m.find(c.max, fx)
	case waits && c.of != m.self && m.isNew(c):
		fx.Rule(by)
		m.passed[c.of] = c.number
		m.probe(c, fx)
	default:
		fx.Rule(ruleD3a)
	}
}

func (m *machine) isNew(c chase) bool {
	if m.flaw.KeepsPassed {
		return m.passed[c.of] == 0
	}
	return c.number > m.passed[c.of]
}

// find is D4.
func (m *machine) find(v deadlock.Victim, fx *process.Effects) {
	fx.Rule(ruleD4)
	m.open = false
	if m.flaw.OwnVictim {
		v.ID = m.self
	}
	switch {
	case !m.Breaks:
		fx.Report(process.Message{Type: found, Subject: v.ID})
	case v.ID == m.self:
		m.giveUp(fx)
	default:
		fx.Send(v.ID, process.Message{Type: victim, Value: int64(v.Request)})
	}
}

// onVictim is D5.
func (m *machine) onVictim(request uint64, fx *process.Effects) {
	if own, waits := m.Below.Request(); !waits || own != request {
		fx.Rule(ruleD5a)
		return
	}
	m.giveUp(fx)
}

func (m *machine) giveUp(fx *process.Effects) {
	fx.Rule(ruleD5)
	fx.Report(process.Message{Type: found, Subject: m.self})
	m.forget()
	fx.Cancel()
	m.ask(fx)
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	f.Uint("n", &m.number)
	f.Bool("open", &m.open)
	f.Array("passed", m.passed)
	f.Array("lent", m.lent)
}

// Detection numbers are only compared, separately for each process that begins
// detections.
func numbersOfState(machine_ process.Machine, visit func(group uint64, p *uint64)) {
	m := machine_.(*machine)
	visit(uint64(m.self), &m.number)
	for p := range m.passed {
		visit(uint64(p), &m.passed[p])
		visit(uint64(p), &m.lent[p])
	}
}

func numbersOfMessage(msg *process.Message, visit func(group uint64, p *uint64)) {
	if msg.Type == probe || msg.Type == held {
		visit(uint64(msg.Subject), &msg.Seq)
	}
}
