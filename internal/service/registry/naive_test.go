package registry

import (
	"slices"
	"unicode/utf8"

	"github.com/conclave-io/conclave/algorithm/view"
)

// naive is a second registry, written only from the rules and as simply as possible: one
// slice of sessions, one of claims in the order of their arrival, and a scan for every
// question. It shares no code with the registry but the types of its commands and
// answers.
type naive struct {
	sessions []*naiveSession
	claims   []*naiveClaim
	epoch    uint64 // of the next fence; 0 is 1
	count    uint64 // of fences in the epoch
	renewals uint64
	now      int64
	turn     int
	closed   []naiveClosed
	rules    []*naiveRule

	guarded naiveGuarded

	fx Effects // of the present step
}

// fence is the newest, or 0.
func (m *naive) fence() uint64 {
	if m.epoch == 0 && m.count == 0 {
		return 0
	}
	return max(m.epoch, 1)<<40 + m.count
}

// naiveClosed is a place that stays closed after a hold.
type naiveClosed struct {
	key   key
	limit uint32
	fence uint64
	until int64
}

type naiveSession struct {
	id        SessionID
	owner     string
	ttl       int64
	low       uint64
	answers   map[uint64]Result
	renewals  uint64
	silent    bool
	remaining int64
	leaving   bool
}

type naiveClaim struct {
	session  SessionID
	sequence uint64
	key      key
	limit    uint32
	fence    uint64 // 0 while it waits
	value    string
	shared   bool
	priority int64
	patience int64
	since    int64
	revoked  bool
	reason   string
	named    int // the turn in which a leader named it last, or 0
	atLeast  int64
	delay    int64
	keeps    []Kept
}

func (m *naive) step(term uint64, now int64, c *Command) {
	m.fx = Effects{}
	m.now = max(m.now, now)
	m.openDue()
	switch c.Op {
	case OpExpire:
		if c.Term == term {
			m.end(m.standing(c.Verdicts), true)
		}
	case OpSilence:
		if c.Term == term {
			for _, verdict := range c.Verdicts {
				if s := m.session(verdict.Session); s != nil && s.renewals == verdict.Renewals {
					s.silent, s.remaining = true, verdict.Remaining
				}
			}
		}
	case OpMember:
		m.guarded.voters[c.Member.ID] = c.Member.UID != 0
	case OpGuard:
		m.tell(SessionID(c.Origin().Request), 0, m.setGuard(c))
	case OpExpect:
		m.tell(SessionID(c.Origin().Request), 0, m.expect(c))
	case OpEnd:
		m.tell(SessionID(c.Origin().Request), 0, m.dismiss(c))
	case OpDrop:
		if c.Term == term {
			m.dropOverdue(c.Claims)
		}
	case OpOvertake:
		m.overtake(key{Election, c.Name})
	case OpTime:
	default:
		result := m.request(c)
		m.tell(c.Session, c.Sequence, result)
	}
	m.settle()
}

func (m *naive) open(c *Command) *naiveSession {
	s := &naiveSession{id: c.Session, owner: c.Owner, ttl: c.TTL, answers: map[uint64]Result{}}
	m.sessions = append(m.sessions, s)
	return s
}

func (m *naive) tell(id SessionID, sequence uint64, result Result) {
	m.fx.Outcomes = append(m.fx.Outcomes, Outcome{id, sequence, result})
}

func (m *naive) session(id SessionID) *naiveSession {
	for _, s := range m.sessions {
		if s.id == id {
			return s
		}
	}
	return nil
}

