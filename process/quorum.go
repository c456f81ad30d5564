package process

import (
	"fmt"
	"slices"
)

// VotingSets returns the smallest known voting sets for n processes: those of a
// projective plane if n has one, otherwise those of a grid.
func VotingSets(n int) [][]ID {
	if sets := Plane(n); sets != nil {
		return sets
	}
	return Grid(n)
}

// Grid returns voting sets for any n. The processes form a square, row by row. Its last
// row may be short, and its last rows may be missing. The set of each process is its
// row and its column. The row of one process and the column of another cross, and so do
// their column and row; at least one of the two crossings has a process. So any two
// sets have a common member. In a full square of side c each set has 2c-1 members.
func Grid(n int) [][]ID {
	columns := 1
	for columns*columns < n {
		columns++
	}
	sets := make([][]ID, n)
	for p := range sets {
		for q := range n {
			if q/columns == p/columns || q%columns == p%columns {
				sets[p] = append(sets[p], ID(q))
			}
		}
	}
	return sets
}

// Plane returns the lines of a finite projective plane as voting sets: any two have
// exactly one common member, each has q+1 members, and each process is in q+1 of them.
// That needs n = q*q+q+1 for a prime power q; a single process (q=0) and a triangle
// (q=1) also count. For any other n it returns nil.
func Plane(n int) [][]ID {
	q := 0
	for q*q+q+1 < n {
		q++
	}
	difference := []int{0, 1}[:min(q, 1)+1]
	if p, k := primePower(q); q > 1 && k > 0 {
		difference = differenceSet(p, k, q)
	} else if q > 1 {
		return nil
	}
	if q*q+q+1 != n {
		return nil
	}
	return shifts(difference, n)
}

// shifts returns the set {p+d mod n} of each process p, over the given numbers d. The
// first is 0, which puts each process into its own set.
func shifts(difference []int, n int) [][]ID {
	sets := make([][]ID, n)
	for p := range sets {
		for _, d := range difference {
			sets[p] = append(sets[p], ID((p+d)%n))
		}
		slices.Sort(sets[p])
	}
	return sets
}

// primePower returns p and k with p^k = q for a prime p, or k = 0.
func primePower(q int) (p, k int) {
	for p = 2; p <= q; p++ {
		if q%p != 0 {
			continue
		}
		for ; q%p == 0; q /= p {
			k++
		}
		if q > 1 {
			return 0, 0
		}
		return p, k
	}
	return 0, 0
}

// differenceSet returns q+1 numbers whose differences are all numbers from 1 to
// q*q+q modulo q*q+q+1, each once (Singer 1938): the powers of a generator of
// the field of q^3 elements that have trace 0 in the subfield of q elements. The
// first number is 0.
func differenceSet(p, k, q int) []int {
	powers := generatorPowers(p, 3*k)
	order, n := len(powers), q*q+q+1
	var set []int
	for i := range n {
		a, b, c := powers[i], powers[i*q%order], powers[i*q%order*q%order]
		if sumIsZero(p, a, b, c) {
			set = append(set, i)
		}
	}
	Assert(len(set) == q+1, "a line of a projective plane has q+1 points")
	first := set[0]
	for i := range set {
		set[i] -= first
	}
	return set
}

// generatorPowers returns all powers, from 0 on, of a generator x of the field
// of p^degree elements. An element is a polynomial in x, written as a number
// whose digits in base p are its coefficients. Polynomials for x^degree are
// tried in turn until one makes the powers go through all elements but 0.
func generatorPowers(p, degree int) []int {
	size, top := 1, 1
	for range degree {
		top, size = size, size*p
	}
	powers := make([]int, 0, size-1)
	for reduction := 1; reduction < size; reduction++ {
		powers = append(powers[:0], 1)
		for x := p; x != 1 && x != 0 && len(powers) < size; {
			powers = append(powers, x)
			x = addMultiple(p, x%top*p, x/top, reduction)
		}
		if len(powers) == size-1 {
			return powers
		}
	}
	panic(Violation("every finite field has a generator"))
}

