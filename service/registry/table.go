package registry

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// table finds entries by their keys. It is a hash table with one word per slot, because a session
// may have a hundred thousand claims and there may be as many resources: a map would
// store every key a second time. The order of its entries is random and differs between
// servers, so callers that need an order sort.
//
// An entry is in the first free slot from its home on (linear probing). At most three of
// four slots are used.
type table[K hashed, E entry[K]] struct {
	slots []E
	count int
}

// hashed is a key. All bits of its hash depend on the whole key.
type hashed interface {
	comparable
	hash() uint64
}

// entry is an entry of a table. Its key does not change; the zero value means none.
type entry[K hashed] interface {
	comparable
	key() K
	keyHash() uint64
}

const fewestSlots = 8

// more returns the number of slots of the next larger table. Growing by a half, then by a third,
// leaves fewer slots empty than doubling, but takes more time. It is only for tables of
// medium size: the empty slots of a small one take little memory beside its session, and the
// entries of a large one are not in the cache.
func more(slots int) int {
	switch {
	case slots < 128 || slots >= 1024:
		return 2 * slots
	case slots&(slots-1) == 0:
		return slots + slots/2
	}
	return slots / 3 * 4
}

func (t *table[K, E]) len() int { return t.count }

// home is the slot of an entry with the hash in an empty table.
func (t *table[K, E]) home(hash uint64) int {
	slot, _ := bits.Mul64(hash, uint64(len(t.slots)))
	return int(slot)
}

// after returns the next slot.
func (t *table[K, E]) after(i int) int {
	if i++; i < len(t.slots) {
		return i
	}
	return 0
}

// find returns the slot of the entry with the key, or the free slot where it belongs. The
// table must have slots.
func (t *table[K, E]) find(k K, hash uint64) int {
	var none E
	i := t.home(hash)
	for t.slots[i] != none && t.slots[i].key() != k {
		i = t.after(i)
	}
	return i
}

// get returns the entry with the key, or none.
func (t *table[K, E]) get(k K) E { return t.look(k, k.hash()) }

// look is get for a caller that has the hash of the key.
func (t *table[K, E]) look(k K, hash uint64) (e E) {
	if t.count == 0 {
		return e
	}
	return t.slots[t.find(k, hash)]
}

// add adds an entry whose key has the hash and is not in the table.
func (t *table[K, E]) add(e E, hash uint64) {
	t.grow()
	t.settle(e, hash)
	t.count++
}

// grow makes room for one entry more.
func (t *table[K, E]) grow() {
	if 4*(t.count+1) > 3*len(t.slots) {
		t.resize(max(fewestSlots, more(len(t.slots))))
	}
}

// put adds an entry, and returns the entry with the same key that it replaces.
func (t *table[K, E]) put(e E) (before E) {
	t.grow()
	var none E
	i := t.find(e.key(), e.keyHash())
	if before = t.slots[i]; before == none {
		t.count++
	}
	t.slots[i] = e
	return before
}

// remove removes the entry with the key, if there is one. The entries behind it move up, so
// that each can still be reached from its home.
func (t *table[K, E]) remove(k K) {
	var none E
	if t.count == 0 {
		return
	}
	free := t.find(k, k.hash())
	if t.slots[free] == none {
		return
	}
	t.count--
	for i := t.after(free); t.slots[i] != none; i = t.after(i) {
		// An entry may move to the free slot unless its home lies in between.
		if home := t.home(t.slots[i].keyHash()); t.distance(home, i) >= t.distance(free, i) {
			t.slots[free] = t.slots[i]
			free = i
		}
	}
	t.slots[free] = none
	if len(t.slots) > fewestSlots && 8*t.count < len(t.slots) {
		t.resize(max(fewestSlots, len(t.slots)/2))
	}
}

// distance is the number of slots from one slot to another.
func (t *table[K, E]) distance(from, to int) int {
	if from <= to {
		return to - from
	}
	return to - from + len(t.slots)
}

// prune removes all entries that are over. For many entries this is faster than removing them
// one by one.
func (t *table[K, E]) prune(over func(E) bool) {
	var none E
	for i, e := range t.slots {
		if e != none && over(e) {
			t.slots[i] = none
			t.count--
		}
	}
	t.resize(slotsFor(t.count))
}

// reserve makes room for n entries in an empty table, so that it need not grow.
func (t *table[K, E]) reserve(n int) { t.resize(slotsFor(n)) }

// slotsFor returns the number of slots for n entries.
func slotsFor(n int) int {
	slots := fewestSlots
	for 4*n > 3*slots {
		slots = more(slots)
	}
	return slots
}

func (t *table[K, E]) resize(slots int) {
	var none E
	old := t.slots
	t.slots = make([]E, slots)
	for _, e := range old {
		if e != none {
			t.settle(e, e.keyHash())
		}
	}
}

// settle puts an entry whose key is not in the table into the first free slot. It compares no
// keys, so it does not touch the entries that it passes.
func (t *table[K, E]) settle(e E, hash uint64) {
	var none E
	i := t.home(hash)
	for t.slots[i] != none {
		i = t.after(i)
	}
	t.slots[i] = e
}

// all appends the entries, in no order.
func (t *table[K, E]) all(entries []E) []E {
	var none E
	entries = slices.Grow(entries, t.count)
	for _, e := range t.slots {
		if e != none {
			entries = append(entries, e)
		}
	}
	return entries
}

// seed and salt are random in each process, so that nobody can choose names or numbers that
// collide. They affect only the order of tables, and nothing that a registry returns.
var (
	seed = maphash.MakeSeed()
	salt = maphash.String(seed, "")
)

func (k key) hash() uint64 { return maphash.String(seed, k.name) ^ uint64(k.class) }

// sum is the hash of the key in digests.
func (k key) sum() uint64 { return mixed(hashText(k.name) ^ uint64(k.class)) }

// number is the sequence of the request that made a claim.
type number uint64

func (n number) hash() uint64 { return mixed(uint64(n) ^ salt) }

// mixed is the finalizer of MurmurHash3.
func mixed(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
