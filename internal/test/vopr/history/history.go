// Package history checks that what clients saw of a resource is linearizable.
package history

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/conclave-io/conclave/internal/service/registry"
)

// ClaimID identifies a claim by one number for the session and the sequence number of its acquire.
type ClaimID uint64

// ClaimOf returns the number of a request in the history of a resource.
func ClaimOf(id registry.SessionID, sequence uint64) ClaimID {
	return ClaimID(uint64(binary.BigEndian.Uint32(id[:]))<<32 | sequence)
}

// Kind is the kind of an operation in a history.
type Kind uint8

// The kinds.
const (
	Grant   Kind = iota // an acquire that was granted with a fence
	Maybe               // an acquire with an unknown result
	Held                // a try that was refused
	Release             // a release that was answered with OK
	NotHeld             // a release that was answered with NOT_HELD
	End                 // the end of a claim by the servers, or by a release without an answer
	Query               // the holders, as a linearizable read shows them
)

// Operation is an operation in a history, as clients observe it. Operations of the servers, and
// operations without an answer, last until their session is known to have ended, or forever.
type Operation struct {
	Kind      Kind
	Claim     ClaimID
	Session   registry.SessionID
	Shared    bool
	Fence     uint64
	Holders   string // of a query: see Holders
	Call, Ret int64

	who string // Claim, as in the model
}

// Forever is the end of an operation that has no known end.
const Forever = math.MaxInt64 / 2

// holders is the state of the model of a resource. The checker compares and stores millions of
// states, so the type is small.
type holders struct {
	claims string // the claims that hold, 8 bytes each, sorted
	shared bool
	fence  uint64 // the largest known fence
}

const claimBytes = 8

// Text returns the claim in 8 bytes.
func (c ClaimID) Text() string {
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
func (h holders) apply(o *Operation, room int) (bool, holders) {
	at := h.find(o.who)
	switch o.Kind {
	case Grant, Maybe:
		if fits := h.fits(o.Shared, room) && o.Fence > h.fence; o.Kind == Grant && !fits {
			return false, h
		}
		if h.fits(o.Shared, room) {
			h.add(o.who)
			h.shared, h.fence = o.Shared, max(h.fence, o.Fence)
		}
	case Held:
		return h.count() > 0, h
	case Release, End:
		if at < 0 {
			return o.Kind == End, h
		}
		h.remove(at)
	case NotHeld:
		return at < 0, h
	case Query:
		return h.claims == o.Holders, h
	}
	return true, h
}

func modelOf(room int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return holders{} },
		Step: func(state, input, _ any) (bool, any) {
			ok, next := state.(holders).apply(input.(*Operation), room)
			return ok, next
		},
		Equal: func(a, b any) bool { return a == b },
	}
}

// checkLimit is the time limit for checking one history. The slowest ones take some seconds on a quiet
// machine.
const checkLimit = 2 * time.Minute

// Holders returns the holders that a query shows, as an Operation has them.
func Holders(claims ...ClaimID) string {
	var h holders
	for _, c := range claims {
		h.add(c.Text())
	}
	return h.claims
}

// Illegal is the result for a history that is not possible, and Unknown for one that took too long.
const (
	Illegal = porcupine.Illegal
	Unknown = porcupine.Unknown
)

// Linearizable reports whether the history of a resource is linearizable of which room claims may
// hold at the same time.
func Linearizable(operations []Operation, room int) porcupine.CheckResult {
	history := make([]porcupine.Operation, 0, len(operations))
	for i := range operations {
		o := &operations[i]
		o.who = o.Claim.Text()
		history = append(history, porcupine.Operation{Input: o, Call: o.Call, Return: o.Ret})
	}
	return porcupine.CheckOperationsTimeout(modelOf(room), history, checkLimit)
}
