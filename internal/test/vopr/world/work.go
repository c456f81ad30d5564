package world

import (
	"fmt"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/version"
	"github.com/conclave-io/conclave/internal/test/vopr/history"
	"github.com/conclave-io/conclave/internal/test/vopr/periods"
)

// Resource is a lock or an election that clients use, with the judge's record of it.
type Resource struct {
	Class   registry.Class
	Name    string
	limit   uint32
	shares  bool // some clients acquire it shared
	Guarded bool // an algorithm guards it at times

	Holds      []*Hold  // holds that may still count
	held       int      // number of holds so far
	waiting    []*claim // claims whose clients know that they wait
	history    []history.Operation
	fates      map[history.ClaimID]*fate // fates of the claims that held
	present    []history.ClaimID         // claims that hold, as of the last look
	queued     int                       // how many waiters the judge looks at
	candidates []history.ClaimID         // candidates that waited, as of the last look
	claims     map[history.ClaimID]*claim
	entered    []*claim // claims that may still be granted
	past       past
	handovers
	Newest uint64                     // for a guarded resource: the largest fence that a client has received
	Given  map[uint64]history.ClaimID // for a guarded resource: the claim that was given each fence
	floor  uint64                     // the largest floor that the store behind the resource has seen
	alone  uint64                     // the largest fence of an exclusive holder that has written
	// lingers means that requests ask that it stays closed after their holds.
	lingers bool
}

// job is the name of the lock of a job that several machines start once in each period.
const job = "job"

