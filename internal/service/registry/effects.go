package registry

import (
	"maps"
	"slices"

	"github.com/conclave-io/conclave/internal/kit/histogram"
)

// Effects are the effects of applied entries, in order. The caller owns and
// reuses it.
type Effects struct {
	Outcomes []Outcome
	// Renewed are the sessions opened or renewed through the log.
	Renewed []SessionID
	// Ended are the sessions that ended. Closed are those of them that were closed
	// by somebody and did not expire.
	Ended, Closed []SessionID
	// Elections are the names of elections whose leader or value changed, or that have opened. A
	// name may occur more than once.
	Elections []string
	// Locks are the names of locks whose holders or queue changed, if
	// WatchLocks is set.
	Locks      []string
	WatchLocks bool
	// Members means that the record of a server has changed.
	Members bool
	// View means that the result of Guarded has changed.
	View bool
	// Deeds, if not nil, counts the effects.
	Deeds *Deeds
}

// Reset empties fx and keeps its memory.
func (fx *Effects) Reset() {
	clear(fx.Outcomes)
	fx.Outcomes = fx.Outcomes[:0]
	fx.Renewed = fx.Renewed[:0]
	fx.Ended, fx.Closed = fx.Ended[:0], fx.Closed[:0]
	fx.Elections = fx.Elections[:0]
	fx.Locks = fx.Locks[:0]
	fx.Members, fx.View = false, false
}

// changed notes that the holders of a resource changed.
func (fx *Effects) changed(res *resource) {
	if res.class == Election {
		fx.Elections = append(fx.Elections, res.name)
	}
	fx.queued(res)
}

// queued notes that the queue of a lock changed, or its holders.
func (fx *Effects) queued(res *resource) {
	if res.class == Lock && fx.WatchLocks {
		fx.Locks = append(fx.Locks, res.name)
	}
}

// opened notes that a place has opened of a resource that nobody wants.
func (fx *Effects) opened(k key) {
	switch {
	case k.class == Election:
		fx.Elections = append(fx.Elections, k.name)
	case fx.WatchLocks:
		fx.Locks = append(fx.Locks, k.name)
	}
}

// granted adds the outcome of a claim that waited and now holds.
func (fx *Effects) granted(c *claim) { fx.outcome(c).granted(c) }

// outcome adds an outcome of a claim, and returns its result, which is still empty.
func (fx *Effects) outcome(c *claim) *Result {
	fx.Outcomes = append(fx.Outcomes, Outcome{})
	made := &fx.Outcomes[len(fx.Outcomes)-1]
	made.Session, made.Sequence = c.session.id, c.sequence
	return &made.Result
}

// Deeds counts the effects of entries, for metrics. It is not part of the state, and no command
// depends on it. It does not count the seats of servers, nor grants by algorithms.
type Deeds struct {
	// Opened counts new sessions. Over counts ended ones: Closed by their clients, Expired, or
	// Dropped because somebody else ended them.
	Opened uint64
	Over   [endings]uint64
	// Grants counts new holds by class, Ended those that ended, and Revoked those whose holders
	// were asked to leave.
	Grants  [classes]uint64
	Ended   [endings]uint64
	Revoked [motives]uint64
	// Quotas counts requests refused by a quota, by QuotaKinds.
	Quotas [len(QuotaKinds)]uint64
	// Waits are the times from queueing to the grant of requests that waited, and Holds the
	// times from the grant to the end, by class.
	Waits, Holds [classes]histogram.Durations
}

// Motive is the reason why a holder was asked to leave.
type Motive uint8

// The motives.
const (
	ByOperator Motive = iota // an operator revoked the hold
	ByPatience               // a candidate of higher priority has waited long enough
	ByTransfer               // the leader hands over
	ByEnd                    // somebody else ends the session
	ByGuard                  // the guard of the name changes

	motives
)

// Motives are the names in metrics.
var Motives = [motives]string{"operator", "patience", "transfer", "end", "guard"}

// QuotaKinds are the quantities that quotas bound.
var QuotaKinds = [...]string{"sessions", "claims", "bytes"}

// overQuota counts a request that a quota refused.
func (d *Deeds) overQuota(kind string) {
	if d != nil {
		d.Quotas[slices.Index(QuotaKinds[:], kind)]++
	}
}

// opened counts a new session.
func (d *Deeds) opened() {
	if d != nil {
		d.Opened++
	}
}

// over counts a session that ends.
func (d *Deeds) over(s *session, how Ending) {
	if d != nil && s.server == 0 {
		d.Over[how]++
	}
}

// granted counts a claim that now holds.
func (d *Deeds) granted(c *claim) {
	if d != nil {
		d.Grants[c.resource.class]++
	}
}

// waited records how long a claim that is now granted has waited.
func (d *Deeds) waited(c *claim, now int64) {
	if d != nil {
		d.Waits[c.resource.class].Note(now - c.since)
	}
}

// ended counts a hold that ends now.
func (d *Deeds) ended(c *claim, how Ending, now int64) {
	if d != nil {
		d.Ended[how]++
		d.Holds[c.resource.class].Note(now - c.since)
	}
}

// asked counts a holder that is asked to leave.
func (d *Deeds) asked(why Motive) {
	if d != nil {
		d.Revoked[why]++
	}
}

// Holding is a grant, or the end of a hold, for the audit log of a server.
type Holding struct {
	Class Class
	Name  string
	Fence uint64
	Owner string // the principal
	// How is how the hold ended, or 0 if it was granted.
	How Ending
	// Time is the time of the log entry, by the wall clock of the leader, in ns since 1970.
	Time int64
}

// Holdings has the grants and ends of holds in one log entry, in their order.
type Holdings struct {
	// Index and Term are those of the entry. Both are 0 for a hold that no entry decides.
	Index, Term uint64
	List        []Holding
}

// reports tells of grants and ends of holds, and counts the effects of entries. It is not part of
// the state, and no command depends on it.
type reports struct {
	// deeds, if not nil, counts the effects of the newest entry, and what Admits refuses until
	// the next one.
	deeds *Deeds
	// onHold, if not nil, is told of each grant and each end of a hold.
	onHold func(Holding)
}

// OnHold sets a function that Apply calls for each grant and each end of a hold. It is not
// part of the state, and no command depends on it.
func (p *reports) OnHold(f func(Holding)) { p.onHold = f }

// granted reports a claim that holds since now.
func (p *reports) granted(c *claim) {
	p.deeds.granted(c)
	p.tell(c, 0, c.since)
}

// ended reports a hold that ends now.
func (p *reports) ended(c *claim, how Ending, now int64) {
	p.deeds.ended(c, how, now)
	p.tell(c, how, now)
}

func (p *reports) tell(c *claim, how Ending, now int64) {
	if p.onHold != nil && c.session.server == 0 {
		p.onHold(Holding{Class: c.resource.class, Name: c.resource.name, Fence: c.fence, Owner: c.session.owner, How: how, Time: now})
	}
}

// ReportLost reports the ends of all holds to the function that OnHold has set: the state is
// about to be discarded.
func (r *Registry) ReportLost() {
	if r.onHold == nil {
		return
	}
	for _, id := range slices.SortedFunc(maps.Keys(r.sessions), SessionID.Compare) {
		for _, c := range r.sessions[id].sortedClaims(nil) {
			if c.held() {
				r.tell(c, Expired, r.wall)
			}
		}
	}
}
