package sim

import (
	"cmp"
	"math/bits"
	"slices"
)

// item is a scheduled event. Items of one instant happen in the order of (order, seq).
type item struct {
	at          int64
	seq         uint64 // identifies the item
	cause       uint64
	order       uint32
	proc        int32
	arg         int32
	incarnation uint32
	kind        itemKind
	layer       uint8
	revocable   bool // the item may be cancelled
}

const (
	digitBits = 8
	digits    = 8
	wheelSize = 1 << digitBits
	chunkSize = 20
)

// chunk is a part of a slot: a few items side by side, linked to the next part.
type chunk struct {
	items [chunkSize]item
	used  int32
	next  int32
}

// queue is a priority queue for times that never decrease: a wheel for each digit (of 8
// bits) of the time, as in a radix heap. An item is in the wheel of the highest digit
// in which its time differs from the present, and moves to a lower one when the present
// reaches that digit. So it moves at most as often as its delay has digits, however
// many others are pending; a heap would move it a logarithmic number of times.
// Neighbours move together, from one block of memory to another, which makes a large
// queue fast.
//
// Slots are lists of chunks from one pool. So nothing is allocated once the pool is
// large enough, and the pool is never much larger than what is pending. A cancelled
// item stays until its time has come, or until half of the queue is cancelled.
type queue struct {
	chunks []chunk // chunks[0] is not used
	free   int32
	seq    uint64
	now    int64

	total     int // items in the queue
	cancelled int // of these
	// stale says whether an item that may be cancelled is.
	stale func(it *item) bool
	// near is called for items that will happen soon: all items of a slot in
	// sequence. It may be nil.
	near func(it *item)

	heads  [digits * wheelSize]int32 // the chunk of each slot that has room, or is full
	filled [digits][wheelSize / 64]uint64

	// The items of the present instant: those that existed when it began, in order
	// from position first on, and a heap of later ones.
	instant []item
	batch   []entry
	first   int
	late    []entry
}

// entry is an item of the present instant with its order.
type entry struct {
	seq   uint64
	order uint32
	index int32 // in instant
}

func (e entry) before(f entry) bool {
	return e.order < f.order || e.order == f.order && e.seq < f.seq
}

// pending returns the number of items that will happen.
func (q *queue) pending() int { return q.total - q.cancelled }

// push adds an item that happens at the given time, or now if that is past, and
// returns it for the caller to fill in before the next push.
func (q *queue) push(at int64, order uint32) *item {
	q.seq++
	q.total++
	var it *item
	if at <= q.now {
		at = q.now
		if q.first == len(q.batch) && len(q.late) == 0 {
			q.instant, q.batch, q.first = q.instant[:0], q.batch[:0], 0
		}
		q.instant = append(q.instant, item{})
		last := len(q.instant) - 1
		it = &q.instant[last]
		q.pushLate(entry{q.seq, order, int32(last)})
	} else {
		it = q.place(at)
	}
	*it = item{at: at, seq: q.seq, order: order}
	return it
}

// place returns room for a future item, in the slot of its time.
func (q *queue) place(at int64) *item {
	digit := (bits.Len64(uint64(at^q.now)) - 1) / digitBits
	within := int(uint64(at)>>(digit*digitBits)) & (wheelSize - 1)
	slot := digit*wheelSize + within
	head := q.heads[slot]
	if head == 0 || q.chunks[head].used == chunkSize {
		head = q.grow(head)
		q.heads[slot] = head
		q.filled[digit][within/64] |= 1 << (within % 64)
	}
	c := &q.chunks[head]
	c.used++
	return &c.items[c.used-1]
}

// grow returns an empty chunk in front of another.
func (q *queue) grow(next int32) int32 {
	c := q.free
	if c != 0 {
		q.free = q.chunks[c].next
	} else {
		if len(q.chunks) == 0 {
			q.chunks = append(q.chunks, chunk{})
		}
		c = int32(len(q.chunks))
		q.chunks = append(q.chunks, chunk{})
	}
	q.chunks[c].used, q.chunks[c].next = 0, next
	return c
}

// cancel marks one pending revocable item as stale.
func (q *queue) cancel() {
	q.cancelled++
	if q.cancelled > 1024 && 2*q.cancelled > q.total {
		q.purge()
	}
}

