package registry

import (
	"fmt"
	"slices"
)

// A fence is the epoch, then a counter of grants.
const (
	counterBits = 40
	// counterTurn is where a new epoch begins. It is far below the end of the counter, so that
	// the counter never overflows into the bits of the epoch.
	counterTurn = 1 << 39
	// maxEpoch keeps the sign bit 0.
	maxEpoch = 1<<(63-counterBits) - 1
)

// Registry is the replicated state.
type Registry struct {
	head
	state
	// frozen is the newest version, if nothing has changed since.
	frozen *Version

	// unsettled means that the present entry has changed seats or guards.
	unsettled bool
	rulesHash rulesHash
	term      uint64 // of the present entry
	reports
}

// New returns the state before the first entry.
func New() *Registry {
	return &Registry{head: head{level: 1, members: make(map[uint64]Member)}, state: newState()}
}

// Apply carries out the commands of a log entry with the given term and adds their effects to
// fx.
func (r *Registry) Apply(term uint64, batch *Batch, fx *Effects) {
	r.frozen = nil
	r.now, r.wall, r.term, r.deeds = max(r.now, batch.Time), batch.Wall, term, fx.Deeds
	if due := r.lingers.due(r.now); len(due) > 0 {
		r.reopen(due, fx)
	}
	for i := range batch.Commands {
		r.apply(term, &batch.Commands[i], fx)
	}
	r.settleGuarded(fx)
	if r.changed.len() >= mostChanges {
		r.fold()
	}
}

func (r *Registry) apply(term uint64, c *Command, fx *Effects) {
	switch c.Op {
	case OpExpire:
		if c.Term == term {
			r.end(r.expired(c.Verdicts), Expired, fx)
		}
	case OpSilence:
		if c.Term == term {
			r.silence(c.Verdicts)
		}
	case OpMember:
		r.record(c, fx)
	case OpDrop:
		if c.Term == term {
			r.dropOverdue(c.Claims, fx)
		}
	case OpOvertake:
		r.overtake(c.Name, fx)
	case OpTime:
	case OpLevel:
		r.setLevel(c)
	case OpGuard, OpEnd, OpAccess, OpNote, OpSet, OpExpect:
		fx.Outcomes = append(fx.Outcomes, Outcome{Session: c.asker(), Result: r.administer(c, fx)})
	default:
		var made Outcome // a literal would be built elsewhere and copied
		made.Session, made.Sequence = c.Session, c.Sequence
		r.request(c, &made.Result, fx)
		fx.Outcomes = append(fx.Outcomes, made)
	}
}

// request carries out a client's command once, however often it arrives. The result, which
// is empty at first, is filled in and not returned, because it is large.
func (r *Registry) request(c *Command, result *Result, fx *Effects) {
	if problem := c.Validate(); problem != "" {
		*result = Result{Code: Invalid, Message: problem}
		return
	}
	s := r.asking(c.Session)
	if s == nil {
		if s = r.begin(c, result, fx); s == nil {
			return
		}
	}
	if problem := s.misfits(c); problem != "" {
		*result = Result{Code: Invalid, Message: problem}
		return
	}
	r.thawSession(s)
	if c.Op.Renews() {
		// Renewing again does no harm, and must take effect each time: the client counts from
		// the newest transmission.
		r.renewals++
		s.renewed(r.renewals)
		fx.Renewed = append(fx.Renewed, s.id)
		result.Code, result.Remaining, result.Revoked = OK, s.ttl, s.asked()
		return
	}
	if r.answered(s, c, &r.head, result) {
		r.control.hide(s, result, c.Class, c.Name)
		return
	}
	if len(s.answers) >= MaxAnswers && c.Op != OpClose {
		*result = Result{Code: Exhausted, Message: fmt.Sprintf("the session has %d answers that it has not acknowledged: raise low", MaxAnswers)}
		return
	}
	r.carryOut(s, c, result, fx)
	s.remember(result.stored(c.Sequence))
}

// NoSession is the answer to a request in a session that is not open.
func NoSession(id SessionID) Result {
	return Result{Code: SessionGone, Message: fmt.Sprintf("no such session: %v: it may have expired or been closed; open a new one", id)}
}

// answered finds the answer to a request that was carried out before. For a claim that still
// exists, the answer is its present state.
func (st *state) answered(s *session, c *Command, at *head, result *Result) bool {
	s.forget(c.Low)
	if c.Op == OpAcquire {
		if made := s.claims.get(number(c.Sequence)); made != nil {
			*result = made.state()
			return true
		}
	}
	if i, found := s.find(c.Sequence); found {
		*result = st.recall(&s.answers[i], c, at)
		return true
	}
	if c.Sequence < s.low {
		*result = Result{Code: Stale, Message: fmt.Sprintf("request %d was answered before, and the answer acknowledged", c.Sequence)}
		return true
	}
	return false
}

