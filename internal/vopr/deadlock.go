package vopr

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/version"
)

// A worker may keep what it holds while the other worker of its program waits: as two
// locks of one goroutine, of which the outer one is released after the inner one.

// nest lets an acquire name what the other worker of the program holds, some of the
// time. That worker then keeps it until the acquire has ended.
func (k *worker) nest(r *request, a *api.Acquire) {
	w := k.client.w
	// Before that level nobody looks for deadlocks, and programs keep nothing.
	if !w.judge.tested.looks() || a.GetTry() || w.nests.IntN(8) == 0 {
		return
	}
	for _, other := range k.client.workers {
		h := other.hold
		if other == k || h == nil || h.released || !h.counts() {
			continue
		}
		r.keeps = h
		h.kept++
		a.Keeps = append(a.Keeps, &api.Kept{Class: api.Class(h.claim.res.class), Name: h.claim.res.name, Fence: h.claim.fence})
		w.stats.Nested++
	}
}

// crowded returns a resource, most of the time one of a few: so that programs meet which
// keep what others wait for.
func (w *world) crowded(res *resource) *resource {
	if !w.judge.tested.looks() || w.nests.IntN(8) == 0 {
		return res
	}
	few := [...]int{0, 1, 4, 5, 6} // two locks, readers, a semaphore and an election
	return w.judge.resources[few[w.nests.IntN(len(few))]]
}

// letGo ends what an acquire has kept. What was due meanwhile is released.
func (r *request) letGo() {
	h := r.keeps
	if h == nil {
		return
	}
	r.keeps = nil
	if h.kept--; h.kept == 0 && h.due && h.worker.hold == h {
		h.worker.release(h)
	}
}

// pretested is the state of a server that applies the log command by command. Before each
// request to acquire, a game is played on what it shows and on what earlier requests said:
// all holders release but those who wait meanwhile, and those who wait are granted in
// turn. Who is left waits forever. So the judge knows whether a request has to be
// refused, without anything of the graph that the servers search.
type pretested struct {
	reg  *registry.Registry // nil if it lacks entries
	keep map[registry.ClaimID][]registry.Kept
	last uint64
}

func newPretested() *pretested {
	return &pretested{reg: registry.New(), keep: make(map[registry.ClaimID][]registry.Kept)}
}

// looks reports whether the servers look for deadlocks, as of the newest entry.
func (p *pretested) looks() bool {
	if p == nil || p.reg == nil {
		return false
	}
	level, _ := p.reg.Level()
	return level >= version.Keeps
}

// follow applies what a server was the first to apply.
func (p *pretested) follow(s *server, to uint64) {
	for index := p.last + 1; index <= to && p.reg != nil; index++ {
		e := s.log.entry(index)
		if e == nil {
			if index > 1 {
				p.reg = nil // it came with a snapshot: what callers keep is not known any more
			}
			continue // the founding state
		}
		p.apply(s.w, e)
	}
	p.last = to
}

func (p *pretested) apply(w *world, e *raftpb.Entry) {
	if e.GetType() != raftpb.EntryNormal || len(e.GetData()) == 0 {
		return
	}
	batch, err := registry.DecodeBatch(e.GetData())
	if err != nil {
		w.violate("log", "a committed entry is not read: %v", err)
		return
	}
	if !w.plan.Live {
		p.inSteps(w, e.GetTerm(), &batch)
		return
	}
	// An epoch begins at the end of an entry only. In steps it may begin earlier, and
	// fences be others than those that clients are told.
	whole := p.reg
	if p.reg, err = registry.Decode(whole.Encode()); err != nil {
		w.violate("state", "a state is not read: %v", err)
		return
	}
	p.inSteps(w, e.GetTerm(), &batch)
	p.reg = whole
	p.reg.Apply(e.GetTerm(), &batch, new(registry.Effects))
}