// each calls f with every item that is pending, and with cancelled ones.
func (q *queue) each(f func(it *item)) {
	for digit := range q.filled {
		for word, filled := range q.filled[digit] {
			for ; filled != 0; filled &= filled - 1 {
				slot := digit*wheelSize + 64*word + bits.TrailingZeros64(filled)
				for c := q.heads[slot]; c != 0; c = q.chunks[c].next {
					for i := range q.chunks[c].used {
						f(&q.chunks[c].items[i])
					}
				}
			}
		}
	}
	for _, e := range q.batch[q.first:] {
		f(&q.instant[e.index])
	}
	for _, e := range q.late {
		f(&q.instant[e.index])
	}
}

// pop removes the next item that is not cancelled into it and moves the present
// to its time.
func (q *queue) pop(it *item) bool {
	for {
		next := q.take()
		if next == nil {
			return false
		}
		q.total--
		if !next.revocable || !q.stale(next) {
			*it = *next
			return true
		}
		q.cancelled--
	}
}

// take returns the next item of the present instant, or of the one after it.
func (q *queue) take() *item {
	if q.first == len(q.batch) && len(q.late) == 0 && !q.advance() {
		return nil
	}
	if len(q.late) > 0 && (q.first == len(q.batch) || q.late[0].before(q.batch[q.first])) {
		return &q.instant[q.popLate()]
	}
	q.first++
	return &q.instant[q.batch[q.first-1].index]
}

// advance moves the present to the time of the earliest items and gathers them.
func (q *queue) advance() bool {
	q.instant, q.batch, q.first = q.instant[:0], q.batch[:0], 0
	for len(q.batch) == 0 {
		slot := q.earliest()
		if slot < 0 {
			return false
		}
		q.open(slot)
	}
	q.sortBatch()
	return true
}

// open moves the present to a slot: to the start of its span or, if it holds few items,
// right to the first of them. Items of that time join the batch; all others move to
// lower wheels.
func (q *queue) open(slot int) {
	head := q.detach(slot)
	q.now = q.begin(head, slot/wheelSize)
	announce := q.near != nil && slot/wheelSize == 1
	for head != 0 {
		for i := range q.chunks[head].used {
			it := &q.chunks[head].items[i]
			if announce {
				q.near(it)
			}
			if it.at == q.now {
				q.batch = append(q.batch, entry{it.seq, it.order, int32(len(q.instant))})
				q.instant = append(q.instant, *it)
				continue
			}
			room := q.place(it.at) // may move the chunks
			*room = q.chunks[head].items[i]
		}
		head = q.recycle(head)
	}
}

// detach empties a slot and returns its chunks.
func (q *queue) detach(slot int) (head int32) {
	head, q.heads[slot] = q.heads[slot], 0
	digit, within := slot/wheelSize, slot%wheelSize
	q.filled[digit][within/64] &^= 1 << (within % 64)
	return head
}

// begin returns the time to which a slot moves the present.
func (q *queue) begin(head int32, digit int) int64 {
	c := &q.chunks[head]
	if c.next != 0 && digit > 0 {
		return c.items[0].at >> (digit * digitBits) << (digit * digitBits)
	}
	at := c.items[0].at
	for i := 1; digit > 0 && i < int(c.used); i++ {
		at = min(at, c.items[i].at)
	}
	return at
}

// recycle puts a chunk back into the pool and returns the one behind it.
func (q *queue) recycle(c int32) (next int32) {
	next = q.chunks[c].next
	q.chunks[c].next = q.free
	q.free = c
	return next
}

// earliest returns the slot of the earliest items: the first filled one of the
// lowest wheel that has any.
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

// purge removes the cancelled items of the future.
func (q *queue) purge() {
	for slot, head := range q.heads {
		if head == 0 {
			continue
		}
		q.detach(slot)
		for head != 0 {
			q.keepLive(head)
			head = q.recycle(head)
		}
	}
}

// keepLive places the items of a detached chunk again, except the cancelled ones.
func (q *queue) keepLive(c int32) {
	for i := range q.chunks[c].used {
		if it := &q.chunks[c].items[i]; it.revocable && q.stale(it) {
			q.total--
			q.cancelled--
			continue
		}
		room := q.place(q.chunks[c].items[i].at) // may move the chunks
		*room = q.chunks[c].items[i]
	}
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

// popLate removes the first of the late entries and returns its item's index.
func (q *queue) popLate() int32 {
	top := q.late[0].index
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
