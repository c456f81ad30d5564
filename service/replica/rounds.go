package replica

import (
	"slices"

	"github.com/conclave-io/conclave/service/registry"
)

// asked is something that waits for a quorum to confirm that this server still
// leads: the renewals of a session, or a read.
type asked struct {
	renewal routeKey // the newest of the session, if not zero
	older   []uint64 // the sequences of those that it answers too, the oldest first
	read    uint64   // else the host's number of the read
}

// maxOlder bounds the renewals that one answers besides itself. The client's own
// keeps 8 unanswered at most.
const maxOlder = 15

// round is one confirmation by a quorum, shared by all that was asked before
// it began.
type round struct {
	ticket uint64
	asked  []asked
	// index is the log index that must be applied before answering; 0 until
	// the quorum has confirmed.
	index uint64
}

// rounds gathers what is asked while earlier rounds are on their way. A session has
// one renewal in it, however fast it renews.
type rounds struct {
	next  []asked
	begun []round
	// places finds the renewals in next by their sessions; reads counts the rest.
	places map[registry.SessionID]int
	reads  int
	// spare is the memory of a finished round.
	spare []asked
}

// maxRounds bounds the rounds on their way at a time. Two keep the network
// busy: one arrives while the other leaves.
const maxRounds = 2

func newRounds() rounds { return rounds{places: make(map[registry.SessionID]int)} }

// ask has a renewal or a read wait for the next round. A renewal takes the place of
// the one of its session that waits already, and answers both. It returns the
// sequence of one that is not going to be answered, as too many wait, or 0.
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

// renewals counts the sessions whose renewals wait for a round to begin.
func (r *rounds) renewals() int { return len(r.places) }

// wanted reports whether a round should begin.
func (r *rounds) wanted() bool { return len(r.next) > 0 && len(r.begun) < maxRounds }

// begin hands all that was asked to the round with the given ticket.
func (r *rounds) begin(ticket uint64) {
	r.begun = append(r.begun, round{ticket: ticket, asked: r.next})
	r.next, r.spare = r.spare[:0], nil
	clear(r.places)
	r.reads = 0
}

// confirm notes that a quorum has answered.
func (r *rounds) confirm(ticket, index uint64) {
	for i := range r.begun {
		if r.begun[i].ticket == ticket {
			r.begun[i].index = index
		}
	}
}

// finish calls f for all that was asked in the rounds which are confirmed and
// need no entry beyond applied.
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

// abandon calls f for everything that waits, and forgets it.
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