func (m *naive) request(c *Command) Result {
	if !naiveValid(c) {
		return Result{Code: Invalid}
	}
	s := m.session(c.Session)
	switch {
	case s == nil && c.Op == OpOpen:
		s = m.open(c)
	case s == nil && c.Op == OpEnter:
		refusal, opened := m.enter(c)
		if s = opened; s == nil {
			return refusal
		}
	}
	if s == nil {
		return Result{Code: SessionGone}
	}
	if !m.fits(c) {
		return Result{Code: Invalid}
	}
	if c.Op == OpOpen || c.Op == OpRenew || c.Op == OpEnter {
		m.renewals++
		s.renewals, s.silent, s.remaining = m.renewals, false, 0
		m.fx.Renewed = append(m.fx.Renewed, s.id)
		return Result{Code: OK, Remaining: s.ttl, Revoked: m.asked(s.id)}
	}
	s.low = max(s.low, c.Low)
	for sequence := range s.answers {
		if sequence < s.low {
			delete(s.answers, sequence)
		}
	}
	if result, again := m.before(s, c); again {
		return result
	}
	if len(s.answers) >= MaxAnswers && c.Op != OpClose {
		return Result{Code: Exhausted}
	}
	result := m.fresh(s, c)
	m.remember(s, c.Sequence, result)
	return result
}

func naiveValid(c *Command) bool {
	switch {
	case c.Sequence == 0 || c.Session == SessionID{}:
		return false
	case c.Op == OpEnter && c.guarding().Server == 0:
		return false
	case c.Op == OpOpen || c.Op == OpEnter:
		return c.TTL >= 100e6 && c.TTL <= 3600e9
	case c.Op == OpAcquire && (min(c.AtLeast, c.LossDelay) < 0 || c.Shared && c.AtLeast+c.LossDelay > 0 || max(c.AtLeast, c.LossDelay) > 7*24*3600e9):
		return false
	case c.Op == OpAcquire && c.Class == Election && (c.Limit > 1 || c.Shared || c.Patience < 0):
		return false
	case c.Op == OpAcquire && c.Class == Lock && (c.Shared && c.Limit > 1 || c.Priority != 0 || c.Patience != 0):
		return false
	case c.Op == OpAcquire || c.Op == OpRevoke:
		return c.Name != "" && len(c.Name) <= 512 && utf8.ValidString(c.Name)
	}
	return true
}

// before answers a request that was carried out already.
func (m *naive) before(s *naiveSession, c *Command) (Result, bool) {
	if claim := m.claim(s.id, c.Sequence); claim != nil && c.Op == OpAcquire {
		if claim.fence != 0 {
			return Result{Code: OK, Fence: claim.fence, Floor: m.floor(claim.key)}, true
		}
		return Result{Code: Queued, Ahead: uint32(slices.Index(m.queue(claim.key), claim))}, true
	}
	if result, known := s.answers[c.Sequence]; known {
		result.Holder, result.Closed, result.Ahead = nil, nil, 0
		if holding := m.holders(key{c.Class, c.Name}); result.Code == Held && c.Op == OpAcquire && len(holding) > 0 {
			result.Holder = holding[0].holder()
		} else if result.Code == Held && c.Op == OpAcquire {
			result.Closed = m.firstClosed(key{c.Class, c.Name})
		}
		return result, true
	}
	return Result{Code: Stale}, c.Sequence < s.low
}

func (m *naive) remember(s *naiveSession, sequence uint64, result Result) {
	if sequence >= s.low {
		s.answers[sequence] = result
	}
}

func (m *naive) claim(id SessionID, sequence uint64) *naiveClaim {
	for _, claim := range m.claims {
		if claim.session == id && claim.sequence == sequence {
			return claim
		}
	}
	return nil
}

// queue returns the waiters. Those that a leader has named come first, the last one named
// first of all. The others are sorted by priority, and then by arrival.
func (m *naive) queue(k key) (waiting []*naiveClaim) {
	for _, claim := range m.claims {
		if claim.key == k && claim.fence == 0 {
			waiting = append(waiting, claim)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *naiveClaim) int {
		if a.named != b.named {
			return b.named - a.named
		}
		return int(b.priority - a.priority)
	})
	return waiting
}

// holders returns those that hold, in the order of their grants.
func (m *naive) holders(k key) (holding []*naiveClaim) {
	for _, claim := range m.claims {
		if claim.key == k && claim.fence != 0 {
			holding = append(holding, claim)
		}
	}
	slices.SortFunc(holding, func(a, b *naiveClaim) int { return int(a.fence) - int(b.fence) })
	return holding
}

