package check

import (
	"encoding/binary"
	"math/bits"

	"github.com/conclave-io/conclave/process"
)

// layout gives the positions in a state: first the local state of each process, then
// the content of each link, then, if needed, the pending news of each process, and
// single numbers. A slot that does not exist is -1.
type layout struct {
	n       int
	links   int
	inbox   int // of process 0, the others follow
	fence   int // the highest fence that was granted
	oracle  int // twice the number of elections, plus 1 if one is in progress
	budgets [budgetCount]int
	bypass  int // of process 0: number of entries of others while it waits
	stamp   int // of the last entry; see books.go
	arrival int // of process 0: the position of its request
	token   int // where it is

	declared  int          // the victims of deadlocks since their last entries, as bits
	agreed    int          // the first decision in each position; see decisions.go
	late      int          // whether a timer expired before all had voted; see decisions.go
	installed int          // whether a layer of the stack has elected
	stride    int          // the number of slots
	receivers []process.ID // of what is in the slots of links and news
	senders   []process.ID // of what is in the slots of links
}

// budget is something that is limited in a run.
type budget uint8

const (
	timeouts budget = iota
	crashes
	restarts
	drops
	duplicates
	reorders
	suspicions
	cancels
	forgets
	budgetCount
)

// budgetNames are the names of the budgets, and of one of what they limit.
var budgetNames = [budgetCount]struct{ all, one string }{
	timeouts: {"timeouts", "timeout"}, crashes: {"crashes", "crash"}, restarts: {"restarts", "restart"},
	drops: {"drops", "loss"}, duplicates: {"duplicates", "duplicate"}, reorders: {"reorders", "message out of order"},
	suspicions: {"suspicions", "wrong suspicion"}, cancels: {"cancels", "withdrawal"}, forgets: {"forgets", "forgotten machine"},
}

// limit returns the largest allowed number.
func (c *Config) limit(b budget) int {
	return [...]int{c.Timeouts, c.Crashes, c.Restarts, c.Drops, c.Duplicates, c.Reorders, c.Suspicions, c.Cancels, c.Forgets}[b]
}

func newLayout(c *Config) layout {
	n := c.Process.N
	l := layout{n: n, links: n * (n - 1), inbox: -1, fence: -1, oracle: -1, bypass: -1, installed: -1}
	l.stride = n + l.links
	take := func(count int, when bool) int {
		if !when {
			return -1
		}
		l.stride += count
		return l.stride - count
	}
	needs := &c.Spec.Needs
	l.inbox = take(n, needs.Elector || c.faulty())
	l.oracle = take(1, needs.Elector)
	l.fence = take(1, c.checks(process.FencesGrow) || c.checks(process.FencesGrowCausally))
	l.bypass = take(n, c.checks(process.BoundedBypass))
	l.stamp = take(1, c.checks(process.OrderTimestamp))
	l.arrival = take(n, c.checks(process.OrderArrival))
	l.installed = take(1, c.checks(process.OrderArrival) && c.Spec.Depth() > 1)
	l.token = take(1, c.checks(process.OneToken))
	l.declared = take(1, c.checks(process.DeadlockFound))
	l.agreed = take(1, c.checks(process.ValueAgreement))
	l.late = take(1, c.transaction() && c.checks(process.NonTriviality))
	for b := range budgetCount {
		l.budgets[b] = take(1, c.limit(b) > 0)
	}
	l.receivers, l.senders = make([]process.ID, l.stride), make([]process.ID, l.stride)
	for from := range n {
		for to := range n {
			if from != to {
				slot := l.link(process.ID(from), process.ID(to))
				l.senders[slot], l.receivers[slot] = process.ID(from), process.ID(to)
			}
		}
		if l.inbox >= 0 {
			l.receivers[l.inbox+from] = process.ID(from)
		}
	}
	return l
}

// link returns the slot of the link between two processes.
func (l *layout) link(from, to process.ID) int {
	at := int(to)
	if to > from {
		at--
	}
	return l.n + int(from)*(l.n-1) + at
}

// receiver returns the receiver of the link in a slot.
func (l *layout) receiver(slot int) process.ID { return l.receivers[slot] }

// sender returns the sender of the link in a slot.
func (l *layout) sender(slot int) process.ID { return l.senders[slot] }

// print is a fingerprint of 128 bits. The fingerprint of a state is the sum of those of
// its parts, each of which is a hash of the part and its position. So a step changes it
// by the difference of the parts that it changes.
type print struct{ lo, hi uint64 }

func (f *print) add(g print) { f.lo += g.lo; f.hi += g.hi }

func (f *print) sub(g print) { f.lo -= g.lo; f.hi -= g.hi }

func (f print) plus(g print) print { return print{f.lo + g.lo, f.hi + g.hi} }

func (f print) minus(g print) print { return print{f.lo - g.lo, f.hi - g.hi} }

// The keys are digits of pi and e. They are fixed, so that equal states have equal
// fingerprints in every run and on every machine.
const (
	key0 = 0x243f6a8885a308d3
	key1 = 0x13198a2e03707344
	key2 = 0xa4093822299f31d0 | 1
	key3 = 0xb7e151628aed2a6b
)

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// printOf returns the fingerprint of some bytes, two chains over their words.
func printOf(data []byte) print {
	f := print{key0 ^ uint64(len(data)), key1 + uint64(len(data))}
	for len(data) >= 8 {
		f = f.chain(binary.LittleEndian.Uint64(data))
		data = data[8:]
	}
	var last [8]byte
	copy(last[:], data)
	return f.chain(binary.LittleEndian.Uint64(last[:])).spread()
}

func (f print) chain(word uint64) print {
	return print{mix(f.lo^word^key2, key3^bits.RotateLeft64(word, 32)) + key1, mix(f.hi+word*key2, key0|1) ^ bits.RotateLeft64(f.lo, 23)}
}

// spread mixes all bits, so that sums of fingerprints are not weaker.
func (f print) spread() print {
	return print{finish(f.lo ^ bits.RotateLeft64(f.hi, 29)), finish(f.hi + key3*f.lo)}
}

func finish(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// printOfNumber returns the fingerprint of a number in a slot; that of zero is zero.
func printOfNumber(slot int, v uint32) print {
	if v == 0 {
		return print{}
	}
	word := uint64(slot)<<32 | uint64(v)
	return print{key1, key0}.chain(word).chain(word * key2).spread()
}
