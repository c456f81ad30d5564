package registry

// Effects is what applying entries brought about, in order. The caller owns
// and reuses it.
type Effects struct {
	Outcomes []Outcome
	// Renewed are the sessions opened or renewed through the log.
	Renewed []SessionID
	// Ended are the sessions that ended, and Closed those of them that did not
	// expire: somebody closed them.
	Ended, Closed []SessionID
	// Elections are the names of elections whose leader or value changed; a
	// name may stand more than once.
	Elections []string
	// Locks are the names of locks whose holders or queue changed, if
	// WatchLocks asks for them.
	Locks      []string
	WatchLocks bool
	// Members says that a server was put on record.
	Members bool
	// View says that what Live returns has changed.
	View bool
	// Deeds, if not nil, counts what is brought about.
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

// granted adds the end of the wait of a claim that holds now.
func (fx *Effects) granted(c *claim) {
	made := Outcome{Session: c.session.id, Sequence: c.sequence}
	made.Result.granted(c)
	fx.Outcomes = append(fx.Outcomes, made)
}
