package registry

import (
	"cmp"
	"fmt"
	"slices"
)

// A fence is the epoch, then a counter of grants.
const (
	counterBits = 40
	// counterTurn is where a new epoch begins: far from the end, so that no
	// counter ever runs into the epoch's bits.
	counterTurn = 1 << 39
	// maxEpoch keeps the sign bit 0.
	maxEpoch = 1<<(63-counterBits) - 1
)

// Registry is the replicated state.
type Registry struct {
	epoch   uint64
	counter uint64
	// now is the replicated time of the newest entry, never set back, and wall the
	// wall clock of its leader, which may be anything.
	now, wall int64
	// renewals counts those of all sessions, so that a verdict on an ended
	// session cannot fit one that was opened later under the same id.
	renewals uint64

	sessions  map[SessionID]*session
	resources table[key, *resource]
	members   map[uint64]Member
	waiters   int
	elections int // of the resources
	past      past
	encoded   int // the size of the last encoding

	// revoked are the holds whose holders are asked to leave, and eager the
	// candidates that may take the place of a leader after a while.
	revoked map[ClaimID]*claim
	eager   map[ClaimID]*claim
}

// New returns the state before the first entry.
func New() *Registry {
	return &Registry{
		epoch:    1,
		sessions: make(map[SessionID]*session),
		members:  make(map[uint64]Member),
		past:     newPast(),
		revoked:  make(map[ClaimID]*claim),
		eager:    make(map[ClaimID]*claim),
	}
}

// Effects is what applying entries brought about, in order. The caller owns
// and reuses it.
type Effects struct {
	Outcomes []Outcome
	// Renewed are the sessions opened or renewed through the log.
	Renewed []SessionID
	// Ended are the sessions that expired or were closed.
	Ended []SessionID
	// Elections are the names of elections whose leader or value changed; a
	// name may stand more than once.
	Elections []string
	// Locks are the names of locks whose holders or queue changed, if
	// WatchLocks asks for them.
	Locks      []string
	WatchLocks bool
	// Members says that a server was put on record.
	Members bool
}

// Reset empties fx and keeps its memory.
func (fx *Effects) Reset() {
	clear(fx.Outcomes)
	fx.Outcomes = fx.Outcomes[:0]
	fx.Renewed = fx.Renewed[:0]
	fx.Ended = fx.Ended[:0]
	fx.Elections = fx.Elections[:0]
	fx.Locks = fx.Locks[:0]
	fx.Members = false
}

// Apply carries out the commands of a log entry of the given term and adds
// what they brought about to fx.
func (r *Registry) Apply(term uint64, batch *Batch, fx *Effects) {
	r.now, r.wall = max(r.now, batch.Time), batch.Wall
	for i := range batch.Commands {
		r.apply(term, &batch.Commands[i], fx)
	}
}

func (r *Registry) apply(term uint64, c *Command, fx *Effects) {
	switch c.Op {
	case OpExpire:
		if c.Term == term {
			r.expire(c.Leases, fx)
		}
	case OpSilence:
		if c.Term == term {
			r.silence(c.Leases)
		}
	case OpMember:
		r.record(c.Member, fx)
	case OpDrop:
		if c.Term == term {
			r.dropOverdue(c.Claims, fx)
		}
	case OpOvertake:
		r.overtake(c.Name, fx)
	case OpEnd:
		fx.Outcomes = append(fx.Outcomes, Outcome{Session: c.asker(), Result: r.dismiss(c, fx)})
	default:
		fx.Outcomes = append(fx.Outcomes, Outcome{c.Session, c.Sequence, r.request(c, fx)})
	}
}

