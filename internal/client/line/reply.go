package line

import (
	"slices"

	"github.com/conclave-io/conclave/api"
)

// elsewhere reports whether a reply means that this server cannot know the outcome: the request
// must be sent again, to the leader or to another home.
func elsewhere(code api.Code) bool {
	return code == api.Code_CODE_NOT_LEADER || code == api.Code_CODE_UNAVAILABLE || code == api.Code_CODE_NOT_MEMBER
}

// unknown reports whether a reply leaves open whether the request was carried out. If a
// request is sent again, it may be refused because of a full queue, a full state or
// changed rules, although the first copy was accepted.
func unknown(code api.Code) bool {
	switch code {
	case api.Code_CODE_INTERNAL, api.Code_CODE_EXHAUSTED, api.Code_CODE_STATE_LIMIT,
		api.Code_CODE_UNAUTHENTICATED, api.Code_CODE_DENIED, api.Code_CODE_QUOTA:
		return true
	}
	return false
}

// reply processes a reply to one of the session's requests. Replies come in any order, and more
// than once.
func (s *Session) reply(rep *api.Reply) {
	c := s.pending[rep.GetSequence()]
	switch {
	case rep.GetCode() == api.Code_CODE_NOT_MEMBER && c != nil && c.acquires() && !c.told:
		s.settle(c)
		s.forget(c)
		s.line.again(c) // in another session: this home takes nothing new
	case elsewhere(rep.GetCode()):
		// The request stays pending. The stream is given up, and then the request is sent again.
	case rep.GetCode() == api.Code_CODE_SESSION_GONE:
		s.goneReply(c)
	case rep.GetCode() == api.Code_CODE_REVOKED && rep.GetFence() != 0:
		s.revoke(rep.GetSequence(), rep.GetMessage())
	case c == nil: // a duplicate
	case rep.GetCode() == api.Code_CODE_QUEUED:
		s.enqueued(c)
	default:
		s.finalReply(c, rep)
	}
}

// enqueued notes that a call waits in a queue of the servers.
func (s *Session) enqueued(c *Call) {
	if !c.queued {
		c.answered, c.queued = true, true
		s.queued++
	}
	s.admit()
}

// goneReply ends the session, even if nothing awaits the reply. The session was open when the
// request was sent, or the reply has no number and reports that somebody else closed it.
func (s *Session) goneReply(c *Call) {
	if !s.gone {
		s.retire(ErrSessionGone, true)
	} else if c != nil { // it answers the Close
		s.drop(c)
		s.line.finish(c, nil, ErrSessionGone)
	}
}

func (s *Session) finalReply(c *Call, rep *api.Reply) {
	code := rep.GetCode()
	if c.acquires() && unknown(code) {
		// No claim may stay behind.
		c.answered = true
		s.line.finish(c, rep, nil)
		s.withdraw(c)
		return
	}
	s.settle(c)
	switch {
	case c.extends():
		s.extended(c, rep)
	case c.acquires() && code == api.Code_CODE_OK:
		s.granted(c, rep)
	case c.acquires() && code == api.Code_CODE_STALE && !c.told:
		s.forget(c)
		s.line.again(c)
		s.line.admit()
	case c.acquires() && code == api.Code_CODE_MOVED:
		s.moved(c, rep)
	case c.target != nil:
		s.cancelled(c.target, rep)
	default:
		s.line.finish(c, rep, nil)
	}
	s.admit()
}

// forget removes a call from those that were sent in this session.
func (s *Session) forget(c *Call) {
	s.awaited = slices.DeleteFunc(s.awaited, func(other *Call) bool { return other == c })
}

// moved ends a call to acquire that has to be made on the other line. It removes everything of
// the call from this session. A home does not remember what it has refused: if the request
// arrived again, it could be carried out. So a Cancel follows it.
func (s *Session) moved(c *Call, rep *api.Reply) {
	s.forget(c)
	if s.line.cfg.Home {
		left := *c
		left.told, left.finished = true, false
		s.pending[left.sequence] = &left
		s.withdraw(&left)
	}
	s.line.finish(c, rep, nil)
}

// granted tells the caller its grant, unless it has gone away, or the servers have asked for the
// hold back in the meantime. In that case they drop the hold after a TTL, which may be over, and
// another may hold it now. The session proves nothing about that: renewals move its deadline.
func (s *Session) granted(c *Call, rep *api.Reply) {
	s.grants[c.sequence] = c
	switch {
	case c.withdrawn:
		s.giveBack(c.sequence)
	case c.asked:
		s.giveBack(c.sequence)
		s.forget(c)
		s.line.again(c)
		s.line.admit()
	default:
		s.line.finish(c, rep, nil)
	}
}

// cancelled ends the wait of a call that a Cancel withdrew. If the call was granted first and
// its reply is still on its way, the fence here shows that. A Cancel that failed shows nothing;
// then a Release finds out.
func (s *Session) cancelled(target *Call, rep *api.Reply) {
	if target.finished {
		return // its own reply came first, and was processed
	}
	s.drop(target)
	if rep.GetFence() != 0 || rep.GetCode() != api.Code_CODE_OK {
		s.giveBack(target.sequence)
	}
}

// extended processes the answer to an Open or a Renew.
func (s *Session) extended(c *Call, rep *api.Reply) {
	l := s.line
	s.extensions = slices.DeleteFunc(s.extensions, func(e *Call) bool { return e == c })
	if s.gone {
		return
	}
	if len(rep.GetId()) > 0 {
		s.id = rep.GetId()
	}
	// Before the deadline moves: a holder that sees the new deadline then knows that its hold
	// is revoked, and does not rely on the new deadline.
	for _, hold := range rep.GetRevoked() {
		s.revoke(hold, "")
	}
	until := c.first + rep.GetRemainingNs() - Margin(s.span)
	switch {
	case rep.GetCode() != api.Code_CODE_OK && s.open:
	case rep.GetCode() != api.Code_CODE_OK:
		l.refuse(&Refused{rep})
		s.retire(ErrSessionGone, true)
	case !s.open && (until <= l.now || l.serves()):
		s.retire(ErrSessionGone, false) // answered too late
	case !s.open:
		s.open, s.until = true, until
		l.opened(s)
	case until > s.until:
		s.until = until
		l.emit(Output{Action: Extended, Session: s, Until: until})
	}
}

// Margin returns how much earlier than the servers a client stops relying on its session, in ns.
// It covers the amount by which the servers' clocks may run faster during a TTL, and the time
// between looking at the clock and acting.
func Margin(ttl int64) int64 {
	if ttl < 1000*ms {
		return ttl / 3
	}
	return max(ttl/10, 100*ms)
}
