package registry

import (
	"maps"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/registry/expect"
	"github.com/conclave-io/conclave/internal/service/registry/sorted"
	"github.com/conclave-io/conclave/internal/service/settings"
	"github.com/conclave-io/conclave/internal/service/version"
)

// Version is the replicated state at one time, sorted by name. It never changes: any goroutine
// may read it while the registry continues. The registry and its versions share everything that
// has not changed since.
type Version struct {
	head
	totals
	// size is the approximate size of the result of Encode.
	size    int
	byID    *sorted.Set[*sessionState]
	names   *sorted.Set[*resource]
	graph   *sorted.Set[edge]
	lingers lingers
	// past has the history of resources, in the order in which their last holds ended.
	past []*record
}

// head is the state without sessions, resources and the past.
type head struct {
	// level says which formats and which behaviour are in force. Stay means that it must not
	// rise by itself.
	level uint32
	stay  bool
	// now is the replicated time of the newest entry; it never goes back. wall is the wall
	// clock of its leader, which may be anything.
	now, wall int64
	// renewals counts the renewals of all sessions, so that a verdict about an ended session
	// cannot match a session that was opened later under the same id.
	renewals uint64
	members  map[uint64]Member // replaced, never changed
	home     bool              // see Home
	guarded  *guarded          // seats and guards, nil if there never were any; changed after thawGuarded
	rules    *access.State     // nil below the level that has them; replaced, never changed
	trail    *trail            // nil if nothing is recorded; replaced, never changed
	settings *settings.State   // nil if they are the defaults; replaced, never changed
	backup   int64             // see LastBackup
	expected *expect.Rules     // nil if no name is expected to be held; replaced, never changed
}

// Freeze returns the present state, which the caller may keep for any time. It takes some
// microseconds, however large the state is, and folds the last changes in. Whatever changes
// afterwards is copied first.
func (r *Registry) Freeze() *Version {
	if r.frozen == nil {
		r.fold()
		r.frozen = &Version{head: r.head, totals: r.totals, size: r.Size(), byID: r.byID.Copy(), names: r.names.Copy(), graph: r.graph.Copy(), lingers: r.lingers.copy(), past: r.recent.inOrder()}
		r.generation++
	}
	return r.frozen
}

// Level returns the level of the formats and the behaviour in force, and whether it must not
// rise by itself.
func (h *head) Level() (level uint32, stays bool) { return h.level, h.stay }

// Uses names what in the state requires the given level.
func (v *Version) Uses(level uint32) (features []string) {
	for _, f := range featuresOf {
		if name := f.used(v); f.level == level && name != "" {
			features = append(features, name)
		}
	}
	return features
}

// feature is something that the state can have from a level on. The function returns the name
// of an instance of it, such as a lock, or "".
type feature struct {
	level uint32
	used  func(*Version) string
}

// featuresOf are the features of all levels above the first.
var featuresOf = []feature{{version.Keeps, (*Version).keeper}, {version.Guarded, (*Version).anyGuard}, {version.Access, (*Version).ruled}, {version.Linger, (*Version).lingerer}, {version.Linger, (*Version).expectation}, {version.Settings, (*Version).setting}}

// Used reports whether a session was ever opened.
func (h *head) Used() bool { return h.renewals > 0 }

// Time returns the replicated time of the newest entry.
func (h *head) Time() int64 { return h.now }

// Member returns the record of a server.
func (h *head) Member(id uint64) (Member, bool) {
	m, ok := h.members[id]
	return m, ok
}

// Members returns all recorded servers, including removed ones, by id.
func (h *head) Members() []Member {
	all := make([]Member, 0, len(h.members))
	for _, id := range slices.Sorted(maps.Keys(h.members)) {
		all = append(all, h.members[id])
	}
	return all
}

// List returns at most limit resources of the class whose names start with prefix and
// come after the name after, sorted by name, each with at most waiters of its queue,
// and whether there are more.
func (v *Version) List(class Class, prefix, after string, limit, waiters int) (list []Resource, more bool) {
	v.Visit(class, prefix, after, waiters, func(res *Resource) bool {
		if more = len(list) == limit; !more {
			list = append(list, res.clone())
		}
		return !more
	})
	return list, more
}