// request carries out a client's command once, however often it comes.
func (r *Registry) request(c *Command, fx *Effects) Result {
	if problem := c.Validate(); problem != "" {
		return Result{Code: Invalid, Message: problem}
	}
	s := r.sessions[c.Session]
	if s == nil {
		if c.Op != OpOpen {
			return NoSession(c.Session)
		}
		s = r.open(c)
	}
	if c.Op == OpOpen || c.Op == OpRenew {
		// Renewing again does no harm, and must have its effect each time: the
		// client counts from the newest transmission.
		r.renewals++
		s.renewed(r.renewals)
		fx.Renewed = append(fx.Renewed, s.id)
		return Result{Code: OK, Remaining: s.ttl, Revoked: s.asked()}
	}
	if earlier, again := r.answered(s, c); again {
		return earlier
	}
	if len(s.answers) >= MaxAnswers && c.Op != OpClose {
		return Result{Code: Exhausted, Message: fmt.Sprintf("the session has %d answers that it has not acknowledged: raise low", MaxAnswers)}
	}
	result := r.carryOut(s, c, fx)
	s.remember(c.Sequence, result)
	return result
}

// NoSession is the answer to a request of a session that is not open.
func NoSession(id SessionID) Result {
	return Result{Code: SessionGone, Message: fmt.Sprintf("no such session: %v: it may have expired or been closed; open a new one", id)}
}

// answered finds the answer of a request that was carried out before. A claim
// that lives on answers with its present state.
func (r *Registry) answered(s *session, c *Command) (Result, bool) {
	s.forget(c.Low)
	if c.Op == OpAcquire {
		if made := s.claims.get(number(c.Sequence)); made != nil {
			return made.state(), true
		}
	}
	if i, found := s.find(c.Sequence); found {
		return r.recall(&s.answers[i], c), true
	}
	if c.Sequence < s.low {
		return Result{Code: Stale, Message: fmt.Sprintf("request %d was answered before, and the answer acknowledged", c.Sequence)}, true
	}
	return Result{}, false
}

// recall is a remembered answer. It was remembered without the holder that stood in
// the way, so the present one is told, if there is any.
func (r *Registry) recall(a *answer, c *Command) Result {
	result := Result{Code: a.code, Message: a.message, Fence: a.fence, Floor: a.floor}
	if a.code != Held || c.Op != OpAcquire {
		return result
	}
	if res := r.resources.get(key{c.Class, c.Name}); res != nil {
		result.Holder = res.inTheWay()
	}
	return result
}

func (c *claim) state() Result {
	if c.held() {
		return Result{Code: OK, Fence: c.fence, Floor: c.resource.floor()}
	}
	return Result{Code: Queued, Ahead: c.resource.ahead(c)}
}

func (r *Registry) carryOut(s *session, c *Command, fx *Effects) Result {
	switch c.Op {
	case OpClose:
		r.end([]*session{s}, Closed, fx)
		return Result{Code: OK}
	case OpAcquire:
		if s.leaving {
			return Result{Code: Revoked, Message: "the session is being ended: release what it holds, then open a new one"}
		}
		return r.acquire(s, c, fx)
	case OpRelease:
		return r.release(s, c.Hold, fx)
	case OpCancel:
		return r.cancel(s, c.Hold, fx)
	case OpUpdate:
		return r.update(s, c, fx)
	case OpRevoke:
		return r.revoke(c, fx)
	case OpTransfer:
		return r.transfer(s, c, fx)
	}
	panic(fmt.Sprintf("registry: operation %d passed validation", c.Op))
}

func (r *Registry) open(c *Command) *session {
	s := &session{
		id: c.Session, owner: c.Owner, ttl: c.TTL,
		host: c.Host, pid: c.PID, program: c.Program,
		opened: r.wall,
	}
	r.sessions[s.id] = s
	return s
}

func (r *Registry) acquire(s *session, c *Command, fx *Effects) Result {
	limit := max(c.Limit, 1)
	res := r.resources.get(key{c.Class, c.Name})
	if res == nil {
		res = &resource{name: c.Name, class: c.Class, limit: limit}
		r.add(res)
	}
	made := &claim{session: s, resource: res, sequence: c.Sequence, since: r.wall, terms: termsOf(c, r.now)}
	admitted := res.admits(made.terms)
	switch {
	case res.limit != limit:
		return Result{Code: Invalid, Message: fmt.Sprintf("%s has the limit %d while it is held, not %d", quoted(c.Name), res.limit, limit)}
	case !admitted && c.Try:
		return Result{Code: Held, Message: quoted(c.Name) + " is held", Holder: res.inTheWay()}
	case len(res.queue()) >= MaxQueue:
		return Result{Code: Exhausted, Message: fmt.Sprintf("%s has %d waiters, the most there may be", quoted(c.Name), MaxQueue)}
	}
	s.claims.put(made)
	if admitted {
		r.grant(made, fx)
		return made.state()
	}
	ahead := res.enqueue(made)
	r.waits(made, 1)
	if made.patience > 0 {
		r.eager[made.id()] = made
	}
	fx.queued(res)
	return Result{Code: Queued, Ahead: ahead}
}

