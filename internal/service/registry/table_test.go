package registry

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A table holds what a map does, whatever is put in and taken out. It also does if many
// keys have the same hash.
func TestTable(t *testing.T) {
	t.Run("numbers", rapid.MakeCheck(func(t *rapid.T) {
		compare(t, func(n uint64) *claim { return &claim{sequence: n} })
	}))
	t.Run("keys with the same hash", rapid.MakeCheck(func(t *rapid.T) {
		compare(t, func(n uint64) *twin { return &twin{alike(n)} })
	}))
}

// twin is an entry whose key has one of only three hashes, the first of which is at home in the last
// slot of every small table.
type twin struct{ n alike }

type alike uint64

func (e *twin) key() alike   { return e.n }
func (n alike) hash() uint32 { return ^uint32(0)/3*(3-uint32(n%3)) | 1 }

// compare carries out random operations in a table and in a map.
func compare[K hashed, E entry[K]](t *rapid.T, entryOf func(uint64) E) {
	var none E
	table, want := table[K, E]{}, map[K]E{}
	for range rapid.IntRange(0, 300).Draw(t, "steps") {
		e := entryOf(rapid.Uint64Range(0, 60).Draw(t, "key"))
		k := e.key()
		if rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
			table.remove(k)
			delete(want, k)
		} else {
			if want[k] == none && rapid.Bool().Draw(t, "known to be new") {
				table.add(e, k.hash())
			} else if before := table.put(e); before != want[k] {
				t.Fatalf("%v was in the place of %v, not %v", before, k, want[k])
			}
			want[k] = e
		}
		if table.get(k) != want[k] || table.len() != len(want) {
			t.Fatalf("after %v: %d entries, want %d", k, table.len(), len(want))
		}
	}
	for k, e := range want {
		if table.get(k) != e {
			t.Fatalf("%v is lost", k)
		}
	}
	for _, e := range table.all(nil) {
		if want[e.key()] != e {
			t.Fatalf("%v is there and should not be", e.key())
		}
	}
	if len(table.all(nil)) != len(want) {
		t.Fatalf("all are %d, want %d", len(table.all(nil)), len(want))
	}
}

// A table gives the memory of a rush back when it is over.
func TestTableShrinks(t *testing.T) {
	table := table[number, *claim]{}
	for k := range uint64(10_000) {
		table.put(&claim{sequence: uint64(k)})
	}
	full := len(table.slots)
	for k := range number(9_990) {
		table.remove(k)
	}
	if now := len(table.slots); full < 10_000 || now > 128 {
		t.Errorf("%d slots for 10,000 entries, and %d for 10", full, now)
	}
	if left := table.all(nil); len(left) != 10 || !slices.ContainsFunc(left, func(c *claim) bool { return c.sequence == 9_999 }) {
		t.Errorf("%d entries are left", len(left))
	}
}

// Keys that collide under a known hash function are not slower to find than others,
// because each process uses its own hash function.
func TestChosenNumbersDoNotCollide(t *testing.T) {
	const entries = 2000
	chosen := make([]number, 0, entries)
	for n := number(1); len(chosen) < entries; n++ {
		if mixed(uint64(n))>>53 == 0 { // the first of 2,048 parts of every table
			chosen = append(chosen, n)
		}
	}
	random := make([]number, entries)
	for i := range random {
		random[i] = number(i + 1)
	}
	if a, b := longestWay(chosen), longestWay(random); a > 10*b+100 {
		t.Errorf("a chosen number is %d slots away, a random one %d", a, b)
	}
}

// longestWay is the largest distance of an entry from its home slot, in a table of
// numbers.
func longestWay(numbers []number) (most int) {
	var all table[number, *claim]
	for _, n := range numbers {
		all.put(&claim{sequence: uint64(n)})
	}
	for i, c := range all.slots {
		if c != nil {
			most = max(most, all.distance(all.home(c.key().hash()), i))
		}
	}
	return most
}

// No key has the hash 0, which marks free slots.
func TestNoHashIsZero(t *testing.T) {
	for _, long := range []uint64{0, 1, 1<<32 - 1, 1 << 63} {
		if short(long) == 0 || short(long)^uint32(Election)<<1 == 0 {
			t.Errorf("%#x gives 0", long)
		}
	}
}
