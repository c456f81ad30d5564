package registry

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Order is an order of resources other than by name. The numbers are those of the public
// interface.
type Order uint8

// The orders. Resources that are equal in an order are sorted by name.
const (
	ByQueue Order = 1 + iota // the longest queue first
	ByAge                    // the longest held first, and last what nobody holds

	orders
)

// Valid reports whether there is such an order.
func (o Order) Valid() bool { return o > 0 && o < orders }

// MaxRanked is the most resources that Rank examines.
const MaxRanked = 100_000

// ranked is a resource with its sort key; smaller ones come first.
type ranked struct {
	of   *resource
	rank int64
}

// Rank returns the first limit resources of the class whose names start with prefix, in
// an order, each with at most waiters of its queue, and whether there are more. It returns
// ok = false if there are more than MaxRanked such resources.
func (v *Version) Rank(class Class, prefix string, order Order, limit, waiters int) (list []Resource, more, ok bool) {
	var first []ranked
	seen := 0
	v.names.ascend(&resource{class: class, name: prefix}, func(res *resource) bool {
		if res.class != class || !strings.HasPrefix(res.name, prefix) {
			return false
		}
		seen++
		one := ranked{res, res.rank(order)}
		// A later resource has a larger name, so it goes behind its equals.
		if len(first) == limit && (limit == 0 || one.rank >= first[limit-1].rank) {
			return seen <= MaxRanked
		}
		at, _ := slices.BinarySearchFunc(first, one.rank, func(r ranked, rank int64) int {
			return cmp.Or(cmp.Compare(r.rank, rank), -1)
		})
		if len(first) == limit {
			first = first[:limit-1]
		}
		first = slices.Insert(first, at, one)
		return seen <= MaxRanked
	})
	if seen > MaxRanked {
		return nil, false, false
	}
	for _, r := range first {
		list = append(list, r.of.view(waiters))
	}
	return list, seen > len(list), true
}

// rank returns the sort key of a resource in an order.
func (res *resource) rank(order Order) int64 {
	if order == ByQueue {
		return -int64(len(res.queue()))
	}
	since := int64(math.MaxInt64) // while its guard changes, a lock may have only waiters
	for _, c := range res.holders() {
		since = min(since, c.since)
	}
	return since
}
