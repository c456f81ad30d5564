package maekawa

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

const idle, waiting, inside = process.PhaseIdle, process.PhaseWaiting, process.PhaseInside

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	KeepsVotes  bool // R8b is missing: a process that withdraws tells no voter
	NoDisplaced bool // R2d is missing: the request that was the oldest before is not told FAILED
}

type machine struct {
	self   process.ID
	flaw   Flaw
	voters []process.ID // the voting set, shared

	// The candidate. The sets are empty unless it waits.
	phase    process.Phase
	clock    uint64        // the largest T seen
	t        uint64        // T of the latest request; at most clock
	fence    process.Fence // waiting: the largest F of the votes; inside: that of the entry
	got      process.Set   // the voters whose votes are here
	failed   process.Set   // the voters that said FAILED or got their votes back; disjoint from got
	inquired process.Set   // the voters that ask for their votes

	// The voter. If lock is empty, so is queue.
	lock   process.Stamp   // the request that has the vote
	queue  []process.Stamp // the requests that want it, oldest first
	asked  bool            // INQUIRE was sent to the owner of lock; false if lock is empty
	latest process.Fence   // the highest fence known
}

var nobody = process.Stamp{ID: process.None}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{
		self: self, flaw: flaw, voters: c.Topology.Quorums[self],
		clock: c.Base.Clock, latest: c.Base.Fence,
		got: process.NewSet(c.N), failed: process.NewSet(c.N), inquired: process.NewSet(c.N),
		lock: nobody,
	}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Deliver:
		msg := ev.Message
		m.onMessage(msg.Type, msg.From, msg.Clock, msg.Fence, fx)
	case process.Acquire:
		m.onAcquire(fx)
	case process.Cancel:
		m.onCancel(fx)
	case process.Release:
		m.onRelease(fx)
	}
}

// onMessage handles a message of another process or of this one.
func (m *machine) onMessage(kind process.Type, from process.ID, t uint64, f process.Fence, fx *process.Effects) {
	switch kind {
	case req:
		m.onReq(process.Stamp{Clock: t, ID: from}, fx)
	case grant:
		m.onGrant(from, t, f, fx)
	case failed:
		m.onFailed(from, t, fx)
	case inquire:
		m.onInquire(from, t, fx)
	case yield:
		m.onYield(process.Stamp{Clock: t, ID: from}, fx)
	case rel:
		m.onRel(process.Stamp{Clock: t, ID: from}, f, fx)
	}
}

// tell sends a message, or applies it at once if it is to this process.
func (m *machine) tell(to process.ID, kind process.Type, t uint64, f process.Fence, fx *process.Effects) {
	if to == m.self {
		m.onMessage(kind, m.self, t, f, fx)
		return
	}
	fx.Send(to, process.Message{Type: kind, Clock: t, Fence: f})
}

// tellVoters tells the others first: the effect of this process's own vote comes after
// every other voter was asked or got its vote back.
func (m *machine) tellVoters(kind process.Type, f process.Fence, fx *process.Effects) {
	for _, p := range m.voters {
		if p != m.self {
			m.tell(p, kind, m.t, f, fx)
		}
	}
	m.tell(m.self, kind, m.t, f, fx)
}

// onAcquire is R1.
func (m *machine) onAcquire(fx *process.Effects) {
	process.Assert(m.phase == idle, "a process has one request at a time")
	fx.Rule(ruleR1)
	m.clock++
	m.phase, m.t, m.fence = waiting, m.clock, 0
	m.tellVoters(req, 0, fx)
}

// onReq is R2.
func (m *machine) onReq(r process.Stamp, fx *process.Effects) {
	m.clock = max(m.clock, r.Clock)
	if m.lock == nobody {
		fx.Rule(ruleR2a)
		m.vote(r, fx)
		return
	}
	contested := len(m.queue) > 0 && m.queue[0].Less(m.lock)
	position := m.enqueue(r)
	if position > 0 || m.lock.Less(r) {
		fx.Rule(ruleR2b)
		m.tell(r.ID, failed, r.Clock, 0, fx)
		return
	}
	if contested && !m.flaw.NoDisplaced {
		fx.Rule(ruleR2d)
		second := m.queue[1]
		m.tell(second.ID, failed, second.Clock, 0, fx)
	}
	if !m.asked {
		fx.Rule(ruleR2c)
		m.asked = true
		m.tell(m.lock.ID, inquire, m.lock.Clock, 0, fx)
	}
}

// enqueue inserts a request into the queue and returns its position.
func (m *machine) enqueue(r process.Stamp) int {
	i := 0
	for i < len(m.queue) && m.queue[i].Less(r) {
		i++
	}
	m.queue = slices.Insert(m.queue, i, r)
	return i
}

