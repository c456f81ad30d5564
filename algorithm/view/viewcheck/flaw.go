package viewcheck

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
)

// Flaw selects the mistake of a broken variant of the protocol. The zero Flaw has none.
// View itself knows no flaw: log and member make its mistakes around it, and home makes
// its own.
type Flaw struct {
	EndsSeatsAtOnce  bool // S1: a seat ends when its server dies, not when its lease is over
	TellsLapsed      bool // S4: a home reports a grant although its seat has lapsed
	TakesNewSeats    bool // V3: of two seats of a server the new one takes part
	SkipsBarrier     bool // M4: a member asks for new names without waiting for RESUMED
	ForgetsHolds     bool // M2: what is held is not entered again
	ResumesEarly     bool // M3: RESUMED is sent before the holds were granted again
	TakesOldFrames   bool // L4: frames of earlier epochs are accepted
	DropsNewFrames   bool // L4: frames of later epochs are dropped, not kept
	BareFences       bool // I7: a fence is that of the machine, without the epoch
	QuietWhileHeld   bool // G4: quiet is sent while something is held
	FeedsDraining    bool // G3: names under a guard that drains are asked for
	SwitchesAtOnce   bool // G5: a guard changes at once, without draining
	IgnoresLateGrant bool // M2: a hold that ended before it was entered again is kept
	IgnoresPromise   bool // P2: an heir does not ensure that its seat outlasts the promises to clients
	TakesWhileStill  bool // P2: a home that hands over accepts a release
	QuietInAny       bool // G4: quiet counts in every epoch
}

// log is a view.Log that makes the mistakes of a flaw.
type log struct {
	view.Log
	flaw Flaw
}

func (l *log) Quiet(s view.Seat, change, epoch uint64) {
	if l.flaw.QuietInAny {
		epoch = l.Epoch
	}
	l.Log.Quiet(s, change, epoch)
}

func (l *log) Settle(above uint64, held func(prefix string) bool) (started bool) {
	if l.flaw.SwitchesAtOnce {
		held = func(string) bool { return false }
		l.quietAll()
	}
	if !l.flaw.TakesNewSeats {
		return l.Log.Settle(above, held)
	}
	seats := l.Seats
	l.Seats = newest(seats)
	started = l.Log.Settle(above, held)
	l.Seats = seats
	return started
}

// quietAll makes all members quiet under each guard that drains.
func (l *log) quietAll() {
	for i := range l.Guards {
		for _, s := range l.Members {
			l.Log.Quiet(s, l.Guards[i].Change, l.Epoch)
		}
	}
}

// newest returns the seats after which no seat of the same server has entered.
func newest(seats []view.Seat) (last []view.Seat) {
	for i, s := range seats {
		if !slices.ContainsFunc(seats[i+1:], func(t view.Seat) bool { return t.Server == s.Server }) {
			last = append(last, s)
		}
	}
	return last
}

// member is a view.Member that makes the mistakes of a flaw.
type member struct {
	view.Member
	flaw Flaw
}

func newMember(o *over, server uint64, seat [2]uint64) member {
	return member{Member: view.Member{Server: server, Seat: seat}, flaw: o.flaw}
}

func (m *member) Fate(epoch uint64) view.Fate {
	switch fate := m.Member.Fate(epoch); {
	case fate == view.Keep && m.flaw.DropsNewFrames:
		return view.Drop
	case epoch < m.Epoch && m.State != view.Out && m.flaw.TakesOldFrames:
		return view.Take
	default:
		return fate
	}
}

func (m *member) Advance() (resumes, opens bool) {
	waiting, left := m.State == view.Resuming && m.Begun, m.Left
	if m.flaw.ResumesEarly {
		m.Left = 0
	}
	resumes, opens = m.Member.Advance()
	m.Left = left
	if waiting && m.flaw.SkipsBarrier {
		m.State, opens = view.Open, true
	}
	return resumes, opens
}

func (m *member) Begin(n *view.Name) view.Feed {
	if m.flaw.ForgetsHolds {
		n.Phase, n.Again = view.Idle, false
		return view.Nothing
	}
	return m.Member.Begin(n)
}

func (m *member) Next(n *view.Name, draining, cancels bool) view.Feed {
	return m.Member.Next(n, draining && !m.flaw.FeedsDraining, cancels)
}

func (m *member) Granted(n *view.Name, draining bool) (tell bool, feed view.Feed) {
	lapsed, held, again := m.Lapsed, n.Held, n.Again
	m.Lapsed = lapsed && !m.flaw.TellsLapsed
	n.Held = held || again && m.flaw.IgnoresLateGrant
	tell, feed = m.Member.Granted(n, draining && !m.flaw.FeedsDraining)
	m.Lapsed = lapsed
	if again {
		n.Held = held
	}
	return tell, feed
}

func (m *member) Quiet(n *view.Name) bool {
	return m.flaw.QuietWhileHeld || m.Member.Quiet(n)
}
