package viewcheck

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/process"
)

// home is a server with its one client. The client is not in the same process: it
// continues while the server is down.
type home struct {
	o       *over
	c       *process.Config
	self    process.ID
	configs []*process.Config // of the lock, by the number of members less 1
	inner   process.Effects
	queue   view.Feed // the next event for the machine
	fitted  [2]int    // the members of the view and the rank of the machine

	// The server.
	member  member
	name    view.Name
	down    bool
	starts  uint64            // number of its starts, and of its last seat
	over    uint64            // a seat of a crashed server that was not reported to the log yet, or 0
	kept    []process.Message // frames of a later epoch
	made    bool              // there is a machine
	machine process.Machine   // of the lock; a new one if there is none
	timers  []uint64          // armed by the machine
	said    uint64            // the change for which it has sent quiet in this epoch, or 0

	// What the log has reported.
	seen   view.View
	live   bool   // whether the lock guards the name
	change uint64 // the number of the change, while the guard drains

	// The client.
	waits  bool
	asked  bool   // it has asked agreement
	inside bool   // it believes that it holds
	agreed bool   // it holds by agreement
	ghost  uint64 // the seat that granted its hold, if the server has crashed since; or 0
	at     uint64 // 1 + the server that has taken over its hold, or 0

	leave leave
	heirs []view.Heir // in the view that is being applied
}

func newHome(o *over, self process.ID, c *process.Config) *home {
	m := &home{o: o, c: c, self: self, starts: 1, live: firstUse(o, c).Guarded()}
	for n := 1; n <= c.N-Others; n++ {
		m.configs = append(m.configs, o.config(c, n))
	}
	m.seen = first(c.N - Others)
	v := first(c.N - Others)
	m.member = newMember(o, uint64(self)+1, v.Members[self].ID)
	m.member.Apply(&v)
	m.member.Begun, m.member.Said, m.member.State = true, true, view.Open
	m.renew()
	return m
}

// config returns the configuration of the lock in the present view, and the rank.
func (m *home) config() (*process.Config, process.ID) {
	if m.member.State == view.Out {
		return m.configs[0], 0
	}
	return m.configs[len(m.member.Members)-1], m.member.Rank()
}

// renew replaces the present machine by a new one.
func (m *home) renew() {
	c, rank := m.config()
	m.machine, m.made, m.fitted = m.o.lock.New(rank, c), false, [2]int{c.N, int(rank)}
}

// Step dispatches the event, and then does what has become possible.
func (m *home) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Deliver:
		m.onMessage(ev, fx)
	case process.Acquire:
		m.waits = true
	case process.Release:
		m.onRelease(ev, fx)
	case process.Fire:
		m.timers = slices.DeleteFunc(m.timers, func(t uint64) bool { return process.Timer(t) == ev.Timer })
		m.step(*ev, fx)
	}
	m.settle(ev, fx)
}

func (m *home) onMessage(ev *process.Event, fx *process.Effects) {
	msg := ev.Message
	switch msg.Type {
	case msgView:
		m.onView(ev, fx)
	case msgRenewed:
		m.member.Lapsed = m.member.Lapsed && msg.Seq != m.starts || m.leave.stopping
	case msgGranted:
		m.asked, m.waits, m.inside, m.agreed = false, false, true, true
		fx.Grant(msg.Fence)
	case msgMoved:
		m.asked = false
	case msgDie:
		m.onDie(fx)
	case msgReturn:
		m.down = false
		m.enter(fx)
		m.apply(ev, fx)
	case msgLapse:
		m.onLapse(ev, fx)
	case msgStop:
		m.onStop()
	case msgKept:
		if msg.Seq == m.starts && m.leave.named {
			m.goOn(ev, fx)
		}
	case msgFree:
		m.free(raised(msg.From), ev, fx)
	case msgDue:
		m.onDue(ev, fx)
	case msgLost:
		m.onLost(ev, fx)
	default:
		m.onFrame(ev, msg, fx)
	}
}

// log is the process of the log.
func (m *home) log() process.ID { return process.ID(m.c.N) - Others }

// onRelease handles that the client leaves, or that the deadline of the client of a
// crashed server is over.
func (m *home) onRelease(ev *process.Event, fx *process.Effects) {
	if m.agreed {
		m.inside, m.agreed = false, false
		fx.Send(m.log(), process.Message{Type: msgLeave})
		return
	}
	m.loses(ev, fx)
}

// lapsed tells the log that the clients of a crashed server are past their deadlines.
func (m *home) lapsed(seat uint64, fx *process.Effects) {
	fx.Send(m.log(), process.Message{Type: msgLapsed, Seq: seat, Value: 1})
}

// onDie handles a crash: the server loses its state, and its client does not notice. If
// nothing was held its seat may end before or after the server is back.
func (m *home) onDie(fx *process.Effects) {
	m.down = true
	owes := m.awaits(fx)
	switch {
	case m.inside && !m.agreed && m.ghost == 0 && m.at == 0:
		if m.ghost = m.starts; m.o.flaw.EndsSeatsAtOnce {
			m.lapsed(m.starts, fx)
		}
	case owes:
	case m.member.Seat == [2]uint64{}:
	case fx.Choose(2) == 0:
		m.lapsed(m.starts, fx)
	default:
		m.over = m.starts
	}
	m.died(fx)
	m.forgetLeave()
	m.abandon(fx)
	m.name, m.kept = view.Name{}, nil
	m.member = newMember(m.o, m.member.Server, [2]uint64{})
	m.renew()
}

