package lease

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

type phase uint8

const (
	idle    phase = iota
	asking        // attempt a is on its way
	backoff       // attempt a has failed
	inside
)

var phaseNames = []string{"IDLE", "WAIT", "BACKOFF", "IN"}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	FreesAny     bool // R6c does not check whose lock it is
	GrantsAtOnce bool // R10 is missing
}

type machine struct {
	c       *process.Config
	self    process.ID
	flaw    Flaw
	servers []process.ID
	fences  bool             // the server counts them
	ttl     process.Duration // on the server's clock
	stay    process.Duration // on the client's clock, from its REQUEST on

	// The client. The sets are about attempt a, and empty once it is over.
	phase    phase
	a        uint64           // number of its latest attempt
	failures int              // of this request
	deadline process.Duration // asking: of the attempt, on the client's clock
	grants   process.Set      // servers that have granted
	denials  process.Set      // servers that have denied; disjoint from grants
	fence    process.Fence    // of the last grant

	// The server.
	holder  process.ID    // the process that has the lock, or None
	held    uint64        // the attempt that has the lock; 0 if it is free
	unknown process.Set   // the processes that may have a lease from before a crash
	last    process.Fence // the last fence granted
}

// New makes a machine of the lease at one server with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return flaw.machine(self, c, []process.ID{c.Topology.Coordinator}, true)
}

// NewRedlock makes a machine of Redlock with the flaw.
func (flaw Flaw) NewRedlock(self process.ID, c *process.Config) process.Machine {
	servers := make([]process.ID, Servers(c))
	for i := range servers {
		servers[i] = process.ID(i)
	}
	return flaw.machine(self, c, servers, false)
}

func (flaw Flaw) machine(self process.ID, c *process.Config, servers []process.ID, fences bool) process.Machine {
	m := &machine{
		c: c, self: self, flaw: flaw, servers: servers, fences: fences,
		ttl: process.Duration(c.IntOption("ttl", 0)) * c.D(),
		a:   c.Base.Clock, last: c.Base.Fence, holder: process.None,
		grants: process.NewSet(c.N), denials: process.NewSet(c.N), unknown: process.NewSet(c.N),
	}
	if m.ttl == 0 {
		m.ttl = 10 * (c.D() + c.E())
	}
	m.stay = m.ttl - m.ttl/100*process.Duration(c.IntOption("margin", 10))
	return m
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Restart:
		m.onRestart(fx)
	case process.Deliver:
		m.onMessage(ev.Message, ev.Now, fx)
	case process.Fire:
		m.onTimer(ev.Timer, ev.Now, fx)
	case process.Acquire:
		process.Assert(m.phase == idle, "a process has one request at a time")
		m.failures = 0
		m.try(ev.Now, fx)
	case process.Cancel:
		m.onCancel(fx)
	case process.Release:
		m.onLeave(fx)
	}
}

func (m *machine) onMessage(msg *process.Message, now process.Duration, fx *process.Effects) {
	switch msg.Type {
	case request:
		m.onRequest(msg.From, msg.Seq, now, fx)
	case granted:
		m.onGranted(msg.From, msg.Seq, msg.Fence, now, fx)
	case denied:
		m.onDenied(msg.From, msg.Seq, fx)
	case release:
		m.onRelease(msg.From, msg.Seq, fx)
	}
}

func (m *machine) onTimer(t process.Timer, now process.Duration, fx *process.Effects) {
	switch {
	case t.Name() == leaseTimer:
		m.onExpiry(t.Peer(), fx)
	case t == deadlineTimer:
		m.onDeadline(fx)
	case t == backoffTimer && m.phase == backoff:
		fx.Rule(ruleR7)
		m.try(now, fx)
	case t == answersTimer && m.phase == asking:
		m.giveUp(fx)
	}
}

// serves reports whether the process is one of the servers.
func (m *machine) serves() bool { return slices.Contains(m.servers, m.self) }

// majority is the number of servers that must grant.
func (m *machine) majority() int { return len(m.servers)/2 + 1 }

