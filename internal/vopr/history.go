package vopr

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/conclave-io/conclave/service/registry"
)

// claimID is a session and the sequence of an acquire, as one number.
type claimID uint64

func claimOf(id registry.SessionID, sequence uint64) claimID {
	return claimID(uint64(binary.BigEndian.Uint32(id[:]))<<32 | sequence)
}

// opKind is what an operation of a history did.
type opKind uint8

const (
	opGrant   opKind = iota // an acquire that was granted with a fence
	opMaybe                 // one of which nobody knows whether it was
	opHeld                  // a try that was refused
	opRelease               // answered: released
	opNotHeld               // a release answered: it did not hold
	opEnd                   // of a claim, that the servers decide, or of which no answer came
	opQuery                 // the holders, as a linearizable read shows them
)

// operation is one of a history: what somebody saw who does not look into the
// servers. What has no answer, or is done by the servers, goes on until its session
// is known to have ended, or for ever.
type operation struct {
	kind      opKind
	claim     claimID
	session   registry.SessionID
	shared    bool
	fence     uint64
	holders   string // of a query, as in the model
	call, ret int64

	who string // claim, as in the model
}

const forever = math.MaxInt64 / 2

func (r *resource) note(o operation) {
	if !r.live { // homes do not tell what can be linearized: a try may miss a free lock
		r.history = append(r.history, o)
	}
}

// holders is the state of the model of a resource. States are compared and kept by the
// million, so it is small.
type holders struct {
	claims string // those that hold, 8 bytes each, in order
	shared bool
	fence  uint64 // the largest that is known
}

const claimBytes = 8

func (c claimID) text() string {
	var b [claimBytes]byte
	binary.BigEndian.PutUint64(b[:], uint64(c))
	return string(b[:])
}

// find returns where a claim is, or -1.
func (h *holders) find(c string) int {
	for at := 0; at < len(h.claims); at += claimBytes {
		if h.claims[at:at+claimBytes] == c {
			return at
		}
	}
	return -1
}

func (h *holders) add(c string) {
	at := 0
	for at < len(h.claims) && h.claims[at:at+claimBytes] < c {
		at += claimBytes
	}
	h.claims = h.claims[:at] + c + h.claims[at:]
}

func (h *holders) remove(at int) { h.claims = h.claims[:at] + h.claims[at+claimBytes:] }

func (h *holders) count() int { return len(h.claims) / claimBytes }

// fits reports whether one more may hold.
func (h *holders) fits(shared bool, room int) bool {
	n := h.count()
	return n == 0 || shared && h.shared || !shared && !h.shared && n < room
}

// apply is one step of the model: whether the operation may happen now, and the
// state after it.
func (h holders) apply(o *operation, room int) (bool, holders) {
	at := h.find(o.who)
	switch o.kind {
	case opGrant, opMaybe:
		if fits := h.fits(o.shared, room) && o.fence > h.fence; o.kind == opGrant && !fits {
			return false, h
		}
		if h.fits(o.shared, room) {
			h.add(o.who)
			h.shared, h.fence = o.shared, max(h.fence, o.fence)
		}
	case opHeld:
		return h.count() > 0, h
	case opRelease, opEnd:
		if at < 0 {
			return o.kind == opEnd, h
		}
		h.remove(at)
	case opNotHeld:
		return at < 0, h
	case opQuery:
		return h.claims == o.holders, h
	}
	return true, h
}

func modelOf(room int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return holders{} },
		Step: func(state, input, _ any) (bool, any) {
			ok, next := state.(holders).apply(input.(*operation), room)
			return ok, next
		},
		Equal: func(a, b any) bool { return a == b },
	}
}

// checkLimit is how long one history may take.
const checkLimit = 20 * time.Second

// linearizable reports whether the history of a resource can be that of one that
// does one thing after the other.
func (r *resource) linearizable() porcupine.CheckResult {
	history := make([]porcupine.Operation, 0, len(r.history))
	for i := range r.history {
		o := &r.history[i]
		o.who = o.claim.text()
		history = append(history, porcupine.Operation{Input: o, Call: o.call, Return: o.ret})
	}
	return porcupine.CheckOperationsTimeout(modelOf(r.room()), history, checkLimit)
}