// enter takes a new seat (S5, S6).
func (m *home) enter(fx *process.Effects) {
	m.starts++
	m.forgetLeave()
	m.name = view.Name{}
	m.member = newMember(m.o, m.member.Server, [2]uint64{m.starts})
	fx.Send(m.log(), process.Message{Type: msgEnter, Seq: m.starts})
	if m.over != 0 {
		m.lapsed(m.over, fx)
		m.over = 0
	}
}

// abandon drops the machine and its timers.
func (m *home) abandon(fx *process.Effects) {
	for _, t := range m.timers {
		fx.Disarm(process.Timer(t))
	}
	m.timers, m.said, m.queue = m.timers[:0], 0, view.Nothing
	m.renew()
}

// onLapse handles that the server no longer reaches the log. The deadline of its client
// passes, and so does the lease of its seat (H4); the log decides about the seat.
func (m *home) onLapse(ev *process.Event, fx *process.Effects) {
	if m.down {
		return
	}
	m.member.Lapsed = true
	if m.inside && !m.agreed && m.ghost == 0 && m.at == 0 {
		fx.Revoke()
		m.loses(ev, fx)
	}
	if !m.awaits(fx) {
		fx.Send(m.log(), process.Message{Type: msgLapsed, Seq: m.starts})
	}
}

// onView applies an entry of the log. A server that is down does so when it starts.
func (m *home) onView(ev *process.Event, fx *process.Effects) {
	msg := ev.Message
	m.seen = view.View{Epoch: msg.Term.Round()}
	for i, p := range msg.IDs {
		m.seen.Members = append(m.seen.Members, seatOf(p, msg.Vector[i]))
	}
	for h := range slices.Chunk(msg.Vector[len(msg.IDs):], 4) {
		m.heirs = append(m.heirs, view.Heir{Of: seat(h[0], h[1]), Seat: seat(h[2], h[3])})
	}
	m.live, m.change = msg.Value == 1, msg.Clock
	if !m.down {
		m.apply(ev, fx)
	}
	m.heirs = nil
}

// apply is M1, M2 and M5.
func (m *home) apply(ev *process.Event, fx *process.Effects) {
	was := m.member.State
	v := view.View{Epoch: m.seen.Epoch, Members: slices.Clone(m.seen.Members)}
	switch m.member.Apply(&v) {
	case view.Left:
		fx.Rule(ruleM5)
		m.abandon(fx)
		if was != view.Out {
			fx.Rule(ruleS5)
			m.ended(fx)
			m.enter(fx)
			m.member.Apply(&v)
			m.renew()
		}
	case view.Began:
		fx.Rule(ruleM1)
		m.abandon(fx)
		m.inherit(fx)
		again := m.member.Begin(&m.name)
		if again != view.Nothing {
			fx.Rule(ruleM2)
		}
		m.feed(again, ev, fx)
		m.member.Begun = true
		if m.leave.still() && !m.leave.closes {
			m.goOn(ev, fx)
		}
	case view.Same:
		return
	}
	m.takeKept(ev, fx)
}

// takeKept handles the frames that came before the epoch began (L4).
func (m *home) takeKept(ev *process.Event, fx *process.Effects) {
	kept := m.kept
	m.kept = nil
	for i := range kept {
		m.onFrame(ev, &kept[i], fx)
	}
}

// onFrame handles, keeps or drops a frame (L4).
func (m *home) onFrame(ev *process.Event, msg *process.Message, fx *process.Effects) {
	if m.down {
		return
	}
	epoch := msg.Term.Round()
	switch m.member.Fate(epoch) {
	case view.Drop:
		fx.Rule(ruleL4b)
	case view.Keep:
		fx.Rule(ruleL4)
		m.keep(msg)
	case view.Take:
		m.take(ev, msg, fx)
	}
}

// keep keeps only frames of the newest epoch.
func (m *home) keep(msg *process.Message) {
	if len(m.kept) > 0 && m.kept[0].Term != msg.Term {
		if msg.Term < m.kept[0].Term {
			return
		}
		m.kept = m.kept[:0]
	}
	m.kept = append(m.kept, process.Message{})
	m.kept[len(m.kept)-1].CopyFrom(msg)
}

func (m *home) take(ev *process.Event, msg *process.Message, fx *process.Effects) {
	from := m.member.RankOf(uint64(msg.From) + 1)
	switch {
	case from == process.None: // of an earlier epoch
	case msg.Type == msgResumed:
		m.member.Hear(from)
	case msg.Type == msgWake:
		m.instance(ev, fx)
	case msg.Type == msgHandover:
		m.onHandover(msg, fx)
	case msg.Type == msgAdopted:
		m.onAdopted(msg, fx)
	case msg.Type == msgRefused:
		if m.leave.to == raised(msg.From) && !m.leave.closes {
			m.goOn(ev, fx)
		}
	default:
		var in process.Message
		in.CopyFrom(msg)
		in.Type -= msgLock
		in.Term, in.From, in.To = 0, from, m.member.Rank()
		m.instance(ev, fx)
		m.step(process.Event{Kind: process.Deliver, Message: &in, Now: ev.Now}, fx)
	}
}