func (m *naive) fresh(s *naiveSession, c *Command) Result {
	claim := m.claim(s.id, c.Hold)
	holds := claim != nil && claim.fence != 0
	switch c.Op {
	case OpAcquire:
		if s.leaving {
			return Result{Code: Revoked}
		}
		return m.acquire(s, c)
	case OpClose:
		if c.guarding().Heir != (view.Seat{}) && !m.inherits(s, c.guarding().Heir) {
			return Result{Code: NotMember}
		}
		m.end([]*naiveSession{s}, false)
	case OpRelease:
		if !holds {
			return Result{Code: NotHeld}
		}
		if m.remove(claim); !c.Unused {
			m.linger(claim, false)
		}
		m.remember(s, c.Hold, Result{Code: Stale})
		m.fill(claim.key)
		m.leave(s)
	case OpCancel:
		switch {
		case holds:
			return Result{Code: OK, Fence: claim.fence, Floor: m.floor(claim.key)}
		case claim != nil:
			m.remove(claim)
			m.remember(s, c.Hold, Result{Code: Cancelled})
			m.tell(s.id, c.Hold, Result{Code: Cancelled})
			m.fill(claim.key)
		case s.answers[c.Hold].Code == 0:
			m.remember(s, c.Hold, Result{Code: Cancelled})
		}
	case OpUpdate:
		if !holds || claim.key.class != Election {
			return Result{Code: NotHeld}
		}
		claim.value = c.Value
		m.changed(claim.key)
		return Result{Code: OK, Fence: claim.fence}
	case OpRevoke:
		return m.revoke(c)
	case OpTransfer:
		return m.transfer(s, c, claim)
	case OpTurn, OpQuiet:
		return m.say(c)
	}
	return Result{Code: OK}
}

func (m *naive) revoke(c *Command) Result {
	fence := uint64(0)
	for _, holder := range m.holders(key{c.Class, c.Name}) {
		if c.Fence == 0 || holder.fence == c.Fence {
			fence = holder.fence
			m.ask(holder, c.Value)
		}
	}
	if fence = max(fence, m.reopen(key{c.Class, c.Name}, c.Fence)); fence == 0 {
		return Result{Code: NotFound}
	}
	return Result{Code: OK, Fence: fence}
}

func (m *naive) ask(holder *naiveClaim, reason string) {
	if !holder.revoked {
		holder.revoked, holder.reason = true, reason
		m.tell(holder.session, holder.sequence, Result{Code: Revoked, Fence: holder.fence})
	}
}

func (m *naive) asked(id SessionID) (sequences []uint64) {
	for _, claim := range m.claims {
		if claim.session == id && claim.revoked {
			sequences = append(sequences, claim.sequence)
		}
	}
	slices.Sort(sequences)
	return sequences
}

func (m *naive) dropOverdue(ids []ClaimID) {
	for _, id := range ids {
		if claim := m.claim(id.Session, id.Sequence); claim != nil && claim.revoked {
			m.lose(claim)
			m.fill(claim.key)
			m.leave(m.session(claim.session))
		}
	}
}

// dismiss ends the session of somebody else.
func (m *naive) dismiss(c *Command) Result {
	s := m.session(c.Session)
	switch {
	case s == nil:
		return Result{Code: NotFound}
	case m.guarded.seated(s.id) != nil:
		return Result{Code: Invalid}
	}
	s.leaving = true
	var freed []key
	for _, claim := range m.own(s.id) {
		if claim.fence != 0 {
			continue
		}
		m.remove(claim)
		m.remember(s, claim.sequence, Result{Code: Cancelled})
		m.tell(s.id, claim.sequence, Result{Code: Cancelled})
		if !slices.Contains(freed, claim.key) {
			freed = append(freed, claim.key)
		}
	}
	for _, k := range freed {
		m.fill(k)
	}
	for _, claim := range m.own(s.id) {
		m.ask(claim, c.Value)
	}
	m.leave(s)
	return Result{Code: OK}
}

