package registry

// claim is a hold, or a place in a queue while its fence is 0. One that a version may
// have never changes: another takes its place (replace, promote).
type claim struct {
	session *session
	// resource alone may change, when it is thawed; versions do not look at it.
	resource *resource
	sequence uint64
	fence    uint64
	since    int64 // wall clock of the leader at the grant, or at queueing, ns
	*terms
}

// terms is what few claims have. Claims that have nothing of it, or nothing
// but being shared, have theirs in common: it is replaced, never changed.
type terms struct {
	shared   bool
	value    string
	priority int64
	patience int64
	// at is the replicated time at the grant or at queueing, of a claim to an
	// election: since what moment its patience, or that of others, counts.
	at int64
	// named says that the leader wants this candidate to be the next.
	named bool
	// revoked says that the holder is asked to leave, reason why, and by which
	// principal, if it was one.
	revoked bool
	reason  string
	by      string
	// keeps is nil if the claim waits and keeps nothing, or holds.
	keeps *keeping
}

var plain, shared = &terms{}, &terms{shared: true}

// termsOf returns the terms of a request to acquire that is carried out at a
// replicated time.
func termsOf(c *Command, now int64) *terms {
	switch {
	case c.Class == Election:
		return &terms{value: c.Value, priority: c.Priority, patience: c.Patience, at: now}
	case c.Shared:
		return shared
	}
	return plain
}

// amended returns a claim with other terms, which is to take the place of c.
func (c *claim) amended(change func(*terms)) *claim {
	fresh, t := *c, *c.terms
	change(&t)
	fresh.terms = &t
	return &fresh
}

func (c *claim) held() bool { return c.fence != 0 }

// key finds a claim in its session.
func (c *claim) key() number { return number(c.sequence) }

func (c *claim) keyHash() uint64 { return c.key().hash() }

// enter puts a claim into its session, and returns the one with its number that was
// there.
func (r *Registry) enter(c *claim) (before *claim) {
	r.thawSession(c.session)
	if before = c.session.claims.put(c); before != nil {
		r.tally.bytes -= before.bytes()
		r.countClaims(before, -1, -len(before.value))
	}
	r.countClaims(c, 1, len(c.value))
	r.tally.bytes += c.bytes()
	return before
}

// exit takes a claim out of its session. If it waits, all waiters are counted.
func (r *Registry) exit(c *claim) {
	r.thawSession(c.session)
	c.session.claims.remove(c.key())
	r.tally.bytes -= c.bytes()
	r.countClaims(c, -1, -len(c.value))
	if r.tally.counts(c) {
		c.session.claimed -= c.hash()
	}
}

// promote takes the first waiter out of the queue of a thawed resource, and returns its
// claim as it is to hold from now on.
func (r *Registry) promote(res *resource) *claim {
	c, counted := res.queue()[0], res.crowd.counted > 0
	res.remove(c)
	r.waits(c, -1)
	delete(r.eager, c.id())
	if counted {
		c.session.claimed -= c.hash()
	}
	if counted || c.keeps != nil { // in a version, maybe, or of another size from now on
		own := *c
		c = &own
	}
	if res.class == Election || c.keeps != nil {
		t := *c.terms
		t.named, t.keeps = false, nil
		if res.class == Election {
			t.at = r.now
		}
		c.terms = &t
	}
	return c
}

// replace puts a claim in the place of one that had other terms, but in its
// resource. If it waits, all waiters are counted.
func (r *Registry) replace(c *claim) {
	if before := r.enter(c); r.tally.counts(c) {
		c.session.claimed += c.hash() - before.hash()
	}
	id := c.id()
	if r.revoked[id] != nil {
		r.revoked[id] = c
	}
	if r.eager[id] != nil {
		r.eager[id] = c
	}
}

// amend changes the terms of a holder of a thawed resource.
func (r *Registry) amend(res *resource, holder int, change func(*terms)) *claim {
	c := res.holders()[holder].amended(change)
	res.holders()[holder] = c
	r.replace(c)
	return c
}

func (c *claim) id() ClaimID { return ClaimID{c.session.id, c.sequence} }
