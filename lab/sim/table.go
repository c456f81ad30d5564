package sim

// table maps nonzero numbers to numbers. It is a flat array with linear probing. It
// allocates nothing once it is large enough, and only its contents cost memory: of the
// N*N links of N processes, those in use.
type table struct {
	cells []cell
	used  int
	spare []cell // of the same size
}

type cell struct {
	key   uint64
	value int64
}

// pair is the key of an ordered pair of processes.
func pair(a, b int32) uint64 { return uint64(uint32(a)+1)<<32 | uint64(uint32(b)+1) }

func (t *table) home(key uint64) int {
	key ^= key >> 32
	key *= 0x9e3779b97f4a7c15
	return int(key>>32) & (len(t.cells) - 1)
}

// find returns the cell of the key, or the empty one where it belongs.
func (t *table) find(key uint64) *cell {
	mask := len(t.cells) - 1
	for i := t.home(key); ; i = (i + 1) & mask {
		if c := &t.cells[i]; c.key == key || c.key == 0 {
			return c
		}
	}
}

// get returns the value of the key, or 0.
func (t *table) get(key uint64) int64 {
	if t.used == 0 {
		return 0
	}
	return t.find(key).value
}

// set stores a value for a key. Before the table grows, stale may report entries that
// are no longer needed and are left out; it may be nil.
func (t *table) set(key uint64, value int64, stale func(value int64) bool) {
	if 4*t.used >= 3*len(t.cells) {
		t.grow(stale)
	}
	c := t.find(key)
	if c.key == 0 {
		c.key = key
		t.used++
	}
	c.value = value
}

// grow makes room: it doubles the array if at least half of the entries have to stay,
// otherwise it removes the others. The old array is kept for the next time, so that a
// table with changing contents allocates nothing in the long run.
func (t *table) grow(stale func(value int64) bool) {
	live := 0
	for _, c := range t.cells {
		if c.key != 0 && (stale == nil || !stale(c.value)) {
			live++
		}
	}
	size := max(64, len(t.cells))
	if 2*live >= t.used {
		size = max(64, 2*len(t.cells))
	}
	old, next := t.cells, t.spare
	if len(next) != size {
		next = make([]cell, size)
	}
	clear(next)
	t.cells, t.used, t.spare = next, 0, nil
	for _, c := range old {
		if c.key != 0 && (stale == nil || !stale(c.value)) {
			*t.find(c.key) = c
			t.used++
		}
	}
	if stale != nil && len(old) == size {
		t.spare = old
	}
}

// remove deletes the key and moves back entries that its cell had displaced.
func (t *table) remove(key uint64) {
	if t.used == 0 {
		return
	}
	mask := len(t.cells) - 1
	hole := t.home(key)
	for ; t.cells[hole].key != key; hole = (hole + 1) & mask {
		if t.cells[hole].key == 0 {
			return
		}
	}
	t.used--
	for i := (hole + 1) & mask; t.cells[i].key != 0; i = (i + 1) & mask {
		if (i-t.home(t.cells[i].key))&mask >= (i-hole)&mask {
			t.cells[hole] = t.cells[i]
			hole = i
		}
	}
	t.cells[hole] = cell{}
}