// recall returns a stored answer. The holder or the place that was in the way is not stored with it, so
// the present one is added, if there is one.
func (st *state) recall(a *answer, c *Command, at *head) Result {
	result := Result{Code: a.code, Message: a.message, Fence: a.fence, Floor: a.floor}
	if a.code != Held || c.Op != OpAcquire {
		return result
	}
	if res := st.find(c.Class, c.Name); res.held() {
		result.Holder = res.inTheWay()
	} else if place := st.lingers.first(key{c.Class, c.Name}); place != nil {
		result.Closed = new(place.shown(at))
	}
	return result
}

func (c *claim) state() (result Result) {
	if c.held() {
		result.granted(c)
	} else {
		result.Code, result.Ahead, result.Lingers = Queued, c.resource.position(c), c.lingers()
	}
	return result
}

// granted fills in an empty result for a claim that holds.
func (result *Result) granted(c *claim) {
	result.Code, result.Fence, result.Floor, result.Lingers = OK, c.fence, c.resource.floor(), c.lingers()
}

func (r *Registry) carryOut(s *session, c *Command, result *Result, fx *Effects) {
	if r.closed() && r.control.refusesRequest(s, c, r.deeds, result) {
		r.putRevoke(s, c, r.lingers.owner(key{c.Class, c.Name}), *result)
		return
	}
	switch c.Op {
	case OpClose:
		*result = r.close(s, c, fx)
	case OpAcquire:
		if s.leaving {
			*result = Result{Code: Revoked, Message: "the session is being ended: release what it holds, then open a new one"}
			return
		}
		r.acquire(s, c, result, fx)
		r.control.hide(s, result, c.Class, c.Name)
	case OpRelease:
		r.release(s, c.Hold, c.Unused, result, fx)
	case OpCancel:
		*result = r.cancel(s, c.Hold, fx)
	case OpUpdate:
		*result = r.update(s, c, fx)
	case OpRevoke:
		owner := r.lingers.owner(key{c.Class, c.Name})
		*result = r.revoke(c, fx)
		r.putRevoke(s, c, owner, *result)
	case OpTransfer:
		*result = r.transfer(s, c, fx)
	case OpTurn:
		*result = r.turn(s, c, fx)
	case OpQuiet:
		*result = r.quiet(s, c, fx)
	default:
		panic(fmt.Sprintf("registry: operation %d passed validation", c.Op))
	}
}

// begin opens the session of an OpOpen or OpEnter. If it may not, begin fills in the reason and returns nil.
func (r *Registry) begin(c *Command, result *Result, fx *Effects) (s *session) {
	switch {
	case c.Op == OpOpen && r.control.refusesOpen(c, r.deeds, result):
	case c.Op == OpOpen:
		r.deeds.opened()
		return r.open(c)
	case c.Op != OpEnter:
		*result = NoSession(c.Session)
	case !r.refusesSeat(c, result):
		s = r.open(c)
		s.server = c.guarding().Server
		r.thawGuarded().Enter(SeatOf(s.server, s.id))
		fx.View = true
	}
	return s
}

func (r *Registry) open(c *Command) *session {
	s := &session{
		id: c.Session, party: newParty(c.Owner, c.Host, c.PID, c.Program), ttl: c.TTL,
		opened: r.wall, tally: &r.tally,
	}
	s.fixed = s.hash()
	s.sessionState = &sessionState{of: s, generation: r.generation}
	r.keep(s)
	return s
}

func (r *Registry) acquire(s *session, c *Command, result *Result, fx *Effects) {
	limit, k := max(c.Limit, 1), key{c.Class, c.Name}
	asked, closed := extrasOf(c, r.now), r.lingers.closed(k)
	if r.elsewhere(c, result) || r.bars(c, &r.head, asked, closed, result) {
		return
	}
	res := r.claimed(k, limit)
	admitted := res.admits(asked, closed) && !r.drains(res)
	switch {
	case res.limit != limit:
		*result = Result{Code: Invalid, Message: fmt.Sprintf("%s has the limit %d while it is held, not %d", quoted(c.Name), res.limit, limit)}
		return
	case !admitted && c.Try && !r.home:
		*result = Result{Code: Held, Message: quoted(c.Name) + " is held", Holder: res.inTheWay()}
		return
	case len(res.queue()) >= MaxQueue:
		*result = Result{Code: Exhausted, Message: fmt.Sprintf("%s has %d waiters, the most there may be", quoted(c.Name), MaxQueue)}
		return
	}
	res = r.thaw(res)
	made := &claim{session: s, resource: res, sequence: c.Sequence, since: r.wall, extras: asked}
	switch {
	case admitted:
		r.enter(made)
		r.grant(made, fx)
		result.granted(made)
	case len(c.Keeps) == 0 || r.mayWait(made, c.Keeps, result):
		r.wait(made, result, fx)
	}
}

