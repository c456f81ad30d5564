package majority

import "github.com/conclave-io/conclave/process"

type phase uint8

const (
	idle     phase = iota
	asking         // attempt a is on its way
	claiming       // attempt a has the votes and claims its fence; mode=lease only
	backoff        // attempt a has failed
	inside
)

var phaseNames = []string{"IDLE", "WAIT", "CLAIM", "BACKOFF", "IN"}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	Half        bool // half of the votes are enough
	DropsFences bool // R6c does not note the fence of a RELEASE
}

type machine struct {
	c        *process.Config
	self     process.ID
	flaw     Flaw
	replicas int
	needed   int // votes
	leases   bool

	// The client. The sets are about attempt a, and empty once it is over.
	phase    phase
	a        uint64        // number of its latest attempt
	failures int           // of this request
	votes    process.Set   // coordinators that voted and do not have their vote back
	denials  process.Set   // coordinators that denied; disjoint from votes
	claimed  process.Set   // coordinators that noted the fence; a subset of votes
	best     process.Fence // asking: the largest F of the votes; claiming: the fence
	fence    process.Fence // of the last entry

	// The coordinator.
	holder process.ID    // the process that has the vote, or None
	held   uint64        // the attempt that has the vote; 0 if it is free
	latest process.Fence // the highest fence known, on disk
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	n, m := Sizes(c)
	if flaw.Half {
		m = max(1, n/2)
	}
	return &machine{
		c: c, self: self, flaw: flaw, replicas: n, needed: m, leases: c.Option("mode", plain) == lease,
		a: c.Base.Clock, latest: c.Base.Fence, holder: process.None,
		votes: process.NewSet(n), denials: process.NewSet(n), claimed: process.NewSet(n),
	}
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Restart:
		fx.Rule(ruleR8)
	case process.Deliver:
		msg := ev.Message
		m.onMessage(msg.Type, msg.From, msg.Seq, msg.Fence, fx)
	case process.Fire:
		m.onTimer(ev.Timer, fx)
	case process.Acquire:
		m.onAcquire(fx)
	case process.Cancel:
		m.onCancel(fx)
	case process.Release:
		m.onLeave(fx)
	}
}

// onMessage handles a message of another process or of this one.
func (m *machine) onMessage(kind process.Type, from process.ID, a uint64, f process.Fence, fx *process.Effects) {
	switch kind {
	case request:
		m.onRequest(from, a, fx)
	case vote:
		m.onVote(from, a, f, fx)
	case denied:
		m.onDenied(from, a, fx)
	case release:
		m.onRelease(from, a, f, fx)
	case claim:
		m.onClaim(from, a, f, fx)
	case claimed:
		m.onClaimed(from, a, fx)
	}
}

// tell sends a message, or applies it at once if it is to this process.
func (m *machine) tell(to process.ID, kind process.Type, a uint64, f process.Fence, fx *process.Effects) {
	if to == m.self {
		m.onMessage(kind, m.self, a, f, fx)
		return
	}
	fx.Send(to, process.Message{Type: kind, Seq: a, Fence: f})
}

func (m *machine) onTimer(t process.Timer, fx *process.Effects) {
	switch {
	case t == leaseTimer:
		m.onExpiry(fx)
	case t == deadlineTimer:
		m.onDeadline(fx)
	case t == backoffTimer && m.phase == backoff:
		fx.Rule(ruleR7)
		m.try(fx)
	case t == answersTimer && m.trying():
		fx.Rule(ruleR5)
		m.giveUp(fx)
	}
}

// trying reports whether the present attempt is undecided.
func (m *machine) trying() bool { return m.phase == asking || m.phase == claiming }

// onAcquire is R1.
func (m *machine) onAcquire(fx *process.Effects) {
	process.Assert(m.phase == idle, "a process has one request at a time")
	m.failures = 0
	m.try(fx)
}

// try begins an attempt. A coordinator asks itself last, because its own vote may
// decide.
func (m *machine) try(fx *process.Effects) {
	fx.Rule(ruleR1)
	m.a++
	m.phase, m.best = asking, 0
	fx.Arm(answersTimer, 4*m.c.D(), 4*m.c.D())
	if m.leases {
		fx.Arm(deadlineTimer, m.lease()-m.lease()/8, m.lease()-m.lease()/8)
	}
	for r := range process.ID(m.replicas) {
		if r != m.self {
			m.tell(r, request, m.a, 0, fx)
		}
	}
	if int(m.self) < m.replicas {
		m.tell(m.self, request, m.a, 0, fx)
	}
}