// leave ends a session that is to end and holds nothing.
func (m *naive) leave(s *naiveSession) {
	if s.leaving && len(m.own(s.id)) == 0 {
		m.end([]*naiveSession{s}, true)
	}
}

// own returns what a session claims, in the order of its requests.
func (m *naive) own(id SessionID) (own []*naiveClaim) {
	for _, claim := range m.claims {
		if claim.session == id {
			own = append(own, claim)
		}
	}
	slices.SortFunc(own, func(a, b *naiveClaim) int { return int(a.sequence) - int(b.sequence) })
	return own
}

// lose takes a hold away.
func (m *naive) lose(claim *naiveClaim) {
	m.remove(claim)
	m.linger(claim, true)
	m.remember(m.session(claim.session), claim.sequence, Result{Code: Stale})
}

func (m *naive) transfer(s *naiveSession, c *Command, led *naiveClaim) Result {
	if led == nil || led.fence == 0 || led.key.class != Election {
		return Result{Code: NotHeld}
	}
	for _, heir := range m.queue(led.key) {
		if heir.value == c.Value || heir.session.String() == c.Value {
			m.turn++
			heir.named = m.turn
			m.ask(led, "")
			return Result{Code: OK, Fence: led.fence}
		}
	}
	return Result{Code: NotFound}
}

func (m *naive) overtake(k key) {
	holding, waiting := m.holders(k), m.queue(k)
	if len(waiting) == 0 || len(holding) == 0 {
		return
	}
	first, leader := waiting[0], holding[0]
	patient := first.patience > 0 && first.named == 0 && m.now >= first.since+first.patience && m.now >= leader.since+first.patience
	if patient && first.priority > leader.priority {
		m.ask(leader, "")
	}
}

func (m *naive) acquire(s *naiveSession, c *Command) Result {
	k := key{c.Class, c.Name}
	limit := max(1, c.Limit)
	holding, waiting := m.holders(k), m.queue(k)
	claim := &naiveClaim{session: s.id, sequence: c.Sequence, key: k, limit: limit, shared: c.Shared, since: m.now, atLeast: c.AtLeast, delay: c.LossDelay}
	if c.Class == Election {
		claim.value, claim.priority, claim.patience = c.Value, c.Priority, c.Patience
	}
	use, drains := m.guarded.use(k)
	if len(waiting) > 0 {
		holding = append(slices.Clone(holding), waiting[0]) // of the same limit
	}
	switch {
	case use != "":
		return Result{Code: Moved}
	case drains && c.Try && len(m.holders(k)) == 0:
		return Result{Code: Held}
	case len(holding) > 0 && holding[0].limit != limit:
		return Result{Code: Invalid}
	case m.closedLimit(k) != 0 && m.closedLimit(k) != limit:
		return Result{Code: Invalid}
	case len(waiting) == 0 && m.room(claim):
		m.claims = append(m.claims, claim)
		m.grant(claim)
		return Result{Code: OK, Fence: claim.fence, Floor: m.floor(k)}
	case c.Try && len(m.holders(k)) == 0:
		return Result{Code: Held, Closed: m.firstClosed(k)}
	case c.Try:
		return Result{Code: Held, Holder: holding[0].holder()}
	}
	claim.keeps = c.Keeps
	m.claims = append(m.claims, claim)
	if len(m.forever()) > 0 {
		m.remove(claim)
		return Result{Code: Deadlocked}
	}
	return Result{Code: Queued, Ahead: uint32(slices.Index(m.queue(k), claim))}
}

// forever returns the claims that wait forever, even if all others release as soon as
// they may. A client that waits does not release what it keeps. No client keeps a hold
// that it was asked to leave.
func (m *naive) forever() []*naiveClaim {
	play := naive{epoch: m.epoch, count: m.count, sessions: m.sessions} // nothing drains forever
	for _, c := range m.claims {
		own := *c
		play.claims = append(play.claims, &own)
	}
	for _, c := range slices.Clone(play.claims) {
		play.fill(c.key) // it drained
	}
	for progress := true; progress; {
		progress = false
		for _, c := range slices.Clone(play.claims) {
			if c.fence != 0 && !play.keeps(c) {
				play.remove(c)
				play.fill(c.key)
				progress = true
			}
		}
	}
	return slices.DeleteFunc(play.claims, func(c *naiveClaim) bool { return c.fence != 0 })
}