// try begins an attempt, by R1. A server asks itself last, because its own answer may
// decide.
func (m *machine) try(now process.Duration, fx *process.Effects) {
	fx.Rule(ruleR1)
	m.a++
	m.phase, m.deadline = asking, now+m.stay
	fx.Save()
	fx.Arm(answersTimer, 4*m.c.D(), 4*m.c.D())
	fx.Arm(deadlineTimer, m.stay, m.stay)
	m.sendOthers(request, fx)
	if m.serves() {
		m.onRequest(m.self, m.a, now, fx)
	}
}

// sendOthers sends a message about attempt a to all servers but this one.
func (m *machine) sendOthers(kind process.Type, fx *process.Effects) {
	for _, s := range m.servers {
		if s != m.self {
			fx.Send(s, process.Message{Type: kind, Seq: m.a})
		}
	}
}

// onGranted is R3.
func (m *machine) onGranted(from process.ID, a uint64, f process.Fence, now process.Duration, fx *process.Effects) {
	if a != m.a || m.phase != asking && m.phase != inside {
		fx.Rule(ruleR3c)
		m.giveBack(from, a, fx)
		return
	}
	fx.Rule(ruleR3)
	m.grants.Add(from)
	m.denials.Remove(from)
	if m.phase == inside || m.grants.Len() < m.majority() {
		return
	}
	if now >= m.deadline {
		m.giveUp(fx)
		return
	}
	fx.Rule(ruleR3b)
	m.phase, m.fence, m.deadline = inside, f, 0
	fx.Disarm(answersTimer)
	fx.Grant(f)
}

// giveBack is R3c.
func (m *machine) giveBack(to process.ID, a uint64, fx *process.Effects) {
	if to == m.self {
		m.onRelease(m.self, a, fx)
		return
	}
	fx.Send(to, process.Message{Type: release, Seq: a})
}

// onDenied is R4. A server that has granted and then denies received a duplicate
// REQUEST.
func (m *machine) onDenied(from process.ID, a uint64, fx *process.Effects) {
	if a != m.a || m.phase != asking || m.grants.Has(from) {
		return
	}
	fx.Rule(ruleR4)
	m.denials.Add(from)
	if len(m.servers)-m.denials.Len() < m.majority() {
		m.giveUp(fx)
	}
}

// giveUp is R5.
func (m *machine) giveUp(fx *process.Effects) {
	fx.Rule(ruleR5)
	m.failures = min(m.failures+1, 6)
	fx.Arm(backoffTimer, 1, (4*m.c.D()+m.c.E())<<m.failures)
	m.end(backoff, fx)
}

// end forgets the attempt and tells all servers, including those that have not
// answered.
func (m *machine) end(next phase, fx *process.Effects) {
	m.phase, m.deadline = next, 0
	fx.Disarm(answersTimer)
	fx.Disarm(deadlineTimer)
	m.grants.Clear()
	m.denials.Clear()
	m.sendOthers(release, fx)
	if m.serves() {
		m.onRelease(m.self, m.a, fx)
	}
}

// onLeave is R6.
func (m *machine) onLeave(fx *process.Effects) {
	if m.phase != inside {
		return
	}
	fx.Rule(ruleR6)
	m.end(idle, fx)
}

// onCancel is R6b.
func (m *machine) onCancel(fx *process.Effects) {
	if m.phase == idle || m.phase == inside {
		return
	}
	fx.Rule(ruleR6b)
	fx.Disarm(backoffTimer)
	m.end(idle, fx)
}

// onDeadline is R8.
func (m *machine) onDeadline(fx *process.Effects) {
	switch m.phase {
	case inside:
		fx.Rule(ruleR8)
		m.end(idle, fx)
		fx.Revoke()
	case asking:
		m.giveUp(fx)
	}
}

// Fields names the state. The numbers that must never be reused are on disk: attempt
// numbers, by which a RELEASE is recognised, and fences. The holder of the lock is not.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "st", &m.phase, phaseNames)
	f.Durable().Seq("a", &m.a)
	f.Count("failures", &m.failures)
	f.Int("deadline", (*int64)(&m.deadline))
	f.Set("granted", m.grants)
	f.Set("denied", m.denials)
	f.Fence("fence", &m.fence)
	f.ID("hold", &m.holder)
	f.Uint("hold.a", &m.held)
	f.Set("unknown", m.unknown)
	f.Durable().Fence("F", &m.last)
}