// inSteps applies an entry command by command, and judges each request to acquire.
func (p *pretested) inSteps(w *world, term uint64, batch *registry.Batch) {
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

// judge compares the answer to a request with what has to come of it.
func (p *pretested) judge(w *world, c *registry.Command, code registry.Code, forever bool) {
	switch {
	case code == registry.Queued && forever:
		w.violate("deadlock", "request %d of %v waits for %q, and will forever: it completes a deadlock", c.Sequence, c.Session, c.Name)
	case code == registry.Deadlocked && !forever:
		w.violate("deadlock", "request %d of %v for %q is refused, and would not wait forever", c.Sequence, c.Session, c.Name)
	case code == registry.Queued && p.searches(c):
		p.keep[registry.ClaimID{Session: c.Session, Sequence: c.Sequence}] = c.Keeps
	case code == registry.Deadlocked:
		w.stats.Deadlocks++
	}
}

// searches reports whether a request says what its caller keeps, at a level that has that.
func (p *pretested) searches(c *registry.Command) bool {
	return p.looks() && len(c.Keeps) > 0
}

// room is a resource in the game.
type room struct {
	class          registry.Class
	name           string
	limit          int
	holders, queue []guest
}

type guest struct {
	id      registry.ClaimID
	fence   uint64
	shared  bool
	revoked bool
	keeps   []registry.Kept
}

// forever plays the game with a request that is about to come, and reports whether it is
// left. That others are left is a violation in any case.
func (p *pretested) forever(w *world, c *registry.Command) bool {
	if !p.searches(c) || c.Try {
		return false
	}
	id := registry.ClaimID{Session: c.Session, Sequence: c.Sequence}
	var rooms []*room
	for _, res := range w.judge.resources {
		r := p.enter(res)
		if r.class == c.Class && r.name == c.Name {
			r.queue = append(r.queue, guest{id: id, shared: c.Shared, keeps: c.Keeps})
		}
		rooms = append(rooms, r)
	}
	play(rooms)
	found, others := false, false
	for _, r := range rooms {
		for _, g := range r.queue {
			found = found || g.id == id
			others = others || g.id != id
		}
	}
	if others && !found {
		w.violate("deadlock", "before request %d of %v there is a deadlock: %+v", c.Sequence, c.Session, rooms)
	}
	return found
}

// enter looks at a resource.
func (p *pretested) enter(res *resource) *room {
	view, _, _ := p.reg.Explain(res.class, res.name, 1000)
	r := &room{class: res.class, name: res.name, limit: res.room()}
	for _, h := range view.Holders {
		r.holders = append(r.holders, guest{fence: h.Fence, shared: h.Shared, revoked: h.Revoked})
	}
	for _, q := range view.Waiters {
		id := registry.ClaimID{Session: q.Session, Sequence: q.Sequence}
		r.queue = append(r.queue, guest{id: id, shared: q.Shared, keeps: p.keep[id]})
	}
	return r
}

// play has all release what they do not keep, and grants in turn, until nothing more
// happens.
func play(rooms []*room) {
	for more := true; more; {
		more = false
		for _, r := range rooms {
			before := len(r.holders)
			r.holders = slices.DeleteFunc(r.holders, func(h guest) bool { return h.revoked || !r.kept(rooms, h.fence) })
			more = more || len(r.holders) < before
			for len(r.queue) > 0 && r.fits(r.queue[0].shared) {
				// It is not kept by anybody: its release is a step of its own.
				r.holders = append(r.holders, guest{shared: r.queue[0].shared})
				r.queue = r.queue[1:]
				more = true
			}
		}
	}
}

func (r *room) fits(shared bool) bool {
	if len(r.holders) == 0 {
		return true
	}
	if shared != r.holders[0].shared {
		return false
	}
	return shared || len(r.holders) < r.limit
}

// kept reports whether somebody who waits keeps a hold of the room.
func (r *room) kept(rooms []*room, fence uint64) bool {
	k := registry.Kept{Class: r.class, Name: r.name, Fence: fence}
	for _, other := range rooms {
		for _, g := range other.queue {
			if slices.Contains(g.keeps, k) {
				return true
			}
		}
	}
	return false
}
