package vopr

import (
	"slices"

	"github.com/conclave-io/conclave/service/registry"
)

// request is one request of a session, from its submission to its final reply.
type request struct {
	command registry.Command
	session *session
	first   int64 // the client's reading before the first transmission, 0 before
	last    int64 // and before the newest
	// answered: a reply came, if only QUEUED. finished: no reply matters more.
	answered, finished bool
	withdrawn          bool
	target             *request // the acquire that this request cancels
	done               func(registry.Result, bool)
	place              *place // of an acquire, for the judge
}

// session is the client's side of one session, with the rules of the Go client: see
// session.go, reply.go and deadline.go at the root of the repository.
type session struct {
	client  *client
	id      registry.SessionID
	next    uint64
	pending []*request // with a number and no final reply, in order
	awaited []*request // without any reply
	// extensions are the unanswered Opens and Renews.
	extensions []*request
	renewed    int64

	open  bool  // the deadline counts
	until int64 // the deadline, on the client's clock
	// endsAt is the deadline in the time of the world, for the judge.
	endsAt int64
	// opened is how far the log was known to go when the session was open.
	opened uint64
	lost   bool // for ever
	// dismissed says that an operator was asked to end it: it may be over before its
	// deadline, but none of its holds before its worker was told.
	dismissed bool
	gone      bool // lost or closed
	ended     bool // its retirement is complete, or it is not worth waiting for
	retire    int64
	grants    map[uint64]*hold // nil for one whose hold is still to be made
	asked     map[uint64]bool
	// strays are holds given back because their grant came once more after they were
	// released: of two releases the one that comes second finds nothing.
	strays map[uint64]bool
}

func newSession(c *client) *session {
	c.sessionsMade++
	id := registry.SessionID{0: 1, 13: byte(c.sessionsMade >> 8), 14: byte(c.sessionsMade), 15: byte(c.slot + 1)}
	return &session{client: c, id: id, next: 1, grants: make(map[uint64]*hold), asked: make(map[uint64]bool), strays: make(map[uint64]bool)}
}

// margin is how much earlier than the servers a client stops to believe.
func margin(ttl int64) int64 {
	if ttl < 1000*ms {
		return ttl / 3
	}
	return max(ttl/10, 100*ms)
}

// valid reports whether the deadline is ahead. Once it was seen to have passed, the
// session is lost.
func (s *session) valid() bool {
	if s.open && !s.lost && s.client.now() >= s.until {
		s.lost = true
	}
	return s.open && !s.lost
}

// believed reports whether the client would find the session valid if it looked
// now: for the judge, who must not change anything.
func (s *session) believed() bool {
	return s.open && !s.lost && !s.client.dead && s.client.w.now < s.endsAt
}

func (s *session) low() uint64 {
	for len(s.awaited) > 0 && s.awaited[0].answered {
		s.awaited = s.awaited[1:]
	}
	if len(s.awaited) == 0 {
		return s.next
	}
	return s.awaited[0].command.Sequence
}

// overdue reports whether a request has been unanswered for too long.
func (s *session) overdue(now int64) bool {
	return s.low() != s.next && s.awaited[0].last != 0 && now-s.awaited[0].last > unansweredLimit(s.client.ttl)
}

// submit gives a request its number and transmits it, if there is a link.
func (s *session) submit(r *request) *request {
	r.session = s
	r.command.Session, r.command.Sequence = s.id, s.next
	s.next++
	s.pending = append(s.pending, r)
	s.awaited = append(s.awaited, r)
	if r.command.Op == registry.OpRelease {
		delete(s.grants, r.command.Hold)
		delete(s.asked, r.command.Hold)
	}
	if s.client.w.log != nil {
		s.client.w.tell("client %d asks %d: %+v", s.client.slot, r.command.Sequence, r.command)
	}
	s.client.transmit(r)
	return r
}

// extend submits an Open while the session is not open, else a Renew.
func (s *session) extend() {
	const most = 8
	for len(s.extensions) >= most {
		s.drop(s.extensions[0])
		s.extensions = s.extensions[1:]
	}
	r := &request{command: registry.Command{Op: registry.OpRenew}}
	if !s.open {
		r.command.Op, r.command.TTL, r.command.Program = registry.OpOpen, s.client.ttl, "vopr"
		r.command.Owner = s.client.principal()
	}
	s.extensions = append(s.extensions, r)
	s.renewed = s.client.now()
	s.client.w.stats.Renewals++
	s.submit(r)
}

func (s *session) nextRenewal() int64 { return s.renewed + max(s.client.ttl/4, 25*ms) }

// drop finishes a request without any outcome.
func (s *session) drop(r *request) {
	r.answered, r.finished = true, true
	s.unpend(r)
}

func (s *session) unpend(r *request) {
	s.pending = slices.DeleteFunc(s.pending, func(p *request) bool { return p == r })
}

func (r *request) finish(result registry.Result, known bool) {
	if r.finished {
		return
	}
	r.answered, r.finished = true, true
	if r.done != nil {
		r.done(result, known)
	}
}

// reply takes in a reply to one of the session's requests.
func (s *session) reply(sequence uint64, result registry.Result) {
	var r *request
	if i := slices.IndexFunc(s.pending, func(p *request) bool { return p.command.Sequence == sequence }); i >= 0 {
		r = s.pending[i]
	}
	switch {
	case result.Code == registry.SessionGone:
		s.goneReply(r)
	case result.Code == registry.Revoked && result.Fence != 0:
		s.revoke(sequence)
	case r == nil:
		s.stray(sequence, result)
	case result.Code == registry.Queued:
		r.answered = true
		if r.place != nil {
			s.client.w.judge.queued(s.client.w, r.place)
		}
	default:
		s.final(r, result)
	}
}