// grant makes c a holder.
func (r *Registry) grant(c *claim, fx *Effects) {
	if r.counter++; r.counter == counterTurn {
		r.epoch, r.counter = r.epoch+1, 1
	}
	c.fence = r.epoch<<counterBits | r.counter
	c.since = r.wall
	c.resource.admit(c)
	delete(r.eager, c.id())
	if c.resource.class == Election && (c.named || c.at != r.now) {
		c.amend(func(t *terms) { t.named, t.at = false, r.now })
	}
	fx.changed(c.resource)
}

func (c *claim) id() ClaimID { return ClaimID{c.session.id, c.sequence} }

// changed notes that the holders of a resource changed.
func (fx *Effects) changed(res *resource) {
	if res.class == Election {
		fx.Elections = append(fx.Elections, res.name)
	}
	fx.queued(res)
}

// queued notes that the queue of a lock changed.
func (fx *Effects) queued(res *resource) {
	if res.class == Lock && fx.WatchLocks {
		fx.Locks = append(fx.Locks, res.name)
	}
}

func (r *Registry) release(s *session, hold uint64, fx *Effects) Result {
	c := s.claims.get(number(hold))
	switch {
	case c == nil:
		return Result{Code: NotHeld, Message: fmt.Sprintf("the session holds nothing by request %d: it was released before, or never granted", hold)}
	case !c.held():
		return Result{Code: NotHeld, Message: fmt.Sprintf("request %d for %s still waits: cancel it", hold, quoted(c.resource.name))}
	}
	r.drop(c, Stale, Released)
	r.settle(c.resource, fx)
	r.leave(s, fx)
	return Result{Code: OK}
}

// cancel withdraws a claim that waits. A claim that was granted before is
// reported with its fence and left alone. A request that has not arrived yet
// is answered in advance, so that it finds itself withdrawn.
func (r *Registry) cancel(s *session, hold uint64, fx *Effects) Result {
	c := s.claims.get(number(hold))
	if c == nil {
		if _, found := s.find(hold); !found {
			s.remember(hold, Result{Code: Cancelled, Message: "withdrawn before it arrived"})
		}
		return Result{Code: OK}
	}
	if c.held() {
		return c.state()
	}
	r.drop(c, Cancelled, 0)
	fx.Outcomes = append(fx.Outcomes, Outcome{s.id, hold, Result{Code: Cancelled, Message: "withdrawn"}})
	fx.queued(c.resource)
	r.settle(c.resource, fx) // the readers behind a writer that left
	return Result{Code: OK}
}

func (r *Registry) update(s *session, c *Command, fx *Effects) Result {
	made := s.claims.get(number(c.Hold))
	if made == nil || !made.held() || made.resource.class != Election {
		return Result{Code: NotHeld, Message: fmt.Sprintf("the session leads no election by request %d", c.Hold)}
	}
	made.amend(func(t *terms) { t.value = c.Value })
	fx.changed(made.resource)
	return Result{Code: OK, Fence: made.fence}
}

// drop ends a claim; its request, if it comes again, is answered with code.
func (r *Registry) drop(c *claim, code Code, how Ending) {
	if c.held() {
		r.past.add(c, r.wall, how)
	} else {
		r.waits(c, -1)
	}
	r.unlist(c)
	c.resource.remove(c)
	c.session.claims.remove(number(c.sequence))
	c.session.remember(c.sequence, Result{Code: code, Message: "the claim has ended"})
}

// waits counts a claim that begins to wait, or waits no longer.
func (r *Registry) waits(c *claim, more int) {
	r.waiters += more
	c.session.waits += more
}

