package registry

import (
	"cmp"
	"slices"
)

// session is a process that claims resources.
type session struct {
	// The fixed part, which versions share.
	id SessionID
	*party
	ttl    int64  // ns
	opened int64  // wall clock of the leader, ns
	server uint64 // the server whose seat it is, or 0

	// claims are its holds and places in queues, by the sequence of the
	// request that made each.
	claims table[number, *claim]
	// ended is set when the session has left the registry.
	ended bool
	tally *tally // of the registry
	// usage is what its owner has and may have, if that is counted; versions do not read it.
	usage *owner

	// digest is the session's part of the registry's digest. It is computed from the hash of
	// the fixed part, and from the sums of the hashes of its claims and answers that are
	// counted: the answers up to the sequence in counted.
	digest, fixed, claimed, answered, counted uint64

	// The following part changes, but only after thawSession.
	*sessionState
}

// party is whose a session is. It does not change, so what is remembered of the session's holds
// shares it.
type party struct {
	owner   string // the principal that opened the session; empty for an anonymous one
	host    string
	pid     int64
	program string
	hashes  struct{ owner, host, program uint64 } // of the texts
}

func newParty(owner, host string, pid int64, program string) *party {
	p := &party{owner: owner, host: host, pid: pid, program: program}
	p.hashes.owner, p.hashes.host, p.hashes.program = hashText(owner), hashText(host), hashText(program)
	return p
}

// asking returns the session of a request, or nil. Several requests in a row are often of one session.
func (st *state) asking(id SessionID) *session {
	if s := st.latest; s != nil && s.id == id && !s.ended {
		return s
	}
	s := st.sessions[id]
	if s != nil {
		st.latest = s
	}
	return s
}

// sessionState is the part of a session that changes and that versions show.
type sessionState struct {
	of *session
	// generation is the registry's generation when this became its own.
	generation uint64

	// low is the lowest sequence for which the client still awaits an answer.
	low uint64
	// answers has the answers from low on, sorted by sequence.
	answers []answer
	// holds and waits count its claims, and revocations those that are revoked.
	holds, waits, revocations int32

	// renewals is the registry's count at its last renewal through the log.
	renewals uint64
	// silent means that the session is recorded as silent in the log, with remaining ns left.
	// A new leader then starts with these instead of the TTL. Renewing a silent session
	// takes a log entry, so that the new leader knows of every renewal.
	remaining int64
	silent    bool

	// leaving means that somebody else ends the session. It ends with its last hold; until
	// then all it has are revoked holds.
	leaving bool
	mark
}

// gone reports whether the session has ended.
func (st *sessionState) gone() bool { return st.of.ended }

// answer is the stored result of a request. It has no parts whose size a client
// determines.
type answer struct {
	sequence     uint64
	code         Code
	message      string // at most MaxMessage bytes
	fence, floor uint64
}

// stored returns the result of a request as it is stored.
func (result *Result) stored(sequence uint64) answer {
	return answer{sequence, result.Code, result.Message, result.Fence, result.Floor}
}

// find returns the index of the answer to a request, or where it would be. Most requests
// are newer than all that have an answer.
func (s *sessionState) find(sequence uint64) (int, bool) {
	if n := len(s.answers); n == 0 || s.answers[n-1].sequence < sequence {
		return n, false
	}
	return slices.BinarySearchFunc(s.answers, sequence, func(a answer, sequence uint64) int {
		return cmp.Compare(a.sequence, sequence)
	})
}

// remember stores the answer to a request that may be sent again.
func (s *sessionState) remember(fresh answer) {
	if fresh.sequence < s.low || s.of.ended {
		return
	}
	i, found := s.find(fresh.sequence)
	s.of.addAnswer(&fresh)
	if found {
		s.of.removeAnswer(&s.answers[i])
		s.answers[i] = fresh
		return
	}
	s.answers = inserted(s.answers, i, fresh)
}

// forget drops the answers that the client has received.
func (s *sessionState) forget(low uint64) {
	if low <= s.low {
		return
	}
	s.low = low
	i, _ := s.find(low)
	for gone := range i {
		s.of.removeAnswer(&s.answers[gone])
	}
	if i == len(s.answers) {
		s.answers = s.answers[:0]
		return
	}
	s.answers = slices.Delete(s.answers, 0, i)
}

// renewed ends the silence of a session.
func (s *sessionState) renewed(renewals uint64) {
	s.renewals = renewals
	s.silent, s.remaining = false, 0
}

// sortedClaims appends the claims in the order in which they were made.
func (s *session) sortedClaims(claims []*claim) []*claim {
	claims = s.claims.all(claims)
	slices.SortFunc(claims, func(a, b *claim) int { return cmp.Compare(a.sequence, b.sequence) })
	return claims
}

// asked returns the holds that the session is asked to release, in the order in
// which they were made.
func (s *session) asked() (sequences []uint64) {
	if s.revocations == 0 {
		return nil
	}
	for _, c := range s.sortedClaims(nil) {
		if c.revoked {
			sequences = append(sequences, c.sequence)
		}
	}
	return sequences
}

// end removes the sessions with all their claims, and only then grants what became free, so
// that nothing is granted to another session that is ending.
func (r *Registry) end(sessions []*session, how Ending, fx *Effects) {
	var freed []*resource
	var claims []*claim
	fx.Ended = slices.Grow(fx.Ended, len(sessions))
	r.changed.ended = slices.Grow(r.changed.ended, len(sessions))
	for _, s := range sessions {
		if s.ended {
			continue // named twice
		}
		r.tally.removeSession(s)
		r.control.countSessions(s, -1)
		s.ended = true
		r.deeds.over(s, how)
		if s.server != 0 {
			r.thawGuarded().End(SeatOf(s.server, s.id))
			fx.View = true
		}
		r.changed.ended = append(r.changed.ended, s.sessionState)
		delete(r.sessions, s.id)
		fx.Ended = append(fx.Ended, s.id)
		if how != Expired {
			fx.Closed = append(fx.Closed, s.id)
		}
		claims = s.sortedClaims(claims[:0])
		for _, c := range claims {
			res := r.thaw(c.resource)
			r.abandon(c, how, fx)
			if !res.has(swept) {
				res.set(swept, true)
				freed = append(freed, res)
			}
		}
	}
	for _, res := range freed {
		res.sweep()
		r.settle(res, fx)
	}
}

// abandon records how a hold of an ended session ended, and reports the end of a
// wait.
func (r *Registry) abandon(c *claim, how Ending, fx *Effects) {
	r.unlist(c)
	r.countClaim(c, -1)
	if c.held() {
		r.remember(c, how)
		return
	}
	r.waiters--
	r.unlink(c)
	result := fx.outcome(c)
	result.Code, result.Message = SessionGone, "the session ended while it waited"
}

func (st *state) silence(verdicts []Verdict) {
	for _, verdict := range verdicts {
		if s := st.judged(verdict); s != nil {
			st.thawSession(s)
			s.silent, s.remaining = true, verdict.Remaining
		}
	}
}

// expired returns the sessions of verdicts that are still valid.
func (st *state) expired(verdicts []Verdict) []*session {
	over := make([]*session, 0, len(verdicts))
	for _, verdict := range verdicts {
		if s := st.judged(verdict); s != nil {
			over = append(over, s)
		}
	}
	return over
}

// judged returns the session of a verdict that is still valid, or nil.
func (st *state) judged(verdict Verdict) *session {
	s := st.sessions[verdict.Session]
	if s == nil || s.renewals != verdict.Renewals {
		return nil
	}
	return s
}
