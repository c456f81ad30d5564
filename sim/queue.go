package sim

import (
	"cmp"
	"math/bits"
	"slices"
)

// handle names a pending item, until it is popped or cancelled. 0 is none.
type handle int32

// item is something that will happen. Items that happen at one instant do so in
// the order of (order, seq).
type item struct {
	at          int64
	seq         uint64
	next, prev  handle
	order       uint32
	proc        int32
	arg         int32
	incarnation uint32
	slot        uint16
	kind        itemKind
	layer       uint8
	cancelled   bool
	cause       uint64
}

const (
	digitBits = 8
	digits    = 8
	wheelSize = 1 << digitBits
	noSlot    = 1<<16 - 1
)

// queue is a priority queue for times that never run backwards: a wheel for each
// digit (of 8 bits) of the time, as in a radix heap. An item lies in the wheel of
// the highest digit in which its time differs from the present, and moves to a
// lower one when the present reaches that digit. So it moves at most as often as
// its delay has digits, however many others are pending: pushing and popping
// take constant time, where a heap takes the logarithm of what it holds.
//
// Items lie in one slice and are linked by index, so nothing is allocated once
// the slice has its size, and any item can be cancelled in constant time.
type queue struct {
	items   []item // items[0] is not used
	free    handle
	pending int
	seq     uint64
	now     int64

	heads, tails [digits * wheelSize]handle
	filled       [digits][wheelSize / 64]uint64

	// The items of the present instant: batch in order, from position first on,
	// and a heap of those that were pushed since the instant began.
	batch []entry
	first int
	late  []entry
}

// entry is an item of the present instant with what orders it.
type entry struct {
	seq   uint64
	order uint32
	item  handle
}

func (e entry) before(f entry) bool {
	return e.order < f.order || e.order == f.order && e.seq < f.seq
}

// push adds an item that happens at the given time, which is not in the past,
// and returns it for the caller to fill in.
func (q *queue) push(at int64, order uint32) (handle, *item) {
	h := q.free
	if h != 0 {
		q.free = q.items[h].next
	} else {
		if len(q.items) == 0 {
			q.items = append(q.items, item{})
		}
		h = handle(len(q.items))
		q.items = append(q.items, item{})
	}
	q.seq++
	q.pending++
	it := &q.items[h]
	*it = item{at: at, seq: q.seq, order: order}
	if at <= q.now {
		it.at, it.slot = q.now, noSlot
		q.pushLate(entry{it.seq, order, h})
	} else {
		q.link(h, it)
	}
	return h, it
}

// link puts an item of the future at the end of its slot.
func (q *queue) link(h handle, it *item) {
	digit := (bits.Len64(uint64(it.at^q.now)) - 1) / digitBits
	within := int(uint64(it.at)>>(digit*digitBits)) & (wheelSize - 1)
	slot := digit*wheelSize + within
	it.slot, it.next, it.prev = uint16(slot), 0, q.tails[slot]
	if it.prev == 0 {
		q.heads[slot] = h
		q.filled[digit][within/64] |= 1 << (within % 64)
	} else {
		q.items[it.prev].next = h
	}
	q.tails[slot] = h
}

// cancel takes a pending item out.
func (q *queue) cancel(h handle) {
	it := &q.items[h]
	q.pending--
	if it.slot == noSlot {
		it.cancelled = true // its entry frees it
		return
	}
	if it.prev == 0 {
		q.heads[it.slot] = it.next
	} else {
		q.items[it.prev].next = it.next
	}
	if it.next == 0 {
		q.tails[it.slot] = it.prev
	} else {
		q.items[it.next].prev = it.prev
	}
	if q.heads[it.slot] == 0 {
		q.unmark(int(it.slot))
	}
	q.release(h)
}

func (q *queue) unmark(slot int) {
	digit, within := slot/wheelSize, slot%wheelSize
	q.filled[digit][within/64] &^= 1 << (within % 64)
}

func (q *queue) release(h handle) {
	q.items[h].next = q.free
	q.free = h
}

// pop removes the next item, moves the present to its time and returns a copy.
func (q *queue) pop() (handle, item, bool) {
	for {
		h, ok := q.take()
		if !ok {
			return 0, item{}, false
		}
		it := q.items[h]
		q.release(h)
		if !it.cancelled {
			q.pending--
			return h, it, true
		}
	}
}

// take removes the next entry of the present instant, or of the next one.
func (q *queue) take() (handle, bool) {
	if q.first == len(q.batch) && len(q.late) == 0 && !q.advance() {
		return 0, false
	}
	if len(q.late) > 0 && (q.first == len(q.batch) || q.late[0].before(q.batch[q.first])) {
		return q.popLate(), true
	}
	q.first++
	return q.batch[q.first-1].item, true
}

// advance moves the present to the time of the earliest item and gathers the
// batch of that instant. The rest of its slot moves to lower wheels.
func (q *queue) advance() bool {
	slot := q.earliest()
	if slot < 0 {
		return false
	}
	first := q.heads[slot]
	q.heads[slot], q.tails[slot] = 0, 0
	q.unmark(slot)
	at := q.items[first].at
	if slot >= wheelSize { // otherwise the whole slot is one instant
		for h := q.items[first].next; h != 0; h = q.items[h].next {
			at = min(at, q.items[h].at)
		}
	}
	q.now = at
	q.batch, q.first = q.batch[:0], 0
	for h := first; h != 0; {
		it := &q.items[h]
		next := it.next
		if it.at == at {
			it.slot = noSlot
			q.batch = append(q.batch, entry{it.seq, it.order, h})
		} else {
			q.link(h, it)
		}
		h = next
	}
	q.sortBatch()
	return true
}

// earliest returns the slot of the earliest items: the first filled one of the
// lowest wheel that has any. In it lie only times after the present.
func (q *queue) earliest() int {
	for digit := range q.filled {
		for word, filled := range q.filled[digit] {
			if filled != 0 {
				return digit*wheelSize + 64*word + bits.TrailingZeros64(filled)
			}
		}
	}
	return -1
}

func (q *queue) sortBatch() {
	for i := 1; i < len(q.batch); i++ {
		if q.batch[i].before(q.batch[i-1]) {
			slices.SortFunc(q.batch, compareEntries)
			return
		}
	}
}

func compareEntries(a, b entry) int {
	return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.seq, b.seq))
}

func (q *queue) pushLate(e entry) {
	q.late = append(q.late, e)
	for i := len(q.late) - 1; i > 0; {
		parent := (i - 1) / 2
		if !q.late[i].before(q.late[parent]) {
			return
		}
		q.late[i], q.late[parent] = q.late[parent], q.late[i]
		i = parent
	}
}

func (q *queue) popLate() handle {
	top := q.late[0].item
	last := len(q.late) - 1
	q.late[0] = q.late[last]
	q.late = q.late[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return top
		}
		if child+1 < last && q.late[child+1].before(q.late[child]) {
			child++
		}
		if !q.late[child].before(q.late[i]) {
			return top
		}
		q.late[i], q.late[child] = q.late[child], q.late[i]
		i = child
	}
}