// Visit calls see for the resources that List would return without a limit, until see returns
// false. The argument of see is overwritten for the next resource: a list of a million
// resources would produce as much garbage.
func (v *Version) Visit(class Class, prefix, after string, waiters int, see func(*Resource) bool) {
	var view Resource
	v.each(class, prefix, max(prefix, after), func(k key, res *resource, closed bool) bool {
		if k.name <= after {
			return true
		}
		v.describe(k, res, closed, &view, waiters)
		return see(&view)
	})
}

// each calls see for the names of a class from one on that start with prefix, until see returns
// false: with the resource, or nil if nobody holds the name or waits for it, and whether places of it
// linger.
func (v *Version) each(class Class, prefix, from string, see func(k key, res *resource, closed bool) bool) {
	next, stop := v.lingers.names(class, from)
	defer stop()
	closed, some := next()
	going := true
	v.names.Ascend(&resource{class: class, name: from}, func(res *resource) bool {
		if res.class != class || !strings.HasPrefix(res.name, prefix) {
			return false
		}
		for ; going && some && closed < res.name; closed, some = next() {
			going = see(key{class, closed}, nil, true)
		}
		also := some && closed == res.name
		if also {
			closed, some = next()
		}
		going = going && see(res.key(), res, also)
		return going
	})
	for ; going && some && strings.HasPrefix(closed, prefix); closed, some = next() {
		going = see(key{class, closed}, nil, true)
	}
}

// describe fills in the description of a resource, which may be nil, and of the places of it that
// linger, if any do.
func (v *Version) describe(k key, res *resource, closed bool, view *Resource, waiters int) {
	if res != nil {
		res.describe(view, waiters)
	} else {
		*view = Resource{Name: k.name, Class: k.class, Limit: v.lingers.first(k).limit, Holders: view.Holders[:0], Waiters: view.Waiters[:0]}
	}
	if view.Closed = nil; closed {
		for _, l := range v.lingers.of(k) {
			view.Closed = append(view.Closed, l.shown(&v.head))
		}
	}
}

// find returns a resource, or nil if nobody holds it.
func (v *Version) find(class Class, name string) *resource {
	return v.names.Get(&resource{class: class, name: name})
}

// Explain returns a resource, if anybody holds it or places of it linger, with at most the given
// number of waiters, and how its last holds ended, the newest first.
func (v *Version) Explain(class Class, name string, waiters int) (res Resource, held bool, past []Ended) {
	k := key{class, name}
	if found := v.find(class, name); found != nil || v.lingers.first(k) != nil {
		v.describe(k, found, true, &res, waiters)
		held = true
	}
	at := slices.IndexFunc(v.past, func(rec *record) bool { return rec.key() == k })
	if at >= 0 {
		past = v.past[at].inOrder()
		slices.Reverse(past)
	}
	return res, held, past
}

// Leader returns the leader of an election, if there is one.
func (v *Version) Leader(name string) (Holder, bool) {
	res := v.find(Election, name)
	if res == nil || len(res.holders()) == 0 {
		return Holder{}, false
	}
	return res.holders()[0].holder(), true
}

// Sessions returns at most limit sessions whose ids come after the given one,
// by id, and whether there are more.
func (v *Version) Sessions(after SessionID, limit int) (list []Session, more bool) {
	v.byID.Ascend(&sessionState{of: &session{id: after}}, func(s *sessionState) bool {
		switch {
		case s.of.id == after:
			return true
		case len(list) == limit:
			more = true
			return false
		}
		list = append(list, s.view())
		return true
	})
	return list, more
}

// Each calls f for every session, in the order of ids.
func (v *Version) Each(f func(Session)) {
	v.byID.Scan(func(s *sessionState) bool {
		f(s.view())
		return true
	})
}

// Counts returns the totals.
func (v *Version) Counts() Counts { return v.counts(v.byID.Len()) }
