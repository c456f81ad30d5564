package viewcheck

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/process"
)

// leave is what a home knows about servers that stop gracefully (P1, P2). Clients are
// identified by their processes plus 1, so that 0 means no process.
type leave struct {
	stopping bool   // this server stops: it grants nothing
	tried    bool   // another member was asked without success: the hold has to be released
	to       uint64 // the member that was asked: the home is frozen
	closes   bool   // the log was asked to end the seat
	named    bool   // and was told of the heir
	freed    bool   // the client has left since the home froze

	aside     uint64    // the client of another home whose hold is set aside here
	asideSeat view.Seat // of that home
	asideFree bool      // that client has left since
	guest     uint64    // the client of another server that holds through this home
	owed      uint64    // the seat to report to the log as lapsed when that client is past its deadline
}

func (l *leave) still() bool { return l.to != 0 }

// process and raised convert the number of a client to its process, and back.
func processOf(client uint64) process.ID { return process.ID(client) - 1 }
func raised(p process.ID) uint64         { return uint64(p) + 1 }

// onStop handles that a server is told to stop.
func (m *home) onStop() {
	if !m.down && m.member.State != view.Out && !m.leave.stopping {
		m.leave.stopping, m.member.Lapsed = true, true
	}
}

// depart continues with stopping.
func (m *home) depart(fx *process.Effects) {
	l := &m.leave
	switch {
	case !l.stopping || l.closes || l.still():
	case !m.name.Held:
		l.closes = true
		fx.Send(m.log(), process.Message{Type: msgClose, Seq: m.starts, Subject: process.None})
	case !l.tried:
		m.handOver(fx)
	}
}

// handOver asks another member to take over the hold.
func (m *home) handOver(fx *process.Effects) {
	var others []process.ID
	for _, s := range m.member.Members {
		if s.Server != m.member.Server {
			others = append(others, process.ID(s.Server-1))
		}
	}
	if m.leave.tried = len(others) == 0; m.leave.tried {
		return
	}
	fx.Rule(ruleP2)
	to, client := others[fx.Choose(len(others))], raised(m.self)
	if m.leave.guest != 0 {
		client = m.leave.guest
	}
	m.leave.to = raised(to)
	fx.Send(to, process.Message{Type: msgHandover, Term: termOf(m.member.Epoch), Seq: m.starts, Subject: processOf(client)})
}

// goOn ends the freeze.
func (m *home) goOn(ev *process.Event, fx *process.Effects) {
	l := &m.leave
	l.to, l.closes, l.named, l.tried = 0, false, false, true
	if l.freed {
		l.freed = false
		m.feed(m.member.Leave(&m.name), ev, fx)
	}
}

// onHandover sets aside another server's hold. That this server has not lapsed models a
// renewal of its seat for at least as long as the client was promised.
func (m *home) onHandover(msg *process.Message, fx *process.Effects) {
	l := &m.leave
	if l.stopping || m.member.Lapsed && !m.o.flaw.IgnoresPromise {
		fx.Send(msg.From, process.Message{Type: msgRefused, Term: termOf(m.member.Epoch)})
		return
	}
	l.aside, l.asideSeat, l.asideFree = raised(msg.Subject), seatOf(msg.From, msg.Seq), false
	fx.Send(msg.From, process.Message{Type: msgAdopted, Term: termOf(m.member.Epoch)})
}

// onAdopted tells the log of the heir.
func (m *home) onAdopted(msg *process.Message, fx *process.Effects) {
	l := &m.leave
	if rank := m.member.RankOf(raised(msg.From)); l.to == raised(msg.From) && !l.closes {
		l.closes, l.named = true, true
		fx.Send(m.log(), process.Message{Type: msgClose, Seq: m.starts, Subject: msg.From, Clock: m.member.Members[rank].ID[0]})
	}
}

// inherit takes over what was set aside if the log says that this server is the heir,
// and drops it if the seat has ended otherwise.
func (m *home) inherit(fx *process.Effects) {
	l := &m.leave
	own := view.Seat{Server: m.member.Server, ID: m.member.Seat}
	heir := slices.ContainsFunc(m.heirs, func(h view.Heir) bool { return h.Of == l.asideSeat && h.Seat == own })
	switch {
	case l.aside == 0 || !heir && slices.Contains(m.member.Members, l.asideSeat):
		return
	case heir && !l.asideFree:
		fx.Rule(ruleP2b)
		process.Assert(!m.name.Held, "no other server holds what is handed over")
		m.name.Held, l.guest = true, l.aside
	}
	l.aside, l.asideSeat, l.asideFree = 0, view.Seat{}, false
}

