package replica

import "github.com/conclave-io/conclave/internal/service/registry"

// turns is a set of members that take turns by deficit round robin: those that have not ended a
// turn, which go first, and those with a backlog, to which half of the room is left.
type turns[T any] struct{ fresh, backlog ring[T] }

func (t *turns[T]) cost() int { return t.fresh.cost + t.backlog.cost }

// member is what turns and longest know of a T.
type member[T any] struct {
	of         *T
	ring       *ring[T]
	next, prev *member[T]
	bytes      int
	cost       int
	// deficit is how much the member may still draw in this turn, if begun is set. It is
	// negative if the last request was larger.
	deficit int
	begun   bool
	at      int    // in longest
	number  uint64 // no two members have the same
}

func (m *member[T]) grow(bytes, cost int) {
	m.bytes += bytes
	m.cost += cost
	m.ring.cost += cost
}

// take appends requests of a member that cost at most room. If it must, and the turn allows it, it
// takes one at least. It unlinks the member if that is empty then.
type take[T any] func(of *T, entry []registry.Command, room int, must bool) []registry.Command

// draw appends requests that cost at most room, which is positive, but one at least of those with a
// backlog and one of the others, if they had any before.
func (t *turns[T]) draw(entry []registry.Command, room int, from take[T]) []registry.Command {
	before, kept := t.cost(), min(room/2, t.backlog.cost)
	entry = t.serve(&t.fresh, quantum, entry, room-kept, from)
	if left := room - (before - t.cost()); left > 0 || kept > 0 {
		entry = t.serve(&t.backlog, backlogQuantum, entry, left, from)
	}
	return entry
}

// serve gives turns to the members of one ring until there is no more room.
func (t *turns[T]) serve(r *ring[T], turn int, entry []registry.Command, room int, from take[T]) []registry.Command {
	for must := true; r.first != nil; {
		m := r.first
		if !m.begun {
			m.begun, m.deficit = true, m.deficit+turn
		}
		before, total := m.cost, r.cost
		entry = from(m.of, entry, room, must)
		drawn := total - r.cost
		must = must && drawn == 0
		room -= drawn
		if drawn == before {
			continue // it is empty, and was unlinked
		}
		if m.deficit -= drawn; room < m.deficit && !must {
			return entry // its turn continues in the next entry
		}
		m.begun = false
		r.unlink(m)
		t.backlog.link(m)
	}
	return entry
}

// ring is members in the order of their turns.
type ring[T any] struct {
	first *member[T] // whose turn it is
	cost  int        // of all requests of the members
}

// link adds a member at the end of the ring.
func (r *ring[T]) link(m *member[T]) {
	m.ring = r
	r.cost += m.cost
	if r.first == nil {
		m.next, m.prev, r.first = m, m, m
		return
	}
	m.next, m.prev = r.first, r.first.prev
	m.prev.next, m.next.prev = m, m
}

func (r *ring[T]) unlink(m *member[T]) {
	r.cost -= m.cost
	if r.first == m {
		r.first = m.next
	}
	if r.first == m {
		r.first = nil
	}
	m.prev.next, m.next.prev = m.next, m.prev
}

// longest is a heap with the member that has the most bytes on top. Among members with
// equally many bytes, it is the newest, which has waited the shortest time.
type longest[T any] []*member[T]

func (h longest[T]) Len() int { return len(h) }

func (h longest[T]) Less(i, j int) bool {
	if h[i].bytes != h[j].bytes {
		return h[i].bytes > h[j].bytes
	}
	return h[i].number > h[j].number
}

func (h longest[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *longest[T]) Push(x any) {
	m := x.(*member[T])
	m.at = len(*h)
	*h = append(*h, m)
}

func (h *longest[T]) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