// lease is L, the time for which a vote is valid. For the coordinator it begins at the
// vote, for the client at the request, which is earlier.
func (m *machine) lease() process.Duration { return 10 * (m.c.D() + m.c.E()) }

// onVote is R3.
func (m *machine) onVote(from process.ID, a uint64, f process.Fence, fx *process.Effects) {
	if a != m.a || !m.trying() && m.phase != inside {
		fx.Rule(ruleR3c)
		m.tell(from, release, a, m.fence, fx)
		return
	}
	fx.Rule(ruleR3)
	m.votes.Add(from)
	m.denials.Remove(from)
	switch m.phase {
	case claiming:
		m.tell(from, claim, m.a, m.best, fx)
	case asking:
		m.best = max(m.best, f)
		if m.votes.Len() >= m.needed {
			m.elect(fx)
		}
	}
}

// elect handles having enough votes. With leases a majority of coordinators must know
// the fence before the entry, because a client that crashes inside tells no one.
func (m *machine) elect(fx *process.Effects) {
	m.best++
	if !m.leases {
		m.enter(fx)
		return
	}
	fx.Rule(ruleR10)
	m.phase = claiming
	fx.Arm(answersTimer, 4*m.c.D(), 4*m.c.D())
	f := m.best
	for r := range m.votes.All() {
		m.tell(r, claim, m.a, f, fx)
	}
}

func (m *machine) enter(fx *process.Effects) {
	fx.Rule(ruleR3b)
	m.phase, m.fence, m.best = inside, m.best, 0
	fx.Disarm(answersTimer)
	fx.Grant(m.fence)
}

// onClaimed is the end of R10.
func (m *machine) onClaimed(from process.ID, a uint64, fx *process.Effects) {
	if a != m.a || m.phase != claiming {
		return
	}
	m.claimed.Add(from)
	if m.claimed.Len() >= m.needed {
		m.enter(fx)
	}
}

// onDenied is R4. A DENIED from a coordinator that has voted was sent before the vote,
// or it answers a claim: then the vote has expired.
func (m *machine) onDenied(from process.ID, a uint64, fx *process.Effects) {
	if a != m.a || !m.trying() || m.phase == asking && m.votes.Has(from) {
		return
	}
	fx.Rule(ruleR4)
	m.votes.Remove(from)
	m.claimed.Remove(from)
	m.denials.Add(from)
	if m.replicas-m.denials.Len() < m.needed {
		fx.Rule(ruleR4b)
		m.giveUp(fx)
	}
}

// giveUp is R4b and R5. R3c returns votes that are still in flight.
func (m *machine) giveUp(fx *process.Effects) {
	m.end(backoff, fx)
	m.failures = min(m.failures+1, 6)
	fx.Arm(backoffTimer, 1, (4*m.c.D()+m.c.E())<<m.failures)
}

// end returns all votes and forgets the attempt. Each RELEASE carries the fence of the
// last entry, however this attempt ended: it may overtake the RELEASE that brought that
// fence first.
func (m *machine) end(next phase, fx *process.Effects) {
	m.phase, m.best = next, 0
	fx.Disarm(answersTimer)
	if m.leases {
		fx.Disarm(deadlineTimer)
	}
	for r := range m.votes.All() {
		m.tell(r, release, m.a, m.fence, fx)
	}
	m.votes.Clear()
	m.denials.Clear()
	m.claimed.Clear()
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

// onDeadline is R11.
func (m *machine) onDeadline(fx *process.Effects) {
	switch {
	case m.phase == inside:
		fx.Rule(ruleR11)
		m.end(idle, fx)
		fx.Revoke()
	case m.trying():
		fx.Rule(ruleR11)
		m.giveUp(fx)
	}
}

// Idle reports whether the process neither waits nor holds and its vote is free.
func (m *machine) Idle() bool { return m.phase == idle && m.holder == process.None }

// Fields names the state. Only the fence must survive a crash: the paper's coordinators
// forget their votes, but must not grant the same fence again.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "st", &m.phase, phaseNames)
	f.Seq("a", &m.a)
	f.Count("failures", &m.failures)
	f.Set("votes", m.votes)
	f.Set("denied", m.denials)
	f.Set("claimed", m.claimed)
	f.Fence("best", &m.best)
	f.Fence("fence", &m.fence)
	f.ID("hold", &m.holder)
	f.Uint("hold.a", &m.held)
	f.Durable().Fence("F", &m.latest)
}