func (r *Registry) add(res *resource) {
	r.resources.put(res)
	if res.class == Election {
		r.elections++
	}
}

func (r *Registry) forget(res *resource) {
	r.resources.remove(res.key())
	if res.class == Election {
		r.elections--
	}
}

// unlist takes a claim off the lists of those that are to be looked after.
func (r *Registry) unlist(c *claim) {
	if c.revoked {
		c.session.revocations--
		delete(r.revoked, c.id())
	}
	if c.patience > 0 {
		delete(r.eager, c.id())
	}
}

// settle grants to the waiters that now fit, and forgets a resource that
// nobody holds.
func (r *Registry) settle(res *resource, fx *Effects) {
	for len(res.queue()) > 0 && res.fits(res.queue()[0].terms) {
		next := res.queue()[0]
		res.remove(next)
		r.waits(next, -1)
		r.grant(next, fx)
		fx.Outcomes = append(fx.Outcomes, Outcome{next.session.id, next.sequence, next.state()})
	}
	if len(res.holders()) == 0 {
		r.forget(res)
		fx.changed(res)
	}
}

func (r *Registry) expire(leases []Lease, fx *Effects) {
	var over []*session
	for _, lease := range leases {
		if s := r.judged(lease); s != nil {
			over = append(over, s)
		}
	}
	r.end(over, Expired, fx)
}

// end removes the sessions with all their claims, and only then grants what
// became free, so that nothing is granted to a session that ends as well.
func (r *Registry) end(sessions []*session, how Ending, fx *Effects) {
	var freed []*resource
	for _, s := range sessions {
		if s.ended {
			continue // named twice
		}
		s.ended = true
		delete(r.sessions, s.id)
		fx.Ended = append(fx.Ended, s.id)
		for _, c := range s.sortedClaims() {
			r.abandon(c, how, fx)
			if !c.resource.swept {
				c.resource.swept = true
				freed = append(freed, c.resource)
			}
		}
	}
	for _, res := range freed {
		res.sweep()
		r.settle(res, fx)
	}
}

// abandon notes how a hold of an ended session ended, and reports it to a
// waiter.
func (r *Registry) abandon(c *claim, how Ending, fx *Effects) {
	r.unlist(c)
	if c.held() {
		r.past.add(c, r.wall, how)
		return
	}
	r.waits(c, -1)
	gone := Result{Code: SessionGone, Message: "the session ended while it waited"}
	fx.Outcomes = append(fx.Outcomes, Outcome{c.session.id, c.sequence, gone})
}

func (r *Registry) silence(leases []Lease) {
	for _, lease := range leases {
		if s := r.judged(lease); s != nil {
			s.silent, s.remaining = true, lease.Remaining
		}
	}
}

// judged returns the session of a verdict that still stands, or nil.
func (r *Registry) judged(lease Lease) *session {
	s := r.sessions[lease.Session]
	if s == nil || s.renewals != lease.Renewals {
		return nil
	}
	return s
}

// sortedSessions returns the sessions by id.
func (r *Registry) sortedSessions() []*session {
	sessions := make([]*session, 0, len(r.sessions))
	for _, s := range r.sessions {
		sessions = append(sessions, s)
	}
	slices.SortFunc(sessions, func(a, b *session) int { return a.id.Compare(b.id) })
	return sessions
}

// resourcesByAge returns the resources in the order in which those who have held
// them longest were granted. Fences are numbers and no two are equal, so this is
// the order that is had at the least expense.
func (r *Registry) resourcesByAge() []*resource {
	type aged struct {
		fence uint64
		res   *resource
	}
	list := make([]aged, 0, r.resources.len())
	for _, res := range r.resources.slots {
		if res == nil {
			continue
		}
		fence := uint64(0)
		if holders := res.holders(); len(holders) > 0 {
			fence = holders[0].fence
		}
		list = append(list, aged{fence, res})
	}
	slices.SortFunc(list, func(a, b aged) int { return cmp.Compare(a.fence, b.fence) })
	resources := make([]*resource, 0, len(list))
	for _, a := range list {
		resources = append(resources, a.res)
	}
	return resources
}
