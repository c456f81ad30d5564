package registry

import (
	"hash/maphash"
	"slices"
)

// table finds entries by their keys. It is a hash table with twelve bytes per slot, because a
// session may have a hundred thousand claims and there may be as many resources: a map
// would store every key a second time. The order of its entries is random and differs
// between servers, so callers that need an order sort.
//
// An entry is in the first free slot from its home on (linear probing). At most seven of eight
// slots are used. Searching, growing and removing use the hashes. So they do not touch other
// entries, which are seldom in the cache.
type table[K hashed, E entry[K]] struct {
	slots []E
	// hashes has the hash of each slot's entry, or 0 if the slot is free.
	hashes []uint32
	count  int
}

// hashed is a key. Its hash is never 0.
type hashed interface {
	comparable
	hash() uint32
}

// entry is an entry of a table. Its key does not change; the zero value means none.
type entry[K hashed] interface {
	comparable
	key() K
}

const fewestSlots = 4

// room returns the most entries for a number of slots.
func room(slots int) int { return slots * 7 / 8 }

// more returns the number of slots of the next larger table. Growing by a half leaves fewer
// slots empty than doubling. The empty slots of a small table take little memory beside
// its session, so there doubling is better, which takes less time.
func more(slots int) int {
	if slots < 64 {
		return max(fewestSlots, 2*slots)
	}
	return slots + slots/2
}

func (t *table[K, E]) len() int { return t.count }

// home is the slot of an entry with the hash in an empty table.
func (t *table[K, E]) home(hash uint32) int {
	return int(uint64(hash) * uint64(len(t.slots)) >> 32)
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
func (t *table[K, E]) find(k K, hash uint32) int {
	i := t.home(hash)
	for t.hashes[i] != 0 && (t.hashes[i] != hash || t.slots[i].key() != k) {
		i = t.after(i)
	}
	return i
}

// get returns the entry with the key, or none.
func (t *table[K, E]) get(k K) E { return t.look(k, k.hash()) }

// look is get for a caller that has the hash of the key.
func (t *table[K, E]) look(k K, hash uint32) (e E) {
	if t.count == 0 {
		return e
	}
	return t.slots[t.find(k, hash)]
}

// add adds an entry whose key has the hash and is not in the table.
func (t *table[K, E]) add(e E, hash uint32) {
	t.grow()
	t.settle(e, hash)
	t.count++
}

// grow makes room for one entry more.
func (t *table[K, E]) grow() {
	if t.count == room(len(t.slots)) {
		t.resize(more(len(t.slots)))
	}
}

// put adds an entry, and returns the entry with the same key that it replaces.
func (t *table[K, E]) put(e E) (before E) {
	t.grow()
	hash := e.key().hash()
	i := t.find(e.key(), hash)
	if t.hashes[i] == 0 {
		t.count++
	}
	before, t.slots[i], t.hashes[i] = t.slots[i], e, hash
	return before
}

// remove removes the entry with the key, if there is one. The entries behind it move up, so
// that each can still be reached from its home.
func (t *table[K, E]) remove(k K) {
	if t.count == 0 {
		return
	}
	free := t.find(k, k.hash())
	if t.hashes[free] == 0 {
		return
	}
	t.count--
	for i := t.after(free); t.hashes[i] != 0; i = t.after(i) {
		// An entry may move to the free slot unless its home lies in between.
		if home := t.home(t.hashes[i]); t.distance(home, i) >= t.distance(free, i) {
			t.slots[free], t.hashes[free] = t.slots[i], t.hashes[i]
			free = i
		}
	}
	t.free(free)
	if len(t.slots) > fewestSlots && 8*t.count < len(t.slots) {
		t.resize(max(fewestSlots, len(t.slots)/2))
	}
}

func (t *table[K, E]) free(i int) {
	var none E
	t.slots[i], t.hashes[i] = none, 0
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
	for i, e := range t.slots {
		if t.hashes[i] != 0 && over(e) {
			t.free(i)
			t.count--
		}
	}
	t.reserve(t.count)
}

// reserve makes room for n entries, so that the table need not grow.
func (t *table[K, E]) reserve(n int) {
	slots := fewestSlots
	for n > room(slots) {
		slots = more(slots)
	}
	t.resize(slots)
}

func (t *table[K, E]) resize(slots int) {
	old := *t
	t.slots, t.hashes = make([]E, slots), make([]uint32, slots)
	for i, hash := range old.hashes {
		if hash != 0 {
			t.settle(old.slots[i], hash)
		}
	}
}

// settle puts an entry whose key is not in the table into the first free slot.
func (t *table[K, E]) settle(e E, hash uint32) {
	i := t.home(hash)
	for t.hashes[i] != 0 {
		i = t.after(i)
	}
	t.slots[i], t.hashes[i] = e, hash
}

// all appends the entries, in no order.
func (t *table[K, E]) all(entries []E) []E {
	entries = slices.Grow(entries, t.count)
	for i, e := range t.slots {
		if t.hashes[i] != 0 {
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

func (k key) hash() uint32 { return short(maphash.String(seed, k.name)) ^ uint32(k.class)<<1 }

// sum is the hash of the key in digests.
func (k key) sum() uint64 { return mixed(hashText(k.name) ^ uint64(k.class)) }

// number is the sequence of the request that made a claim.
type number uint64

func (n number) hash() uint32 { return short(mixed(uint64(n) ^ salt)) }

// short makes a hash for a table from a longer one. It is odd, so it is never 0.
func short(hash uint64) uint32 { return uint32(hash>>32) | 1 }

// mixed is the finalizer of MurmurHash3.
func mixed(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
