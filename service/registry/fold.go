package registry

import "github.com/tidwall/btree"

// Apply keeps the size of the state up to date, but neither its digest nor the order
// of ids and names. Sessions and resources that have changed are put on a list, and
// fold brings digest and order up to date when either is asked for, or the list is
// long. What is made and gone in between is never hashed, and never put in order.

// mostChanges is how long the list may be after an entry. It bounds what Freeze and
// Digest have to do, which takes about a microsecond for each change.
const mostChanges = 128

// changes are the sessions and resources that changed since the last fold. No version
// has them: they were made or thawed since.
type changes struct {
	sessions  []*sessionState
	resources []*resource
}

func (c *changes) len() int { return len(c.sessions) + len(c.resources) }

// session adds a session, which is not on the list.
func (c *changes) session(s *session) {
	s.changed = true
	c.sessions = append(c.sessions, s.sessionState)
}

// resource adds a resource, which is not on the list.
func (c *changes) resource(res *resource) {
	res.changed = true
	c.resources = append(c.resources, res)
}

// mark says of a session or a resource whether it is on the list of changes, and where
// it is in the order.
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

// fold brings the digest, and the order of ids and names, up to date.
func (r *Registry) fold() {
	sessions, resources := r.changed.sessions, r.changed.resources
	for _, res := range resources {
		if res.gone() {
			r.resources.remove(res.key())
		}
		r.tally.countGrants(res)
		res.countQueue()
	}
	r.tally.fence = r.fence()
	for _, st := range sessions {
		r.tally.countSession(st.of)
	}
	r.tally.countPast(&r.recent)
	order(r.byID, sessions, (*sessionState).gone)
	order(r.names, resources, func(res *resource) bool { return r.resources.get(res.key()) == nil })
	clear(sessions)
	clear(resources)
	r.changed = changes{sessions[:0], resources[:0]}
}

// ordered is what an order has.
type ordered interface {
	gone() bool
	marked() *mark
}

func newTree[T ordered](less func(a, b T) bool) *btree.BTreeG[T] {
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

// order brings a tree up to date with what has changed. Over reports of what is in the
// tree whether it has to go.
func order[T ordered](tree *btree.BTreeG[T], changed []T, over func(T) bool) {
	gone := 0
	for _, e := range changed {
		if e.gone() && e.marked().place != absent {
			gone++
		}
	}
	// It is faster to keep some than to take many out one by one.
	many := 4*gone > tree.Len()
	switch {
	case gone == tree.Len():
		tree.Clear()
	case many:
		keep(tree, over)
	}
	for _, e := range changed {
		m := e.marked()
		m.changed = false
		switch {
		case !e.gone():
			if m.place != present {
				tree.Set(e)
				m.place = present
			}
		case m.place != absent && !many:
			tree.Delete(e)
		}
	}
}

// keep makes a tree anew from what stays.
func keep[T ordered](tree *btree.BTreeG[T], over func(T) bool) {
	var stays []T
	tree.Scan(func(e T) bool {
		if !over(e) {
			stays = append(stays, e)
		}
		return true
	})
	tree.Clear()
	for _, e := range stays {
		tree.Load(e)
	}
}
