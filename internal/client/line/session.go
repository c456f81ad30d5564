package line

import (
	"cmp"
	"maps"
	"slices"

	"github.com/conclave-io/conclave/api"
)

const (
	// window bounds the difference between the newest number and the lowest unanswered one. A
	// server stores 1,024 answers of a session.
	window = 1000
	// maxExtensions bounds the unanswered renewals. They bypass the window: they must not
	// wait behind the requests whose session they keep alive.
	maxExtensions = 8
)

// Session is the client's side of one session.
type Session struct {
	line *Line
	// secret proves that requests are the client's own. It appears in no text.
	secret []byte
	// id is the public id of the session, nil until a server has sent it.
	id []byte
	// span is the longest time for which a renewal is valid: the TTL, or the lease of the
	// home's seat if that is shorter.
	span int64
	// seat and address are those of the home that keeps the session. moves means that the
	// server at the address has taken the session over and has not been reached yet.
	seat    []byte
	address string
	moves   bool
	// via is the stream over which the session is opened; sent means that the Open was sent.
	via  uint64
	sent bool

	next uint64 // number of the next request
	// pending has the calls with a number and without a final reply; queued of them wait in a
	// queue of the servers.
	pending map[uint64]*Call
	queued  int
	// awaited has the calls without any reply, by number; the first one is unanswered.
	awaited []*Call
	// backlog has the calls that wait for a number.
	backlog []*Call
	// extensions has the unanswered Open and Renews, the oldest first.
	extensions []*Call
	renewed    int64 // when the newest of them was submitted

	open  bool  // it was, and the deadline counts
	until int64 // the deadline
	// grants has the calls to acquire that were granted and not released.
	grants map[uint64]*Call
	freed  int64 // when one was last released
	// gone: the session is lost or closed, and accepts no more calls.
	gone    bool
	retired int64
}

func newSession(l *Line, st *stream) *Session {
	s := &Session{line: l, secret: l.cfg.Secret(), span: l.ttl, via: st.id, next: 1, pending: make(map[uint64]*Call), grants: make(map[uint64]*Call)}
	if l.cfg.Home {
		s.span, s.seat, s.address = min(l.ttl, st.lease), st.seat, st.address
	}
	return s
}

// Secret returns the 16 bytes that prove that requests are the client's own.
func (s *Session) Secret() []byte { return s.secret }

// Span returns the longest time for which a renewal of the session is valid, in ns: its TTL, or
// the lease of the home's seat if that is shorter.
func (s *Session) Span() int64 { return s.span }

// Seat returns the seat of the home that keeps the session, or nil if the leader keeps it.
func (s *Session) Seat() []byte { return s.seat }

// opens reports whether the session is being opened.
func (s *Session) opens() bool { return !s.open && !s.gone }

// low returns the lowest number that awaits an answer.
func (s *Session) low() uint64 {
	for len(s.awaited) > 0 && s.awaited[0].answered {
		s.awaited[0] = nil
		s.awaited = s.awaited[1:]
	}
	if len(s.awaited) == 0 {
		return s.next
	}
	return s.awaited[0].sequence
}

// unanswered returns the reading at which the unanswered request with the lowest number
// was last transmitted to the server in use, or 0 if there is none.
func (s *Session) unanswered() int64 {
	if s.low() == s.next {
		return 0
	}
	return s.awaited[0].last
}

// submit accepts a call. It is transmitted as soon as the window allows.
func (s *Session) submit(c *Call) {
	c.session = s
	c.address()
	if c.Of != nil && c.Op.GetRelease() != nil {
		delete(s.grants, c.Of.sequence)
		s.freed = s.line.now
	}
	if len(s.backlog) > 0 || s.next-s.low() >= window {
		s.backlog = append(s.backlog, c)
		return
	}
	s.number(c)
}

func (s *Session) number(c *Call) {
	c.session, c.sequence = s, s.next
	s.next++
	s.pending[c.sequence] = c
	s.awaited = append(s.awaited, c)
	s.line.transmit(c)
}

// admit gives numbers to calls of the backlog, as far as the window allows.
func (s *Session) admit() {
	for len(s.backlog) > 0 && s.next-s.low() < window {
		c := s.backlog[0]
		s.backlog[0] = nil
		s.backlog = s.backlog[1:]
		if !c.finished {
			s.number(c)
		}
	}
}

// drop forgets a call: further replies to it are ignored.
func (s *Session) drop(c *Call) {
	s.settle(c)
	s.admit()
}

