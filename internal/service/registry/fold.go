package registry

// Apply keeps the size of the state up to date, but not its digest, nor the order of ids and
// names. Changed sessions and resources are put on a list. When the digest or the order is
// needed, or the list is long, fold updates both. What is created and removed in between is
// never hashed or sorted.

// mostChanges bounds the list after an entry. So it bounds the work of Freeze and Digest, about
// a microsecond for each change. It is large enough for some hundred clients that take and release
// the same locks again and again: between two folds, each lock is then on the list once.
const mostChanges = 512

// changes are the sessions and resources that changed since the last fold. No version shares
// them, because they were created or thawed since. Sessions that ended since may be shared by
// versions, and may also be among the changed ones.
type changes struct {
	sessions, ended []*sessionState
	resources       []*resource
}

func (c *changes) len() int { return len(c.sessions) + len(c.ended) + len(c.resources) }

// session adds a session that is not on the list.
func (c *changes) session(s *session) {
	s.changed = true
	c.sessions = append(c.sessions, s.sessionState)
}

// resource adds a resource that is not on the list.
func (c *changes) resource(res *resource) {
	res.changed = true
	c.resources = append(c.resources, res)
}

// mark says whether a session or resource is on the list of changes, and whether it is in
// the order.
type mark struct {
	changed bool
	place   position
}

func (m *mark) marked() *mark { return m }

type position uint8

const (
	absent   position = iota
	outdated          // there is a version's copy of it
	present
)

// fold updates the digest, and the order of ids and names.
func (r *Registry) fold() {
	sessions, ended := r.changed.sessions, r.changed.ended
	held, free := r.partition()
	for _, res := range held {
		r.tally.countGrants(res)
		res.countQueue()
	}
	r.tally.fence = r.fence()
	for _, st := range sessions {
		r.tally.countSession(st.of)
	}
	r.tally.countPast(&r.recent)
	if many(len(free), r.resources.len()) {
		r.resources.prune((*resource).gone)
	} else {
		for _, res := range free {
			r.resources.remove(res.key())
		}
	}
	order(r.byID, sessions, ended, (*sessionState).gone)
	order(r.names, held, free, func(res *resource) bool {
		if res.generation == r.generation {
			return res.gone()
		}
		return r.resources.get(res.key()) == nil // a version has this one
	})
	clear(sessions)
	clear(ended)
	clear(r.changed.resources)
	r.changed = changes{sessions[:0], ended[:0], r.changed.resources[:0]}
}

// partition splits the changed resources into those that somebody holds and those that
// nobody holds any more.
func (r *Registry) partition() (held, free []*resource) {
	all, n := r.changed.resources, 0
	for i, res := range all {
		if !res.gone() {
			all[i], all[n] = all[n], res
			n++
		}
	}
	return all[:n], all[n:]
}

// ordered is an entry of an order.
type ordered interface {
	gone() bool
	marked() *mark
}

// many reports whether rebuilding an order is faster than removing the entries that are gone
// one by one.
func many(gone, all int) bool { return 4*gone > all }

// order updates entries with what has changed and what is gone. Over reports whether an
// entry has to be removed.
func order[T ordered](entries *sorted[T], changed, gone []T, over func(T) bool) {
	found := 0
	for _, e := range gone {
		if e.marked().place != absent {
			found++
		}
	}
	switch {
	case found == entries.len():
		entries.clear()
	case many(found, entries.len()):
		keep(entries, over)
	default:
		for _, e := range gone {
			if e.marked().place != absent {
				entries.remove(e)
			}
		}
	}
	for _, e := range changed {
		m := e.marked()
		m.changed = false
		if !e.gone() && m.place != present {
			entries.set(e)
			m.place = present
		}
	}
}

// keep rebuilds the order with the entries that stay.
func keep[T ordered](entries *sorted[T], over func(T) bool) {
	var stays []T
	entries.scan(func(e T) bool {
		if !over(e) {
			stays = append(stays, e)
		}
		return true
	})
	entries.fill(stays)
}
