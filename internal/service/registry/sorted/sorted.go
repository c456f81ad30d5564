// Package sorted has a set of entries in ascending order, of which copies can be kept.
package sorted

import (
	"slices"

	"github.com/tidwall/btree"
)

// Set is a set in ascending order; New makes one. Its entries are in leaves, and a B-tree finds the leaves. A
// B-tree of the entries themselves would need twice the memory for names that arrive in
// ascending order: it splits a full leaf in the middle, and each half keeps the
// memory for a full one.
//
// Copying takes the same time for any number of entries. A leaf that a copy may share never
// changes: a new leaf replaces it.
type Set[T any] struct {
	less  func(a, b T) bool
	tree  *btree.BTreeG[*leaf[T]]
	count int
	// generation is the generation of the leaves that no copy shares.
	generation uint64
}

// leaf is a run of consecutive entries. Its first entry, by which the tree finds the leaf, may
// change, but not the order of leaves.
type leaf[T any] struct {
	generation uint64
	entries    []T // never empty, and at most leafSize
}

const leafSize = 64

// New returns an empty set in the order of less. Two entries are equal if neither is less than the other.
func New[T any](less func(a, b T) bool) *Set[T] {
	order := func(a, b *leaf[T]) bool { return less(a.entries[0], b.entries[0]) }
	return &Set[T]{less: less, tree: btree.NewBTreeGOptions(order, btree.Options{NoLocks: true})}
}

// Len returns the number of entries.
func (p *Set[T]) Len() int { return p.count }

// Clear removes all entries.
func (p *Set[T]) Clear() {
	p.tree.Clear()
	p.count = 0
}

// Fill replaces the contents of p by entries, which are in order.
func (p *Set[T]) Fill(entries []T) {
	p.Clear()
	for some := range slices.Chunk(entries, leafSize) {
		p.tree.Load(&leaf[T]{p.generation, slices.Clone(some)})
	}
	p.count = len(entries)
}

// Copy returns a copy, which does not change when p does.
func (p *Set[T]) Copy() *Set[T] {
	frozen := *p
	frozen.tree = p.tree.Copy()
	p.generation++
	return &frozen
}

// at returns the leaf that has an entry, or in which it belongs; nil if there is none.
func (p *Set[T]) at(e T) *leaf[T] {
	if last, ok := p.tree.Max(); !ok || !p.less(e, last.entries[0]) {
		return last
	}
	found, _ := p.tree.Min()
	p.tree.Descend(&leaf[T]{entries: []T{e}}, func(q *leaf[T]) bool {
		found = q
		return false
	})
	return found
}

// search returns the index of an entry in a leaf, or where it belongs.
func (p *Set[T]) search(q *leaf[T], e T) (int, bool) {
	low, high := 0, len(q.entries)-1
	if p.less(q.entries[high], e) {
		return high + 1, false
	}
	for low < high {
		if middle := (low + high) / 2; p.less(q.entries[middle], e) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, !p.less(e, q.entries[low])
}

// own returns a leaf that may be changed, which replaces one that a copy may share.
func (p *Set[T]) own(q *leaf[T]) *leaf[T] {
	if q.generation == p.generation {
		return q
	}
	return p.insert(append(make([]T, 0, leafSize), q.entries...))
}

// insert adds a leaf with the entries to the tree.
func (p *Set[T]) insert(entries []T) *leaf[T] {
	q := &leaf[T]{p.generation, entries}
	p.tree.Set(q)
	return q
}

// Put adds an entry, or replaces an equal one.
func (p *Set[T]) Put(e T) {
	q := p.at(e)
	if q == nil {
		p.insert([]T{e})
		p.count++
		return
	}
	q = p.own(q)
	i, found := p.search(q, e)
	switch {
	case found:
		q.entries[i] = e
		return
	case len(q.entries) < leafSize:
		q.entries = slices.Insert(q.entries, i, e)
	case i == leafSize:
		p.insert(append(make([]T, 0, leafSize), e))
	default:
		const half = leafSize / 2
		upper := p.insert(append(make([]T, 0, leafSize), q.entries[half:]...))
		q.entries = slices.Delete(q.entries, half, leafSize)
		if i <= half {
			q.entries = slices.Insert(q.entries, i, e)
		} else {
			upper.entries = slices.Insert(upper.entries, i-half, e)
		}
	}
	p.count++
}

// Remove removes the entry that equals e, if there is one.
func (p *Set[T]) Remove(e T) {
	q := p.at(e)
	if q == nil {
		return
	}
	i, found := p.search(q, e)
	if !found {
		return
	}
	p.count--
	if len(q.entries) == 1 {
		p.tree.Delete(q)
		return
	}
	q = p.own(q)
	q.entries = slices.Delete(q.entries, i, i+1)
	if len(q.entries) < leafSize/4 {
		p.join(q)
	}
}

// join merges a leaf that has few entries with a neighbour, if that has few too.
func (p *Set[T]) join(q *leaf[T]) {
	before, next := q, q
	p.tree.Descend(q, func(other *leaf[T]) bool {
		before = other
		return other == q
	})
	p.tree.Ascend(q, func(other *leaf[T]) bool {
		next = other
		return other == q
	})
	few := func(other *leaf[T]) bool { return other != q && len(q.entries)+len(other.entries) <= leafSize/2 }
	switch {
	case few(next):
		p.tree.Delete(next)
		q.entries = append(q.entries, next.entries...)
	case few(before):
		p.tree.Delete(q)
		before = p.own(before)
		before.entries = append(before.entries, q.entries...)
	}
}

// Get returns the entry that equals e, or the zero value.
func (p *Set[T]) Get(e T) (found T) {
	if q := p.at(e); q != nil {
		if i, ok := p.search(q, e); ok {
			found = q.entries[i]
		}
	}
	return found
}

// Ascend calls f for the entries from one on, in order, until f returns false.
func (p *Set[T]) Ascend(from T, f func(T) bool) {
	first := p.at(from)
	if first == nil {
		return
	}
	i, _ := p.search(first, from)
	p.tree.Ascend(first, func(q *leaf[T]) bool {
		for _, e := range q.entries[i:] {
			if !f(e) {
				return false
			}
		}
		i = 0
		return true
	})
}

// Scan calls f for all entries, in order, until f returns false.
func (p *Set[T]) Scan(f func(T) bool) {
	p.tree.Scan(func(q *leaf[T]) bool {
		for _, e := range q.entries {
			if !f(e) {
				return false
			}
		}
		return true
	})
}
