package conclave

import (
	"slices"
	"time"

	"github.com/conclave-io/conclave/internal/boottime"
	"github.com/conclave-io/conclave/service/api"
)

// again reports whether a reply says that the server cannot know the outcome:
// the request has to be sent again, to whoever leads.
func again(code api.Code) bool {
	return code == api.Code_CODE_NOT_LEADER || code == api.Code_CODE_UNAVAILABLE
}

// reply takes in a reply to one of the session's requests. Replies come in any
// order, and more than once.
func (s *session) reply(rep *api.Reply, now boottime.Time) {
	r := s.pending[rep.GetSequence()]
	switch {
	case again(rep.GetCode()):
		// It stays pending; the connection is given up, and that resends it.
	case rep.GetCode() == api.Code_CODE_SESSION_GONE:
		s.goneReply(r, now)
	case rep.GetCode() == api.Code_CODE_REVOKED && rep.GetFence() != 0:
		s.revoke(rep.GetSequence(), rep.GetMessage())
	case r == nil:
		s.strayReply(rep)
	case rep.GetCode() == api.Code_CODE_QUEUED:
		r.answered = true
		s.admit()
	default:
		s.finalReply(r, rep, now)
	}
}

// goneReply ends the session. It does so even if nothing awaits the reply: the
// session was open when the request was sent, or the servers tell, by a reply without
// a number, that a copy of this program closed it, or an operator.
func (s *session) goneReply(r *request, now boottime.Time) {
	if !s.gone {
		s.retire(now, errSessionGone, true)
	} else if r != nil { // it answers the Close
		delete(s.pending, r.sequence)
		r.finish(outcome{err: errSessionGone})
	}
}

// strayReply handles a reply that nothing awaits: almost always a duplicate.
// But a grant that the session does not know it has must not stay with it.
func (s *session) strayReply(rep *api.Reply) {
	if rep.GetCode() != api.Code_CODE_OK || rep.GetFence() == 0 || s.gone {
		return
	}
	if _, known := s.grants[rep.GetSequence()]; !known {
		s.giveBack(rep.GetSequence())
	}
}

func (s *session) finalReply(r *request, rep *api.Reply, now boottime.Time) {
	if r.message.GetAcquire() != nil && (rep.GetCode() == api.Code_CODE_INTERNAL || rep.GetCode() == api.Code_CODE_EXHAUSTED) {
		// A full queue may refuse what was sent again, after the first was taken.
		s.failed(r, rep)
		return
	}
	delete(s.pending, r.sequence)
	switch {
	case r.extension():
		s.extended(r, rep, now)
	case r.message.GetAcquire() != nil && rep.GetCode() == api.Code_CODE_OK:
		s.granted(r)
	case r.target != nil:
		s.cancelled(r.target, rep)
	}
	r.finish(outcome{reply: rep})
	s.admit()
}

// failed tells the caller, and then makes sure that the request, of which
// nobody knows whether it was carried out, leaves nothing behind.
func (s *session) failed(r *request, rep *api.Reply) {
	if r.done != nil {
		r.done <- outcome{reply: rep}
	}
	r.answered = true
	s.withdraw(r)
}

// granted notes what the servers granted before anything else can look at it.
func (s *session) granted(r *request) {
	s.grants[r.sequence] = nil
	if r.withdrawn {
		s.giveBack(r.sequence)
	}
}

// cancelled ends the wait of a request that a Cancel withdrew. If the grant was
// faster and its reply is still on its way, the fence here tells. A Cancel that
// failed tells nothing: then the Release finds out.
func (s *session) cancelled(target *request, rep *api.Reply) {
	if target.finished {
		return // its own reply came first, and has been dealt with
	}
	s.drop(target)
	if rep.GetFence() != 0 || rep.GetCode() != api.Code_CODE_OK {
		s.giveBack(target.sequence)
	}
}

// extended takes in the answer to an Open or a Renew.
func (s *session) extended(r *request, rep *api.Reply, now boottime.Time) {
	s.extensions = slices.DeleteFunc(s.extensions, func(e *request) bool { return e == r })
	until := r.first.Add(time.Duration(rep.GetRemainingNs()) - margin(s.config.TTL))
	if len(rep.GetId()) > 0 {
		s.public = publicID(rep.GetId())
	}
	// Before the deadline moves: whoever sees the new one sees that the hold is
	// revoked, and does not take it for a deadline of the hold.
	for _, hold := range rep.GetRevoked() {
		s.revoke(hold, "")
	}
	switch {
	case s.lease == nil && rep.GetCode() != api.Code_CODE_OK:
		s.retire(now, refusal("open a session", "", rep), true)
	case s.lease == nil && until <= now:
		// Open, but answered too late to rely on; the next Open may do.
	case s.lease == nil:
		s.lease = newLease(s.config.now, until)
		close(s.ready)
	case rep.GetCode() == api.Code_CODE_OK && s.lease.extend(until):
		s.announce()
	}
	s.check(now)
}

// announce tells the handles that the deadline moved.
func (s *session) announce() {
	for _, h := range s.grants {
		if h == nil {
			continue
		}
		select {
		case h.moved <- struct{}{}:
		default: // not yet received: one value stands for many moves
		}
	}
}

// check retires an open session whose deadline has passed.
func (s *session) check(now boottime.Time) {
	if s.lease != nil && !s.gone && !s.lease.validAt(now) {
		s.retire(now, errSessionGone, false)
	}
}
