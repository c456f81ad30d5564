package conclave

import (
	"cmp"
	"crypto/rand"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/conclave-io/conclave/internal/boottime"
	"github.com/conclave-io/conclave/service/api"
)

const (
	// window bounds how far the newest sequence number is above the lowest one
	// that is unanswered, since a server keeps 1,024 answers of a session.
	window = 1000
	// maxExtensions bounds the unanswered renewals. They are let in beyond the
	// window: they must not wait behind what they keep alive.
	maxExtensions = 8
)

// request is one request of a session, from its submission to its final reply.
type request struct {
	session *session
	message *api.Request // only Op is set
	// sequence is 0 while the request waits for its turn.
	sequence uint64
	// first is the reading just before the first transmission, last that of the
	// newest; 0 before.
	first, last boottime.Time
	// answered: a reply came, if only QUEUED. finished: no reply matters more.
	answered, finished bool
	// withdrawn: the caller has gone; a grant is given back.
	withdrawn bool
	// target is the request to acquire that this request cancels.
	target *request
	// done takes the outcome once; nil if nobody waits for it, or no more. The
	// caller keeps the channel itself: the field belongs to the session.
	done chan outcome
}

// outcome is a final reply, or why there will be none.
type outcome struct {
	reply *api.Reply
	err   error
}

func (r *request) extension() bool {
	return r.message.GetOpen() != nil || r.message.GetRenew() != nil
}

func (r *request) finish(o outcome) {
	if r.finished {
		return
	}
	r.answered, r.finished = true, true
	if r.done != nil {
		r.done <- o
	}
}

// session is the client's side of one session: a state machine that reads no
// clock, starts no goroutine and knows no network. Its methods are called one
// at a time. What it wants transmitted it hands to transmit, in order; that may
// drop it, as resend yields all that is unfinished once there is a connection.
type session struct {
	// secret proves that requests are the client's own. No message shows it.
	secret []byte
	// public is what the servers call the session, once one has said so.
	public   string
	config   *Config
	transmit func(*request)

	next uint64 // sequence number of the next request
	// pending holds the requests with a number and without a final reply.
	pending map[uint64]*request
	// awaited holds those without any reply, by number; the front is unanswered.
	awaited []*request
	// backlog holds those that wait for a number.
	backlog []*request
	// extensions holds the unanswered Opens and Renews, the oldest first.
	extensions []*request
	renewed    boottime.Time // when the newest of them was submitted

	// ready is closed when the session is open, or will not be: then err is set.
	ready chan struct{}
	err   error
	lease *lease // nil until the session is open
	// grants holds what the servers granted to the session and the client has
	// not given back; the hold is nil until the caller has its handle.
	grants map[uint64]*hold
	// asked holds why to leave, for grants that the caller has no handle of yet.
	asked map[uint64]string
	// gone: the session is lost or closed, and takes no more requests.
	gone    bool
	retired boottime.Time
}

func newSession(cfg *Config, transmit func(*request)) *session {
	secret := make([]byte, 16)
	rand.Read(secret) // it never fails
	return &session{
		secret: secret, config: cfg, transmit: transmit, next: 1,
		pending: make(map[uint64]*request), grants: make(map[uint64]*hold), asked: make(map[uint64]string), ready: make(chan struct{}),
	}
}

// low returns the lowest sequence number that awaits an answer.
func (s *session) low() uint64 {
	for len(s.awaited) > 0 && s.awaited[0].answered {
		s.awaited[0] = nil
		s.awaited = s.awaited[1:]
	}
	if len(s.awaited) == 0 {
		return s.next
	}
	return s.awaited[0].sequence
}

// overdue returns the reading at which the unanswered request with the lowest
// number was last transmitted to the server in use, or 0 if there is none.
func (s *session) overdue() boottime.Time {
	if s.low() == s.next {
		return 0
	}
	return s.awaited[0].last
}

// waiting reports whether a request to acquire waits in a queue of the servers.
func (s *session) waiting() bool {
	for _, r := range s.pending {
		if r.answered {
			return true
		}
	}
	return false
}

// submit takes a request in; it is transmitted as soon as the window allows.
func (s *session) submit(r *request) {
	r.session = s
	if release := r.message.GetRelease(); release != nil {
		// Forgotten only now: until here, a duplicate of the grant is no stray.
		delete(s.grants, release.GetHold())
		delete(s.asked, release.GetHold())
	}
	if len(s.backlog) > 0 || s.next-s.low() >= window {
		s.backlog = append(s.backlog, r)
		return
	}
	s.number(r)
}

func (s *session) number(r *request) {
	r.sequence = s.next
	s.next++
	s.pending[r.sequence] = r
	s.awaited = append(s.awaited, r)
	s.transmit(r)
}

