package vopr

import (
	"slices"

	"github.com/conclave-io/conclave/service/registry"
)

// resource is what the clients of a run want, and what the judge knows of it.
type resource struct {
	class  registry.Class
	name   string
	limit  uint32
	shares bool // some ask for it shared

	holds   []*hold  // those that may still count
	held    int      // how often it was
	waiting []*place // those that know that they wait
	history []operation
	patient map[claimID]int64 // the patience of candidates, in ns
	floor   uint64            // the largest floor that the store behind it has seen
	alone   uint64            // the largest fence of a holder that excludes others and has written
	clouded bool              // its history cannot be judged: see judge.reopened
}

func newResources() []*resource {
	return []*resource{
		{name: "a"}, {name: "b"}, {name: "c"}, {name: "d"},
		{name: "readers", shares: true}, {name: "semaphore", limit: 3},
		{class: registry.Election, name: "a", patient: make(map[claimID]int64)},
		{class: registry.Election, name: "e", patient: make(map[claimID]int64)},
	}
}

// room is how many may hold a resource that is not shared.
func (r *resource) room() int { return max(int(r.limit), 1) }

// worker is a goroutine of a program, which acquires, works, and releases.
type worker struct {
	client *client
	number int
	busy   bool
	hold   *hold
	place  *place // of the acquire under way
	turn   int    // counts what it began, so that old timers are void
}

// begin is the start of the worker, or what it does after it has abandoned all.
func (k *worker) begin() {
	k.busy, k.hold, k.place = false, nil, nil
	k.turn++
	k.pace()
}

// pace lets the worker begin something new after a while.
func (k *worker) pace() {
	turn := k.turn
	k.client.later(20*ms+k.client.w.work.Int64N(400*ms), func() {
		if k.turn == turn {
			k.choose()
		}
	})
}

// idle reports whether the worker wants nothing.
func (k *worker) idle() bool { return !k.busy }

func (k *worker) rest() {
	k.busy, k.hold, k.place = false, nil, nil
	k.turn++
	k.pace()
}

func (k *worker) choose() {
	c, w := k.client, k.client.w
	if w.now >= w.end {
		return
	}
	s := c.session()
	if !s.valid() || s.gone {
		k.pace()
		return
	}
	res := w.judge.resources[w.work.IntN(len(w.judge.resources))]
	switch n := w.work.IntN(20); {
	case n == 0:
		k.busy = true
		s.submit(&request{
			command: registry.Command{Op: registry.OpRevoke, Class: res.class, Name: res.name, Value: "asked"},
			done:    func(registry.Result, bool) { k.rest() },
		})
		w.stats.Operations++
	case n < 4:
		k.busy = true
		k.query(res, 0)
	default:
		k.busy = true
		k.acquire(s, res)
	}
}

func (k *worker) acquire(s *session, res *resource) {
	w := k.client.w
	command := registry.Command{Op: registry.OpAcquire, Class: res.class, Name: res.name, Limit: res.limit, Try: w.work.IntN(4) == 0}
	command.Shared = res.shares && w.work.IntN(3) > 0
	if res.class == registry.Election {
		command.Value, command.Priority = "candidate", int64(w.work.IntN(3))
		if w.work.IntN(4) == 0 {
			command.Patience = 200*ms + w.work.Int64N(1000*ms)
		}
	}
	r := &request{command: command}
	r.place = w.judge.enter(w, res, r)
	r.done = func(result registry.Result, known bool) { k.acquired(r, result, known) }
	k.place = r.place
	s.submit(r)
	r.place.named()
	if command.Patience > 0 {
		res.patient[claimOf(r.place.session, r.place.sequence)] = command.Patience
	}
	w.stats.Operations++
	k.impatience(r)
}

// impatience lets the worker give up waiting after a while, some of the time.
func (k *worker) impatience(r *request) {
	w := k.client.w
	if w.work.IntN(3) > 0 {
		return
	}
	turn := k.turn
	k.client.later(50*ms+w.work.Int64N(1500*ms), func() {
		if k.turn == turn && k.hold == nil && w.now < w.end {
			r.session.withdraw(r)
			k.rest()
		}
	})
}

// acquired is the final answer to an acquire, or that there will be none.
func (k *worker) acquired(r *request, result registry.Result, known bool) {
	if !known {
		r.place.vanish(k.client.w)
		k.rest()
		return
	}
	if result.Code != registry.OK {
		k.rest()
		return
	}
	s := r.session
	s.check()
	if s.gone {
		r.place.end(k.client.w, s.endsAt)
		k.rest()
		return
	}
	k.begins(r)
}

// begins is a hold.
func (k *worker) begins(r *request) {
	w, s := k.client.w, r.session
	h := &hold{place: r.place, worker: k, session: s}
	k.hold = h
	s.grants[r.command.Sequence] = h
	w.judge.handOut(w, h)
	if s.asked[r.command.Sequence] {
		delete(s.asked, r.command.Sequence)
		h.told()
	}
	turn := k.turn
	length := 5*ms + w.work.Int64N(250*ms)
	if w.work.IntN(12) == 0 {
		length += w.work.Int64N(4000 * ms)
	}
	for n := w.work.IntN(3); n > 0; n-- {
		k.client.later(w.work.Int64N(length), func() { h.write() })
	}
	if r.command.Class == registry.Election && w.work.IntN(3) == 0 {
		k.client.later(length/2, func() { k.adorn(h) })
	}
	k.client.later(length, func() {
		if k.turn == turn && k.hold == h {
			k.release(h)
		}
	})
}

