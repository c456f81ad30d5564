// Package deadlock judges which requests of a run complete a deadlock.
package deadlock

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/version"
	"github.com/conclave-io/conclave/internal/test/vopr/events"
	"github.com/conclave-io/conclave/internal/test/vopr/ledger"
)

// Judge is the state of a server that applies the log command by command. Before each request
// to acquire, it simulates the future: all holders release, except those whose owners wait, and
// waiters are granted in order. A claim that is still waiting at the end waits forever. So the
// judge knows whether the request must be refused. It does not use the graph that the servers
// search.
type Judge struct {
	run       *events.Run
	resources []Resource
	epochs    bool
	reg       *registry.Registry // nil if entries are missing
	keep      map[registry.ClaimID][]registry.Kept
	last      uint64
}

// Resource is a lock or an election that clients use. Limit is how many of them may hold it if it is
// not shared.
type Resource struct {
	Class registry.Class
	Name  string
	Limit int
}

// New returns the judge of a run. epochs means that algorithms guard names, so that epochs begin.
func New(run *events.Run, resources []Resource, epochs bool) *Judge {
	return &Judge{run: run, resources: resources, epochs: epochs, reg: registry.New(), keep: make(map[registry.ClaimID][]registry.Kept)}
}

// Searched reports whether the servers search for deadlocks at the level of the newest entry. For a nil
// Judge they do not.
func (j *Judge) Searched() bool {
	if j == nil || j.reg == nil {
		return false
	}
	level, _ := j.reg.Level()
	return level >= version.Keeps
}

// Follow applies the entries that a server was the first to apply. log is that of the server.
func (j *Judge) Follow(log *ledger.Ledger, to uint64) {
	for index := j.last + 1; index <= to && j.reg != nil; index++ {
		e := log.Entry(index)
		if e == nil {
			if index > 1 {
				j.reg = nil // it came with a snapshot, which does not contain the keeps
			}
			continue // the state at the founding
		}
		j.apply(e)
	}
	j.last = to
}

func (j *Judge) apply(e *raftpb.Entry) {
	if e.GetType() != raftpb.EntryNormal || len(e.GetData()) == 0 {
		return
	}
	batch, err := registry.DecodeBatch(e.GetData())
	if err != nil {
		j.run.Violate("log", "a committed entry is not read: %v", err)
		return
	}
	if !j.epochs {
		j.inSteps(e.GetTerm(), &batch)
		return
	}
	// An epoch begins only at the end of an entry. Applied step by step, it might begin earlier,
	// and the fences would differ from those that clients receive.
	whole := j.reg
	if j.reg, err = registry.Decode(whole.Freeze().Encode()); err != nil {
		j.run.Violate("state", "a state is not read: %v", err)
		return
	}
	j.inSteps(e.GetTerm(), &batch)
	j.reg = whole
	j.reg.Apply(e.GetTerm(), &batch, new(registry.Effects))
}

// inSteps applies an entry command by command, and judges each request to acquire.
func (j *Judge) inSteps(term uint64, batch *registry.Batch) {
	for i := range batch.Commands {
		c := &batch.Commands[i]
		fresh := c.Op == registry.OpAcquire && !j.reg.Carried(c.Session, c.Sequence)
		forever := fresh && j.forever(c)
		var fx registry.Effects
		j.reg.Apply(term, &registry.Batch{Time: batch.Time, Wall: batch.Wall, Commands: batch.Commands[i : i+1]}, &fx)
		for _, o := range fx.Outcomes {
			if fresh && o.Session == c.Session && o.Sequence == c.Sequence {
				j.judge(c, o.Result.Code, forever)
			}
		}
	}
}

// judge compares the answer to a request with the expected one.
func (j *Judge) judge(c *registry.Command, code registry.Code, forever bool) {
	switch {
	case code == registry.Queued && forever:
		j.run.Violate("deadlock", "request %d of %v waits for %q, and will forever: it completes a deadlock", c.Sequence, c.Session, c.Name)
	case code == registry.Deadlocked && !forever:
		j.run.Violate("deadlock", "request %d of %v for %q is refused, and would not wait forever", c.Sequence, c.Session, c.Name)
	case code == registry.Queued && j.searches(c):
		j.keep[registry.ClaimID{Session: c.Session, Sequence: c.Sequence}] = c.Keeps
	case code == registry.Deadlocked:
		j.run.Stats.Deadlocks++
	}
}

// searches reports whether a request has keeps, at a level that supports them.
func (j *Judge) searches(c *registry.Command) bool {
	return j.Searched() && len(c.Keeps) > 0
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
func (j *Judge) forever(c *registry.Command) bool {
	if !j.searches(c) || c.Try {
		return false
	}
	id := registry.ClaimID{Session: c.Session, Sequence: c.Sequence}
	var all []*simResource
	for _, res := range j.resources {
		r := j.enter(res)
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
		j.run.Violate("deadlock", "before request %d of %v there is a deadlock: %+v", c.Sequence, c.Session, all)
	}
	return found
}

// enter returns the present state of a resource.
func (j *Judge) enter(res Resource) *simResource {
	view, _, _ := j.reg.Freeze().Explain(res.Class, res.Name, 1000)
	r := &simResource{class: res.Class, name: res.Name, limit: res.Limit}
	for _, h := range view.Holders {
		r.holders = append(r.holders, simClaim{fence: h.Fence, shared: h.Shared, revoked: h.Revoked})
	}
	for _, q := range view.Waiters {
		id := registry.ClaimID{Session: q.Session, Sequence: q.Sequence}
		r.queue = append(r.queue, simClaim{id: id, shared: q.Shared, keeps: j.keep[id]})
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
