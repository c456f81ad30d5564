package sim

// table maps numbers other than 0 to numbers. It is a flat array with linear
// probing, so it costs no allocation once it has its size, and only what is in
// it costs memory: of N processes' N*N links, those in use.
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

// set gives the key a value. Before the table grows, stale may say what has lost
// its meaning and is left out; it may be nil.
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

// grow makes room: more of it if at least half of what is there has to stay,
// else by throwing out the rest. The old array is kept for the next time, so that
// a table whose contents come and go allocates nothing in the long run.
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

// remove takes the key out and moves back what its cell kept from its place.
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
