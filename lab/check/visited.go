package check

import (
	"slices"
	"sync"
	"sync/atomic"
)

// visited is the set of visited states, each by its fingerprint and with the state from
// which it was first reached. It is split into shards, which grow one by one. Lookups
// take no lock: a fingerprint that is found is there for good, and only a missing one
// is looked up again under the lock.
type visited struct {
	shards [shardCount]shard
	budget atomic.Int64 // bytes that may still be allocated
	depth  uint32       // of the states that are added
	timed  bool         // whether the depth of each is kept

	allocating sync.Mutex // held while a shard asks for room and takes it
	room       func(bytes int64) bool
}

const (
	shardBits  = 6
	shardCount = 1 << shardBits
	firstSlots = 1 << 8
)

type shard struct {
	mu    sync.Mutex
	table atomic.Pointer[slots]
	used  int
	full  bool // the budget is used up
	_     [24]byte
}

// slots is an open hash table.
type slots struct {
	mask   uint64
	states []known
	depths []uint32 // of each; nil if not needed
}

// known is a visited state. The first word of its fingerprint is written last, and
// never 0. Everything is in one cache line, because each access costs time.
type known struct {
	lo, hi uint64
	parent uint64 // the first word of the fingerprint of the state before
}

func newVisited(bytes int64, timed bool) *visited {
	v := &visited{timed: timed}
	v.budget.Store(bytes - shardCount*firstSlots*v.bytesPerState())
	for i := range v.shards {
		v.shards[i].table.Store(v.newSlots(firstSlots))
	}
	return v
}

func (v *visited) newSlots(n int) *slots {
	t := &slots{mask: uint64(n - 1), states: make([]known, n)}
	inLargePages(t.states)
	if v.timed {
		t.depths = make([]uint32, n)
	}
	return t
}

// nonzero keeps 0 for the empty slot.
func (f print) nonzero() print {
	if f.lo == 0 {
		f.lo = key3
	}
	return f
}

func (v *visited) shardOf(lo uint64) *shard { return &v.shards[lo>>(64-shardBits)] }

// touch reads the slot where the search for a fingerprint begins. The processor loads
// several such slots in parallel.
func (v *visited) touch(f print) uint64 {
	t := v.shardOf(f.lo).table.Load()
	return atomic.LoadUint64(&t.states[f.lo&t.mask].lo)
}

// find returns the position of a fingerprint, or -1; a fingerprint that is being added
// may be missed.
func (t *slots) find(f print) int {
	for i := f.lo & t.mask; ; i = (i + 1) & t.mask {
		lo := atomic.LoadUint64(&t.states[i].lo)
		if lo == 0 {
			return -1
		}
		if lo == f.lo && atomic.LoadUint64(&t.states[i].hi) == f.hi {
			return int(i)
		}
	}
}

// closed reports whether a state was seen before the present depth. If depths are not
// kept, that holds for every state that was seen.
func (v *visited) closed(f print) bool {
	t := v.shardOf(f.lo).table.Load()
	i := t.find(f)
	return i >= 0 && (t.depths == nil || t.depths[i] < v.depth)
}

// add adds a fingerprint and reports whether it is new. If there is no room, it is not
// added, and fits is false.
func (v *visited) add(f print, parent uint64) (isNew, fits bool) {
	s := v.shardOf(f.lo)
	if s.table.Load().find(f) >= 0 {
		return false, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.table.Load()
	if s.used*4 >= len(t.states)*3 {
		if t = v.grow(s, t); t == nil {
			return false, false
		}
	}
	if !t.insert(f, parent, v.depth) {
		return false, true
	}
	s.used++
	return true, true
}

// insert is called with the lock of the shard held.
func (t *slots) insert(f print, parent uint64, depth uint32) bool {
	for i := f.lo & t.mask; ; i = (i + 1) & t.mask {
		switch k := &t.states[i]; {
		case k.lo == 0:
			k.hi, k.parent = f.hi, parent
			if t.depths != nil {
				t.depths[i] = depth
			}
			atomic.StoreUint64(&k.lo, f.lo)
			return true
		case k.lo == f.lo && k.hi == f.hi:
			return false
		}
	}
}

// grow doubles a shard, or returns nil.
func (v *visited) grow(s *shard, t *slots) *slots {
	need := int64(len(t.states)) * v.bytesPerState()
	if s.full {
		return nil
	}
	var bigger *slots
	if v.budget.Add(-need) >= 0 {
		bigger = v.allocate(2 * len(t.states))
	}
	if bigger == nil {
		v.budget.Add(need)
		s.full = true
		return nil
	}
	for i, k := range t.states {
		depth := uint32(0)
		if t.depths != nil {
			depth = t.depths[i]
		}
		if k.lo != 0 {
			bigger.insert(print{k.lo, k.hi}, k.parent, depth)
		}
	}
	s.table.Store(bigger)
	return bigger
}

// allocate returns n new slots, or nil if the process has no room for them. Until the old ones are
// collected, both are there.
func (v *visited) allocate(n int) *slots {
	v.allocating.Lock()
	defer v.allocating.Unlock()
	if v.room != nil && !v.room(int64(n)*v.bytesPerState()) {
		return nil
	}
	return v.newSlots(n)
}

func (v *visited) bytesPerState() int64 {
	if v.timed {
		return 28
	}
	return 24
}

// parent returns the first word of the state before the one with that first word.
func (v *visited) parent(lo uint64) uint64 {
	t := v.shardOf(lo).table.Load()
	for i := lo & t.mask; t.states[i].lo != 0; i = (i + 1) & t.mask {
		if t.states[i].lo == lo {
			return t.states[i].parent
		}
	}
	return 0
}

// chain returns the fingerprints of the states from the start to the given one.
func (v *visited) chain(last print) []uint64 {
	chain := []uint64{last.lo}
	for lo := v.parent(last.lo); lo != 0; lo = v.parent(lo) {
		chain = append(chain, lo)
	}
	slices.Reverse(chain)
	return chain
}

// len returns the number of states. No state may be added at the same time.
func (v *visited) len() uint64 {
	n := uint64(0)
	for i := range v.shards {
		n += uint64(v.shards[i].used)
	}
	return n
}