// settle removes a call from those without a final reply.
func (s *Session) settle(c *Call) {
	if c.queued {
		c.queued = false
		s.queued--
	}
	c.answered, c.finished = true, true
	delete(s.pending, c.sequence)
}

// renew sends a Renew. If too many Renews are unanswered it drops the oldest: a deadline counts
// from the first transmission of the answered request, so an old one is of little use.
func (s *Session) renew() {
	for len(s.extensions) >= maxExtensions {
		s.drop(s.extensions[0])
		s.extensions = slices.Delete(s.extensions, 0, 1)
	}
	s.extend(&api.Request{Op: &api.Request_Renew{Renew: &api.Renew{}}})
}

func (s *Session) extend(op *api.Request) {
	c := &Call{Op: op, told: true}
	s.extensions = append(s.extensions, c)
	s.renewed = s.line.now
	s.number(c)
}

// nextRenewal returns when to renew again. A home promises only the rest of its own lease, so
// renewals to it are more frequent.
func (s *Session) nextRenewal() int64 {
	often := int64(4)
	if s.line.cfg.Home {
		often = 8
	}
	return s.renewed + max(s.span/often, 25*ms)
}

// wire returns the message to send for a call now, and counts it as sent.
func (s *Session) wire(c *Call) *api.Request {
	if c.first == 0 {
		c.first = s.line.now
	}
	c.last, s.sent = s.line.now, true
	return &api.Request{Session: s.secret, Sequence: c.sequence, Low: s.low(), Op: c.Op.GetOp()}
}

// unfinished returns, by number, all calls without a final reply. They are sent again over
// another stream, which attaches those that wait in a queue to it.
func (s *Session) unfinished() []*Call {
	return slices.SortedFunc(maps.Values(s.pending), func(a, b *Call) int { return cmp.Compare(a.sequence, b.sequence) })
}

// withdraw is called when the caller of a call is gone, or knows its outcome and does not want it.
// If a call to acquire has been sent to the servers, a Cancel follows it. If it was granted,
// a Release follows that.
func (s *Session) withdraw(c *Call) {
	if granted := s.grants[c.sequence]; granted == c && c.sequence != 0 {
		s.giveBack(c.sequence)
		return
	}
	s.line.finish(c, nil, ErrWithdrawn)
	if !c.acquires() || c.finished || c.withdrawn {
		return // other requests continue in the background
	}
	c.withdrawn = true
	if c.first == 0 {
		s.drop(c)
		return
	}
	s.submit(&Call{target: c, told: true, Op: &api.Request{Op: &api.Request_Cancel{Cancel: &api.Cancel{Hold: c.sequence}}}})
}

// giveBack releases an unwanted grant, which nobody has used.
func (s *Session) giveBack(hold uint64) {
	delete(s.grants, hold)
	s.submit(&Call{told: true, Op: &api.Request{Op: &api.Request_Release{Release: &api.Release{Hold: hold, Unused: true}}}})
}

// revoke reports that the servers want a hold back. If its grant has not arrived yet, the grant
// will be given back.
func (s *Session) revoke(hold uint64, reason string) {
	if c := s.grants[hold]; c != nil {
		s.line.emit(Output{Action: Revoked, Call: c, Reason: reason})
	} else if c := s.pending[hold]; c != nil && c.acquires() {
		c.asked = true
	}
}

// retire ends the session on this side: all holds are lost, and later calls are refused. Unless
// the servers have ended it, it returns a Close that asks them to.
func (s *Session) retire(cause error, ended bool) (farewell *Call) {
	if s.gone {
		return nil
	}
	s.gone, s.retired = true, s.line.now
	if s.open {
		s.line.emit(Output{Action: Lost, Session: s, Err: cause})
	}
	s.clear(cause)
	defer s.line.open(s.line.using)
	if ended || !s.sent {
		return nil
	}
	farewell = &Call{Op: &api.Request{Op: &api.Request_Close{Close: &api.Close{}}}}
	s.number(farewell)
	return farewell
}

// clear ends all calls: those that can begin again wait for the next session.
func (s *Session) clear(cause error) {
	calls := append(s.unfinished(), s.backlog...)
	clear(s.grants)
	s.awaited, s.backlog, s.extensions = nil, nil, nil
	for _, c := range calls {
		s.settle(c)
		if cause == ErrSessionGone && c.repeats() && !c.told {
			s.line.again(c)
			continue
		}
		s.line.finish(c, nil, cause)
	}
}

// again starts a call again, in the next session.
func (l *Line) again(c *Call) {
	c.reset()
	l.emit(Output{Action: Again, Call: c})
	l.waiting = append(l.waiting, c)
}
