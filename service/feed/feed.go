// Package feed says what those are told who observe elections and watch locks, without
// input and output: the host reads versions of the state, learns which names changed,
// and moves messages. Package server drives it with goroutines and gRPC, and
// internal/vopr in its simulated world.
//
// # What is promised
//
// The versions that a feed is given are in order, so what it tells is in order, too. It
// tells the state as of a version: what came and went between two of them is told once,
// as it is then, or not at all.
package feed

import (
	"maps"
	"slices"

	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/convert"
	"github.com/conclave-io/conclave/service/registry"
)

const (
	// PageSize is how many resources one message of a Watch has at most, if all are told.
	PageSize = 1000
	// Waiters is how many waiters of each are told if nobody says how many.
	Waiters = 100
)

// Election tells who leads an election.
type Election struct {
	Name string
	last *api.Observation
}

// News returns the state of the election as of a version, or nil if that is what it
// returned last.
func (e *Election) News(state *registry.Version) *api.Observation {
	now := &api.Observation{Name: e.Name}
	leader, elected := state.Leader(e.Name)
	if now.Elected = elected; elected {
		now.Leader = convert.Holder(&leader)
	}
	if e.last != nil && !Differ(e.last, now) {
		return nil
	}
	e.last = now
	return now
}

// Differ reports whether somebody else leads, or with another value.
func Differ(a, b *api.Observation) bool {
	return a.GetElected() != b.GetElected() || a.GetLeader().GetFence() != b.GetLeader().GetFence() ||
		string(a.GetLeader().GetValue()) != string(b.GetLeader().GetValue())
}

// Watch tells which resources of a class are held, of those whose names begin with a
// prefix.
type Watch struct {
	Class  registry.Class
	Prefix string
	// Waiters is how many waiters of each are told.
	Waiters int
	// Readable, if not nil, returns which names are told by the rules of a version; nil for
	// all.
	Readable func(*registry.Version) func(name string) bool

	revision uint64          // of the rules that the last version was told by
	known    map[string]bool // those that were told and are not gone
	// While everything is told, after is the name that was told last, and gone those known
	// that have not turned up.
	after string
	gone  map[string]bool
}

// Begin has everything told, page by page: at first, and when it is not known what
// changed.
func (w *Watch) Begin() {
	if w.known == nil {
		w.known = make(map[string]bool)
	}
	w.after, w.gone = "", maps.Clone(w.known)
}

// Page returns the next page of everything, and whether more follow. The first message
// is one even if nothing is held: its reader then knows that it has seen everything.
func (w *Watch) Page(state *registry.Version) (changes *api.Changes, more bool) {
	changes = &api.Changes{Reset_: w.after == "" && len(w.known) == 0}
	page, more := state.List(w.Class, w.Prefix, w.after, PageSize, w.Waiters)
	may := w.readable(state)
	for i := range page {
		if w.after = page[i].Name; !may(w.after) {
			continue
		}
		changes.Resources = append(changes.Resources, convert.Resource(&page[i]))
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

// readable returns which names are told as of a version.
func (w *Watch) readable(state *registry.Version) func(name string) bool {
	w.revision = state.Rules().Revision()
	if w.Readable != nil {
		if may := w.Readable(state); may != nil {
			return may
		}
	}
	return func(string) bool { return true }
}

// Reruled reports whether the rules have changed since a version was told last: then
// everything is to be told again, and what may not be read any more is gone.
func (w *Watch) Reruled(state *registry.Version) bool {
	return w.Readable != nil && state.Rules().Revision() != w.revision
}

// Changed returns the resources of the given names as of a version, or nil if there is
// nothing to tell.
func (w *Watch) Changed(state *registry.Version, names []string) *api.Changes {
	changes := new(api.Changes)
	may := w.readable(state)
	for _, name := range names {
		res, held, _ := state.Explain(w.Class, name, w.Waiters)
		if held && may(name) {
			w.known[name] = true
			changes.Resources = append(changes.Resources, convert.Resource(&res))
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

// Known returns how many resources are held, as far as was told.
func (w *Watch) Known() int { return len(w.known) }
