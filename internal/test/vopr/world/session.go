package world

import (
	"maps"
	"slices"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/test/vopr/history"
	"github.com/conclave-io/conclave/internal/test/vopr/linger"
)

// session is the judge's record of a session of a client. It has the deadline that the program
// sees, and the requests and replies.
type session struct {
	client *client
	line   *line.Session
	Seat   registry.SessionID // of the home that keeps it; zero if agreement keeps it
	secret []byte
	ID     registry.SessionID

	until int64 // the deadline, by the client's clock
	// endsAt is the deadline in the time of the world.
	EndsAt int64
	// opened is the newest applied index known when the session was opened.
	opened uint64
	lost   bool // the client has given it up
	// dismissed means that an operator was asked to end it. Then it may end before its deadline,
	// but none of its holds may end before its worker was informed.
	dismissed bool

	asked  map[uint64]*asked // transmitted requests, by number
	claims map[uint64]*claim // claims of its acquires, by number
}

// asked is a request that was transmitted and has no final answer.
type asked struct {
	op     *api.Request
	claim  *claim // the claim of an acquire, or the one that a release or cancellation refers to
	called int64
}

// opened handles an output of the line: a session is open.
func (c *client) opened(o line.Output) {
	s := &session{
		client: c, line: o.Session, secret: o.Session.Secret(), ID: c.derive(o.Session.Secret()),
		opened: c.w.Judge.frontier, asked: make(map[uint64]*asked), claims: make(map[uint64]*claim),
	}
	copy(s.Seat[:], o.Session.Seat())
	c.w.owners[s.ID] = c.principal()
	c.sessions, c.heard = append(c.sessions, s), c.w.Now
	s.promise(o.Until)
	c.w.trace.Believes(s.ID, s.until)
}

// promise moves the deadline.
func (s *session) promise(until int64) {
	s.until, s.EndsAt = until, s.client.clock.When(until)
}

// Home reports whether a home keeps the session.
func (s *session) Home() bool { return s.Seat != registry.SessionID{} }

// valid reports whether the deadline is in the future, as a holder would check it. Once the
// deadline was found to be over, the session is lost.
func (s *session) valid() bool {
	if s.client.now() >= s.until {
		s.lost = true
	}
	return !s.lost
}

// believed reports whether the client would find the session valid if it checked now. It does not
// change the state, so the judge can use it.
func (s *session) believed() bool {
	return !s.lost && !s.client.dead && s.client.w.Now < s.EndsAt
}

// asks records the requests of a transmitted frame, except those that were transmitted before.
func (c *client) asks(frame *api.ClientFrame) {
	for _, req := range frame.GetRequests() {
		if req.GetClose() != nil {
			c.w.Judge.closed[c.derive(req.GetSession())] = true
		}
		if s := c.by(req.GetSession()); s != nil && s.asked[req.GetSequence()] == nil && s.claims[req.GetSequence()] == nil {
			s.asks(req)
		}
	}
}

// by returns the session with a secret, or nil.
func (c *client) by(secret []byte) *session {
	for _, s := range c.sessions {
		if string(s.secret) == string(secret) {
			return s
		}
	}
	return nil
}

func (s *session) asks(req *api.Request) {
	w := s.client.w
	if w.Logs() {
		w.Tell("client %d asks %d: %.300v", s.client.slot, req.GetSequence(), req)
	}
	a := &asked{op: req, called: w.Now}
	switch op := req.GetOp().(type) {
	case *api.Request_Renew:
		w.Stats.Renewals++
		return
	case *api.Request_Acquire:
		a.claim = s.acquires(req.GetSequence(), op.Acquire)
	case *api.Request_Cancel:
		a.claim = s.claims[op.Cancel.GetHold()]
	case *api.Request_Release:
		a.claim = s.releases(op.Release.GetHold())
		if op.Release.GetUnused() {
			w.Judge.lingers.Unused(history.ClaimOf(s.ID, op.Release.GetHold()))
			w.Judge.expected.Unused(history.ClaimOf(s.ID, op.Release.GetHold()))
		}
	case *api.Request_Transfer:
		a.claim = s.claims[op.Transfer.GetHold()]
		a.claim.Res.named[string(op.Transfer.GetTo())] = true
	case *api.Request_Revoke:
		w.Judge.revokes(registry.Class(op.Revoke.GetClass()), op.Revoke.GetName(), s.client.principal())
	}
	s.asked[req.GetSequence()] = a
	w.Stats.Operations++
}

// acquires records an acquire that is transmitted.
func (s *session) acquires(sequence uint64, a *api.Acquire) *claim {
	c := s.client
	i := slices.IndexFunc(c.requests, func(r *request) bool { return r.call.Session() == s.line && r.call.Sequence() == sequence })
	r := c.requests[i]
	p := c.w.Judge.enter(c.w, r.res, s, sequence, a)
	r.claim, s.claims[sequence] = p, p
	if c.w.names != nil {
		c.w.names.Asks(registry.ClaimID{Session: s.ID, Sequence: sequence}, a.GetName())
	}
	if a.GetPatienceNs() > 0 {
		c.w.Judge.patience.Enters(history.ClaimOf(s.ID, sequence), a.GetPatienceNs())
	}
	if r.res.lingers {
		terms := linger.Terms{AtLeast: a.GetAtLeastNs(), Delay: a.GetDelayAfterLossNs()}
		c.w.Judge.lingers.Enters(history.ClaimOf(s.ID, sequence), r.res.Name, terms)
	}
	return p
}

