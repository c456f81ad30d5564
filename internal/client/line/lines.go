package line

import (
	"slices"
	"strings"

	"github.com/conclave-io/conclave/api"
)

// Lines are the two lines of a program: one to the leader and, from the first call for a guarded
// lock on, one to a home. It makes a call where the lock is guarded, as far as the program was
// told, and again at the other line if that is wrong. For everything else it acts like the line
// to the leader.
type Lines struct {
	*Line        // to the leader
	home   *Line // or nil
	known  []*api.Guard
	moved  []moved
	prefer string
	used   int64 // when the last call was made at a home
	open   int   // number of lines that are not closed yet
	all    []Output
}

// moved is a call that waits before it is made on the other line.
type moved struct {
	call *Call
	at   int64
}

// homeStreams is the number below that of the first stream of the line to a home.
const homeStreams = 1 << 63

// NewLines returns the lines of a program. The one to the leader starts its search.
// Config.Prefer is for the other one.
func NewLines(now int64, cfg Config) *Lines {
	prefer := cfg.Prefer
	cfg.Prefer = ""
	return &Lines{Line: New(now, cfg), prefer: prefer}
}

// atHome returns the line to a home.
func (l *Lines) atHome() *Line {
	if l.home == nil {
		cfg := l.cfg
		cfg.Home, cfg.Prefer, cfg.Servers, cfg.Cluster = true, l.prefer, l.Servers(), l.Cluster()
		l.home = New(l.now, cfg)
		l.home.attached, l.home.dialled, l.home.closed = true, homeStreams, l.closed
	}
	return l.home
}

// at returns the line for a call.
func (l *Lines) at(c *Call) *Line {
	a := c.Op.GetAcquire()
	switch {
	case c.Of != nil:
		return c.Of.line
	case a == nil || a.GetClass() != api.Class_CLASS_LOCK || a.GetShared() || a.GetLimit() > 1 || !l.guarded(a.GetName()):
		return l.Line
	}
	l.used = l.now
	return l.atHome()
}

// idle is how long a session at a home is kept if nothing is held or requested.
const idle = 10_000 * ms

// leaveIdle closes a session at a home that has not been used for a long time.
func (l *Lines) leaveIdle() {
	if h := l.home; h.serves() && !h.bound() && l.now-max(l.used, h.session.freed) >= idle {
		h.session.retire(ErrClosed, false)
	}
}

// guarded reports whether an algorithm guards a lock, as far as is known. If that is wrong, the
// answer is MOVED.
func (l *Lines) guarded(name string) bool {
	longest := new(api.Guard)
	for _, g := range l.known {
		if strings.HasPrefix(name, g.GetPrefix()) && len(g.GetPrefix()) >= len(longest.GetPrefix()) {
			longest = g
		}
	}
	return longest.GetAlgorithm() != ""
}

// learn notes the guard of a lock, as the other line must know it. Only the shorter
// prefixes that it knew before may still be right.
func (l *Lines) learn(name string, g *api.Guard, home bool) {
	switch {
	case g == nil && home:
		g = &api.Guard{Prefix: name}
	case g == nil:
		g = &api.Guard{Prefix: name, Algorithm: "unknown"}
	}
	l.known = slices.DeleteFunc(l.known, func(old *api.Guard) bool {
		return strings.HasPrefix(name, old.GetPrefix()) && len(old.GetPrefix()) >= len(g.GetPrefix())
	})
	if l.known = append(l.known, g); len(l.known) > maxKnown {
		l.known = l.known[1:]
	}
}

// maxKnown bounds the guards that are stored.
const maxKnown = 1024

// Step processes an input at the reading now.
func (l *Lines) Step(now int64, in Input) {
	l.now = max(l.now, now)
	switch in.Kind {
	case Tick:
		l.Line.Step(now, in)
		if l.home != nil {
			l.home.Step(now, in)
			l.leaveIdle()
		}
		l.makeAgain()
	case Submit:
		l.at(in.Call).Step(now, in)
	case Withdraw:
		l.withdraw(now, in)
	case Lapse:
		in.Session.line.Step(now, in)
	case Close:
		l.close(now, in)
	case Received, Sent, Ended, Pong:
		if in.Stream > homeStreams {
			l.home.Step(now, in)
		} else {
			l.Line.Step(now, in)
		}
	}
}

