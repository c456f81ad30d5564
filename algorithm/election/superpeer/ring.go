package superpeer

import (
	"math/bits"
	"slices"

	"github.com/conclave-io/conclave/process"
)

// ring is the hash table's circle of identifiers, 0 to 2^bits-1, with all nodes of the
// configuration on it. The identifiers are the labels, which rise with the rank. So the
// table of a node, which would name a few dozen others, need not be stored: it follows
// from the configuration.
type ring struct {
	c    *process.Config
	bits int
}

// after returns the next node.
func (r ring) after(p process.ID) process.ID { return (p + 1) % process.ID(r.c.N) }

// before returns the previous node.
func (r ring) before(p process.ID) process.ID {
	return (p + process.ID(r.c.N) - 1) % process.ID(r.c.N)
}

// owner returns the first node at or after a point: the one that a hash table makes
// responsible for it.
func (r ring) owner(point uint64) process.ID {
	if r.c.Labels == nil {
		if point < 1 || point > uint64(r.c.N) {
			return 0
		}
		return process.ID(point - 1)
	}
	rank, _ := slices.BinarySearch(r.c.Labels, process.Label(point))
	return process.ID(rank % r.c.N)
}

// way is the distance from a node forward to a point: 1 to 2^bits. The distance of a node
// to itself is the whole circle.
func (r ring) way(from process.ID, to uint64) uint64 {
	return (to-uint64(r.c.Label(from))-1)&(1<<r.bits-1) + 1
}

// to is the distance to another node.
func (r ring) to(from, to process.ID) uint64 { return r.way(from, uint64(r.c.Label(to))) }

// start returns the start of the segment of p whose members share k bits with it.
func (r ring) start(p process.ID, k int) uint64 {
	return uint64(r.c.Label(p)) &^ (1<<(r.bits-k) - 1)
}

// shared returns the number of leading bits that p and q have in common.
func (r ring) shared(p, q process.ID) int {
	return r.bits - bits.Len64(uint64(r.c.Label(p)^r.c.Label(q)))
}

// first reports whether no other node on the ring is before p in the segment of p. It
// is the local test: p only needs to know its predecessor.
func (r ring) first(p process.ID, k int) bool {
	return r.way(r.before(p), r.start(p, k)) <= r.to(r.before(p), p)
}

// finger returns the farthest finger of p that is before a point. The fingers of p are
// the owners of the points 1, 2, 4, ... after it.
func (r ring) finger(p process.ID, point uint64) process.ID {
	limit := r.way(p, point)
	for i := bits.Len64(limit-1) - 1; i > 0; i-- {
		if f := r.owner((uint64(r.c.Label(p)) + 1<<i) & (1<<r.bits - 1)); r.to(p, f) < limit {
			return f
		}
	}
	return r.after(p)
}

// isFinger reports whether q is a finger of p: whether a point at a power of two lies
// after q's predecessor and not after q.
func (r ring) isFinger(p, q process.ID) bool {
	near := uint64(0)
	if r.before(q) != p {
		near = r.to(p, r.before(q))
	}
	return bits.Len64(r.to(p, q)) > bits.Len64(near)
}

// next returns the node that p would ask next on the path to the owner of a key, given
// the last one that did not answer, or None. After a finger that does not answer it
// tries the nearer fingers. After the nearest finger it tries the following nodes,
// without fingers that have been tried. This order skips no node and needs no memory.
func (r ring) next(p process.ID, key uint64, dead process.ID) process.ID {
	limit := r.way(p, key)
	arrived := limit <= r.to(p, r.after(p)) // the owner is next, if it is up
	switch {
	case dead == process.None && arrived:
		return r.after(p)
	case dead == process.None:
		return r.finger(p, key)
	case arrived:
		return r.after(dead)
	case dead != r.after(p) && r.to(p, dead) < limit && r.isFinger(p, dead):
		return r.finger(p, uint64(r.c.Label(dead)))
	}
	for dead = r.after(dead); dead != p && r.to(p, dead) < limit && r.isFinger(p, dead); {
		dead = r.after(dead)
	}
	return dead
}
