package access

import (
	"slices"
	"strings"
)

// tree is a radix tree over the bytes of names. A node stands for the string formed by the
// labels on the path to it.
type tree[T any] struct {
	label    string
	heads    string // the first bytes of the labels of the children, in order
	children []*tree[T]
	value    T
}

// find returns the deepest node whose string is a prefix of a name, and whether that is
// the whole name.
func (n *tree[T]) find(name string) (deepest *tree[T], whole bool) {
	for name != "" {
		i := strings.IndexByte(n.heads, name[0])
		if i < 0 || !strings.HasPrefix(name, n.children[i].label) {
			return n, false
		}
		n = n.children[i]
		name = name[len(n.label):]
	}
	return n, true
}

// at returns the node of a name, and creates it if necessary.
func (n *tree[T]) at(name string) *tree[T] {
	for name != "" {
		i := strings.IndexByte(n.heads, name[0])
		if i < 0 {
			fresh := &tree[T]{label: name}
			n.insert(fresh)
			return fresh
		}
		c := n.children[i]
		same := common(name, c.label)
		if same < len(c.label) {
			fork := &tree[T]{label: c.label[:same]}
			c.label = c.label[same:]
			fork.insert(c)
			n.children[i], c = fork, fork
		}
		n, name = c, name[same:]
	}
	return n
}

func (n *tree[T]) insert(c *tree[T]) {
	i, _ := slices.BinarySearch([]byte(n.heads), c.label[0])
	n.heads = n.heads[:i] + c.label[:1] + n.heads[i:]
	n.children = slices.Insert(n.children, i, c)
}

// inherit calls f for every node but the root, with its parent, parents first.
func (n *tree[T]) inherit(f func(parent, child *T)) {
	for _, c := range n.children {
		f(&n.value, &c.value)
		c.inherit(f)
	}
}

// common returns the length of the common prefix of two strings.
func common(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