// adorn changes the value of an election, or hands it over.
func (k *worker) adorn(h *hold) {
	w := k.client.w
	if !h.counts() || h.session.gone {
		return
	}
	command := registry.Command{Op: registry.OpUpdate, Hold: h.place.sequence, Value: "candidate"}
	if w.work.IntN(2) == 0 {
		command.Op = registry.OpTransfer
	}
	h.session.submit(&request{command: command})
	w.stats.Operations++
}

// release ends the hold, and only then lets the servers know.
func (k *worker) release(h *hold) {
	w, s := k.client.w, h.session
	s.check()
	if s.gone || h.released {
		return // the session has told the hold, or it is on its way back
	}
	sure := h.counts()
	h.over, h.released = true, true
	h.place.ended = true
	r := s.submit(&request{command: registry.Command{Op: registry.OpRelease, Hold: h.place.sequence}})
	w.stats.Operations++
	h.place.release(w, r)
	record := r.done
	r.done = func(result registry.Result, known bool) {
		record(result, known)
		if known && sure && result.Code == registry.NotHeld && !s.strays[h.place.sequence] {
			w.violate("once", "session %v released its hold %d of %q before its deadline, once, and is told that it did not hold it", s.id, h.place.sequence, h.place.res.name)
		}
		k.rest()
	}
}

// abandon is the death of the program.
func (k *worker) abandon() {
	w := k.client.w
	k.turn++
	if h := k.hold; h != nil && !h.over {
		h.over = true
		h.place.end(w, h.session.endsAt)
	}
	k.busy, k.hold, k.place = false, nil, nil
}

// hold is a grant that a worker has in its hands.
type hold struct {
	place   *place
	worker  *worker
	session *session
	over    bool // released, told to leave, lost, or its program is dead
	// released says that the servers are asked to take it back.
	released bool
	// known is how far the log was known to go at the grant.
	known uint64
}

// counts reports whether the worker may believe in its hold at this moment.
func (h *hold) counts() bool { return !h.over && h.session.believed() }

// told is the news that the servers want it back. Most leave, some just stop.
func (h *hold) told() {
	if h.over {
		return
	}
	w, k := h.worker.client.w, h.worker
	if !h.session.valid() {
		return // it is lost; the session will tell
	}
	h.over = true
	if w.work.IntN(3) > 0 {
		k.release(h)
		return
	}
	h.place.end(w, w.now)
	k.rest()
}

// lost is the end of the session.
func (h *hold) lost() {
	if h.over {
		return
	}
	h.over = true
	w := h.worker.client.w
	w.stats.Lost++
	h.place.end(w, h.session.endsAt)
	h.worker.rest()
}

// write looks whether the hold counts and sends a write to the store behind the
// resource, which takes a while to arrive, and longer if the program or the network
// stands still in between.
func (h *hold) write() {
	if !h.counts() {
		return
	}
	w := h.worker.client.w
	d := w.delay()
	if w.work.IntN(20) == 0 {
		d += w.work.Int64N(6000 * ms)
	}
	w.after(d, func() { h.written() })
}

// written is the arrival of a write at the store, which remembers the largest floor
// that it has seen and refuses smaller fences.
func (h *hold) written() {
	w, res, p := h.worker.client.w, h.place.res, h.place
	w.stats.Writes++
	refused := p.fence < res.floor
	switch {
	case refused && h.counts():
		w.violate("floor", "the store behind %q refuses the holder with fence %d, having seen the floor %d", res.name, p.fence, res.floor)
	case !refused && p.fence < res.alone:
		w.violate("floor", "the store behind %q takes a write with fence %d after one of a later holder that excluded all others, with fence %d", res.name, p.fence, res.alone)
	}
	if refused {
		w.stats.Refused++
		return
	}
	res.floor = max(res.floor, p.floor)
	if p.exclusive() {
		res.alone = max(res.alone, p.fence)
	}
	if !p.exclusive() && h.counts() && p.floor < p.fence {
		w.stats.Beside++
	}
}

// query asks a server for the holders of a resource, until one answers that leads.
func (k *worker) query(res *resource, tries int) {
	c, w := k.client, k.client.w
	if tries == 4 {
		k.rest()
		return
	}
	s := w.servers[w.work.IntN(len(w.servers))]
	if c.current != nil && tries < 3 {
		s = c.current.server
	}
	called, turn, life := w.now, k.turn, s.life
	w.stats.Operations++
	answer := func(claims []claimID, ok bool) {
		w.carry(s.endpoint(), c.endpoint(), func() {
			c.receive(func() {
				if k.turn != turn {
					return
				}
				if !ok {
					k.query(res, tries+1)
					return
				}
				res.note(operation{kind: opQuery, call: called, ret: w.now, claims: claims})
				k.rest()
			})
		})
	}
	w.carry(c.endpoint(), s.endpoint(), func() {
		if s.life == life {
			s.receive(func() { s.read(res, answer) })
		}
	})
	c.later(1000*ms, func() {
		if k.turn == turn {
			k.turn++
			k.query(res, tries+1)
		}
	})
}

// read answers a query from the registry once a quorum has confirmed that this
// server leads.
func (s *server) read(res *resource, answer func([]claimID, bool)) {
	s.reading++
	s.reads[s.reading] = func(ok bool) {
		var claims []claimID
		if ok {
			view, _, _ := s.replica.Registry().Explain(res.class, res.name, 0)
			for _, h := range view.Holders {
				claims = append(claims, claimOf(h.Session, h.Sequence))
			}
			slices.Sort(claims)
		}
		answer(claims, ok)
	}
	s.replica.Read(s.reading)
}
