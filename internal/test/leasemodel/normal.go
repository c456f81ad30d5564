package leasemodel

import "cmp"

// normalize renames servers and clients so that states which differ in their names
// alone are mostly one. Names count in the founding, and in a search of the bound.
func (w *world) normalize() {
	if !w.symmetric {
		return
	}
	for i := range w.servers {
		if s := &w.servers[i]; (s.phase == fresh || s.phase == recorded) && !s.redrew {
			return
		}
	}
	for i := 1; i < servers; i++ {
		for j := i; j > 0 && compareServers(&w.servers[j], &w.servers[j-1]) < 0; j-- {
			w.swapServers(j, j-1)
		}
	}
	if w.clientCount == 2 && !w.bound && compareClients(&w.clients[0], &w.clients[1]) > 0 {
		w.swapClients()
	}
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

func compareServers(a, b *server) int {
	flags := func(s *server) int {
		return int(s.role)<<3 | number(s.behind)<<2 | number(s.redrew)<<1
	}
	return cmp.Or(cmp.Compare(a.term, b.term), cmp.Compare(flags(a), flags(b)), cmp.Compare(a.phase, b.phase), cmp.Compare(len(a.suffix), len(b.suffix)))
}

func compareClients(a, b *client) int {
	return cmp.Or(cmp.Compare(a.status, b.status), cmp.Compare(a.claim, b.claim), cmp.Compare(a.left, b.left),
		cmp.Compare(a.renewal.mail, b.renewal.mail), cmp.Compare(a.renewal.age, b.renewal.age), cmp.Compare(number(a.late), number(b.late)))
}

// swapServers gives two servers each other's names, everywhere.
func (w *world) swapServers(i, j int) {
	w.servers[i], w.servers[j] = w.servers[j], w.servers[i]
	for c := range w.clients {
		at := &w.clients[c].renewal.at
		*at = swapped(*at, i, j)
	}
	for k := range w.servers {
		if s := &w.servers[k]; s.record > 0 {
			s.record = swapBits(s.record-1, i, j) + 1
		}
	}
}

// swapClients does that with the clients.
func (w *world) swapClients() {
	w.clients[0], w.clients[1] = w.clients[1], w.clients[0]
	r := &w.registry
	r.status[0], r.status[1] = r.status[1], r.status[0]
	r.remaining[0], r.remaining[1] = r.remaining[1], r.remaining[0]
	r.asked[0], r.asked[1] = r.asked[1], r.asked[0]
	r.holder, r.waiter = swapped(r.holder, 0, 1), swapped(r.waiter, 0, 1)
	for i := range w.servers {
		s := &w.servers[i]
		s.leases[0], s.leases[1] = s.leases[1], s.leases[0]
		s.seen = swapBits(swapBits(s.seen, 0, 1), maxClients, maxClients+1)
		s.kept = swapBits(s.kept, 0, 1)
		for k := range s.suffix {
			if e := &s.suffix[k]; e.op != opFirst {
				e.client = 1 - e.client
			}
		}
	}
}

// swapped renames a number that is a name plus 1, or 0.
func swapped(v, i, j int) int {
	switch v {
	case i + 1:
		return j + 1
	case j + 1:
		return i + 1
	}
	return v
}

func swapBits(set, i, j int) int {
	if set>>i&1 != set>>j&1 {
		set ^= 1<<i | 1<<j
	}
	return set
}
