package home

import (
	"time"

	"github.com/conclave-io/conclave/internal/kit/near"
	"github.com/conclave-io/conclave/internal/service/host"
)

// Near returns this server for programs in its own process. Their holds are shown with
// the given principal.
func (l *Home) Near(principal string) near.Server { return &nearby{l, principal} }

// nearby passes the calls of programs in this process to the host of guarded names. Most calls
// leave nothing to be carried out.
type nearby struct {
	*Home
	principal string
}

// Open implements near.Server.
func (l *nearby) Open(o *near.Owner) { o.Principal = l.principal }

// Lock implements near.Server.
func (l *nearby) Lock(h *near.Hold) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.net == nil {
		return false
	}
	granted := l.host.Lock(l.about(), h)
	l.settle()
	return granted
}

// about returns the reading of the clock of deadlines, computed from Go's own clock, which
// takes a tenth of the time to read. The result is wrong if the machine was suspended since
// the last tick. That does no harm: a program suspended in Lock is in the same situation as
// one suspended right after it. A program that must know asks for the fence, or for the
// error of the context, and both read the clock of deadlines itself.
func (l *nearby) about() int64 {
	if l.ticked == 0 {
		return now()
	}
	return l.ticked + int64(time.Since(l.tick))
}

// settle carries out pending output.
func (l *nearby) settle() {
	if l.host.Owes() {
		l.carryOut()
	}
}

// state returns the state of a hold. The caller holds mu.
func (l *nearby) state(h *near.Hold) near.State {
	if l.net == nil {
		return ended(h)
	}
	s := l.host.Near(now(), h)
	l.settle()
	return s
}

// ended is the state of a hold if there is no host any more.
func ended(h *near.Hold) near.State {
	if h.State.Holds() {
		return near.Lost
	}
	return h.State
}

// Unlock implements near.Server.
func (l *nearby) Unlock(h *near.Hold) near.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.net == nil {
		return ended(h)
	}
	if l.watchers[h] != nil && l.state(h).Holds() { // its holder hears of it before anyone can be next
		l.inform(h, near.Given)
	}
	before := l.host.Unlock(l.about(), h)
	l.settle()
	return before
}

// State implements near.Server.
func (l *nearby) State(h *near.Hold) near.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state(h)
}

// Watch implements near.Server.
func (l *nearby) Watch(h *near.Hold, tell func(near.Event)) near.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.state(h)
	if s.Holds() {
		l.watchers[h] = tell
	}
	return near.Event{State: s, Reason: h.Reason}
}

// Deadline implements near.Server.
func (l *nearby) Deadline(h *near.Hold) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Duration(l.host.NearUntil(h))
}

// Lease implements near.Server.
func (l *nearby) Lease() time.Duration { return l.cfg.Lease }

// Close implements near.Server.
func (l *nearby) Close(o *near.Owner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for h := range l.watchers {
		if h.Owner == o {
			l.inform(h, near.Given)
		}
	}
	l.host.CloseNear(now(), o)
	if l.net != nil {
		l.settle()
	}
}

// inform tells the holder of a near hold its new state. The caller holds mu.
func (l *Home) inform(h *near.Hold, s near.State) {
	if tell := l.watchers[h]; tell != nil {
		tell(near.Event{State: s, Reason: h.Reason})
	}
	if !s.Holds() {
		delete(l.watchers, h)
	}
}

// notify delivers the output of the host to programs within this process. The caller holds mu.
func (l *Home) notify(out *host.Output) {
	l.endCuts(out.Cuts)
	for _, h := range out.Near {
		l.inform(h, h.State)
	}
	if out.Moved {
		l.notifyAll(func(h *near.Hold) near.State { return h.State })
	}
}

// notifyAll tells the holders of all near holds their new states. The caller holds mu.
func (l *Home) notifyAll(state func(*near.Hold) near.State) {
	for h := range l.watchers {
		l.inform(h, state(h))
	}
}
