package registry

// claim is a hold or, while its fence is 0, a place in a queue. A claim that a version may
// share never changes: a new one replaces it (replace, promote).
type claim struct {
	session *session
	// resource may change in place when the resource is thawed; versions do not read it.
	resource *resource
	sequence uint64
	fence    uint64
	since    int64 // wall clock of the leader at the grant, or at queueing, ns
	*extras
}

// extras has the fields that few claims need. It is immutable: all claims without special fields
// have plain, and all that are only shared have shared.
type extras struct {
	shared   bool
	value    string
	priority int64
	patience int64
	// at is the replicated time at the grant or at queueing, for a claim to an election. The
	// waiting times of candidates count from it.
	at int64
	// named means that the leader wants this candidate to lead next.
	named bool
	// revoked means that the holder is asked to leave; reason says why, and by which principal
	// asked, if one did.
	revoked bool
	reason  string
	by      string
	// keeps is nil if the claim holds, or waits and keeps nothing.
	keeps *keeping
}

var plain, shared = &extras{}, &extras{shared: true}

// extrasOf returns the extras of a request to acquire that is carried out at a
// replicated time.
func extrasOf(c *Command, now int64) *extras {
	switch {
	case c.Class == Election:
		return &extras{value: c.Value, priority: c.Priority, patience: c.Patience, at: now}
	case c.Shared:
		return shared
	}
	return plain
}

// amended returns a claim with changed extras, to replace c.
func (c *claim) amended(change func(*extras)) *claim {
	fresh, t := *c, *c.extras
	change(&t)
	fresh.extras = &t
	return &fresh
}

func (c *claim) held() bool { return c.fence != 0 }

// key finds a claim in its session.
func (c *claim) key() number { return number(c.sequence) }

// enter adds a claim to its session, which has none with its number.
func (r *Registry) enter(c *claim) {
	r.thawSession(c.session)
	c.session.claims.add(c, c.key().hash())
	r.countClaims(c, 1, len(c.value))
	r.tally.bytes += c.bytes()
}

// reenter adds a claim to its session, and returns the claim that had its number before.
func (r *Registry) reenter(c *claim) (before *claim) {
	r.thawSession(c.session)
	if before = c.session.claims.put(c); before != nil {
		r.tally.bytes -= before.bytes()
		r.countClaims(before, -1, -len(before.value))
	}
	r.countClaims(c, 1, len(c.value))
	r.tally.bytes += c.bytes()
	return before
}

// exit removes a claim from its session. If it waits, all waiters are counted.
func (r *Registry) exit(c *claim) {
	r.thawSession(c.session)
	c.session.claims.remove(c.key())
	r.tally.bytes -= c.bytes()
	r.countClaims(c, -1, -len(c.value))
	if r.tally.counts(c) {
		c.session.claimed -= c.hash()
	}
}

// promote removes the first waiter from the queue of a thawed resource, and returns its claim
// in the form in which it will hold.
func (r *Registry) promote(res *resource) *claim {
	c, counted := res.queue()[0], res.crowd.counted > 0
	res.remove(c)
	r.waits(c, -1)
	r.unlist(c)
	if counted {
		c.session.claimed -= c.hash()
	}
	copied := counted || c.keeps != nil // may be shared by a version, or its size changes
	if copied {
		own := *c
		c = &own
	}
	if res.class == Election || c.keeps != nil {
		t := *c.extras
		t.named, t.keeps = false, nil
		if res.class == Election {
			t.at = r.now
		}
		c.extras = &t
	}
	if copied {
		r.reenter(c)
	}
	return c
}

// replace replaces a claim whose extras have changed, except in its resource. If it waits, all
// waiters are counted.
func (r *Registry) replace(c *claim) {
	if before := r.reenter(c); r.tally.counts(c) {
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

// amend changes the extras of a holder of a thawed resource.
func (r *Registry) amend(res *resource, holder int, change func(*extras)) *claim {
	c := res.holders()[holder].amended(change)
	res.holders()[holder] = c
	r.replace(c)
	return c
}

func (c *claim) id() ClaimID { return ClaimID{c.session.id, c.sequence} }