func (m *machine) vote(r process.Stamp, fx *process.Effects) {
	m.lock = r
	m.tell(r.ID, grant, r.Clock, m.latest, fx)
}

// next votes for the oldest in the queue, if there is one.
func (m *machine) next(fx *process.Effects) {
	m.lock, m.asked = nobody, false
	if len(m.queue) == 0 {
		return
	}
	oldest := m.queue[0]
	m.queue = slices.Delete(m.queue, 0, 1)
	m.vote(oldest, fx)
}

// waits reports whether a message is about the request that is waiting.
func (m *machine) waits(t uint64) bool { return m.phase == waiting && t == m.t }

// onGrant is R3. A vote is never ignored, because its voter waits for it.
func (m *machine) onGrant(from process.ID, t uint64, f process.Fence, fx *process.Effects) {
	if !m.waits(t) {
		fx.Rule(ruleR3c)
		m.tell(from, rel, t, 0, fx)
		return
	}
	fx.Rule(ruleR3)
	m.got.Add(from)
	m.failed.Remove(from)
	m.fence = max(m.fence, f)
	if m.got.Len() == len(m.voters) {
		m.enter(fx)
		return
	}
	m.flush(fx)
}

// enter is R3b. Voters that still ask for their votes get them at the release.
func (m *machine) enter(fx *process.Effects) {
	fx.Rule(ruleR3b)
	m.phase = inside
	m.fence++
	m.clearVotes()
	fx.Grant(m.fence)
}

// onFailed is R4. If the vote is here, the FAILED was sent before the vote.
func (m *machine) onFailed(from process.ID, t uint64, fx *process.Effects) {
	if !m.waits(t) || m.got.Has(from) {
		return
	}
	fx.Rule(ruleR4)
	m.failed.Add(from)
	m.flush(fx)
}

// onInquire is R5. It may come before the vote that it asks for.
func (m *machine) onInquire(from process.ID, t uint64, fx *process.Effects) {
	if !m.waits(t) {
		return
	}
	fx.Rule(ruleR5)
	m.inquired.Add(from)
	m.flush(fx)
}

// flush is R6.
func (m *machine) flush(fx *process.Effects) {
	if m.failed.Empty() {
		return
	}
	for p := range m.inquired.All() {
		if !m.got.Has(p) {
			continue
		}
		fx.Rule(ruleR6)
		m.inquired.Remove(p)
		m.got.Remove(p)
		m.failed.Add(p)
		m.tell(p, yield, m.t, 0, fx)
	}
}

// onYield is R7. A YIELD from a process that has since withdrawn changes nothing.
func (m *machine) onYield(r process.Stamp, fx *process.Effects) {
	if m.lock != r {
		return
	}
	fx.Rule(ruleR7)
	m.enqueue(r)
	m.next(fx)
}

// onRelease is R8.
func (m *machine) onRelease(fx *process.Effects) {
	if m.phase != inside {
		return
	}
	fx.Rule(ruleR8)
	m.phase = idle
	m.tellVoters(rel, m.fence, fx)
}

// onCancel is R8b.
func (m *machine) onCancel(fx *process.Effects) {
	if m.phase != waiting {
		return
	}
	fx.Rule(ruleR8b)
	m.phase = idle
	m.clearVotes()
	if !m.flaw.KeepsVotes {
		m.tellVoters(rel, 0, fx)
	}
}

// onRel is R9. A withdrawal may even overtake its request. Then the voter will give its
// vote to a process that does not want it, and R3c returns the vote.
func (m *machine) onRel(r process.Stamp, f process.Fence, fx *process.Effects) {
	m.latest = max(m.latest, f)
	if m.lock == r {
		fx.Rule(ruleR9)
		m.next(fx)
		return
	}
	if i := slices.Index(m.queue, r); i >= 0 {
		fx.Rule(ruleR9b)
		m.queue = slices.Delete(m.queue, i, i+1)
	}
}

func (m *machine) clearVotes() {
	m.got.Clear()
	m.failed.Clear()
	m.inquired.Clear()
}

// Idle reports whether the process neither waits nor holds and its vote is free.
func (m *machine) Idle() bool { return m.phase == idle && m.lock == nobody }

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "st", &m.phase, process.PhaseNames)
	f.Clock("C", &m.clock)
	f.Clock("T", &m.t)
	f.Fence("fence", &m.fence)
	f.Set("got", m.got)
	f.Set("failed", m.failed)
	f.Set("inq", m.inquired)
	f.Stamp("lock", &m.lock)
	process.List(f, "q", &m.queue, stampFields)
	f.Bool("inquired", &m.asked)
	f.Fence("F", &m.latest)
}

func stampFields(f *process.Fields, s *process.Stamp) { f.Stamp("stamp", s) }