func newResources(lingers, jobs bool) []*Resource {
	resources := []*Resource{
		{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"},
		{Name: "readers", shares: true}, {Name: "semaphore", limit: 3},
		{Class: registry.Election, Name: "a", queued: 16},
		{Class: registry.Election, Name: "e", queued: 16},
	}
	if lingers {
		resources = append(resources, &Resource{Name: "period", lingers: true}, &Resource{Class: registry.Election, Name: "shift", queued: 16, lingers: true})
	}
	if jobs { // the last one: see runJob
		resources = append(resources, &Resource{Name: job, lingers: true})
	}
	for _, r := range resources {
		r.fates, r.claims = make(map[history.ClaimID]*fate), make(map[history.ClaimID]*claim)
		r.past.how = make(map[uint64]registry.Ending)
		r.past.revokers, r.named = make(map[string]bool), make(map[string]bool)
	}
	return resources
}

func (r *Resource) note(o history.Operation) {
	if !r.Guarded { // the answers of homes are not linearizable: a try may miss a free lock
		r.history = append(r.history, o)
	}
}

// room returns how many clients may hold a resource that is not shared.
func (r *Resource) room() int { return max(int(r.limit), 1) }

// worker is a goroutine of a program. It acquires, works, and releases.
type worker struct {
	client  *client
	number  int
	busy    bool
	Hold    *Hold
	request *request // the current acquire
	turn    int      // counts its actions, so that old timers have no effect
	cron    bool     // it runs a job once in each period, and nothing else
	period  int64    // the period whose job it runs
}

// begin starts the worker. After it has abandoned everything, it starts again.
func (k *worker) begin() {
	k.busy, k.Hold, k.request = false, nil, nil
	k.turn++
	k.pace()
}

// pace makes the worker start a new action after a while.
func (k *worker) pace() {
	if k.cron {
		k.awaitPeriod()
		return
	}
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
	if w.Now >= w.end {
		return
	}
	k.busy = true
	res := w.Judge.resources[w.work.IntN(len(w.Judge.resources))]
	if w.Hosts != nil && w.work.IntN(3) > 0 {
		k.chooseGuarded()
		return
	}
	switch n := w.work.IntN(20); {
	case n == 0 && !res.lingers: // it would open the name
		k.client.submit(&request{call: line.Call{Op: &api.Request{Op: &api.Request_Revoke{
			Revoke: &api.Revoke{Class: api.Class(res.Class), Name: res.Name, Reason: WhyAsked},
		}}}}, func(*api.Reply) { k.rest() })
	case n < 4 || res.Name == job:
		k.query(res, 0)
	case res.lingers:
		k.acquire(res)
	default:
		k.acquire(w.crowded(res))
	}
}

// awaitPeriod makes the worker start the command of the job when the next period begins on the clock of
// its machine, as cron does.
func (k *worker) awaitPeriod() {
	c, w, turn := k.client, k.client.w, k.turn
	period, in := periods.Next(w.Now, c.slot)
	if w.Now+in >= w.end {
		return
	}
	life := c.life
	w.After(in, func() {
		if c.life != life {
			return
		}
		c.receive(func() {
			if k.turn == turn {
				k.period = period
				k.runJob()
			}
		})
	})
}

// runJob tries to get the lock of the job, which then stays closed until most of the period is over. If
// there is no answer, it gives up after a while.
func (k *worker) runJob() {
	c, w := k.client, k.client.w
	if _, in := periods.Next(w.Now, c.slot); in < periods.Length-periods.Patience {
		k.rest() // its machine stood still
		return
	}
	if !w.lingers() {
		k.rest()
		return
	}
	k.busy = true
	w.Judge.periods.Asks(k.period)
	res := w.Judge.resources[len(w.Judge.resources)-1]
	a := &api.Acquire{Name: res.Name, Try: true, AtLeastNs: periods.AtLeast}
	r := &request{res: res, call: line.Call{Op: &api.Request{Op: &api.Request_Acquire{Acquire: a}}}}
	k.request = r
	c.submit(r, func(reply *api.Reply) { k.acquired(r, reply) })
	turn := k.turn
	c.later(periods.Patience, func() {
		if k.turn == turn && k.Hold == nil {
			c.withdraw(r)
			k.rest()
		}
	})
}

// chooseGuarded is like choose, for names that an algorithm guards at times.
func (k *worker) chooseGuarded() {
	w := k.client.w
	res := w.Judge.Guarded[w.work.IntN(len(w.Judge.Guarded))]
	if w.work.IntN(12) == 0 {
		w.Hosts.Revoke(res, k.client.principal())
		k.rest()
		return
	}
	k.acquire(res)
}

func (k *worker) acquire(res *Resource) {
	w := k.client.w
	a := &api.Acquire{Class: api.Class(res.Class), Name: res.Name, Limit: res.limit, Try: w.work.IntN(4) == 0}
	a.Shared = res.shares && w.work.IntN(3) > 0
	if res.Class == registry.Election {
		a.Value, a.Priority = fmt.Appendf(nil, "%d.%d.%d", k.client.slot, k.number, k.turn), int64(w.work.IntN(3))
		if w.work.IntN(4) == 0 {
			a.PatienceNs = 200*ms + w.work.Int64N(1000*ms)
		}
	}
	if res.lingers && w.lingers() {
		a.AtLeastNs = w.work.Int64N(2) * (200*ms + w.work.Int64N(2000*ms))
		a.DelayAfterLossNs = w.work.Int64N(2) * (200*ms + w.work.Int64N(1500*ms))
	}
	r := &request{res: res, call: line.Call{Op: &api.Request{Op: &api.Request_Acquire{Acquire: a}}}}
	k.request = r
	k.nest(r, a)
	k.client.submit(r, func(reply *api.Reply) { k.acquired(r, reply) })
	k.mayWithdraw(r)
}

// lingers reports whether the level of the cluster lets names stay closed. It does not go down.
func (w *World) lingers() bool {
	leader := w.Leader()
	if leader == nil {
		return false
	}
	level, _ := leader.Replica.Registry().Level()
	return level >= version.Linger
}

// mayWithdraw withdraws one request in three if it still waits after a random time.
func (k *worker) mayWithdraw(r *request) {
	w := k.client.w
	if w.work.IntN(3) > 0 || r.keeps != nil { // a worker that keeps holds continues waiting
		return
	}
	turn := k.turn
	k.client.later(50*ms+w.work.Int64N(1500*ms), func() {
		if k.turn == turn && k.Hold == nil && w.Now < w.end {
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
		r.claim.end(s.EndsAt)
		k.rest()
		return
	}
	k.begins(r)
}

// begins handles the start of a hold.
func (k *worker) begins(r *request) {
	w := k.client.w
	h := &Hold{request: r, Claim: r.claim, worker: k, Session: r.claim.owner}
	k.Hold, r.hold, r.claim.hold = h, h, h
	w.Judge.handOut(w, h)
	if k.cron {
		w.Judge.periods.Runs(k.period)
	}
	turn := k.turn
	length := k.length()
	for n := w.work.IntN(3); n > 0; n-- {
		k.client.later(w.work.Int64N(length), func() { h.write() })
	}
	if r.res.Class == registry.Election && w.work.IntN(3) == 0 {
		k.client.later(length/2, func() { k.adorn(h) })
	}
	k.client.later(length, func() {
		if k.turn == turn && k.Hold == h {
			k.release(h)
		}
	})
}

// length returns how long the worker keeps a hold.
func (k *worker) length() int64 {
	w := k.client.w
	if k.cron {
		return periods.Job
	}
	length := 5*ms + w.work.Int64N(250*ms)
	if w.work.IntN(12) == 0 {
		length += w.work.Int64N(4000 * ms)
	}
	return length
}

// adorn changes the value of an election, or hands it over.
func (k *worker) adorn(h *Hold) {
	if !h.Counts() {
		return
	}
	if k.client.w.work.IntN(2) == 0 {
		k.transfer(h)
		return
	}
	op := &api.Request{Op: &api.Request_Update{Update: &api.Update{Value: []byte("adorned")}}}
	k.client.submit(&request{call: line.Call{Of: &h.request.call, Op: op}}, func(reply *api.Reply) {
		if codeOf(reply) == registry.NotHeld && reply != nil && h.Counts() {
			k.client.w.Violate("hold", "session %v changes the value of %q by its hold %d, and is told that it does not lead", h.Session.ID, h.Claim.Res.Name, h.Claim.sequence)
		}
	})
}

// release ends the hold first, and then informs the servers.
func (k *worker) release(h *Hold) {
	w, s := k.client.w, h.Session
	if !s.valid() || h.released {
		return // its session will report that the hold is lost, or its release is in transit
	}
	if h.kept > 0 && !h.over { // the holder was not asked to leave
		h.due = true
		return
	}
	sure := h.Counts()
	h.over, h.released = true, true
	op := &api.Request{Op: &api.Request_Release{Release: &api.Release{}}}
	k.client.submit(&request{call: line.Call{Of: &h.request.call, Op: op}}, func(reply *api.Reply) {
		if sure && codeOf(reply) == registry.NotHeld && !h.Claim.asked() {
			w.Violate("once", "session %v released its hold %d of %q before its deadline, once, and is told that it did not hold it", s.ID, h.Claim.sequence, h.Claim.Res.Name)
		}
		k.rest()
	})
}

// abandon ends the worker with its program.
func (k *worker) abandon() {
	k.turn++
	if h := k.Hold; h != nil && !h.over {
		h.over = true
		h.Claim.end(h.Session.EndsAt)
	}
	k.busy, k.Hold, k.request = false, nil, nil
}

// Hold is a grant that a worker relies on.
type Hold struct {
	request *request
	Claim   *claim
	worker  *worker
	Session *session
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

// Counts reports whether the worker may rely on its hold at this moment.
func (h *Hold) Counts() bool { return !h.over && h.Session.believed() }

// told handles a request of the servers to release the hold. Most workers release it, and some only
// stop using it.
func (h *Hold) told() {
	if h.over {
		return
	}
	w, k := h.worker.client.w, h.worker
	if !h.Session.valid() {
		return // it is lost; the session will report that
	}
	h.over = true
	if w.work.IntN(3) > 0 {
		k.release(h)
		return
	}
	h.Claim.end(w.Now)
	k.rest()
}

// lost handles the end of the session.
func (h *Hold) lost() {
	if h.over {
		return
	}
	h.over = true
	h.worker.client.w.Stats.Lost++
	if h.Session.Home() {
		h.worker.client.w.Stats.Hosts.Lost++
	}
	h.Claim.end(h.Session.EndsAt)
	h.worker.rest()
}

// write sends a write to the store behind the resource if the hold counts. The write arrives after
// a delay. The delay is longer if the program or the network is paused in the meantime.
func (h *Hold) write() {
	if !h.Counts() {
		return
	}
	w := h.worker.client.w
	d := w.Net.Delay()
	if w.work.IntN(20) == 0 {
		d += w.work.Int64N(6000 * ms)
	}
	w.After(d, func() { h.written() })
}

// written handles a write at the store. The store remembers the largest floor that it has seen, and
// refuses smaller fences.
func (h *Hold) written() {
	w, res, p := h.worker.client.w, h.Claim.Res, h.Claim
	w.Stats.Writes++
	refused := p.Fence < res.floor
	switch {
	case refused && h.Counts():
		w.Violate("floor", "the store behind %q refuses the holder with fence %d, having seen the floor %d", res.Name, p.Fence, res.floor)
	case !refused && p.Fence < res.alone:
		w.Violate("floor", "the store behind %q takes a write with fence %d after one of a later holder that excluded all others, with fence %d", res.Name, p.Fence, res.alone)
	}
	if refused {
		w.Stats.Refused++
		return
	}
	res.floor = max(res.floor, p.floor)
	if p.exclusive() {
		res.alone = max(res.alone, p.Fence)
	}
	if !p.exclusive() && h.Counts() && p.floor < p.Fence {
		w.Stats.Beside++
	}
}

// query asks servers for the holders of a resource until the leader answers.
func (k *worker) query(res *Resource, tries int) {
	c, w := k.client, k.client.w
	if tries == 4 {
		k.rest()
		return
	}
	s := w.Servers[w.work.IntN(len(w.Servers))]
	if using := c.server(); using != nil && tries < 3 {
		s = using
	}
	called, turn, life := w.Now, k.turn, s.Life
	w.Stats.Operations++
	answer := func(holders string, ok bool) {
		w.Net.Carry(s.Endpoint(), c.endpoint(), func() {
			c.receive(func() {
				if k.turn != turn {
					return
				}
				if !ok {
					k.query(res, tries+1)
					return
				}
				res.note(history.Operation{Kind: history.Query, Call: called, Ret: w.Now, Holders: holders})
				k.rest()
			})
		}, func() {})
	}
	w.Net.Carry(c.endpoint(), s.Endpoint(), func() {
		if s.Life == life {
			s.Receive(func() { s.read(res, answer) })
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
func (s *Server) read(res *Resource, answer func(holders string, ok bool)) {
	s.reading++
	s.reads[s.reading] = func(ok bool) {
		var present []history.ClaimID
		if ok {
			view, _, _ := s.Replica.Registry().Freeze().Explain(res.Class, res.Name, 0)
			for _, h := range view.Holders {
				present = append(present, history.ClaimOf(h.Session, h.Sequence))
			}
		}
		answer(history.Holders(present...), ok)
	}
	s.Replica.Read(s.reading)
}
