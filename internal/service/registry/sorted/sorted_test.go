package sorted

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func less(a, b int) bool { return a/2 < b/2 } // so 2 and 3 equal each other

func (p *Set[T]) all() (all []T) {
	p.Scan(func(e T) bool {
		all = append(all, e)
		return true
	})
	return all
}

// A sorted set has the same contents as a map after any insertions and removals, and each
// copy stays unchanged.
func TestSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, want := New(less), map[int]int{}
		inOrder := func() []int { return slices.Sorted(maps.Values(want)) }
		type frozen struct {
			copy *Set[int]
			want []int
		}
		var copies []frozen
		put := func(e int) {
			p.Put(e)
			want[e/2] = e
		}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			from, n := rapid.IntRange(0, 2000).Draw(t, "from"), rapid.IntRange(0, 200).Draw(t, "n")
			switch rapid.IntRange(0, 5).Draw(t, "do") {
			case 0:
				for e := from; e < from+n; e++ {
					put(e)
				}
			case 1:
				for e := from + n; e > from; e-- {
					put(e)
				}
			case 2:
				for i := range n {
					put((from + 7919*i) % 3000)
				}
			case 3:
				for e := from; e < from+3*n; e += 1 + e%2 {
					p.Remove(e)
					delete(want, e/2)
				}
			case 4:
				copies = append(copies, frozen{p.Copy(), inOrder()})
			case 5:
				maps.DeleteFunc(want, func(_, e int) bool { return e%3 == 0 })
				p.Fill(inOrder())
			}
			if p.Len() != len(want) {
				t.Fatalf("%d entries, want %d", p.Len(), len(want))
			}
			var later []int
			p.Ascend(from, func(e int) bool {
				later = append(later, e)
				return len(later) < n
			})
			all := inOrder()
			at, _ := slices.BinarySearchFunc(all, from/2, func(e, from int) int { return cmp.Compare(e/2, from) })
			if most := max(n, 1); !slices.Equal(later, all[at:min(len(all), at+most)]) {
				t.Fatalf("from %d: %v, want %d of %v", from, later, most, all[at:])
			}
			if got := p.Get(from); got != want[from/2] {
				t.Fatalf("%d is %d, want %d", from, got, want[from/2])
			}
		}
		for _, c := range append(copies, frozen{p, inOrder()}) {
			if all := c.copy.all(); !slices.Equal(all, c.want) || c.copy.Len() != len(all) {
				t.Fatalf("%v, want %v", all, c.want)
			}
		}
		if p.Clear(); p.Len() != 0 || p.all() != nil {
			t.Fatal("not empty")
		}
	})
}

// Leaves are full if entries come in ascending order, and at least a quarter full,
// but for a few, if most are taken out.
func TestSortedIsDense(t *testing.T) {
	const n = 10_000
	p := New(less)
	for e := range n {
		p.Put(2 * e)
	}
	if got := p.tree.Len(); got > n/leafSize+1 {
		t.Errorf("%d leaves for %d ascending entries", got, n)
	}
	for e := range n {
		if e%100 != 0 {
			p.Remove(2 * e)
		}
	}
	if got := p.tree.Len(); p.Len() != n/100 || got > 4*4*n/100/leafSize {
		t.Errorf("%d leaves for %d entries", got, p.Len())
	}
}
