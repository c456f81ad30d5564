package process

import "fmt"

// Topology says which processes know each other. What an algorithm does not need stays
// nil. The zero Topology is a complete graph, with the ring in rank order and process 0
// as the coordinator or first holder of a token.
type Topology struct {
	Coordinator ID     // the coordinator, sequencer or first holder of a token
	Successor   []ID   // ring: the next process of each; nil: the next rank
	Parent      []ID   // tree: the parent of each, None for the root; nil: no tree
	Quorums     [][]ID // quorum system: the voting set of each, with itself, in rising order
}

// Next returns the process after p on the ring of n.
func (t *Topology) Next(p ID, n int) ID {
	if t.Successor == nil {
		return (p + 1) % ID(n)
	}
	return t.Successor[p]
}

// Ring returns the processes in the order in which the ring of n visits them, from 0 on.
func (t *Topology) Ring(n int) []ID {
	order := make([]ID, 0, n)
	for p := ID(0); len(order) < n; p = t.Next(p, n) {
		order = append(order, p)
	}
	return order
}

// Ring returns the successors of a ring that visits the processes in the given order.
func Ring(order ...ID) []ID {
	successor := make([]ID, len(order))
	for i, p := range order {
		successor[p] = order[(i+1)%len(order)]
	}
	return successor
}

// BinaryTree returns the parents of a heap-ordered binary tree with root 0.
func BinaryTree(n int) []ID { return tree(n, func(p ID) ID { return (p - 1) / 2 }) }

// Star returns the parents of a star with 0 in the middle.
func Star(n int) []ID { return tree(n, func(ID) ID { return 0 }) }

// Line returns the parents of a line 0, 1, ... with root 0.
func Line(n int) []ID { return tree(n, func(p ID) ID { return p - 1 }) }

func tree(n int, parentOf func(ID) ID) []ID {
	parent := make([]ID, n)
	parent[0] = None
	for p := 1; p < n; p++ {
		parent[p] = parentOf(ID(p))
	}
	return parent
}

func (t *Topology) validate(n int) error {
	if t.Coordinator < 0 || int(t.Coordinator) >= n {
		return fmt.Errorf("process: coordinator: rank %d: must be 0 to %d", t.Coordinator, n-1)
	}
	if t.Successor != nil {
		if err := validateRing(t.Successor, n); err != nil {
			return err
		}
	}
	if t.Parent != nil {
		if err := validateTree(t.Parent, n); err != nil {
			return err
		}
	}
	if t.Quorums != nil {
		return validateQuorums(t.Quorums, n)
	}
	return nil
}

// validateRing follows the successors: one round must visit everyone.
func validateRing(successor []ID, n int) error {
	if len(successor) != n {
		return fmt.Errorf("process: ring of %d for %d processes", len(successor), n)
	}
	p := ID(0)
	for hops := 1; ; hops++ {
		if p = successor[p]; p < 0 || int(p) >= n {
			return fmt.Errorf("process: ring: rank %d: must be 0 to %d", p, n-1)
		}
		if p == 0 && hops == n {
			return nil
		}
		if p == 0 || hops == n {
			return fmt.Errorf("process: ring from rank 0 does not visit all %d processes once", n)
		}
	}
}

// validateTree follows every process to a root; depth marks processes that are known to
// lead there.
func validateTree(parent []ID, n int) error {
	if len(parent) != n {
		return fmt.Errorf("process: tree of %d for %d processes", len(parent), n)
	}
	rooted, roots := NewSet(n), 0
	for p := range parent {
		q, steps := ID(p), 0
		for q != None && !rooted.Has(q) {
			if next := parent[q]; next < None || int(next) >= n || steps > n {
				return fmt.Errorf("process: tree from rank %d does not lead to a root", p)
			}
			q, steps = parent[q], steps+1
		}
		if q == None {
			roots++
		}
		for q = ID(p); q != None && !rooted.Has(q); q = parent[q] {
			rooted.Add(q)
		}
	}
	if roots != 1 {
		return fmt.Errorf("process: tree has %d roots: must have 1", roots)
	}
	return nil
}
