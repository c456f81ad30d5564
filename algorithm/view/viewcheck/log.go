package viewcheck

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/process"
)

// logger is the log and the lock that agreement keeps.
type logger struct {
	o *over
	n int

	log    log
	holder process.ID   // of the lock of agreement, or None
	queue  []process.ID // those that wait for it
	count  uint64       // the last number of a fence
	live   bool         // whether the lock guards the name; see Fields
}

// name is the one name of the model, which is also its prefix.
const name = "x"

func newLogger(o *over, c *process.Config) *logger {
	m := &logger{o: o, n: c.N - Others, holder: process.None}
	m.log = log{Log: view.Log{View: first(m.n)}, flaw: o.flaw}
	m.log.Seats = slices.Clone(m.log.Members)
	m.log.Guards = []view.Guard{{Prefix: name, Use: firstUse(o, c)}}
	return m
}

// first is the epoch with which a run begins: every server is seated.
func first(n int) view.View {
	v := view.View{Epoch: 1}
	for p := range n {
		v.Members = append(v.Members, seatOf(process.ID(p), 1))
	}
	return v
}

func firstUse(o *over, c *process.Config) view.Use {
	if c.Option("guard", guardLive) == guardAgreement {
		return view.Use{}
	}
	return view.Use{Algorithm: o.lock.Name}
}

// seatOf is the seat of a process that has started this many times.
func seatOf(p process.ID, start uint64) view.Seat { return seat(uint64(p)+1, start) }

func seat(server, start uint64) view.Seat {
	return view.Seat{Server: server, ID: [2]uint64{start}}
}

// Step dispatches the event.
func (m *logger) Step(ev *process.Event, fx *process.Effects) {
	if ev.Kind != process.Deliver {
		return
	}
	msg := ev.Message
	seat := seatOf(msg.From, msg.Seq)
	before, drains := m.guard().Use, m.guard().Change
	switch msg.Type {
	case msgEnter:
		m.log.Enter(seat)
	case msgLapsed:
		m.onLapsed(seat, msg, fx)
	case msgQuiet:
		m.log.Quiet(seat, msg.Clock, msg.Term.Round())
	case msgAsk:
		m.onAsk(msg.From, fx)
	case msgLeave:
		process.Assert(m.holder == msg.From, "only the holder leaves")
		m.holder = process.None
	case msgChange:
		m.onChange(fx)
	case msgClose:
		m.onClose(seat, msg, fx)
	}
	started := m.log.Settle(0, func(string) bool { return m.holder != process.None })
	if started {
		fx.Rule(ruleV2)
	}
	if started || m.guard().Change != drains {
		m.show(fx)
	}
	if m.guard().Use != before {
		fx.Rule(ruleG5)
		for _, p := range m.queue {
			fx.Send(p, process.Message{Type: msgMoved})
		}
		m.queue = m.queue[:0]
	}
	m.pass(fx)
}

func (m *logger) guard() *view.Guard { return &m.log.Guards[0] }

// onLapsed decides about a silent seat: it is renewed or expires. The seat of a crashed
// server expires.
func (m *logger) onLapsed(s view.Seat, msg *process.Message, fx *process.Effects) {
	if !slices.Contains(m.log.Seats, s) {
		return
	}
	if msg.Value == 0 && (!slices.Contains(m.log.Members, s) || fx.Choose(2) == 0) {
		fx.Rule(ruleS4)
		fx.Send(msg.From, process.Message{Type: msgRenewed, Seq: msg.Seq})
		return
	}
	fx.Rule(ruleS1)
	m.log.End(s)
}

// onClose ends a seat at the server's own request, with or without an heir.
func (m *logger) onClose(s view.Seat, msg *process.Message, fx *process.Effects) {
	switch heir := seatOf(msg.Subject, msg.Clock); {
	case msg.Subject == process.None:
		m.log.End(s)
	case m.log.CanInherit(s, heir):
		m.log.Bequeath(s, heir)
	default:
		fx.Send(msg.From, process.Message{Type: msgKept, Seq: msg.Seq})
	}
}

// onChange asks for the other guard. While the present guard drains, it asks to keep
// it.
func (m *logger) onChange(fx *process.Effects) {
	fx.Rule(ruleG2)
	g := m.guard()
	switch {
	case g.Change != 0:
		m.log.Set(name, g.Use, view.Conditions{})
	case g.Use.Guarded():
		m.log.Set(name, view.Use{}, view.Conditions{})
	default:
		m.log.Set(name, view.Use{Algorithm: m.o.lock.Name}, view.Conditions{})
	}
}

// show lets the servers apply the entry.
func (m *logger) show(fx *process.Effects) {
	msg := process.Message{Type: msgView, Term: termOf(m.log.Epoch), Clock: m.guard().Change}
	if m.guard().Use.Guarded() {
		msg.Value = 1
	}
	for _, s := range m.log.Members {
		msg.IDs = append(msg.IDs, process.ID(s.Server-1))
		msg.Vector = append(msg.Vector, s.ID[0])
	}
	for _, h := range m.log.Heirs {
		msg.Vector = append(msg.Vector, h.Of.Server, h.Of.ID[0], h.Seat.Server, h.Seat.ID[0])
	}
	for p := range process.ID(m.n) {
		fx.Send(p, msg)
	}
}

// onAsk is a client that acquires the lock of agreement.
func (m *logger) onAsk(p process.ID, fx *process.Effects) {
	if m.guard().Use.Guarded() {
		fx.Rule(ruleH8)
		fx.Send(p, process.Message{Type: msgMoved})
		return
	}
	m.queue = append(m.queue, p)
}

// pass grants the lock of agreement to the first waiting client, unless the guard
// drains (G3).
func (m *logger) pass(fx *process.Effects) {
	if m.holder != process.None || len(m.queue) == 0 || m.guard().Use.Guarded() || m.guard().Change != 0 && !m.o.flaw.FeedsDraining {
		return
	}
	m.holder = m.queue[0]
	m.queue = slices.Delete(m.queue, 0, 1)
	m.count++
	fx.Send(m.holder, process.Message{Type: msgGranted, Fence: process.MakeFence(m.log.Epoch, uint32(m.count))})
}

// Fields names the state. There are two guards: the one not in use is the next.
func (m *logger) Fields(f *process.Fields) {
	g := m.guard()
	m.live = g.Use.Guarded()
	f.Uint("epoch", &m.log.Epoch)
	process.List(f, "members", &m.log.Members, seatFields)
	process.List(f, "seats", &m.log.Seats, seatFields)
	process.List(f, "heirs", &m.log.Heirs, func(f *process.Fields, h *view.Heir) {
		seatFields(f, &h.Of)
		seatFields(f, &h.Seat)
		f.Uint("epoch", &h.Epoch)
	})
	f.Bool("live", &m.live)
	f.Uint("change", &g.Change)
	f.Uints("quiet", &g.Quiet)
	f.Uint("changes", &m.log.Changes)
	f.ID("holder", &m.holder)
	f.IDs("queue", &m.queue)
	f.Uint("count", &m.count)
	g.Use, g.Next = view.Use{}, view.Use{}
	if live := (view.Use{Algorithm: m.o.lock.Name}); m.live {
		g.Use = live
	} else if g.Change != 0 {
		g.Next = live
	}
}

func seatFields(f *process.Fields, s *view.Seat) {
	f.Uint("server", &s.Server)
	f.Uint("seat", &s.ID[0])
}
