package world

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/version"
)

// A worker may keep its hold while the other worker of its program waits. The two workers act like
// one goroutine with two locks that releases the outer lock after the inner one.

// nest sometimes adds the hold of the other worker to the keeps of an acquire. That worker then
// keeps its hold until the acquire has ended.
func (k *worker) nest(r *request, a *api.Acquire) {
	w := k.client.w
	// Below that level, servers do not search for deadlocks, and programs keep nothing.
	if !w.Judge.tested.looks() || a.GetTry() || w.nests.IntN(8) == 0 {
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
	if !w.Judge.tested.looks() || w.nests.IntN(8) == 0 {
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

// pretested is the state of a server that applies the log command by command. Before each request
// to acquire, it simulates the future: all holders release, except those whose owners wait, and
// waiters are granted in order. A claim that is still waiting at the end waits forever. So the
// judge knows whether the request must be refused. It does not use the graph that the servers
// search.
type pretested struct {
	reg  *registry.Registry // nil if entries are missing
	keep map[registry.ClaimID][]registry.Kept
	last uint64
}

func newPretested() *pretested {
	return &pretested{reg: registry.New(), keep: make(map[registry.ClaimID][]registry.Kept)}
}

// looks reports whether the servers search for deadlocks at the level of the newest entry.
func (p *pretested) looks() bool {
	if p == nil || p.reg == nil {
		return false
	}
	level, _ := p.reg.Level()
	return level >= version.Keeps
}

// follow applies the entries that a server was the first to apply.
func (p *pretested) follow(s *Server, to uint64) {
	for index := p.last + 1; index <= to && p.reg != nil; index++ {
		e := s.Log.Entry(index)
		if e == nil {
			if index > 1 {
				p.reg = nil // it came with a snapshot, which does not contain the keeps
			}
			continue // the state at the founding
		}
		p.apply(s.w, e)
	}
	p.last = to
}

func (p *pretested) apply(w *World, e *raftpb.Entry) {
	if e.GetType() != raftpb.EntryNormal || len(e.GetData()) == 0 {
		return
	}
	batch, err := registry.DecodeBatch(e.GetData())
	if err != nil {
		w.Violate("log", "a committed entry is not read: %v", err)
		return
	}
	if !w.Plan.Live {
		p.inSteps(w, e.GetTerm(), &batch)
		return
	}
	// An epoch begins only at the end of an entry. Applied step by step, it might begin earlier,
	// and the fences would differ from those that clients receive.
	whole := p.reg
	if p.reg, err = registry.Decode(whole.Freeze().Encode()); err != nil {
		w.Violate("state", "a state is not read: %v", err)
		return
	}
	p.inSteps(w, e.GetTerm(), &batch)
	p.reg = whole
	p.reg.Apply(e.GetTerm(), &batch, new(registry.Effects))
}

// inSteps applies an entry command by command, and judges each request to acquire.
func (p *pretested) inSteps(w *World, term uint64, batch *registry.Batch) {
	for i := range batch.Commands {
		c := &batch.Commands[i]
		fresh := c.Op == registry.OpAcquire && !p.reg.Carried(c.Session, c.Sequence)
		forever := fresh && p.forever(w, c)
		var fx registry.Effects
		p.reg.Apply(term, &registry.Batch{Time: batch.Time, Wall: batch.Wall, Commands: batch.Commands[i : i+1]}, &fx)
		for _, o := range fx.Outcomes {
			if fresh && o.Session == c.Session && o.Sequence == c.Sequence {
				p.judge(w, c, o.Result.Code, forever)
			}
		}
	}
}

// judge compares the answer to a request with the expected one.
func (p *pretested) judge(w *World, c *registry.Command, code registry.Code, forever bool) {
	switch {
	case code == registry.Queued && forever:
		w.Violate("deadlock", "request %d of %v waits for %q, and will forever: it completes a deadlock", c.Sequence, c.Session, c.Name)
	case code == registry.Deadlocked && !forever:
		w.Violate("deadlock", "request %d of %v for %q is refused, and would not wait forever", c.Sequence, c.Session, c.Name)
	case code == registry.Queued && p.searches(c):
		p.keep[registry.ClaimID{Session: c.Session, Sequence: c.Sequence}] = c.Keeps
	case code == registry.Deadlocked:
		w.Stats.Deadlocks++
	}
}

// searches reports whether a request has keeps, at a level that supports them.
func (p *pretested) searches(c *registry.Command) bool {
	return p.looks() && len(c.Keeps) > 0
}

// simResource is a resource in the simulated future.
type simResource struct {
	class          registry.Class
	name           string
	limit          int
	holders, queue []simClaim
}

type simClaim struct {
	id      registry.ClaimID
	fence   uint64
	shared  bool
	revoked bool
	keeps   []registry.Kept
}

// forever simulates the future with a request that is about to be applied, and reports whether the
// request waits forever. If another claim waits forever although this one does not, that is a
// violation.
func (p *pretested) forever(w *World, c *registry.Command) bool {
	if !p.searches(c) || c.Try {
		return false
	}
	id := registry.ClaimID{Session: c.Session, Sequence: c.Sequence}
	var all []*simResource
	for _, res := range w.Judge.resources {
		r := p.enter(res)
		if r.class == c.Class && r.name == c.Name {
			r.queue = append(r.queue, simClaim{id: id, shared: c.Shared, keeps: c.Keeps})
		}
		all = append(all, r)
	}
	simulate(all)
	found, others := false, false
	for _, r := range all {
		for _, g := range r.queue {
			found = found || g.id == id
			others = others || g.id != id
		}
	}
	if others && !found {
		w.Violate("deadlock", "before request %d of %v there is a deadlock: %+v", c.Sequence, c.Session, all)
	}
	return found
}

// enter returns the present state of a resource.
func (p *pretested) enter(res *Resource) *simResource {
	view, _, _ := p.reg.Freeze().Explain(res.Class, res.Name, 1000)
	r := &simResource{class: res.Class, name: res.Name, limit: res.room()}
	for _, h := range view.Holders {
		r.holders = append(r.holders, simClaim{fence: h.Fence, shared: h.Shared, revoked: h.Revoked})
	}
	for _, q := range view.Waiters {
		id := registry.ClaimID{Session: q.Session, Sequence: q.Sequence}
		r.queue = append(r.queue, simClaim{id: id, shared: q.Shared, keeps: p.keep[id]})
	}
	return r
}

// simulate runs the simulated future: all claims that are not kept are released, and waiters are granted in order,
// until nothing changes.
func simulate(all []*simResource) {
	for more := true; more; {
		more = false
		for _, r := range all {
			before := len(r.holders)
			r.holders = slices.DeleteFunc(r.holders, func(h simClaim) bool { return h.revoked || !r.kept(all, h.fence) })
			more = more || len(r.holders) < before
			for len(r.queue) > 0 && r.fits(r.queue[0].shared) {
				// Nobody keeps the new hold, so the next step may release it.
				r.holders = append(r.holders, simClaim{shared: r.queue[0].shared})
				r.queue = r.queue[1:]
				more = true
			}
		}
	}
}

func (r *simResource) fits(shared bool) bool {
	if len(r.holders) == 0 {
		return true
	}
	if shared != r.holders[0].shared {
		return false
	}
	return shared || len(r.holders) < r.limit
}

// kept reports whether a waiting claim keeps a hold of the resource.
func (r *simResource) kept(all []*simResource, fence uint64) bool {
	k := registry.Kept{Class: r.class, Name: r.name, Fence: fence}
	for _, other := range all {
		for _, g := range other.queue {
			if slices.Contains(g.keeps, k) {
				return true
			}
		}
	}
	return false
}
