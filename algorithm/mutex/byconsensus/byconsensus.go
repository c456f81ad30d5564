// Package byconsensus is mutual exclusion by consensus: the processes decide who holds
// the lock next.
//
// # Problem and idea
//
// Mutual exclusion is often called a special case of consensus. That is true of one
// entry: all processes agree on the first. A lock is a sequence of such decisions, with
// a release between them. So this layer runs above a consensus that decides a sequence
// of values. A process that wants to enter proposes its request. The s-th decided
// request makes the s-th entry. That entry begins when the one before has been
// released, and a release is a decision, too.
//
// # Rules
//
//	S1  request: propose REQUEST(r), r being its number.
//	S2  REQUEST of p decided: give it the next slot, put it at the end of the queue.
//	S3  RELEASE of the head's request decided: remove it from the queue.
//	S4  after each of these: if this process's request is at the head, enter; the slot
//	    is the fence. S4a If the head is a request that this process made before a
//	    crash: S5 for it.
//	S5  release: propose RELEASE.
//	S6  the process of the head has crashed: propose RELEASE for it.
//
// # Why it is safe
//
// All processes see the same decisions in the same order, so they have the same queue at
// the same point of the sequence, and slots grow along it.
//
// # What happens when the helper crashes
//
// The helper is the consensus below. Over Raft, a crash of the leader costs an
// election, and the queue continues where it was. If a majority is down, no process
// enters. If a holder crashes, S6 needs a reliable detector: consensus alone does not
// know that a process will never release.
//
// # Cost
//
// Two decisions for an entry.
//
// # Assumptions and deviations
//
// The consensus decides each value once, and a process that comes back sees all
// decisions again, from the first. [D0] says that mutual exclusion is a special case of
// consensus, but does not mention the release.
//
// Sources: F. B. Schneider: Implementing fault-tolerant services using the state machine
// approach, 1990; [D0].
package byconsensus

import "github.com/conclave-io/conclave/process"

// Spec describes the layer. It works only above a consensus that decides a sequence.
var Spec = &process.Spec{
	Name:      "mutex-by-consensus",
	Title:     "Mutual exclusion by consensus",
	Paper:     "F. B. Schneider: Implementing fault-tolerant services using the state machine approach, ACM Computing Surveys 22(4), 1990, doi:10.1145/98163.98167",
	Documents: []string{"[D0]"},
	Family:    process.Mutex,
	Rules: []process.RuleSpec{
		{Name: "S1", Text: "request: propose REQUEST"},
		{Name: "S2", Text: "REQUEST is decided: give it the next slot"},
		{Name: "S3", Text: "RELEASE is decided: remove the head of the queue"},
		{Name: "S4", Text: "this process's request is the head: enter"},
		{Name: "S4a", Text: "the head is a request of this process from before its crash: release it"},
		{Name: "S5", Text: "release: propose RELEASE"},
		{Name: "S6", Text: "the process of the head has crashed: release it"},
	},
	Needs: process.Needs{Detector: process.ReliableDetector},
	Claims: process.Claims{
		Properties: []process.Claim{
			{Property: process.MutualExclusion},
			{Property: process.Progress, When: "the consensus below decides"},
			{Property: process.FencesGrow},
		},
		Survives: []process.Survival{
			{Fault: process.CrashAny, When: "the consensus below survives it", How: "S6"},
			{Fault: process.AmnesiaRestart, When: "the consensus below survives it", How: "a restarted process sees all decisions again; S4a"},
		},
	},
	New: Flaw{}.New,
}

const (
	ruleS1 process.Rule = iota + 1
	ruleS2
	ruleS3
	ruleS4
	ruleS4a
	ruleS5
	ruleS6
)

const idle, waiting, inside = process.PhaseIdle, process.PhaseWaiting, process.PhaseInside

// request is a decided request.
type request struct {
	id   process.ID
	n    uint64
	slot process.Fence
}

