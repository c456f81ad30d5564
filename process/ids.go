package process

import "slices"

// Insert returns a rising list of processes with p in it. It allocates only to grow the
// list.
func Insert(list []ID, p ID) []ID {
	if !slices.Contains(list, p) {
		list = append(list, p)
		slices.Sort(list)
	}
	return list
}

// Remove returns a list of processes, each at most once in it, without p. It uses the same
// memory.
func Remove(list []ID, p ID) []ID {
	if i := slices.Index(list, p); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	return list
}