// keeps reports whether anybody who waits keeps a hold that need not end.
func (m *naive) keeps(hold *naiveClaim) bool {
	if hold.revoked {
		return false
	}
	k := Kept{hold.key.class, hold.key.name, hold.fence}
	return slices.ContainsFunc(m.claims, func(c *naiveClaim) bool {
		return c.fence == 0 && slices.Contains(c.keeps, k) && m.session(c.session).owner == m.session(hold.session).owner
	})
}

func (c *naiveClaim) holder() *Holder {
	return &Holder{Session: c.session, Sequence: c.sequence, Fence: c.fence, Value: c.value, Shared: c.shared, Priority: c.priority, Revoked: c.revoked}
}

// room reports whether a claim may hold together with the present holders: a shared one
// with shared ones, others up to the limit and not with a shared one.
func (m *naive) room(claim *naiveClaim) bool {
	if _, drains := m.guarded.use(claim.key); drains {
		return false
	}
	holding := m.holders(claim.key)
	for _, holder := range holding {
		if holder.shared != claim.shared {
			return false
		}
	}
	closed := len(m.closedOf(claim.key))
	return claim.shared && closed == 0 || !claim.shared && len(holding)+closed < int(claim.limit)
}

// floor is the smallest fence of those that hold, also of those that are asked to
// leave.
func (m *naive) floor(k key) uint64 { return m.holders(k)[0].fence }

func (m *naive) grant(claim *naiveClaim) {
	m.count++
	claim.fence, claim.since = m.fence(), m.now
	m.changed(claim.key)
}

func (m *naive) changed(k key) {
	if k.class == Election {
		m.fx.Elections = append(m.fx.Elections, k.name)
	}
}

func (m *naive) remove(claim *naiveClaim) {
	m.claims = slices.DeleteFunc(m.claims, func(c *naiveClaim) bool { return c == claim })
}

// fill grants while there is somebody to grant to and room.
func (m *naive) fill(k key) {
	for _, next := range m.queue(k) {
		if !m.room(next) {
			break
		}
		m.grant(next)
		m.tell(next.session, next.sequence, Result{Code: OK, Fence: next.fence, Floor: m.floor(k)})
	}
	if len(m.holders(k)) == 0 {
		m.changed(k)
	}
}

// standing returns the sessions of verdicts that no renewal has overtaken, each
// once.
func (m *naive) standing(verdicts []Verdict) (over []*naiveSession) {
	for _, verdict := range verdicts {
		s := m.session(verdict.Session)
		if s != nil && s.renewals == verdict.Renewals && !slices.Contains(over, s) {
			over = append(over, s)
		}
	}
	return over
}

// end takes all claims of all these sessions away before it grants anything.
func (m *naive) end(over []*naiveSession, lost bool) {
	var freed []key
	for _, s := range over {
		m.sessions = slices.DeleteFunc(m.sessions, func(other *naiveSession) bool { return other == s })
		m.guarded.seats = slices.DeleteFunc(m.guarded.seats, func(seat naiveSeat) bool { return seat.id == s.id })
		m.guarded.heirs = slices.DeleteFunc(m.guarded.heirs, func(h naiveHeir) bool { return h.seat.id == s.id })
		m.fx.Ended = append(m.fx.Ended, s.id)
		for _, claim := range m.own(s.id) {
			m.remove(claim)
			if claim.fence == 0 {
				m.tell(s.id, claim.sequence, Result{Code: SessionGone})
			} else {
				m.linger(claim, lost)
			}
			if !slices.Contains(freed, claim.key) {
				freed = append(freed, claim.key)
			}
		}
	}
	for _, k := range freed {
		m.fill(k)
	}
}
