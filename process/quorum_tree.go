package process

import "slices"

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
