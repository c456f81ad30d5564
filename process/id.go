package process

import (
	"iter"
	"math/bits"
	"strconv"
)

// ID is the rank of a process: its position, from 0 to N-1, in the list of all
// processes. Arrays are indexed by it; of equal timestamps the lower rank goes first.
type ID int32

// None is the ID of no process.
const None ID = -1

// Label is the number by which people and elections identify a process: unique, any
// value, not necessarily dense. In elections the higher label wins.
type Label uint64

// Duration is a length of time, or a reading of a clock, in nanoseconds.
type Duration int64

// Units of Duration.
const (
	Microsecond Duration = 1_000
	Millisecond Duration = 1_000_000
	Second      Duration = 1_000_000_000
)

// Term orders leaderships, coordinators and generations of a token: first by
// round, then by the rank of the leader, so that two leaders never share one.
// The zero Term is the one before any election.
type Term uint64

const leaderBits = 24

// MakeTerm returns the term of the given round and leader. Rounds are below
// 2^40 and ranks below 2^24-1.
func MakeTerm(round uint64, leader ID) Term {
	return Term(round<<leaderBits | uint64(leader+1))
}

// Round returns the number of the election that began the term.
func (t Term) Round() uint64 { return uint64(t >> leaderBits) }

// Leader returns the process that won the term, or None for the zero Term.
func (t Term) Leader() ID { return ID(t&(1<<leaderBits-1)) - 1 }

// Fence numbers the grants of one resource: a later grant has a larger fence. Within
// one round the numbers are dense: 1 + the largest seen. A machine that recovers from a
// lost coordinator or token continues in a higher round, because no live process may
// know the last number of the previous round. A host that restarts machines may put its
// own number in front of the fences of each start.
type Fence uint64

const fenceBits = 32

// MakeFence returns the fence with the given number in the given round.
func MakeFence(round uint64, number uint32) Fence {
	return Fence(round<<fenceBits | uint64(number))
}

// Round returns the round the fence belongs to.
func (f Fence) Round() uint64 { return uint64(f >> fenceBits) }

// Number returns the number of the fence within its round.
func (f Fence) Number() uint32 { return uint32(f) }

// Next returns the fence after f for a process that grants in the given round. It is
// larger than f, whatever the rounds.
func (f Fence) Next(round uint64) Fence {
	if round > f.Round() {
		return MakeFence(round, f.Number()) + 1
	}
	return f + 1
}

// String prints "7", or "2.7" for number 7 of round 2.
func (f Fence) String() string {
	number := strconv.FormatUint(uint64(f.Number()), 10)
	if f.Round() == 0 {
		return number
	}
	return strconv.FormatUint(f.Round(), 10) + "." + number
}

// Stamp is a logical time: a clock reading and the process that read it. Stamps
// of one run are totally ordered.
type Stamp struct {
	Clock uint64
	ID    ID
}

// Less reports whether s comes before t: lower clock, or equal clocks and lower rank.
func (s Stamp) Less(t Stamp) bool {
	return s.Clock < t.Clock || s.Clock == t.Clock && s.ID < t.ID
}

// Set is a set of processes, one bit per rank. Its size is fixed by NewSet.
type Set []uint64

// NewSet returns an empty set for ranks 0 to n-1.
func NewSet(n int) Set { return make(Set, (n+63)/64) }

// Has reports whether p is in the set.
func (s Set) Has(p ID) bool { return s[p>>6]&(1<<(p&63)) != 0 }

// Add puts p into the set.
func (s Set) Add(p ID) { s[p>>6] |= 1 << (p & 63) }

// Remove takes p out of the set.
func (s Set) Remove(p ID) { s[p>>6] &^= 1 << (p & 63) }

// Clear empties the set.
func (s Set) Clear() { clear(s) }

// FillOthers makes the set hold every rank below n except self.
func (s Set) FillOthers(n int, self ID) {
	for i := range s {
		s[i] = 1<<min(64, max(0, n-64*i)) - 1
	}
	if self != None {
		s.Remove(self)
	}
}

// Len returns the number of processes in the set.
func (s Set) Len() int {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Empty reports whether the set is empty.
func (s Set) Empty() bool {
	for _, word := range s {
		if word != 0 {
			return false
		}
	}
	return true
}

// All yields the members in rising order.
func (s Set) All() iter.Seq[ID] {
	return func(yield func(ID) bool) {
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(ID(64*i + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}

// Assert stops the host when a condition that must hold in every schedule does not
// hold. The text states the condition.
func Assert(ok bool, promise string) {
	if !ok {
		panic(Violation(promise))
	}
}

// Try gives an event to a machine. The error is the assertion that failed in it, or nil.
func Try(m Machine, ev *Event, fx *Effects) error {
	return Catch(func() { m.Step(ev, fx) })
}

// Catch calls a function. The error is the assertion that failed in it, or nil.
func Catch(f func()) (err error) {
	defer func() {
		switch broken := recover().(type) {
		case nil:
		case Violation:
			err = broken
		default:
			panic(broken)
		}
	}()
	f()
	return nil
}

// Violation is the value that a failed Assert panics with, so that simulators
// and checkers can tell a broken algorithm from a broken program.
type Violation string

// Error names the broken condition.
func (v Violation) Error() string { return "process: assertion failed: " + string(v) }
