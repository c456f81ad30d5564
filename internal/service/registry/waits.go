package registry

import (
	"cmp"
	"slices"
	"strings"
)

// MaxShownHolders bounds the holders listed in a Waiting.
const MaxShownHolders = 16

// Waiting describes a waiter that keeps other holds meanwhile.
type Waiting struct {
	Waiter Waiter
	// Class and Name are those of what it waits for. Holders are the first of its
	// HolderCount holders.
	Class       Class
	Name        string
	Holders     []Holder
	HolderCount int
	Keeps       []Kept
}

// Waits returns at most limit of the waiters that keep other holds meanwhile, sorted by the
// names that they wait for, and whether there are more.
func (v *Version) Waits(limit int) (list []Waiting, more bool) {
	wanted := make(map[ClaimID]bool)
	var names []key
	v.graph.scan(func(e edge) bool {
		switch {
		case wanted[e.wait]:
		case len(wanted) == limit:
			more = true
		default:
			wanted[e.wait] = true
			names = append(names, e.of)
		}
		return !more
	})
	slices.SortFunc(names, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.class, b.class), strings.Compare(a.name, b.name))
	})
	for _, k := range slices.Compact(names) {
		res := v.find(k.class, k.name)
		view := res.view(0)
		for _, c := range res.queue() {
			if wanted[c.id()] {
				list = append(list, Waiting{
					Waiter: c.waiter(), Class: k.class, Name: k.name, Keeps: slices.Clone(c.keeps.holds),
					Holders: view.Holders[:min(len(view.Holders), MaxShownHolders)], HolderCount: len(view.Holders),
				})
			}
		}
	}
	return list, more
}
