package registry

import (
	"cmp"
	"slices"
)

// session is a process that claims resources.
type session struct {
	// What stays, which versions share.
	id      SessionID
	owner   string // the principal that opened it; empty for an anonymous one
	ttl     int64  // ns
	host    string
	pid     int64
	program string
	opened  int64  // wall clock of the leader, ns
	server  uint64 // whose seat it is, or 0

	// claims are its holds and places in queues, by the sequence of the
	// request that made each.
	claims table[number, *claim]
	// ended is set when the session has left the registry.
	ended bool
	tally *tally // the registry's

	// digest is what of the session is in that of the registry. It is made from the
	// hash of what stays, and from the sums of the hashes of its claims and answers,
	// as far as these are counted: of the answers those whose sequence is at most
	// counted.
	digest, fixed, claimed, answered, counted uint64

	// What follows changes, and only after thawSession.
	*sessionState
}

// sessionState is what changes of a session, as far as versions show it.
type sessionState struct {
	of *session
	// generation is the registry's at the time when this was made its own.
	generation uint64

	// low is the lowest sequence that the client still awaits an answer to.
	low uint64
	// answers holds those from low up, sorted by sequence.
	answers []answer
	// holds and waits count its claims, and revocations those that are revoked.
	holds, waits, revocations int32

	// renewals is the registry's count at its newest renewal through the log.
	renewals uint64
	// silent says that the log has the session down as silent with remaining
	// ns left. A new leader then starts it with these instead of its TTL, and
	// renewing it takes a log entry, so that no renewal is unknown to that
	// leader.
	remaining int64
	silent    bool

	// leaving says that somebody else ends the session: it goes when its last hold
	// does, and until then has nothing but holds that are revoked.
	leaving bool
	mark
}

// gone reports whether the session has ended.
func (st *sessionState) gone() bool { return st.of.ended }

// answer is what is remembered of the result of a request: nothing of whose size the
// client, or another one, decides.
type answer struct {
	sequence     uint64
	code         Code
	message      string // at most MaxMessage bytes
	fence, floor uint64
}

// find returns where the answer to a request is, or would be. Most requests that are
// looked for are newer than all that have an answer.
func (s *sessionState) find(sequence uint64) (int, bool) {
	if n := len(s.answers); n == 0 || s.answers[n-1].sequence < sequence {
		return n, false
	}
	return slices.BinarySearchFunc(s.answers, sequence, func(a answer, sequence uint64) int {
		return cmp.Compare(a.sequence, sequence)
	})
}

// remember stores the answer to a request that may be sent again.
func (s *sessionState) remember(sequence uint64, result *Result) {
	if sequence < s.low {
		return
	}
	if s.of.ended {
		return
	}
	fresh := answer{sequence, result.Code, result.Message, result.Fence, result.Floor}
	i, found := s.find(sequence)
	s.of.addAnswer(&fresh)
	if found {
		s.of.removeAnswer(&s.answers[i])
		s.answers[i] = fresh
		return
	}
	s.answers = slices.Insert(s.answers, i, fresh)
}

// forget drops the answers that the client has.
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

// renewed takes a silent session off the record.
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

// asked returns the holds that the session is asked to leave, in the order in
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
