package world

import (
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/test/vopr/deadlock"
)

// A worker may keep its hold while the other worker of its program waits. The two workers act like
// one goroutine with two locks that releases the outer lock after the inner one.

// nest sometimes adds the hold of the other worker to the keeps of an acquire. That worker then
// keeps its hold until the acquire has ended.
func (k *worker) nest(r *request, a *api.Acquire) {
	w := k.client.w
	// Below that level, servers do not search for deadlocks, and programs keep nothing.
	if !w.Judge.deadlocks.Searched() || a.GetTry() || w.nests.IntN(8) == 0 {
		return
	}
	for _, other := range k.client.Workers {
		h := other.Hold
		if other == k || h == nil || h.released || !h.Counts() {
			continue
		}
		r.keeps = h
		h.kept++
		a.Keeps = append(a.Keeps, &api.Kept{Class: api.Class(h.Claim.Res.Class), Name: h.Claim.Res.Name, Fence: h.Claim.Fence})
		w.Stats.Nested++
	}
}

// crowded returns a resource. Usually it is one of a few, so that programs often keep what others
// wait for.
func (w *World) crowded(res *Resource) *Resource {
	if !w.Judge.deadlocks.Searched() || w.nests.IntN(8) == 0 {
		return res
	}
	few := [...]int{0, 1, 4, 5, 6} // two locks, readers, a semaphore and an election
	return w.Judge.resources[few[w.nests.IntN(len(few))]]
}

// letGo ends the keeps of an acquire. It releases the holds that became due in the meantime.
func (r *request) letGo() {
	h := r.keeps
	if h == nil {
		return
	}
	r.keeps = nil
	if h.kept--; h.kept == 0 && h.due && h.worker.Hold == h {
		h.worker.release(h)
	}
}

// searched returns the resources as the judge of deadlocks knows them.
func searched(resources []*Resource) (all []deadlock.Resource) {
	for _, r := range resources {
		all = append(all, deadlock.Resource{Class: r.Class, Name: r.Name, Limit: r.room()})
	}
	return all
}
