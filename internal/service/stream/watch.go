package stream

import (
	"maps"
	"slices"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/registry"
)

const (
	// WatchPage is the number of resources in one message of a Watch, while it reports everything.
	WatchPage = 1000
	// DefaultWaiters is the default number of waiters reported for each resource.
	DefaultWaiters = 100
)

// Election reports who leads an election.
type Election struct {
	Name string
	last *api.Observation
}

// News returns the state of the election in a version, or nil if it is the same as the state
// returned last.
func (e *Election) News(state *registry.Version) *api.Observation {
	now := &api.Observation{Name: e.Name}
	leader, elected := state.Leader(e.Name)
	if now.Elected = elected; elected {
		now.Leader = HolderProto(&leader)
	}
	if e.last != nil && !Differ(e.last, now) {
		return nil
	}
	e.last = now
	return now
}

// Differ reports whether the leader or its value differ.
func Differ(a, b *api.Observation) bool {
	return a.GetElected() != b.GetElected() || a.GetLeader().GetFence() != b.GetLeader().GetFence() ||
		string(a.GetLeader().GetValue()) != string(b.GetLeader().GetValue())
}

// Watch reports which resources of a class are held, among those whose names start with a
// prefix.
type Watch struct {
	Class  registry.Class
	Prefix string
	// Waiters is the number of waiters reported for each resource.
	Waiters int
	// Readable, if not nil, returns which names may be reported by the rules of a version; nil
	// means all.
	Readable func(*registry.Version) func(name string) bool

	revision uint64          // of the rules of the last version
	known    map[string]bool // resources that were reported and are not gone
	// While everything is reported, after is the name that was reported last, and gone has
	// the known names that have not occurred.
	after string
	gone  map[string]bool
}

// Begin starts to report everything, page by page: at first, and when it is not known what
// changed.
func (w *Watch) Begin() {
	if w.known == nil {
		w.known = make(map[string]bool)
	}
	w.after, w.gone = "", maps.Clone(w.known)
}

// Page returns the next page of everything, and whether more follow. There is a first
// message even if nothing is held, so that its reader knows that it has seen everything.
func (w *Watch) Page(state *registry.Version) (changes *api.Changes, more bool) {
	changes = &api.Changes{Reset_: w.after == "" && len(w.known) == 0}
	page, more := state.List(w.Class, w.Prefix, w.after, WatchPage, w.Waiters)
	may := w.readable(state)
	for i := range page {
		if w.after = page[i].Name; !may(w.after) {
			continue
		}
		changes.Resources = append(changes.Resources, ResourceProto(&page[i]))
		w.known[w.after] = true
		delete(w.gone, w.after)
	}
	if changes.More = more; !more {
		changes.Gone = slices.Sorted(maps.Keys(w.gone))
		for _, name := range changes.Gone {
			delete(w.known, name)
		}
	}
	return changes, more
}

// readable returns which names may be reported for a version.
func (w *Watch) readable(state *registry.Version) func(name string) bool {
	w.revision = state.Rules().Revision()
	if w.Readable != nil {
		if may := w.Readable(state); may != nil {
			return may
		}
	}
	return func(string) bool { return true }
}

// Reruled reports whether the rules have changed since the last version. Then everything has to
// be reported again, and resources that may no longer be read are gone.
func (w *Watch) Reruled(state *registry.Version) bool {
	return w.Readable != nil && state.Rules().Revision() != w.revision
}

// Changed returns the resources with the given names in a version, or nil if there is
// nothing to report.
func (w *Watch) Changed(state *registry.Version, names []string) *api.Changes {
	changes := new(api.Changes)
	may := w.readable(state)
	for _, name := range names {
		res, held, _ := state.Explain(w.Class, name, w.Waiters)
		if held && may(name) {
			w.known[name] = true
			changes.Resources = append(changes.Resources, ResourceProto(&res))
		} else if w.known[name] {
			delete(w.known, name)
			changes.Gone = append(changes.Gone, name)
		}
	}
	if len(changes.GetResources())+len(changes.GetGone()) == 0 {
		return nil
	}
	return changes
}

// Known returns how many resources are held, as far as was reported.
func (w *Watch) Known() int { return len(w.known) }
