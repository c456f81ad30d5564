package replica

import (
	"slices"

	"github.com/conclave-io/conclave/internal/service/registry"
)

// asked is a request that waits for a quorum to confirm that this server still leads: the
// renewals of a session, or a read.
type asked struct {
	renewal routeKey // the newest renewal of the session, zero for a read
	older   []uint64 // the sequences of earlier renewals that it also answers, the oldest first
	read    uint64   // the host's number of the read
}

// maxOlder bounds the earlier renewals that one renewal also answers. Our own client has at
// most 8 unanswered.
const maxOlder = 15

// round is one confirmation by a quorum, shared by all requests that were made before it
// began.
type round struct {
	ticket uint64
	asked  []asked
	// index is the log index that must be applied before the answers; 0 until the
	// quorum has confirmed.
	index uint64
}

// rounds collects requests while earlier rounds are under way. A session has at most one
// renewal in it, however often it renews.
type rounds struct {
	next  []asked
	begun []round
	// places has the indices in next of renewals, by session; reads counts the rest.
	places map[registry.SessionID]int
	reads  int
	// spare is the memory of a finished round, for reuse.
	spare []asked
}

// maxRounds bounds the rounds under way. Two keep the network busy: one arrives while the
// other leaves.
const maxRounds = 2

func newRounds() rounds { return rounds{places: make(map[registry.SessionID]int)} }

// ask makes a renewal or a read wait for the next round. A renewal replaces the waiting one of
// its session, and answers both. If too many wait, ask returns the sequence of one that will
// not be answered, otherwise 0.
func (r *rounds) ask(a asked) (given uint64) {
	if a.read != 0 {
		r.reads++
		r.next = append(r.next, a)
		return 0
	}
	at, waits := r.places[a.renewal.session]
	if !waits {
		r.places[a.renewal.session] = len(r.next)
		r.next = append(r.next, a)
		return 0
	}
	present := &r.next[at]
	if a.renewal == present.renewal || slices.Contains(present.older, a.renewal.sequence) {
		return 0
	}
	if len(present.older) == maxOlder {
		given = present.older[0]
		present.older = slices.Delete(present.older, 0, 1)
	}
	present.older = append(present.older, present.renewal.sequence)
	present.renewal = a.renewal
	return given
}

// renewals returns the number of sessions whose renewals wait for a round to begin.
func (r *rounds) renewals() int { return len(r.places) }

// wanted reports whether a round should begin.
func (r *rounds) wanted() bool { return len(r.next) > 0 && len(r.begun) < maxRounds }

// begin moves all waiting requests to the round with the given ticket.
func (r *rounds) begin(ticket uint64) {
	r.begun = append(r.begun, round{ticket: ticket, asked: r.next})
	r.next, r.spare = r.spare[:0], nil
	clear(r.places)
	r.reads = 0
}

// confirm notes that a quorum has answered a round.
func (r *rounds) confirm(ticket, index uint64) {
	for i := range r.begun {
		if r.begun[i].ticket == ticket {
			r.begun[i].index = index
		}
	}
}

// finish calls f for all requests in confirmed rounds that need no entry beyond applied.
func (r *rounds) finish(applied uint64, f func(asked)) {
	for len(r.begun) > 0 && r.begun[0].index != 0 && r.begun[0].index <= applied {
		first := r.begun[0]
		r.begun = append(r.begun[:0], r.begun[1:]...)
		for _, a := range first.asked {
			f(a)
		}
		clear(first.asked)
		r.spare = first.asked
	}
}

// abandon calls f for all waiting requests, and removes them.
func (r *rounds) abandon(f func(asked)) {
	for _, b := range r.begun {
		for _, a := range b.asked {
			f(a)
		}
	}
	for _, a := range r.next {
		f(a)
	}
	*r = newRounds()
}
