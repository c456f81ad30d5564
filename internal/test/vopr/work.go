package vopr

import (
	"fmt"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// resource is a lock or an election that clients use, with the judge's record of it.
type resource struct {
	class  registry.Class
	name   string
	limit  uint32
	shares bool // some clients acquire it shared
	live   bool // an algorithm guards it at times

	holds      []*hold  // holds that may still count
	held       int      // number of holds so far
	waiting    []*claim // claims whose clients know that they wait
	history    []operation
	fates      map[claimID]*fate // fates of the claims that held
	present    []claimID         // claims that hold, as of the last look
	queued     int               // how many waiters the judge looks at
	candidates []claimID         // candidates that waited, as of the last look
	patient    map[claimID]int64 // the patience of candidates, in ns
	claims     map[claimID]*claim
	entered    []*claim // claims that may still be granted
	past       past
	handovers
	newest uint64             // for a live resource: the largest fence that a client has received
	given  map[uint64]claimID // for a live resource: the claim that was given each fence
	floor  uint64             // the largest floor that the store behind the resource has seen
	alone  uint64             // the largest fence of an exclusive holder that has written
}

func newResources() []*resource {
	resources := []*resource{
		{name: "a"}, {name: "b"}, {name: "c"}, {name: "d"},
		{name: "readers", shares: true}, {name: "semaphore", limit: 3},
		{class: registry.Election, name: "a", queued: 16, patient: make(map[claimID]int64)},
		{class: registry.Election, name: "e", queued: 16, patient: make(map[claimID]int64)},
	}
	for _, r := range resources {
		r.fates, r.claims = make(map[claimID]*fate), make(map[claimID]*claim)
		r.past.how = make(map[uint64]registry.Ending)
		r.past.revokers, r.named = make(map[string]bool), make(map[string]bool)
	}
	return resources
}

// room returns how many clients may hold a resource that is not shared.
func (r *resource) room() int { return max(int(r.limit), 1) }

// worker is a goroutine of a program. It acquires, works, and releases.
type worker struct {
	client  *client
	number  int
	busy    bool
	hold    *hold
	request *request // the current acquire
	turn    int      // counts its actions, so that old timers have no effect
}

// begin starts the worker. After it has abandoned everything, it starts again.
func (k *worker) begin() {
	k.busy, k.hold, k.request = false, nil, nil
	k.turn++
	k.pace()
}

// pace makes the worker start a new action after a while.
func (k *worker) pace() {
	turn := k.turn
	k.client.later(20*ms+k.client.w.work.Int64N(400*ms), func() {
		if k.turn == turn {
			k.choose()
		}
	})
}

// idle reports whether the worker has no current action.
func (k *worker) idle() bool { return !k.busy }

func (k *worker) rest() { k.begin() }

func (k *worker) choose() {
	w := k.client.w
	if w.now >= w.end {
		return
	}
	k.busy = true
	res := w.judge.resources[w.work.IntN(len(w.judge.resources))]
	if w.hosts != nil && w.work.IntN(3) > 0 {
		k.chooseLive()
		return
	}
	switch n := w.work.IntN(20); {
	case n == 0:
		k.client.submit(&request{call: line.Call{Op: &api.Request{Op: &api.Request_Revoke{
			Revoke: &api.Revoke{Class: api.Class(res.class), Name: res.name, Reason: whyAsked},
		}}}}, func(*api.Reply) { k.rest() })
	case n < 4:
		k.query(res, 0)
	default:
		k.acquire(w.crowded(res))
	}
}

// chooseLive is like choose, for names that an algorithm guards at times.
func (k *worker) chooseLive() {
	w := k.client.w
	res := w.judge.live[w.work.IntN(len(w.judge.live))]
	if w.work.IntN(12) == 0 {
		w.hosts.revoke(res, k.client.principal())
		k.rest()
		return
	}
	k.acquire(res)
}

func (k *worker) acquire(res *resource) {
	w := k.client.w
	a := &api.Acquire{Class: api.Class(res.class), Name: res.name, Limit: res.limit, Try: w.work.IntN(4) == 0}
	a.Shared = res.shares && w.work.IntN(3) > 0
	if res.class == registry.Election {
		a.Value, a.Priority = fmt.Appendf(nil, "%d.%d.%d", k.client.slot, k.number, k.turn), int64(w.work.IntN(3))
		if w.work.IntN(4) == 0 {
			a.PatienceNs = 200*ms + w.work.Int64N(1000*ms)
		}
	}
	r := &request{res: res, call: line.Call{Op: &api.Request{Op: &api.Request_Acquire{Acquire: a}}}}
	k.request = r
	k.nest(r, a)
	k.client.submit(r, func(reply *api.Reply) { k.acquired(r, reply) })
	k.mayWithdraw(r)
}

// mayWithdraw withdraws one request in three if it still waits after a random time.
func (k *worker) mayWithdraw(r *request) {
	w := k.client.w
	if w.work.IntN(3) > 0 || r.keeps != nil { // a worker that keeps holds continues waiting
		return
	}
	turn := k.turn
	k.client.later(50*ms+w.work.Int64N(1500*ms), func() {
		if k.turn == turn && k.hold == nil && w.now < w.end {
			k.client.withdraw(r)
			k.rest()
		}
	})
}

// acquired handles the final answer to an acquire. reply is nil if there will be none.
func (k *worker) acquired(r *request, reply *api.Reply) {
	if codeOf(reply) != registry.OK {
		k.rest()
		return
	}
	if s := r.claim.owner; !s.valid() {
		r.claim.end(s.endsAt)
		k.rest()
		return
	}
	k.begins(r)
}

// begins handles the start of a hold.
func (k *worker) begins(r *request) {
	w := k.client.w
	h := &hold{request: r, claim: r.claim, worker: k, session: r.claim.owner}
	k.hold, r.hold, r.claim.hold = h, h, h
	w.judge.handOut(w, h)
	turn := k.turn
	length := 5*ms + w.work.Int64N(250*ms)
	if w.work.IntN(12) == 0 {
		length += w.work.Int64N(4000 * ms)
	}
	for n := w.work.IntN(3); n > 0; n-- {
		k.client.later(w.work.Int64N(length), func() { h.write() })
	}
	if r.res.class == registry.Election && w.work.IntN(3) == 0 {
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
	if !h.counts() {
		return
	}
	if k.client.w.work.IntN(2) == 0 {
		k.transfer(h)
		return
	}
	op := &api.Request{Op: &api.Request_Update{Update: &api.Update{Value: []byte("adorned")}}}
	k.client.submit(&request{call: line.Call{Of: &h.request.call, Op: op}}, func(reply *api.Reply) {
		if codeOf(reply) == registry.NotHeld && reply != nil && h.counts() {
			k.client.w.violate("hold", "session %v changes the value of %q by its hold %d, and is told that it does not lead", h.session.id, h.claim.res.name, h.claim.sequence)
		}
	})
}

// release ends the hold first, and then informs the servers.
func (k *worker) release(h *hold) {
	w, s := k.client.w, h.session
	if !s.valid() || h.released {
		return // its session will report that the hold is lost, or its release is in transit
	}
	if h.kept > 0 && !h.over { // the holder was not asked to leave
		h.due = true
		return
	}
	sure := h.counts()
	h.over, h.released = true, true
	op := &api.Request{Op: &api.Request_Release{Release: &api.Release{}}}
	k.client.submit(&request{call: line.Call{Of: &h.request.call, Op: op}}, func(reply *api.Reply) {
		if sure && codeOf(reply) == registry.NotHeld && !h.claim.asked() {
			w.violate("once", "session %v released its hold %d of %q before its deadline, once, and is told that it did not hold it", s.id, h.claim.sequence, h.claim.res.name)
		}
		k.rest()
	})
}

// abandon ends the worker with its program.
func (k *worker) abandon() {
	k.turn++
	if h := k.hold; h != nil && !h.over {
		h.over = true
		h.claim.end(h.session.endsAt)
	}
	k.busy, k.hold, k.request = false, nil, nil
}

// hold is a grant that a worker relies on.
type hold struct {
	request *request
	claim   *claim
	worker  *worker
	session *session
	over    bool // released, asked to leave, lost, or its program has ended
	// released means that a release was sent to the servers.
	released bool
	// kept counts the acquires whose callers keep the hold. due means that it must be released when
	// they have ended.
	kept int
	due  bool
	// known is the newest applied index known at the grant.
	known uint64
}

// counts reports whether the worker may rely on its hold at this moment.
func (h *hold) counts() bool { return !h.over && h.session.believed() }

// told handles a request of the servers to release the hold. Most workers release it, and some only
// stop using it.
func (h *hold) told() {
	if h.over {
		return
	}
	w, k := h.worker.client.w, h.worker
	if !h.session.valid() {
		return // it is lost; the session will report that
	}
	h.over = true
	if w.work.IntN(3) > 0 {
		k.release(h)
		return
	}
	h.claim.end(w.now)
	k.rest()
}

// lost handles the end of the session.
func (h *hold) lost() {
	if h.over {
		return
	}
	h.over = true
	h.worker.client.w.stats.Lost++
	if h.session.home() {
		h.worker.client.w.stats.Hosts.Lost++
	}
	h.claim.end(h.session.endsAt)
	h.worker.rest()
}

// write sends a write to the store behind the resource if the hold counts. The write arrives after
// a delay. The delay is longer if the program or the network is paused in the meantime.
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

// written handles a write at the store. The store remembers the largest floor that it has seen, and
// refuses smaller fences.
func (h *hold) written() {
	w, res, p := h.worker.client.w, h.claim.res, h.claim
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

// query asks servers for the holders of a resource until the leader answers.
func (k *worker) query(res *resource, tries int) {
	c, w := k.client, k.client.w
	if tries == 4 {
		k.rest()
		return
	}
	s := w.servers[w.work.IntN(len(w.servers))]
	if using := c.server(); using != nil && tries < 3 {
		s = using
	}
	called, turn, life := w.now, k.turn, s.life
	w.stats.Operations++
	answer := func(holders string, ok bool) {
		w.carry(s.endpoint(), c.endpoint(), func() {
			c.receive(func() {
				if k.turn != turn {
					return
				}
				if !ok {
					k.query(res, tries+1)
					return
				}
				res.note(operation{kind: opQuery, call: called, ret: w.now, holders: holders})
				k.rest()
			})
		}, func() {})
	}
	w.carry(c.endpoint(), s.endpoint(), func() {
		if s.life == life {
			s.receive(func() { s.read(res, answer) })
		}
	}, func() {})
	c.later(1000*ms, func() {
		if k.turn == turn {
			k.turn++
			k.query(res, tries+1)
		}
	})
}

// read answers a query from the registry after a quorum has confirmed that this server leads.
func (s *server) read(res *resource, answer func(holders string, ok bool)) {
	s.reading++
	s.reads[s.reading] = func(ok bool) {
		var present holders
		if ok {
			view, _, _ := s.replica.Registry().Explain(res.class, res.name, 0)
			for _, h := range view.Holders {
				present.add(claimOf(h.Session, h.Sequence).text())
			}
		}
		answer(present.claims, ok)
	}
	s.replica.Read(s.reading)
}
