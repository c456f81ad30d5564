package registry

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A table holds what a map does, whatever is put in and taken out.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, want := table[number, *claim]{}, map[number]*claim{}
		for range rapid.IntRange(0, 300).Draw(t, "steps") {
			k := number(rapid.Uint64Range(0, 60).Draw(t, "key"))
			if rapid.IntRange(0, 2).Draw(t, "remove") == 0 {
				table.remove(k)
				delete(want, k)
			} else {
				c := &claim{sequence: uint64(k)}
				if want[k] == nil && rapid.Bool().Draw(t, "known to be new") {
					table.add(c, c.keyHash())
				} else if before := table.put(c); before != want[k] {
					t.Fatalf("%v was in the place of %d, not %v", before, k, want[k])
				}
				want[k] = c
			}
			if table.get(k) != want[k] || table.len() != len(want) {
				t.Fatalf("after %d: %d entries, want %d", k, table.len(), len(want))
			}
		}
		for k, c := range want {
			if table.get(k) != c {
				t.Fatalf("%d is lost", k)
			}
		}
		for _, c := range table.all(nil) {
			if want[c.key()] != c {
				t.Fatalf("%d is there and should not be", c.sequence)
			}
		}
		if len(table.all(nil)) != len(want) {
			t.Fatalf("all are %d, want %d", len(table.all(nil)), len(want))
		}
	})
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
			most = max(most, all.distance(all.home(c.keyHash()), i))
		}
	}
	return most
}
