package registry

// Effects are the effects of applied entries, in order. The caller owns and
// reuses it.
type Effects struct {
	Outcomes []Outcome
	// Renewed are the sessions opened or renewed through the log.
	Renewed []SessionID
	// Ended are the sessions that ended. Closed are those of them that were closed
	// by somebody and did not expire.
	Ended, Closed []SessionID
	// Elections are the names of elections whose leader or value changed. A
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

// granted adds the outcome of a claim that waited and now holds.
func (fx *Effects) granted(c *claim) { fx.outcome(c).granted(c) }

// outcome adds an outcome of a claim, and returns its result, which is still empty.
func (fx *Effects) outcome(c *claim) *Result {
	fx.Outcomes = append(fx.Outcomes, Outcome{})
	made := &fx.Outcomes[len(fx.Outcomes)-1]
	made.Session, made.Sequence = c.session.id, c.sequence
	return &made.Result
}
