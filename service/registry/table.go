package registry

import "slices"

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
}

const fewestSlots = 8

func (t *table[K, E]) len() int { return t.count }

// home is where an entry would lie if it were alone.
func (t *table[K, E]) home(k K) int {
	return int(k.hash() & uint64(len(t.slots)-1))
}

// find returns the slot of the entry with the key, or the free one where it would
// be put. There must be slots.
func (t *table[K, E]) find(k K) int {
	var none E
	i := t.home(k)
	for t.slots[i] != none && t.slots[i].key() != k {
		i = (i + 1) & (len(t.slots) - 1)
	}
	return i
}

// get returns the entry with the key, or none.
func (t *table[K, E]) get(k K) (e E) {
	if t.count == 0 {
		return e
	}
	return t.slots[t.find(k)]
}

// put adds an entry in the place of any other with its key, and returns the other.
func (t *table[K, E]) put(e E) (before E) {
	if 4*(t.count+1) > 3*len(t.slots) {
		t.resize(max(fewestSlots, 2*len(t.slots)))
	}
	var none E
	i := t.find(e.key())
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
	free := t.find(k)
	if t.slots[free] == none {
		return
	}
	t.count--
	last := len(t.slots) - 1
	for i := (free + 1) & last; t.slots[i] != none; i = (i + 1) & last {
		// An entry may move to the free slot unless its home lies between.
		if home := t.home(t.slots[i].key()); (i-home)&last >= (i-free)&last {
			t.slots[free] = t.slots[i]
			free = i
		}
	}
	t.slots[free] = none
	if len(t.slots) > fewestSlots && 8*t.count < len(t.slots) {
		t.resize(len(t.slots) / 2)
	}
}

func (t *table[K, E]) resize(slots int) {
	var none E
	old := t.slots
	t.slots = make([]E, slots)
	for _, e := range old {
		if e != none {
			t.slots[t.find(e.key())] = e
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

// hash depends on nothing but the key. Whoever chooses names so that they collide makes
// the servers slow; who may take locks at all can do worse.
func (k key) hash() uint64 { return mixed(hashText(k.name) ^ uint64(k.class)) }

// number is the sequence of the request that made a claim.
type number uint64

func (n number) hash() uint64 { return mixed(uint64(n)) }

// mixed is the finalizer of MurmurHash3.
func mixed(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