func (l *Lines) withdraw(now int64, in Input) {
	if i := slices.IndexFunc(l.moved, func(m moved) bool { return m.call == in.Call }); i >= 0 {
		l.moved = slices.Delete(l.moved, i, i+1)
	}
	in.Call.line.Step(now, in)
}

// close closes both lines. Calls that wait between them end.
func (l *Lines) close(now int64, in Input) {
	l.open = 1
	l.Line.Step(now, in)
	if l.home != nil {
		l.open++
		l.home.Step(now, in)
	}
	for _, m := range l.moved {
		m.call.line.finish(m.call, nil, ErrClosed)
	}
	l.moved = nil
}

// makeAgain makes calls on the other line whose pause is over.
func (l *Lines) makeAgain() {
	for i := 0; i < len(l.moved); {
		m := l.moved[i]
		if m.at > l.now {
			i++
			continue
		}
		l.moved = slices.Delete(l.moved, i, i+1)
		l.at(m.call).submit(m.call)
	}
}

// Outputs returns the outputs of the steps since the last Clear, in order for each line.
func (l *Lines) Outputs(now int64) []Output {
	for before := -1; len(l.all) > before; { // calls that move create more on the other line
		before = len(l.all)
		l.take(l.Line, now)
		if l.home != nil {
			l.take(l.home, now)
		}
	}
	return l.all
}

// take takes the outputs of a line, except those of calls that move to the other line.
func (l *Lines) take(from *Line, now int64) {
	for _, o := range from.Outputs(now) {
		switch {
		case o.Action == Closed:
			if l.open--; l.open > 0 {
				continue
			}
		case o.Action == noHome:
			l.leaveHomes()
			continue
		case o.Action == Done && o.Reply.GetCode() == api.Code_CODE_MOVED && l.move(from, o):
			continue
		}
		l.all = append(l.all, o)
	}
	from.Clear()
}

// move makes a call on the other line, and reports whether it can. A shared claim cannot be made
// at a home.
func (l *Lines) move(from *Line, o Output) bool {
	c := o.Call
	name := c.Op.GetAcquire().GetName()
	l.learn(name, o.Reply.GetGuard(), from.cfg.Home)
	if l.closed || l.at(c) == from {
		return false
	}
	l.makeElsewhere(c)
	l.makeAgain()
	return true
}

// makeElsewhere starts a call again, the first time at once.
func (l *Lines) makeElsewhere(c *Call) {
	c.reset()
	c.moves++
	l.all = append(l.all, Output{Action: Again, Call: c})
	pause := int64(0)
	if c.moves > 1 { // one of them has not applied the latest change yet
		pause = Pause(c.moves, l.cfg.Chance)
	}
	l.moved = append(l.moved, moved{c, l.now + pause})
}

// leaveHomes makes the calls that wait for a home at the leader: a server has reported that there
// is no home. Agreement may guard all names again.
func (l *Lines) leaveHomes() {
	l.known = slices.DeleteFunc(l.known, func(g *api.Guard) bool { return g.GetAlgorithm() != "" })
	waiting := l.home.waiting
	l.home.waiting = nil
	for _, c := range waiting {
		l.makeElsewhere(c)
	}
	l.makeAgain()
}

// Clear removes the outputs after the host has carried them out.
func (l *Lines) Clear() {
	clear(l.all)
	l.all = l.all[:0]
}

// Next returns the reading at which the next Tick is due.
func (l *Lines) Next() int64 {
	next := l.Line.Next()
	if l.home != nil {
		next = min(next, l.home.Next())
	}
	for _, m := range l.moved {
		next = min(next, m.at)
	}
	return next
}

// Home returns the last session that was opened at a home, or nil, and the address of the home
// in use, or "".
func (l *Lines) Home() (*Session, string) {
	if l.home == nil {
		return nil, ""
	}
	return l.home.Session(), l.home.Server()
}