// admit gives numbers to the requests of the backlog that the window now allows.
func (s *session) admit() {
	for len(s.backlog) > 0 && s.next-s.low() < window {
		r := s.backlog[0]
		s.backlog[0] = nil
		s.backlog = s.backlog[1:]
		if !r.finished {
			s.number(r)
		}
	}
}

// drop finishes a request without any outcome.
func (s *session) drop(r *request) {
	r.answered, r.finished = true, true
	delete(s.pending, r.sequence)
	s.admit()
}

// extend submits an Open while the session is not open, else a Renew. It gives
// up the oldest ones if too many are unanswered: a deadline counts from the
// first transmission of the very request that is answered, so an old one is
// worth little.
func (s *session) extend(now boottime.Time) {
	for len(s.extensions) >= maxExtensions {
		s.drop(s.extensions[0])
		s.extensions = slices.Delete(s.extensions, 0, 1)
	}
	r := &request{session: s, message: &api.Request{Op: &api.Request_Renew{Renew: &api.Renew{}}}}
	if s.lease == nil {
		r.message.Op = &api.Request_Open{Open: openOf(s.config)}
	}
	s.extensions = append(s.extensions, r)
	s.renewed = now
	s.number(r)
}

// nextRenewal returns when to extend again.
func (s *session) nextRenewal() boottime.Time {
	return s.renewed.Add(max(s.config.TTL/4, 25*time.Millisecond))
}

// wire returns what to send for r at the reading now, and counts it as sent.
func (s *session) wire(r *request, now boottime.Time) *api.Request {
	if r.first == 0 {
		r.first = now
	}
	r.last = now
	return &api.Request{Session: s.secret, Sequence: r.sequence, Low: s.low(), Op: r.message.Op}
}

func openOf(cfg *Config) *api.Open {
	host, _ := os.Hostname() // for people; without it they see an empty name
	return &api.Open{TtlNs: int64(cfg.TTL), Host: clip(host), Pid: int64(os.Getpid()), Program: clip(cfg.Program)}
}

// clip cuts a text to what servers take: 256 bytes of UTF-8 without control characters.
func clip(text string) string {
	return strings.Map(func(char rune) rune {
		if unicode.IsControl(char) {
			return -1
		}
		return char
	}, strings.ToValidUTF8(text[:min(len(text), 256)], ""))
}

// resend returns, in the order of their numbers, all requests that have no
// final reply, for another connection: those that wait in a queue are attached
// to their places by it.
func (s *session) resend() []*request {
	return slices.SortedFunc(maps.Values(s.pending), func(a, b *request) int { return cmp.Compare(a.sequence, b.sequence) })
}

// withdraw is called when the caller of a request to acquire has gone. If the
// request has left for the servers, a Cancel follows it; if it turns out to
// have been granted, a Release follows that.
func (s *session) withdraw(r *request) {
	if r.finished || r.withdrawn {
		return
	}
	r.done, r.withdrawn = nil, true
	if r.first == 0 {
		s.drop(r)
		return
	}
	s.submit(&request{target: r, message: &api.Request{Op: &api.Request_Cancel{Cancel: &api.Cancel{Hold: r.sequence}}}})
}

// giveBack releases a grant that nobody wants.
func (s *session) giveBack(hold uint64) {
	s.submit(&request{message: releaseOf(hold)})
}

// revoke ends the context of a hold that the servers want back. If its handle is
// still to be made, or its grant still to arrive, it will begin so.
func (s *session) revoke(sequence uint64, reason string) {
	h, granted := s.grants[sequence]
	switch r := s.pending[sequence]; {
	case h != nil:
		h.ctx.end(&RevokedError{reason})
	case granted, r != nil && r.message.GetAcquire() != nil:
		if s.asked[sequence] == "" {
			s.asked[sequence] = reason
		}
	}
}

// retire ends the session on this side: all handles are lost, all calls get
// cause, and later requests are refused. Unless the servers have ended it, a
// Close is submitted and returned, so that they do before its TTL is over.
func (s *session) retire(now boottime.Time, cause error, ended bool) *request {
	if s.gone {
		return nil
	}
	s.gone, s.retired = true, now
	if s.lease == nil {
		s.err = cause
		close(s.ready)
	} else {
		s.lease.lose()
	}
	for _, h := range s.grants {
		if h != nil {
			h.ctx.end(lossOf(cause))
		}
	}
	s.clear(cause)
	if ended || s.next == 1 {
		return nil
	}
	r := &request{session: s, done: make(chan outcome, 1), message: &api.Request{Op: &api.Request_Close{Close: &api.Close{}}}}
	s.number(r)
	return r
}

// clear finishes all requests with err.
func (s *session) clear(err error) {
	for _, r := range s.pending {
		r.finish(outcome{err: err})
	}
	for _, r := range s.backlog {
		r.finish(outcome{err: err})
	}
	clear(s.pending)
	clear(s.grants)
	clear(s.asked)
	s.awaited, s.backlog, s.extensions = nil, nil, nil
}
