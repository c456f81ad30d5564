package singhal

import "github.com/conclave-io/conclave/process"

// state is this process's entry in SV.
type state uint8

const (
	idle state = iota
	requesting
	executing
	holding
)

var stateNames = []string{"N", "R", "E", "H"}

type machine struct {
	c          *process.Config
	self       process.ID
	flaw       Flaw
	scratchIDs []process.ID // TSV as a TOKEN carries it

	state state       // executing or holding implies that the token is here
	sv    process.Set // the other processes known to be R; never self
	sn    []uint64    // by rank: the newest request known

	// The token; empty while it is elsewhere.
	tsv   process.Set   // the processes that are R, as far as the token knows
	tsn   []uint64      // by rank: the newest request that the token knows
	fence process.Fence // that of the last entry
}

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	NoRetry     bool // R6 is missing: no process asks again
	GivesInside bool // R2d gives the token away even while its holder is inside
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := &machine{
		c: c, self: self, flaw: flaw,
		sv: process.NewSet(c.N), sn: make([]uint64, c.N),
		tsv: process.NewSet(c.N), tsn: make([]uint64, 0, c.N),
	}
	m.sn[self] = c.Base.Clock
	for p := c.Topology.Coordinator; p != self; p = m.next(p) {
		m.sv.Add(p)
	}
	if self == c.Topology.Coordinator {
		m.state, m.tsn, m.fence = holding, m.tsn[:c.N], c.Base.Fence
	}
	return m
}

// Step dispatches the event to the handler of its rule.
func (m *machine) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Deliver:
		if ev.Message.Type == req {
			m.onReq(ev.Message.From, ev.Message.Seq, fx)
		} else {
			m.onToken(ev.Message, fx)
		}
	case process.Fire:
		m.onRetry(fx)
	case process.Acquire:
		m.onAcquire(fx)
	case process.Cancel:
		m.onCancel(fx)
	case process.Release:
		m.onRelease(fx)
	}
}

// onAcquire is R1.
func (m *machine) onAcquire(fx *process.Effects) {
	process.Assert(m.state == idle || m.state == holding, "a process has one request at a time")
	if m.state == holding {
		fx.Rule(ruleR1b)
		m.enter(fx)
		return
	}
	fx.Rule(ruleR1)
	m.state = requesting
	m.sn[m.self]++
	for p := range m.sv.All() {
		m.ask(p, fx)
	}
	m.await(fx)
}

// await sets the timer for R6.
func (m *machine) await(fx *process.Effects) {
	if !m.flaw.NoRetry {
		fx.Arm(retryTimer, m.timeout(), m.timeout())
	}
}

func (m *machine) ask(p process.ID, fx *process.Effects) {
	fx.Send(p, process.Message{Type: req, Seq: m.sn[m.self]})
}

// onReq is R2.
func (m *machine) onReq(from process.ID, sn uint64, fx *process.Effects) {
	if sn <= m.sn[from] {
		fx.Rule(ruleR2a)
		return
	}
	asked := m.sv.Has(from)
	m.sn[from] = sn
	m.sv.Add(from)
	switch {
	case m.state == holding || m.flaw.GivesInside && m.state == executing:
		fx.Rule(ruleR2d)
		m.tsv.Add(from)
		m.tsn[from] = sn
		m.pass(from, fx)
	case m.state == requesting && !asked:
		fx.Rule(ruleR2c)
		m.ask(from, fx)
	default:
		fx.Rule(ruleR2b)
	}
}

// onToken is R3. No process sends the token to one that has it or is inside.
func (m *machine) onToken(msg *process.Message, fx *process.Effects) {
	process.Assert(m.state == idle || m.state == requesting, "there is one token")
	process.Assert(len(msg.Vector) == m.c.N, "a token has one number per process")
	m.tsn = append(m.tsn[:0], msg.Vector...)
	for _, p := range msg.IDs {
		m.tsv.Add(p)
	}
	m.fence = msg.Fence
	if m.state == idle {
		fx.Rule(ruleR3b)
		m.settle(fx)
		return
	}
	fx.Rule(ruleR3)
	fx.Disarm(retryTimer)
	m.enter(fx)
}

func (m *machine) enter(fx *process.Effects) {
	m.state = executing
	m.fence++
	fx.Grant(m.fence)
}

// onRelease is R4 and R5.
func (m *machine) onRelease(fx *process.Effects) {
	if m.state == executing {
		m.settle(fx)
	}
}

// settle is what a process does with the token when it no longer needs it.
func (m *machine) settle(fx *process.Effects) {
	fx.Rule(ruleR4)
	m.tsv.Remove(m.self)
	for p := range process.ID(m.c.N) {
		m.reconcile(p)
	}
	for p := m.next(m.self); p != m.self; p = m.next(p) {
		if m.sv.Has(p) {
			fx.Rule(ruleR5)
			m.pass(p, fx)
			return
		}
	}
	fx.Rule(ruleR5b)
	m.state = holding
}

// reconcile is R4 for one process. The side that knows the newer request is right. If
// the numbers are equal, that is the token: the process that made the request has had
// it.
func (m *machine) reconcile(p process.ID) {
	if m.sn[p] > m.tsn[p] {
		m.tsn[p] = m.sn[p]
		put(m.tsv, p, m.sv.Has(p))
		return
	}
	m.sn[p] = m.tsn[p]
	put(m.sv, p, m.tsv.Has(p))
}

// pass sends the token away and forgets it.
func (m *machine) pass(to process.ID, fx *process.Effects) {
	m.scratchIDs = m.scratchIDs[:0]
	for p := range m.tsv.All() {
		m.scratchIDs = append(m.scratchIDs, p)
	}
	fx.Send(to, process.Message{Type: token, IDs: m.scratchIDs, Vector: m.tsn, Fence: m.fence})
	m.state = idle
	m.tsv.Clear()
	m.tsn, m.fence = m.tsn[:0], 0
}

// onRetry is R6.
func (m *machine) onRetry(fx *process.Effects) {
	if m.state != requesting {
		return
	}
	fx.Rule(ruleR6)
	fx.Broadcast(process.Message{Type: req, Seq: m.sn[m.self]})
	m.await(fx)
}

// onCancel is R7. Others still see this process as R, and the token may come; then R3b
// sends it on.
func (m *machine) onCancel(fx *process.Effects) {
	if m.state != requesting {
		return
	}
	fx.Rule(ruleR7)
	m.state = idle
	fx.Disarm(retryTimer)
}

// timeout is five times what it takes to serve every process once.
func (m *machine) timeout() process.Duration {
	return 5 * process.Duration(m.c.N) * (m.c.D() + m.c.E())
}

// next returns the process after p around the circle of ranks.
func (m *machine) next(p process.ID) process.ID {
	if int(p)+1 == m.c.N {
		return 0
	}
	return p + 1
}

func put(s process.Set, p process.ID, member bool) {
	if member {
		s.Add(p)
	} else {
		s.Remove(p)
	}
}

// Fields names the state.
func (m *machine) Fields(f *process.Fields) {
	process.Enum(f, "st", &m.state, stateNames)
	f.Set("SV", m.sv)
	f.Array("SN", m.sn)
	f.Set("TSV", m.tsv)
	f.Uints("TSN", &m.tsn)
	f.Fence("fence", &m.fence)
}

// HasToken reports whether the token is here.
func (m *machine) HasToken() bool { return m.state == executing || m.state == holding }
