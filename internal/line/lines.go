package line

import (
	"slices"
	"strings"

	"github.com/conclave-io/conclave/service/api"
)

// Lines are the two lines of a program: one to the leader, and, from the first call for a
// lock that an algorithm guards, one to a home. It has a call made where the lock is
// guarded, as far as the program was told, and again elsewhere if that is wrong. Of any
// other call it is the line to the leader.
type Lines struct {
	*Line        // to the leader
	home   *Line // or nil
	known  []*api.Guard
	moved  []moved
	prefer string
	used   int64 // when a call was last made at a home
	open   int   // lines that are to be closed
	all    []Output
}

// moved is a call that waits before it is made elsewhere.
type moved struct {
	call *Call
	at   int64
}

// homeStreams is the number below the first stream of the line to a home.
const homeStreams = 1 << 63

// NewLines returns the lines of a program, of which that to the leader begins its search.
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

// at returns the line on which a call is to be made.
func (l *Lines) at(c *Call) *Line {
	a := c.Op.GetAcquire()
	switch {
	case c.Of != nil:
		return c.Of.line
	case a == nil || a.GetClass() != api.Class_CLASS_LOCK || a.GetShared() || a.GetLimit() > 1 || !l.live(a.GetName()):
		return l.Line
	}
	l.used = l.now
	return l.atHome()
}

// idle is how long a session is kept at a home where nothing is held or asked for.
const idle = 10_000 * ms

// leaveIdle closes the session at a home where nothing was asked for in a long time.
func (l *Lines) leaveIdle() {
	if h := l.home; h.serves() && !h.bound() && l.now-max(l.used, h.session.freed) >= idle {
		h.session.retire(ErrClosed, false)
	}
}

// live reports whether an algorithm guards a lock, as far as is known. It may be wrong:
// then MOVED tells.
func (l *Lines) live(name string) bool {
	longest := new(api.Guard)
	for _, g := range l.known {
		if strings.HasPrefix(name, g.GetPrefix()) && len(g.GetPrefix()) >= len(longest.GetPrefix()) {
			longest = g
		}
	}
	return longest.GetAlgorithm() != ""
}

// learn takes in what guards a lock, as the other line is to know. Of what was known of it
// only shorter prefixes may still be right.
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

// maxKnown bounds the guards that are remembered.
const maxKnown = 1024

// Step takes in what happened at the reading now.
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

// withdraw withdraws a call, wherever it is.
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

// makeAgain makes calls elsewhere whose pause is over.
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

// Outputs returns what came of the steps since the last Clear, in order for each line.
func (l *Lines) Outputs(now int64) []Output {
	for before := -1; len(l.all) > before; { // calls that move ask the other line for more
		before = len(l.all)
		l.take(l.Line, now)
		if l.home != nil {
			l.take(l.home, now)
		}
	}
	return l.all
}

// take takes the outputs of a line, but for those of calls that are to be made elsewhere.
func (l *Lines) take(from *Line, now int64) {
	for _, o := range from.Outputs(now) {
		switch {
		case o.Action == Closed:
			if l.open--; l.open > 0 {
				continue
			}
		case o.Action == homeless:
			l.leaveHomes()
			continue
		case o.Action == Done && o.Reply.GetCode() == api.Code_CODE_MOVED && l.move(from, o):
			continue
		}
		l.all = append(l.all, o)
	}
	from.Clear()
}

// move has a call made on the other line, and reports whether it can be. One that shares a
// lock cannot be made at a home.
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

// makeElsewhere lets a call begin again, at once if it is the first time.
func (l *Lines) makeElsewhere(c *Call) {
	c.reset()
	c.moves++
	l.all = append(l.all, Output{Action: Again, Call: c})
	pause := int64(0)
	if c.moves > 1 { // one of them has not applied yet what the other has
		pause = Pause(c.moves, l.cfg.Chance)
	}
	l.moved = append(l.moved, moved{c, l.now + pause})
}

// leaveHomes makes the calls that wait for a home at the leader. A server has said that no
// server is a home; agreement may guard all names again.
func (l *Lines) leaveHomes() {
	l.known = slices.DeleteFunc(l.known, func(g *api.Guard) bool { return g.GetAlgorithm() != "" })
	waiting := l.home.waiting
	l.home.waiting = nil
	for _, c := range waiting {
		l.makeElsewhere(c)
	}
	l.makeAgain()
}

// Clear forgets the outputs, which the host has carried out.
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

// Home returns the session at a home that was opened last, or nil, and the address of the
// home in use, or "".
func (l *Lines) Home() (*Session, string) {
	if l.home == nil {
		return nil, ""
	}
	return l.home.Session(), l.home.Server()
}