// ended is the end of this server's seat: its client continues at the heir, if there is
// one.
func (m *home) ended(fx *process.Effects) {
	l := &m.leave
	own := view.Seat{Server: m.member.Server, ID: m.member.Seat}
	for _, h := range m.heirs {
		if h.Of != own || l.guest != 0 {
			continue
		}
		if heir := process.ID(h.Seat.Server - 1); m.inside && !m.agreed && m.ghost == 0 {
			m.at = raised(heir)
		} else if l.freed {
			fx.Send(heir, process.Message{Type: msgFree})
		}
	}
}

// forgetLeave is the end of the process of a server, or of its seat.
func (m *home) forgetLeave() { m.leave = leave{owed: m.leave.owed} }

// died is the part of onDie about what is handed over: the client finds the heir if the
// log was told of it, or has left.
func (m *home) died(fx *process.Effects) {
	if l := &m.leave; l.named && l.guest == 0 {
		if m.ghost != 0 {
			m.at = l.to
		} else if l.freed {
			fx.Send(processOf(l.to), process.Message{Type: msgFree})
		}
	}
}

// awaits tells the client of another server that its deadline passes, which comes
// before the end of this seat. It reports whether there is such a client.
func (m *home) awaits(fx *process.Effects) bool {
	l := &m.leave
	client := l.guest
	if client == 0 && !m.o.flaw.IgnoresPromise {
		client = l.aside
	}
	if client == 0 || processOf(client) == m.self {
		return false
	}
	if l.owed == 0 {
		l.owed = m.starts
		fx.Send(processOf(client), process.Message{Type: msgDue})
	}
	return true
}

// onDue handles that the deadline of the client passes, according to the promise made
// before it was handed over.
func (m *home) onDue(ev *process.Event, fx *process.Effects) {
	if m.inside && !m.agreed {
		fx.Revoke()
		m.loses(ev, fx)
	}
	fx.Send(ev.Message.From, process.Message{Type: msgLost})
}

// loses handles that the client no longer holds anything, at any server.
func (m *home) loses(ev *process.Event, fx *process.Effects) {
	m.inside = false
	switch {
	case m.ghost != 0:
		m.pass(fx)
	case m.at != 0:
		fx.Send(processOf(m.at), process.Message{Type: msgFree})
		m.at = 0
	case m.down:
	case m.leave.still():
		if m.leave.freed = true; m.o.flaw.TakesWhileStill {
			m.feed(m.member.Leave(&m.name), ev, fx)
			m.leave.freed = false
		}
	default:
		m.feed(m.member.Leave(&m.name), ev, fx)
	}
}

// pass ends a ghost: the deadline of a crashed server's client is over.
func (m *home) pass(fx *process.Effects) {
	if m.at != 0 {
		fx.Send(processOf(m.at), process.Message{Type: msgFree})
		m.at = 0
	}
	if !m.o.flaw.EndsSeatsAtOnce && m.leave.owed == 0 {
		m.lapsed(m.ghost, fx)
	}
	m.ghost = 0
}

// onLost handles that the client of another server is past its deadline, so this seat
// may end.
func (m *home) onLost(ev *process.Event, fx *process.Effects) {
	l := &m.leave
	seat := l.owed
	l.owed = 0
	if l.guest == raised(ev.Message.From) && !m.down {
		m.free(raised(ev.Message.From), ev, fx)
	}
	switch {
	case m.ghost != 0:
	case m.down || seat != m.starts:
		m.lapsed(seat, fx)
	default:
		fx.Send(m.log(), process.Message{Type: msgLapsed, Seq: seat})
	}
}

// free ends the hold of another server's client.
func (m *home) free(client uint64, ev *process.Event, fx *process.Effects) {
	l := &m.leave
	switch {
	case m.down:
	case l.guest == client && l.still():
		l.freed = true
	case l.guest == client:
		l.guest = 0
		m.feed(m.member.Leave(&m.name), ev, fx)
	case l.aside == client:
		l.asideFree = true
	}
}

// leaveFields names the state of leave.
func (m *home) leaveFields(f *process.Fields) {
	l := &m.leave
	f.Bool("stopping", &l.stopping)
	f.Bool("tried", &l.tried)
	f.Uint("to", &l.to)
	f.Bool("closes", &l.closes)
	f.Bool("named", &l.named)
	f.Bool("freed", &l.freed)
	f.Uint("aside", &l.aside)
	f.Uint("aside.server", &l.asideSeat.Server)
	f.Uint("aside.seat", &l.asideSeat.ID[0])
	f.Bool("aside.free", &l.asideFree)
	f.Uint("guest", &l.guest)
	f.Uint("owed", &l.owed)
	f.Uint("at", &m.at)
}