func (s *session) goneReply(r *request) {
	if !s.gone {
		s.checkGone()
		s.retireNow(true)
	} else if r != nil {
		s.unpend(r)
		r.finish(registry.Result{Code: registry.SessionGone}, true)
		s.ended = true
	}
}

// checkGone requires that no session is reported gone before its deadline.
func (s *session) checkGone() {
	if s.believed() && !s.dismissed {
		w := s.client.w
		w.violate("session", "session %v is reported gone %d ms before the deadline of its client", s.id, (s.endsAt-s.client.w.now)/ms)
	}
}

// stray handles a reply that nothing awaits. A grant that the session does not know
// it has must not stay with it.
func (s *session) stray(sequence uint64, result registry.Result) {
	if result.Code != registry.OK || result.Fence == 0 || s.gone {
		return
	}
	if _, known := s.grants[sequence]; !known {
		s.strays[sequence] = true
		s.giveBack(sequence, nil)
	}
}

func (s *session) giveBack(hold uint64, p *place) {
	r := s.submit(&request{command: registry.Command{Op: registry.OpRelease, Hold: hold}})
	s.client.w.stats.Operations++
	if p != nil {
		p.release(s.client.w, r)
	}
}

func (s *session) final(r *request, result registry.Result) {
	s.unpend(r)
	switch op := r.command.Op; {
	case op == registry.OpOpen || op == registry.OpRenew:
		s.extended(r, result)
	case op == registry.OpAcquire:
		s.settled(r, result)
	case r.target != nil:
		s.cancelled(r.target, result)
	}
	r.finish(result, true)
}

// settled notes how an acquire ended.
func (s *session) settled(r *request, result registry.Result) {
	if result.Code != registry.OK {
		r.place.answered(s.client.w, result.Code)
		return
	}
	s.grants[r.command.Sequence] = nil
	r.place.granted(s.client.w, result.Fence, result.Floor)
	if r.withdrawn {
		s.giveBack(r.command.Sequence, r.place)
	}
}

// withdraw is called when the caller of a request to acquire has gone.
func (s *session) withdraw(r *request) {
	if r.finished || r.withdrawn {
		return
	}
	r.done, r.withdrawn = nil, true
	if r.first == 0 {
		s.drop(r)
		r.place.answered(s.client.w, registry.Cancelled)
		return
	}
	r.place.leave()
	s.client.w.stats.Operations++
	s.submit(&request{target: r, command: registry.Command{Op: registry.OpCancel, Hold: r.command.Sequence}})
}

// cancelled ends the wait of a request that a Cancel withdrew.
func (s *session) cancelled(target *request, result registry.Result) {
	if target.finished {
		return
	}
	s.drop(target)
	switch {
	case result.Fence != 0:
		target.place.granted(s.client.w, result.Fence, result.Floor)
		s.giveBack(target.command.Sequence, target.place)
	case result.Code == registry.OK:
		target.place.answered(s.client.w, registry.Cancelled)
	default:
		target.place.vanish(s.client.w)
		s.giveBack(target.command.Sequence, nil)
	}
}

// revoke ends a hold that the servers want back.
func (s *session) revoke(sequence uint64) {
	h, granted := s.grants[sequence]
	if h != nil {
		h.told()
		return
	}
	waits := slices.ContainsFunc(s.pending, func(p *request) bool {
		return p.command.Sequence == sequence && p.command.Op == registry.OpAcquire
	})
	if granted || waits {
		s.asked[sequence] = true
	}
}

// extended takes in the answer to an Open or a Renew.
func (s *session) extended(r *request, result registry.Result) {
	s.extensions = slices.DeleteFunc(s.extensions, func(e *request) bool { return e == r })
	until := r.first + result.Remaining - margin(s.client.ttl)
	for _, hold := range result.Revoked {
		s.revoke(hold)
	}
	switch {
	case result.Code != registry.OK:
	case !s.open && until <= s.client.now():
	case !s.open:
		s.open, s.opened = true, s.client.w.judge.frontier
		s.promise(until)
	case s.valid() && until > s.until:
		s.promise(until)
	}
	s.check()
}

// promise moves the deadline.
func (s *session) promise(until int64) {
	s.until, s.endsAt = until, s.client.clock.when(until)
}

// check retires an open session whose deadline has passed.
func (s *session) check() {
	if s.open && !s.gone && !s.valid() {
		s.retireNow(false)
	}
}

// retireNow ends the session on this side. Unless the servers have ended it, they
// are asked to.
func (s *session) retireNow(ended bool) {
	if s.gone {
		return
	}
	s.lost, s.gone, s.retire = true, true, s.client.now()
	for _, sequence := range sorted(s.grants) {
		if h := s.grants[sequence]; h != nil {
			h.lost()
		}
	}
	s.clear()
	if ended {
		s.ended = true
		return
	}
	s.submit(&request{command: registry.Command{Op: registry.OpClose}})
}

// clear finishes all requests without an answer.
func (s *session) clear() {
	pending := s.pending
	s.pending, s.awaited, s.extensions = nil, nil, nil
	for _, r := range pending {
		if r.place != nil {
			r.place.vanish(s.client.w)
		}
		r.finish(registry.Result{}, false)
	}
	clear(s.grants)
}
