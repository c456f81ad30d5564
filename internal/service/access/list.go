package access

import (
	"maps"
	"slices"
	"strings"
)

func (r Role) key() string    { return r.Name }
func (b Binding) key() string { return b.Who }
func (t Token) key() string   { return t.ID }

// find returns the value with a key in a list sorted by keys.
func find[V any](list []V, key func(V) string, wanted string) (v V, found bool) {
	i, found := slices.BinarySearchFunc(list, wanted, func(v V, wanted string) int { return strings.Compare(key(v), wanted) })
	if found {
		v = list[i]
	}
	return v, found
}

// merged returns a list, sorted by keys, with values replaced or added, or dropped if they
// are nil. It takes one pass, however many changes there are.
func merged[V any](list []V, key func(V) string, changes map[string]*V) []V {
	if len(changes) == 0 {
		return list
	}
	keys := slices.Sorted(maps.Keys(changes))
	all := make([]V, 0, len(list)+len(keys))
	put := func() {
		if v := changes[keys[0]]; v != nil {
			all = append(all, *v)
		}
		keys = keys[1:]
	}
	for _, v := range list {
		k := key(v)
		for len(keys) > 0 && keys[0] < k {
			put()
		}
		if len(keys) > 0 && keys[0] == k {
			put()
			continue
		}
		all = append(all, v)
	}
	for len(keys) > 0 {
		put()
	}
	return all
}
