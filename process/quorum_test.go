package process_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/process"
)

func TestVotingSetsOfEveryNumber(t *testing.T) {
	spec := &process.Spec{Name: "vote"}
	for n := 1; n <= 140; n++ {
		for name, sets := range map[string][][]process.ID{"grid": process.Grid(n), "best": process.VotingSets(n)} {
			c := &process.Config{N: n, Topology: process.Topology{Quorums: sets}}
			if err := spec.Validate(c); err != nil {
				t.Errorf("%s of %d: %v", name, n, err)
			}
		}
	}
}

func TestGrid(t *testing.T) {
	want := [][]process.ID{{0, 1, 2}, {0, 1, 3}, {0, 2, 3}, {1, 2, 3}}
	if got := process.Grid(4); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("grid of 4 is %v, want %v", got, want)
	}
	for side := 1; side <= 12; side++ {
		for p, set := range process.Grid(side * side) {
			if len(set) != 2*side-1 {
				t.Errorf("square of side %d: the set of rank %d has %d members, want %d", side, p, len(set), 2*side-1)
			}
		}
	}
}

// TestPlane: two lines meet in one point, and the number of lines through a point equals
// the number of points on a line. These are the prime powers up to 32.
func TestPlane(t *testing.T) {
	orders := []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32}
	for n := 1; n <= 32*32+32+1; n++ {
		q := slices.IndexFunc(orders, func(q int) bool { return q*q+q+1 == n })
		sets := process.Plane(n)
		if (sets != nil) != (q >= 0) {
			t.Fatalf("a plane of %d points: %v, want %v", n, sets != nil, q >= 0)
		}
		if sets != nil {
			checkPlane(t, sets, orders[q])
		}
	}
}

func checkPlane(t *testing.T, sets [][]process.ID, q int) {
	t.Helper()
	lines := make([]int, len(sets))
	for p, set := range sets {
		if len(set) != q+1 || !slices.Contains(set, process.ID(p)) {
			t.Errorf("order %d: the line of rank %d is %v", q, p, set)
		}
		for _, point := range set {
			lines[point]++
		}
		other := sets[(p+1)%len(sets)]
		common := slices.DeleteFunc(slices.Clone(set), func(r process.ID) bool { return !slices.Contains(other, r) })
		if len(sets) > 1 && len(common) != 1 {
			t.Errorf("order %d: lines %v and %v cross in %v", q, set, other, common)
		}
	}
	for p, count := range lines {
		if count != q+1 {
			t.Errorf("order %d: %d lines go through rank %d, want %d", q, count, p, q+1)
		}
	}
}

func TestBadVotingSets(t *testing.T) {
	cases := map[string][][]process.ID{
		"have no common member":       {{0, 1}, {0, 1}, {2, 3}, {2, 3}},
		"does not have rank 1 itself": {{0}, {0}},
		"[1 0] of rank 0 is not in":   {{1, 0}, {0, 1}},
		"[0 0] of rank 0 is not in":   {{0, 0}, {0, 1}},
	}
	for want, sets := range cases {
		c := &process.Config{N: len(sets), Topology: process.Topology{Quorums: sets}}
		if err := (&process.Spec{Name: "vote"}).Validate(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, it should say %q", err, want)
		}
	}
}

// Voting sets of seven processes: the lines of the Fano plane.
func ExamplePlane() {
	for _, set := range process.Plane(7) {
		fmt.Println(set)
	}
	// Output:
	// [0 1 3]
	// [1 2 4]
	// [2 3 5]
	// [3 4 6]
	// [0 4 5]
	// [1 5 6]
	// [0 2 6]
}

func TestTreeQuorums(t *testing.T) {
	for _, test := range []struct {
		n    int
		down []process.ID
		want [][]process.ID
	}{
		{1, nil, [][]process.ID{{0}}},
		{3, nil, [][]process.ID{{0, 1}, {0, 1}, {0, 2}}},
		{4, nil, [][]process.ID{{0, 1, 3}, {0, 1, 3}, {0, 2}, {0, 1, 3}}},
		{3, []process.ID{0}, [][]process.ID{{0, 1, 2}, {1, 2}, {1, 2}}},
		{3, []process.ID{1}, [][]process.ID{{0, 2}, {0, 1, 2}, {0, 2}}},
		{3, []process.ID{1, 2}, nil},
		{7, []process.ID{0, 2}, [][]process.ID{{0, 1, 3, 5, 6}, {1, 3, 5, 6}, {1, 2, 3, 5, 6}, {1, 3, 5, 6}, {1, 4, 5, 6}, {1, 3, 5, 6}, {1, 3, 5, 6}}},
	} {
		if got := process.TreeQuorums(test.n, test.down...); !slices.EqualFunc(got, test.want, slices.Equal) {
			t.Errorf("%d without %v: %v, want %v", test.n, test.down, got, test.want)
		}
	}
	for height := 1; height <= 7; height++ {
		for p, set := range process.TreeQuorums(1<<height - 1) {
			if len(set) != height {
				t.Errorf("height %d: the set of rank %d is %v", height, p, set)
			}
		}
	}
}

// TestTreeQuorumsIntersect: two processes may know of different crashes, and all their
// sets still have common members. No set of a live process contains a process that is
// down.
func TestTreeQuorumsIntersect(t *testing.T) {
	spec := &process.Spec{Name: "vote"}
	for n := 1; n <= 7; n++ {
		var views [][]uint
		for down := range uint(1 << n) {
			sets := process.TreeQuorums(n, members(down)...)
			if sets == nil {
				continue
			}
			if err := spec.Validate(&process.Config{N: n, Topology: process.Topology{Quorums: sets}}); err != nil {
				t.Errorf("%d without %v: %v", n, members(down), err)
			}
			views = append(views, bitsOf(sets))
			for p, set := range bitsOf(sets) {
				if down>>p&1 == 0 && set&down != 0 {
					t.Errorf("%d without %v: the set of rank %d is %v", n, members(down), p, sets[p])
				}
			}
		}
		for _, a := range views {
			for _, b := range views {
				if p, q := disjoint(a, b); p >= 0 {
					t.Fatalf("%d: %v and %v have no common member", n, members(a[p]), members(b[q]))
				}
			}
		}
	}
}

func members(set uint) []process.ID {
	var ids []process.ID
	for p := 0; set>>p != 0; p++ {
		if set>>p&1 != 0 {
			ids = append(ids, process.ID(p))
		}
	}
	return ids
}

func bitsOf(sets [][]process.ID) []uint {
	all := make([]uint, len(sets))
	for p, set := range sets {
		for _, q := range set {
			all[p] |= 1 << q
		}
	}
	return all
}

// disjoint returns two sets without a common member, or -1.
func disjoint(a, b []uint) (int, int) {
	for p := range a {
		for q := range b {
			if a[p]&b[q] == 0 {
				return p, q
			}
		}
	}
	return -1, -1
}
