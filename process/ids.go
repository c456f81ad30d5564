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

// Remove returns a list of processes without p, however often it was in it: a voter whose messages
// overtake each other may have queued it twice. It uses the same memory.
func Remove(list []ID, p ID) []ID {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i] == p {
			list = slices.Delete(list, i, i+1)
		}
	}
	return list
}
