package replica

// asked is something that waits for a quorum to confirm that this server still
// leads: a renewal or a read.
type asked struct {
	renewal routeKey // if not zero
	read    uint64   // else the host's number of the read
}

// round is one confirmation by a quorum, shared by all that was asked before
// it began.
type round struct {
	ticket uint64
	asked  []asked
	// index is the log index that must be applied before answering; 0 until
	// the quorum has confirmed.
	index uint64
}

// rounds gathers what is asked while earlier rounds are on their way.
type rounds struct {
	next  []asked
	begun []round
	// spare is the memory of a finished round.
	spare []asked
}

// maxRounds bounds the rounds on their way at a time. Two keep the network
// busy: one arrives while the other leaves.
const maxRounds = 2

func (r *rounds) ask(a asked) { r.next = append(r.next, a) }

// waiting counts what waits for a round to begin.
func (r *rounds) waiting() int { return len(r.next) }

// wanted reports whether a round should begin.
func (r *rounds) wanted() bool { return len(r.next) > 0 && len(r.begun) < maxRounds }

// begin hands all that was asked to the round with the given ticket.
func (r *rounds) begin(ticket uint64) {
	r.begun = append(r.begun, round{ticket: ticket, asked: r.next})
	r.next, r.spare = r.spare[:0], nil
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
	*r = rounds{}
}
