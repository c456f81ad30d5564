package world

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/conclave-io/conclave/internal/service/registry"
)

// claimID identifies a claim by one number for the session and the sequence number of its acquire.
type claimID uint64

// ClaimOf returns the number of a request in the history of a resource.
func ClaimOf(id registry.SessionID, sequence uint64) claimID {
	return claimID(uint64(binary.BigEndian.Uint32(id[:]))<<32 | sequence)
}

// opKind is the kind of an operation in a history.
type opKind uint8

const (
	opGrant   opKind = iota // an acquire that was granted with a fence
	opMaybe                 // an acquire with an unknown result
	opHeld                  // a try that was refused
	opRelease               // a release that was answered with OK
	opNotHeld               // a release that was answered with NOT_HELD
	opEnd                   // the end of a claim by the servers, or by a release without an answer
	opQuery                 // the holders, as a linearizable read shows them
)

// operation is an operation in a history, as clients observe it. Operations of the servers, and
// operations without an answer, last until their session is known to have ended, or forever.
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

func (r *Resource) note(o operation) {
	if !r.Guarded { // the answers of homes are not linearizable: a try may miss a free lock
		r.history = append(r.history, o)
	}
}

// holders is the state of the model of a resource. The checker compares and stores millions of
// states, so the type is small.
type holders struct {
	claims string // the claims that hold, 8 bytes each, sorted
	shared bool
	fence  uint64 // the largest known fence
}

const claimBytes = 8

func (c claimID) text() string {
	var b [claimBytes]byte
	binary.BigEndian.PutUint64(b[:], uint64(c))
	return string(b[:])
}

// find returns the index of a claim, or -1.
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

// fits reports whether one more claim may hold.
func (h *holders) fits(shared bool, room int) bool {
	n := h.count()
	return n == 0 || shared && h.shared || !shared && !h.shared && n < room
}

// apply does one step of the model. It returns whether the operation is allowed in this state, and
// the state after it.
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

// checkLimit is the time limit for checking one history.
const checkLimit = 20 * time.Second

// linearizable reports whether the history of a resource is linearizable.
func (r *Resource) linearizable() porcupine.CheckResult {
	history := make([]porcupine.Operation, 0, len(r.history))
	for i := range r.history {
		o := &r.history[i]
		o.who = o.claim.text()
		history = append(history, porcupine.Operation{Input: o, Call: o.call, Return: o.ret})
	}
	return porcupine.CheckOperationsTimeout(modelOf(r.room()), history, checkLimit)
}