// addMultiple returns a + times*b, digit by digit in base p.
func addMultiple(p, a, times, b int) int {
	sum, place := 0, 1
	for ; a > 0 || b > 0; place *= p {
		sum += (a + times*b) % p * place
		a, b = a/p, b/p
	}
	return sum
}

func sumIsZero(p, a, b, c int) bool {
	return addMultiple(p, addMultiple(p, a, 1, b), 1, c) == 0
}

// validateQuorums checks that every process has a voting set with itself and
// that any two sets have a common member, without which two processes could be
// inside.
func validateQuorums(quorums [][]ID, n int) error {
	if len(quorums) != n {
		return fmt.Errorf("process: %d voting sets for %d processes", len(quorums), n)
	}
	for p, quorum := range quorums {
		for i, q := range quorum {
			if q < 0 || int(q) >= n {
				return fmt.Errorf("process: voting set of rank %d: rank %d: must be 0 to %d", p, q, n-1)
			}
			if i > 0 && quorum[i-1] >= q {
				return fmt.Errorf("process: voting set %v of rank %d is not in rising order", quorum, p)
			}
		}
		if !slices.Contains(quorum, ID(p)) {
			return fmt.Errorf("process: voting set %v of rank %d does not have rank %d itself", quorum, p, p)
		}
	}
	return validateIntersections(quorums, n)
}

func validateIntersections(quorums [][]ID, n int) error {
	members := NewSet(n)
	for p, quorum := range quorums {
		members.Clear()
		for _, q := range quorum {
			members.Add(q)
		}
		for o, other := range quorums[:p] {
			if !slices.ContainsFunc(other, members.Has) {
				return fmt.Errorf("process: voting sets %v of rank %d and %v of rank %d have no common member", other, o, quorum, p)
			}
		}
	}
	return nil
}

// TreeQuorums returns voting sets along the paths of a heap-ordered binary tree: the
// set of each process is a path from the root through it to a leaf. In a full tree that
// is log2(n+1) members. Processes that are down are replaced as in Agrawal and El
// Abbadi (ACM TOCS 9(1), 1991): a path that would go through one continues below both
// of its children. It returns nil if there is no set without the processes that are
// down, because a leaf has no substitute.
//
// Any two sets have a common member, even if they were built with different knowledge
// about which processes are down. A set has either the root of a tree and a set of one of
// its subtrees, or sets of all its subtrees. So of two sets, both have the root, or both
// have sets of the same subtree.
func TreeQuorums(n int, down ...ID) [][]ID {
	sets := make([][]ID, n)
	for p := range sets {
		set := treeQuorum(0, ID(p), n, down)
		if set == nil {
			return nil
		}
		if !slices.Contains(set, ID(p)) { // it is down, or everything below it is
			set = append(set, ID(p))
		}
		slices.Sort(set)
		sets[p] = set
	}
	return sets
}

// treeQuorum returns a set of the tree with the given root, through p if that is
// possible, or nil if there is none.
func treeQuorum(root, p ID, n int, down []ID) []ID {
	children := make([]ID, 0, 2)
	for child := 2*root + 1; child <= 2*root+2 && int(child) < n; child++ {
		children = append(children, child)
	}
	if slices.Contains(down, root) {
		return allTrees(children, p, n, down)
	}
	if len(children) == 0 {
		return []ID{root}
	}
	if below(children[len(children)-1], p) {
		slices.Reverse(children)
	}
	for _, child := range children {
		if set := treeQuorum(child, p, n, down); set != nil {
			return append(set, root)
		}
	}
	return nil
}

// allTrees returns a set of each of the trees together, or nil if one has none, or if
// there are no trees.
func allTrees(roots []ID, p ID, n int, down []ID) []ID {
	var all []ID
	for _, root := range roots {
		set := treeQuorum(root, p, n, down)
		if set == nil {
			return nil
		}
		all = append(all, set...)
	}
	return all
}

// below reports whether p is in the tree with the given root.
func below(root, p ID) bool {
	for p > root {
		p = (p - 1) / 2
	}
	return p == root
}