// releases records a release that is transmitted. It returns the claim that the release ends, or
// nil if the release only ensures that nothing is held.
func (s *session) releases(hold uint64) *claim {
	p := s.claims[hold]
	if p != nil {
		p.releasing = true
	}
	switch {
	case p == nil:
		s.client.w.Violate("client", "session %v releases hold %d, which it never asked for", s.ID, hold)
		return nil
	case p.Fence == 0:
		p.vanish()
		return nil
	case p.ended:
		s.client.w.Violate("client", "session %v releases hold %d, which it released before or lost", s.ID, hold)
		return nil
	}
	p.ended = true
	return p
}

// hears checks the replies of a frame before the line processes them.
func (c *client) hears(frame *api.ServerFrame) {
	c.w.trace.Hears(frame, c.derive)
	for _, rep := range frame.GetReplies() {
		code := codeOf(rep)
		if code == registry.NotLeader || code == registry.Unavailable || code == registry.NotMember {
			continue
		}
		c.w.Note("reply", uint64(c.slot)<<56|rep.GetSequence(), uint64(code)<<56|rep.GetFence())
		if s := c.by(rep.GetSession()); s != nil {
			c.heard = c.w.Now
			s.hears(rep, code)
		} else if rep.GetSequence() >= stolen && code != registry.SessionGone {
			c.w.Violate("owner", "%s asks for something in a session that is not its own, and is answered with the code %d: %s", c.principal(), code, rep.GetMessage())
		}
	}
}

func (s *session) hears(rep *api.Reply, code registry.Code) {
	w := s.client.w
	a := s.asked[rep.GetSequence()]
	for _, hold := range rep.GetRevoked() {
		s.recalls(hold)
	}
	switch {
	case code == registry.SessionGone:
		if s.believed() && !s.dismissed && !s.Home() { // a home may close its seat
			w.Violate("session", "session %v is reported gone %d ms before the deadline of its client", s.ID, (s.EndsAt-w.Now)/ms)
		}
	case code == registry.Revoked && rep.GetFence() != 0:
		s.recalls(rep.GetSequence())
	case a == nil:
	case code == registry.Queued:
		s.answered(rep.GetSequence())
		w.Judge.queued(a.claim)
	default:
		delete(s.asked, rep.GetSequence())
		s.answered(rep.GetSequence())
		s.final(a, rep, code)
	}
}

// recalls records that the client was told that the servers ask for a hold back.
func (s *session) recalls(hold uint64) {
	if p := s.claims[hold]; p != nil && p.Fence == 0 && !p.recalled {
		p.recalled = true
		s.client.w.Stats.Recalled++
	}
}

// answered records that a request has a reply.
func (s *session) answered(sequence uint64) {
	for _, r := range s.client.requests {
		if r.call.Session() == s.line && r.call.Sequence() == sequence {
			r.answered = true
		}
	}
}

// final processes the first final answer to a request.
func (s *session) final(a *asked, rep *api.Reply, code registry.Code) {
	w, p := s.client.w, a.claim
	if code == registry.StateLimit && a.op.GetAcquire() == nil && a.op.GetUpdate() == nil {
		w.Violate("limit", "the state is as large as it may be, and so %.300v is refused, which makes it no larger", a.op)
	}
	switch {
	case p == nil:
	case a.op.GetTransfer() != nil:
		p.transferred(string(a.op.GetTransfer().GetTo()), a.called, code)
	case a.op.GetRelease() != nil:
		p.released(a.called, code)
	case p.Fence != 0 || p.ended: // the other answer, to the acquire or its cancellation, came first
	case rep.GetFence() != 0:
		p.granted(w, rep.GetFence(), rep.GetFloor())
	case a.op.GetAcquire() != nil && code == registry.Held && p.Res.lingers && rep.GetHolder() == nil:
		p.leave() // nobody holds it, so the history has no reason for the refusal
		p.ended = true
		w.Stats.Closed++
	case a.op.GetAcquire() != nil:
		p.answered(code)
	case code == registry.OK:
		p.answered(registry.Cancelled)
	}
}

// conclude ends the session for the client, or because the client ends. From now on, no answer in
// this session counts.
func (s *session) conclude() {
	c := s.client
	s.lost = true
	c.w.trace.Loses(s.ID)
	c.sessions = slices.DeleteFunc(slices.Clone(c.sessions), func(other *session) bool { return other == s })
	for _, sequence := range sorted(s.asked) {
		if a := s.asked[sequence]; a.op.GetRelease() != nil && a.claim != nil {
			a.claim.released(a.called, registry.Unavailable)
		}
	}
	for _, sequence := range sorted(s.claims) {
		switch p := s.claims[sequence]; {
		case p.hold != nil && !p.hold.over:
			p.hold.lost()
		case p.Fence != 0:
			p.end(s.EndsAt)
		default:
			p.vanish()
		}
	}
}

func sorted[V any](m map[uint64]V) []uint64 { return slices.Sorted(maps.Keys(m)) }

// hasHold reports whether a session was informed about the grant of a request.
func (w *World) hasHold(id registry.SessionID, sequence uint64) bool {
	for _, c := range w.Clients {
		for _, x := range c.sessions {
			if p := x.claims[sequence]; x.ID == id && p != nil {
				return p.Fence != 0
			}
		}
	}
	return false
}
