package viewcheck

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/process"
)

// settle does what has become possible for client and server.
func (m *home) settle(ev *process.Event, fx *process.Effects) {
	if m.waits && !m.asked && !m.live {
		m.asked = true
		fx.Send(m.log(), process.Message{Type: msgAsk})
	}
	if m.down {
		return
	}
	m.name.Wanted = m.waits && !m.asked && m.live
	drains := m.live && m.change != 0
	m.feed(m.member.Next(&m.name, drains, m.o.lock.Cancels), ev, fx)
	resumes, opens := m.member.Advance()
	if resumes {
		fx.Rule(ruleM3)
		m.tell(process.Message{Type: msgResumed}, fx)
	}
	if opens {
		fx.Rule(ruleM4)
		m.feed(m.member.Next(&m.name, drains, m.o.lock.Cancels), ev, fx)
	}
	m.depart(fx)
	if drains && m.said != m.change && m.member.State != view.Out && m.member.Quiet(&m.name) {
		fx.Rule(ruleG4)
		m.said = m.change
		fx.Send(m.log(), process.Message{Type: msgQuiet, Seq: m.starts, Clock: m.change, Term: termOf(m.member.Epoch)})
	}
}

// tell sends a frame to all other members.
func (m *home) tell(msg process.Message, fx *process.Effects) {
	msg.Term = termOf(m.member.Epoch)
	for _, s := range m.member.Members {
		if s.Server != m.member.Server {
			fx.Send(process.ID(s.Server-1), msg)
		}
	}
}

// instance makes the machine if there is none (I1, I2).
func (m *home) instance(ev *process.Event, fx *process.Effects) {
	if m.made {
		return
	}
	m.made = true
	m.step(process.Event{Kind: process.Start, Incarnation: 1, Now: ev.Now}, fx)
}

var commands = [...]process.Kind{view.Acquire: process.Acquire, view.Release: process.Release, view.Cancel: process.Cancel}

// feed gives an event to the machine, and carries out its effects.
func (m *home) feed(f view.Feed, ev *process.Event, fx *process.Effects) {
	for f != view.Nothing {
		if f == view.Acquire && !m.made {
			m.instance(ev, fx)
			if c, rank := m.config(); m.o.lock.Needs.Awake && rank != c.Topology.Coordinator {
				to := m.member.Members[c.Topology.Coordinator]
				fx.Send(process.ID(to.Server-1), process.Message{Type: msgWake, Term: termOf(m.member.Epoch)})
			}
		}
		m.machineStep(process.Event{Kind: commands[f], Now: ev.Now}, fx)
		f, m.queue = m.queue, view.Nothing
	}
}

// step gives an event to the machine, and carries out its effects.
func (m *home) step(ev process.Event, fx *process.Effects) {
	m.machineStep(ev, fx)
	f := m.queue
	m.queue = view.Nothing
	m.feed(f, &ev, fx)
}

// machineStep takes one step of the machine and carries out its effects.
func (m *home) machineStep(ev process.Event, fx *process.Effects) {
	_, rank := m.config()
	m.inner.Begin(rank, fx.Choose)
	m.machine.Step(&ev, &m.inner)
	for i := range m.inner.Len() {
		m.interpret(m.inner.At(i), fx)
	}
}

func (m *home) interpret(e *process.Effect, fx *process.Effects) {
	switch e.Kind {
	case process.EffectSend:
		m.send(m.inner.Message(e).To, m.inner.Message(e), fx)
	case process.EffectBroadcast:
		for to := range process.ID(len(m.member.Members)) {
			if to != m.inner.Self() {
				m.send(to, m.inner.Message(e), fx)
			}
		}
	case process.EffectArm:
		if t := uint64(e.Timer); !slices.Contains(m.timers, t) {
			m.timers = append(m.timers, t)
			slices.Sort(m.timers)
		}
		fx.Arm(e.Timer, e.Lo, e.Hi)
	case process.EffectDisarm:
		m.timers = slices.DeleteFunc(m.timers, func(t uint64) bool { return process.Timer(t) == e.Timer })
		fx.Disarm(e.Timer)
	case process.EffectGrant:
		m.granted(e.Fence, fx)
	case process.EffectRevoke, process.EffectElect, process.EffectDecide:
		process.Assert(false, "a lock in a view neither revokes, elects nor decides")
	}
}

// send sends a message of the lock. Its term carries the epoch.
func (m *home) send(to process.ID, in *process.Message, fx *process.Effects) {
	process.Assert(in.Term == 0, "a lock in a view has no elections")
	out := *in
	out.Type += msgLock
	out.Term = termOf(m.member.Epoch)
	fx.Send(process.ID(m.member.Members[to].Server-1), out)
}

// granted handles the grant of the machine.
func (m *home) granted(f process.Fence, fx *process.Effects) {
	process.Assert(f.Round() == 0, "a lock in a view has no elections")
	tell, next := m.member.Granted(&m.name, m.live && m.change != 0)
	if m.queue = next; next == view.Release {
		fx.Rule(ruleM2b)
	}
	if !tell {
		return
	}
	m.waits, m.inside, m.agreed = false, true, false
	if !m.o.flaw.BareFences {
		f = process.MakeFence(m.member.Epoch, f.Number())
	}
	fx.Grant(f)
}

var (
	stateNames = []string{view.Out.String(), view.Resuming.String(), view.Open.String()}
	phaseNames = []string{"IDLE", "ASKED", "INSIDE"}
)

// Fields names the state. The view comes before the machine, which depends on it.
func (m *home) Fields(f *process.Fields) {
	process.Enum(f, "state", &m.member.State, stateNames)
	f.Uint("epoch", &m.member.Epoch)
	process.List(f, "members", &m.member.Members, seatFields)
	f.Uint("seat", &m.member.Seat[0])
	f.Bool("lapsed", &m.member.Lapsed)
	f.Bool("begun", &m.member.Begun)
	f.Count("left", &m.member.Left)
	f.Bool("said", &m.member.Said)
	f.IDs("resumed", &m.member.Resumed)
	f.Bool("wanted", &m.name.Wanted)
	f.Bool("held", &m.name.Held)
	process.Enum(f, "phase", &m.name.Phase, phaseNames)
	f.Bool("again", &m.name.Again)
	f.Bool("down", &m.down)
	f.Uint("starts", &m.starts)
	f.Uint("over", &m.over)
	process.List(f, "kept", &m.kept, func(f *process.Fields, msg *process.Message) { f.Message("frame", msg) })
	f.Bool("made", &m.made)
	process.List(f, "timers", &m.timers, func(f *process.Fields, t *uint64) { f.Uint("timer", t) })
	f.Uint("quiet", &m.said)
	f.Uint("seen", &m.seen.Epoch)
	process.List(f, "seen.members", &m.seen.Members, seatFields)
	f.Bool("live", &m.live)
	f.Uint("change", &m.change)
	f.Bool("waits", &m.waits)
	f.Bool("asked", &m.asked)
	f.Bool("inside", &m.inside)
	f.Bool("agreed", &m.agreed)
	f.Uint("ghost", &m.ghost)
	m.leaveFields(f)
	m.fit()
	m.machine.Fields(f)
}

// fit gives the machine the view that was decoded.
func (m *home) fit() {
	if c, rank := m.config(); m.fitted != [2]int{c.N, int(rank)} {
		m.machine, m.fitted = m.o.lock.New(rank, c), [2]int{c.N, int(rank)}
	}
}