// Flaw selects the mistake of a broken variant of the layer. The zero Flaw has none.
type Flaw struct {
	EntersWhenDecided bool // S4 enters as soon as its request is decided
	OwnSlots          bool // S2 counts only the slots of its own requests
}

type machine struct {
	c    *process.Config
	flaw Flaw
	self process.ID

	phase  process.Phase
	n      uint64        // the number of this process's latest request: its life, then a count
	slot   process.Fence // the last slot given
	queue  []request     // in the order of slots
	failed process.Set   // known to have crashed
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{c: c, flaw: flaw, self: self, slot: c.Base.Fence, failed: process.NewSet(c.N)}
}

// The proposals: a request, or the release of one.
const (
	asks     = 0
	releases = 1
)

// encode packs a proposal into a value. No two requests share a number.
func (m *machine) encode(kind int64, id process.ID, n uint64) int64 {
	return (int64(n)*int64(m.c.N)+int64(id))*2 + kind
}

func (m *machine) decode(v int64) (kind int64, id process.ID, n uint64) {
	of := v / 2
	return v % 2, process.ID(of % int64(m.c.N)), uint64(of / int64(m.c.N))
}

// lifeShift leaves room for a million requests in one life of a process.
const lifeShift = 20

// life is the life of its process in which a request was made.
func (m *machine) life(n uint64) uint64 { return (n - m.c.Base.Clock) >> lifeShift }

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start, process.Restart:
		m.n = m.c.Base.Clock + ev.Incarnation<<lifeShift
	case process.Acquire:
		fx.Rule(ruleS1)
		m.phase = waiting
		m.n++
		fx.Propose(m.encode(asks, m.self, m.n))
	case process.Release:
		fx.Rule(ruleS5)
		m.phase = idle
		fx.Propose(m.encode(releases, m.self, m.n))
	case process.Decided:
		m.onDecided(ev.Value, fx)
	case process.Fail:
		m.failed.Add(ev.Peer)
		m.serve(fx)
	case process.Rejoin:
		m.failed.Remove(ev.Peer)
	}
}

// onDecided is S2 and S3.
func (m *machine) onDecided(v int64, fx *process.Effects) {
	kind, id, n := m.decode(v)
	switch {
	case kind == asks:
		fx.Rule(ruleS2)
		if id == m.self || !m.flaw.OwnSlots {
			m.slot++
		}
		m.queue = append(m.queue, request{id, n, m.slot})
		if len(m.queue) > 1 && !m.flaw.EntersWhenDecided {
			return
		}
	case len(m.queue) > 0 && m.queue[0].id == id && m.queue[0].n == n:
		fx.Rule(ruleS3)
		m.queue = append(m.queue[:0], m.queue[1:]...)
	default:
		return
	}
	m.serve(fx)
}

// serve is S4 and S6.
func (m *machine) serve(fx *process.Effects) {
	if len(m.queue) == 0 {
		return
	}
	head := m.queue[0]
	if m.flaw.EntersWhenDecided {
		head = m.queue[len(m.queue)-1]
	}
	switch {
	case head.id == m.self && m.life(head.n) < m.life(m.n):
		fx.Rule(ruleS4a)
		fx.Propose(m.encode(releases, head.id, head.n))
	case head.id == m.self && head.n == m.n && m.phase == waiting: // not an earlier request, whose release is not decided yet
		fx.Rule(ruleS4)
		m.phase = inside
		fx.Grant(head.slot)
	case m.failed.Has(head.id):
		fx.Rule(ruleS6)
		fx.Propose(m.encode(releases, head.id, head.n))
	}
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "phase", &m.phase, process.PhaseNames)
	f.Seq("n", &m.n)
	f.Fence("slot", &m.slot)
	process.List(f, "queue", &m.queue, requestFields)
	f.Set("failed", m.failed)
}

func requestFields(f *process.Fields, r *request) {
	f.ID("id", &r.id)
	f.Seq("n", &r.n)
	f.Fence("slot", &r.slot)
}
