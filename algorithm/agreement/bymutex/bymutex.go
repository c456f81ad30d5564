// Package bymutex is consensus by mutual exclusion: a cell that is written once.
//
// # Problem and idea
//
// Processes that can exclude each other can agree. One of them keeps a cell, which is
// empty at first. A process that proposes enters its critical section and reads the
// cell. If the cell is empty it writes its own value. Then it leaves. The first to
// enter writes, and all others read its value.
//
// # Rules
//
//	X1  propose v: ask the lock below to enter.
//	X2  entered: READ to the keeper of the cell.
//	X3  the keeper, on READ: reply VALUE with the content of the cell, or empty.
//	X4  on an empty VALUE: WRITE(v) to the keeper.
//	    X4a On a VALUE that is not empty: decide it, leave.
//	X5  the keeper, on WRITE(v): put v into the cell, reply WRITTEN.
//	X6  on WRITTEN: decide v, leave.
//
// # Why it is safe
//
// Between a READ that finds the cell empty and the WRITE that follows, no other process
// is inside, so none reads or writes. The keeper could instead refuse a second WRITE.
// But then the keeper would decide by itself, and no lock would be needed.
//
// # What happens when the helper crashes
//
// The helper is the lock. A process that crashes inside keeps all others out forever,
// unless the lock recovers. If it had not yet written, no process has decided. If it
// had written, no process can read the value. So this consensus does not terminate if
// one process crashes at the wrong moment. If the keeper crashes, the cell is lost.
//
// # Cost
//
// The cost of an entry, and two messages to read. The first process to enter needs two
// more to write. The keeper itself needs no messages to read or write.
//
// # Assumptions and deviations
//
// [D0] says that consensus can be solved with mutual exclusion, and does not mention
// crashes. It assumes shared memory; here a process takes that role.
//
// Sources: [D0].
package bymutex

import "github.com/conclave-io/conclave/process"

// Spec describes the layer. It works only above a lock.
var Spec = &process.Spec{
	Name:      "consensus-by-mutex",
	Title:     "Consensus by mutual exclusion",
	Paper:     "R. Sisto: Coordination Algorithms, lecture notes, Politecnico di Torino",
	Documents: []string{"[D0]"},
	Family:    process.Agreement,
	Messages: []process.MessageSpec{
		{Name: "READ"},
		{Name: "VALUE", Fields: []process.FieldUse{{Field: process.FieldSeq, Symbol: "written"}, value}},
		{Name: "WRITE", Fields: []process.FieldUse{value}},
		{Name: "WRITTEN"},
	},
	Rules: []process.RuleSpec{
		{Name: "X1", Text: "propose: ask to enter"},
		{Name: "X2", Text: "entered: read the cell"},
		{Name: "X3", Text: "READ: reply with the content of the cell"},
		{Name: "X4", Text: "the cell is empty: write the proposed value"},
		{Name: "X4a", Text: "the cell is written: decide its value, leave"},
		{Name: "X5", Text: "WRITE: write the cell"},
		{Name: "X6", Text: "the value is written: decide it, leave"},
	},
	Needs: process.Needs{Reliable: true, NoDuplication: true, Topology: process.Centre},
	Claims: process.Claims{Properties: []process.Claim{
		{Property: process.ValueAgreement},
		{Property: process.ValueValidity},
		{Property: process.DecideOnce},
		{Property: process.Decision, When: "no process crashes"},
	}},
	New: Flaw{}.New,
}

var value = process.FieldUse{Field: process.FieldValue, Symbol: "v"}

const (
	read process.Type = iota + 1
	content
	write
	written
)

const (
	ruleX1 process.Rule = iota + 1
	ruleX2
	ruleX3
	ruleX4
	ruleX4a
	ruleX5
	ruleX6
)

type phase uint8

const (
	idle phase = iota
	waiting
	reading
	writing
	done
)

var phaseNames = []string{"IDLE", "WAIT", "READ", "WRITE", "DONE"}

// Flaw selects the mistake of a broken variant of the layer. The zero Flaw has none.
type Flaw struct {
	NeverReads          bool // X2: writes at once
	LeavesBeforeWritten bool // X4: leaves when it has sent WRITE
}

type machine struct {
	flaw   Flaw
	self   process.ID
	keeper process.ID

	phase phase
	own   int64 // what it proposes; 0 before and after

	// The cell, at its keeper.
	full bool
	cell int64
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{flaw: flaw, self: self, keeper: c.Topology.Coordinator}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Propose:
		m.propose(ev.Value, fx)
	case process.Granted:
		m.enter(fx)
	case process.Deliver:
		m.onMessage(ev.Message, fx)
	}
}

func (m *machine) propose(v int64, fx *process.Effects) {
	if m.phase != idle {
		return
	}
	fx.Rule(ruleX1)
	m.phase, m.own = waiting, v
	fx.Acquire()
}

// enter is X2.
func (m *machine) enter(fx *process.Effects) {
	fx.Rule(ruleX2)
	m.phase = reading
	if m.flaw.NeverReads {
		m.onContent(false, 0, fx)
		return
	}
	if m.self == m.keeper {
		m.onContent(m.full, m.cell, fx)
		return
	}
	fx.Send(m.keeper, process.Message{Type: read})
}

func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	switch msg.Type {
	case read:
		fx.Rule(ruleX3)
		answer := process.Message{Type: content, Value: m.cell}
		if m.full {
			answer.Seq = 1
		}
		fx.Send(msg.From, answer)
	case content:
		m.onContent(msg.Seq == 1, msg.Value, fx)
	case write:
		fx.Rule(ruleX5)
		m.full, m.cell = true, msg.Value
		fx.Send(msg.From, process.Message{Type: written})
	case written:
		if m.phase == writing {
			m.leave(m.own, ruleX6, fx)
		}
	}
}

// onContent is X4.
func (m *machine) onContent(full bool, v int64, fx *process.Effects) {
	if full {
		m.leave(v, ruleX4a, fx)
		return
	}
	fx.Rule(ruleX4)
	if m.self == m.keeper {
		m.full, m.cell = true, m.own
		m.leave(m.own, ruleX6, fx)
		return
	}
	m.phase = writing
	fx.Send(m.keeper, process.Message{Type: write, Value: m.own})
	if m.flaw.LeavesBeforeWritten {
		m.leave(m.own, ruleX6, fx)
	}
}

// leave decides and leaves.
func (m *machine) leave(v int64, by process.Rule, fx *process.Effects) {
	fx.Rule(by)
	m.phase, m.own = done, 0
	fx.Decide(v)
	fx.Release()
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "phase", &m.phase, phaseNames)
	f.Int("own", &m.own)
	f.Bool("full", &m.full)
	f.Int("cell", &m.cell)
}