// wait puts a new claim into the queue of its resource, which is thawed.
func (r *Registry) wait(c *claim, result *Result, fx *Effects) {
	r.enter(c)
	result.Code, result.Ahead, result.Lingers = Queued, c.resource.enqueue(c), c.lingers()
	r.waits(c, 1)
	r.list(c)
	fx.queued(c.resource)
}

// grant makes a claim of its session a holder of its resource, which is thawed.
func (r *Registry) grant(c *claim, fx *Effects) {
	if r.counter++; r.counter == counterTurn {
		r.epoch, r.counter = r.epoch+1, 1
	}
	r.hold(c, r.fence(), fx)
}

// hold makes a claim of its session a holder with a fence.
func (r *Registry) hold(c *claim, fence uint64, fx *Effects) {
	c.fence = fence
	c.since = r.wall
	c.resource.admit(c)
	r.thawSession(c.session)
	c.session.holds++
	r.reports.granted(c)
	fx.changed(c.resource)
}

// release ends a hold. If it was unused, its place does not linger, and for its rule it never was.
func (r *Registry) release(s *session, hold uint64, unused bool, result *Result, fx *Effects) {
	c := s.claims.get(number(hold))
	switch {
	case c == nil:
		*result = Result{Code: NotHeld, Message: fmt.Sprintf("the session holds nothing by request %d: it was released before, or never granted", hold)}
		return
	case !c.held():
		*result = Result{Code: NotHeld, Message: fmt.Sprintf("request %d for %s still waits: cancel it", hold, quoted(c.resource.name))}
		return
	}
	if unused && c.lingers() {
		res := r.thaw(c.resource)
		c = r.amend(res, slices.Index(res.holders(), c), func(t *extras) { t.atLeast, t.lossDelay = 0, 0 })
	}
	before := r.expected
	if r.drop(c, Stale, Released); unused {
		r.expected = before // nobody has used the name
	}
	r.settle(c.resource, fx)
	r.leave(s, fx)
	result.Code = OK
}

// cancel withdraws a claim that waits. A claim that was granted before is reported with its
// fence and stays. A request that has not arrived yet is answered in advance, so that it
// is withdrawn when it arrives.
func (r *Registry) cancel(s *session, hold uint64, fx *Effects) Result {
	c := s.claims.get(number(hold))
	if c == nil {
		if _, found := s.find(hold); !found {
			s.remember(answer{sequence: hold, code: Cancelled, message: "withdrawn before it arrived"})
		}
		return Result{Code: OK}
	}
	if c.held() {
		return c.state()
	}
	r.drop(c, Cancelled, 0)
	*fx.outcome(c) = Result{Code: Cancelled, Message: "withdrawn"}
	r.settle(c.resource, fx) // grants to the readers behind a writer that left
	return Result{Code: OK}
}

func (r *Registry) update(s *session, c *Command, fx *Effects) Result {
	made := s.claims.get(number(c.Hold))
	if made == nil || !made.held() || made.resource.class != Election {
		return Result{Code: NotHeld, Message: fmt.Sprintf("the session leads no election by request %d", c.Hold)}
	}
	r.amend(r.thaw(made.resource), 0, func(t *extras) { t.value = c.Value })
	fx.changed(made.resource)
	return Result{Code: OK, Fence: made.fence}
}

// drop ends a claim. If its request arrives again, it is answered with code.
func (r *Registry) drop(c *claim, code Code, how Ending) {
	res := r.thaw(c.resource)
	if c.held() {
		r.remember(c, how)
		r.exit(c)
		c.session.holds--
	} else {
		res.countQueue()
		r.exit(c)
		r.waits(c, -1)
	}
	r.unlist(c)
	if c.revoked {
		c.session.revocations--
	}
	res.remove(c)
	c.session.remember(answer{sequence: c.sequence, code: code, message: "the claim has ended"})
}

// settle grants to the waiters of a thawed resource that now fit, forgets it if nobody holds it,
// and notes that a holder or waiter has left.
func (r *Registry) settle(res *resource, fx *Effects) {
	for !r.drains(res) && len(res.queue()) > 0 && res.fits(res.queue()[0].extras, r.lingers.closed(res.key())) {
		next := r.promote(res, r.now)
		r.deeds.waited(next, r.wall)
		r.grant(next, fx)
		fx.granted(next)
	}
	switch {
	case res.gone():
		r.forget(res)
		fx.changed(res)
	case len(res.holders()) == 0: // its guard changes, or a place lingers
		fx.changed(res)
	default:
		fx.queued(res)
	}
}
