package registry

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// table finds entries by their keys. It is a hash table with one word for each
// slot, because a session may have a hundred thousand claims and there may be as
// many resources: a map would keep every key a second time. The order of its
// entries means nothing, and differs between servers: whoever needs an order sorts.
//
// Entries lie in the first free slot from their home on (linear probing), and no
// more than three of four slots are taken.
type table[K hashed, E entry[K]] struct {
	slots []E
	count int
}

// hashed is a key. All bits of its hash depend on all of it.
type hashed interface {
	comparable
	hash() uint64
}

// entry is what a table holds. Its key does not change; the zero value is none.
type entry[K hashed] interface {
	comparable
	key() K
	keyHash() uint64
}

const fewestSlots = 8

// more returns the number of slots of the next larger table. There may be very many
// small tables, so these grow in smaller steps: by a half, then by a third. To grow a
// large one takes long, because its entries are not in the cache.
func more(slots int) int {
	switch {
	case slots >= 1024:
		return 2 * slots
	case slots&(slots-1) == 0:
		return slots + slots/2
	}
	return slots / 3 * 4
}

func (t *table[K, E]) len() int { return t.count }

// home is where an entry with the hash would lie if it were alone.
func (t *table[K, E]) home(hash uint64) int {
	slot, _ := bits.Mul64(hash, uint64(len(t.slots)))
	return int(slot)
}

// after returns the slot behind another.
func (t *table[K, E]) after(i int) int {
	if i++; i < len(t.slots) {
		return i
	}
	return 0
}

// find returns the slot of the entry with the key, or the free one where it would
// be put. There must be slots.
func (t *table[K, E]) find(k K, hash uint64) int {
	var none E
	i := t.home(hash)
	for t.slots[i] != none && t.slots[i].key() != k {
		i = t.after(i)
	}
	return i
}

// get returns the entry with the key, or none.
func (t *table[K, E]) get(k K) (e E) {
	if t.count == 0 {
		return e
	}
	return t.slots[t.find(k, k.hash())]
}

// put adds an entry in the place of any other with its key, and returns the other.
func (t *table[K, E]) put(e E) (before E) {
	if 4*(t.count+1) > 3*len(t.slots) {
		t.resize(max(fewestSlots, more(len(t.slots))))
	}
	var none E
	i := t.find(e.key(), e.keyHash())
	if before = t.slots[i]; before == none {
		t.count++
	}
	t.slots[i] = e
	return before
}

// remove takes the entry with the key out, if there is one. The entries behind it
// move up, so that none is cut off from its home.
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
		// An entry may move to the free slot unless its home lies between.
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

// distance is how many slots on one is from another.
func (t *table[K, E]) distance(from, to int) int {
	if from <= to {
		return to - from
	}
	return to - from + len(t.slots)
}

// prune takes all entries out that are over. It is faster than to remove them one by
// one if they are many.
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

// reserve makes room for n entries in an empty table, which then need not grow.
func (t *table[K, E]) reserve(n int) { t.resize(slotsFor(n)) }

// slotsFor returns how many slots n entries need.
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
			t.slots[t.find(e.key(), e.keyHash())] = e
		}
	}
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

// seed and salt are drawn by each process: nobody can choose names, or numbers, that
// collide. They show in nothing that a registry does, only in the order of its tables.
var (
	seed = maphash.MakeSeed()
	salt = maphash.String(seed, "")
)

func (k key) hash() uint64 { return maphash.String(seed, k.name) ^ uint64(k.class) }

// sum is what of the key is in digests.
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
