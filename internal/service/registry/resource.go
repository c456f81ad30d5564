package registry

import (
	"slices"
)

// resource is a named lock or election that somebody holds.
//
// Invariant: either all holders are shared or none is, the first waiter does not fit beside
// them, and a resource exists only while somebody holds it. Exception: while the guard of a lock
// changes nothing is granted, and while places linger fewer holders fit. Then a resource may have
// waiters but no holder.
type resource struct {
	name string
	// one is the holder, or nil if there is a crowd. Most resources have just one holder
	// and no waiters, and there may be very many of them.
	one   [1]*claim
	crowd *crowd
	// generation is the registry's generation when this became its own.
	generation uint64
	limit      uint32
	class      Class
	flags
	mark
}

// flags are properties of a resource in one byte. There may be very many resources, and with one
// byte more each would take 64 bytes, not 48.
type flags uint8

const (
	// swept is set while claims have to be swept out.
	swept flags = 1 << iota
	// units means that others hold it elsewhere, with fences that are not known here.
	units
)

func (f flags) has(flag flags) bool { return f&flag != 0 }

func (f *flags) set(flag flags, on bool) {
	*f &^= flag
	if on {
		*f |= flag
	}
}

// crowd has the holders and waiters, if there is more than one claim.
type crowd struct {
	holders, queue []*claim
	// counted is the number of waiters at the front that are counted in the digest. Those
	// behind them came since the last fold, so no version has them either.
	counted int
}

// holders returns the holders in the order of their fences. The slice is valid until the
// next change.
func (res *resource) holders() []*claim {
	switch {
	case res.crowd != nil:
		return res.crowd.holders
	case res.one[0] != nil:
		return res.one[:]
	}
	return nil
}

// held reports whether somebody holds the resource, which may be nil.
func (res *resource) held() bool { return res != nil && len(res.holders()) > 0 }

// floor returns the smallest fence among the holders, or 0 if not all are known here.
func (res *resource) floor() uint64 {
	if res.has(units) {
		return 0
	}
	return res.holders()[0].fence
}

// inTheWay describes one of the holders, for a request that is refused.
func (res *resource) inTheWay() *Holder {
	holder := res.holders()[0].holder()
	return &holder
}

// gone reports whether the resource has neither holders nor waiters any more.
func (res *resource) gone() bool { return len(res.holders()) == 0 && len(res.queue()) == 0 }

// queue returns the waiters. The slice is valid until the next change.
func (res *resource) queue() []*claim {
	if res.crowd == nil {
		return nil
	}
	return res.crowd.queue
}

// gather turns the claims into a crowd.
func (res *resource) gather() *crowd {
	if res.crowd == nil {
		res.crowd = new(crowd)
		if res.one[0] != nil {
			res.crowd.holders = append(res.crowd.holders, res.one[0])
			res.one[0] = nil
		}
	}
	return res.crowd
}

// scatter removes the crowd if it is no longer needed.
func (res *resource) scatter() {
	if c := res.crowd; c != nil && len(c.queue) == 0 && len(c.holders) <= 1 {
		copy(res.one[:], c.holders)
		res.crowd = nil
	}
}

// admit adds a holder.
func (res *resource) admit(c *claim) {
	if res.crowd == nil && res.one[0] == nil {
		res.one[0] = c
		return
	}
	present := res.gather()
	present.holders = append(present.holders, c)
}

// fits reports whether a hold with this sharing is compatible with the present ones, and with so
// many closed places.
func (res *resource) fits(t *extras, closed int) bool {
	return t.fits(res.holders(), res.limit, closed)
}

// fits does the same for a resource with these holders and this limit.
func (t *extras) fits(holders []*claim, limit uint32, closed int) bool {
	switch {
	case len(holders)+closed == 0:
		return true
	case t.shared:
		return closed == 0 && holders[0].shared && len(holders) < MaxLimit
	case len(holders) > 0 && holders[0].shared:
		return false
	}
	return len(holders)+closed < int(limit)
}

// admits reports whether a new claim need not wait. Nobody overtakes a waiter: a reader that
// fits beside other readers waits behind a writer that does not fit.
func (res *resource) admits(t *extras, closed int) bool {
	return len(res.queue()) == 0 && res.fits(t, closed)
}

// enqueue inserts c into the queue: behind all waiters with the same or a higher priority,
// and behind one that is named.
func (res *resource) enqueue(c *claim) (ahead uint32) {
	present := res.gather()
	at := len(present.queue)
	for at > 0 && present.queue[at-1].priority < c.priority && !present.queue[at-1].named {
		at--
	}
	if at < len(present.queue) {
		res.countQueue()
		c.session.claimed += c.hash()
		present.counted++
	}
	present.queue = inserted(present.queue, at, c)
	return uint32(at)
}

// prefer moves a waiter, replaced by heir, to the front. All waiters are counted.
func (res *resource) prefer(at int, heir *claim) {
	present := res.gather()
	present.queue = slices.Insert(slices.Delete(present.queue, at, at+1), 0, heir)
}

// position returns the number of waiters before c.
func (res *resource) position(c *claim) uint32 {
	return uint32(slices.Index(res.queue(), c))
}

// remove removes c from the holders or the queue.
func (res *resource) remove(c *claim) {
	present := res.crowd
	switch {
	case present == nil:
		if res.one[0] != c {
			panic("registry: a claim is missing from its resource")
		}
		res.one[0] = nil
	case c.held():
		present.holders = without(present.holders, c)
	case len(present.queue) > 0 && present.queue[0] == c:
		// The usual case takes the same time for any length of the queue.
		present.queue[0] = nil
		present.queue = present.queue[1:]
		present.counted = max(0, present.counted-1)
	default:
		res.countQueue()
		present.queue = without(present.queue, c)
		present.counted--
	}
	res.scatter()
}

// sweep removes the claims of ended sessions, and the waiters of sessions that are being ended,
// in one pass: with ten thousand waiters that expire together, one pass each would take
// quadratic time.
func (res *resource) sweep() {
	over := func(c *claim) bool { return c.session.ended || c.session.leaving && !c.held() }
	res.set(swept, false)
	if present := res.crowd; present != nil {
		res.countQueue()
		present.holders = slices.DeleteFunc(present.holders, over)
		present.queue = slices.DeleteFunc(present.queue, over)
		present.counted = len(present.queue)
		res.scatter()
	} else if res.one[0] != nil && over(res.one[0]) {
		res.one[0] = nil
	}
}

// inserted is slices.Insert for one element, and faster at the end, where most elements go.
func inserted[E any](all []E, at int, e E) []E {
	if at == len(all) {
		return append(all, e)
	}
	return slices.Insert(all, at, e)
}

func without(claims []*claim, c *claim) []*claim {
	i, last := slices.Index(claims, c), len(claims)-1
	switch {
	case i < 0:
		panic("registry: a claim is missing from its resource")
	case i == last: // most often, as the only one
		claims[last] = nil
		return claims[:last]
	}
	return slices.Delete(claims, i, i+1)
}

// key finds a resource.
type key struct {
	class Class
	name  string
}

func (res *resource) key() key { return key{res.class, res.name} }

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
	// at is the replicated time at the grant or at queueing, for a claim to an election or one
	// that lingers. The waiting times of candidates count from it, and so does atLeast.
	at int64
	// atLeast and lossDelay say how long the place lingers after the hold, in ns: see linger.
	atLeast, lossDelay int64
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
		return &extras{value: c.Value, priority: c.Priority, patience: c.Patience, at: now, atLeast: c.AtLeast, lossDelay: c.LossDelay}
	case c.Shared:
		return shared
	case c.AtLeast != 0 || c.LossDelay != 0:
		return &extras{at: now, atLeast: c.AtLeast, lossDelay: c.LossDelay}
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
func (st *state) enter(c *claim) {
	st.thawSession(c.session)
	c.session.claims.add(c, c.key().hash())
	st.countClaim(c, 1)
}

// countClaim counts a claim that is made (1) or ends (-1).
func (st *state) countClaim(c *claim, more int) {
	st.tally.bytes += more * c.bytes()
	st.control.countClaims(c, more, more*len(c.value))
	if c.lingers() {
		st.lingering += more
	}
}

// reenter adds a claim to its session, and returns the claim that had its number before.
func (st *state) reenter(c *claim) (before *claim) {
	st.thawSession(c.session)
	if before = c.session.claims.put(c); before != nil {
		st.countClaim(before, -1)
	}
	st.countClaim(c, 1)
	return before
}

// exit removes a claim from its session. If it waits, all waiters are counted.
func (st *state) exit(c *claim) {
	st.thawSession(c.session)
	c.session.claims.remove(c.key())
	st.countClaim(c, -1)
	if st.tally.counts(c) {
		c.session.claimed -= c.hash()
	}
}

// promote removes the first waiter from the queue of a thawed resource, and returns its claim
// in the form in which it will hold from a replicated time on.
func (st *state) promote(res *resource, now int64) *claim {
	c, counted := res.queue()[0], res.crowd.counted > 0
	res.remove(c)
	st.waits(c, -1)
	st.unlist(c)
	if counted {
		c.session.claimed -= c.hash()
	}
	copied := counted || c.keeps != nil // may be shared by a version, or its size changes
	if copied {
		own := *c
		c = &own
	}
	if res.class == Election || c.keeps != nil || c.lingers() {
		t := *c.extras
		t.named, t.keeps = false, nil
		if res.class == Election || t.lingers() {
			t.at = now
		}
		c.extras = &t
	}
	if copied {
		st.reenter(c)
	}
	return c
}

// replace replaces a claim whose extras have changed, except in its resource, and lists it. If it
// waits, all waiters are counted.
func (st *state) replace(c *claim) {
	if before := st.reenter(c); st.tally.counts(c) {
		c.session.claimed += c.hash() - before.hash()
	}
	st.list(c)
}

// amend changes the extras of a holder of a thawed resource.
func (st *state) amend(res *resource, holder int, change func(*extras)) *claim {
	c := res.holders()[holder].amended(change)
	res.holders()[holder] = c
	st.replace(c)
	return c
}

func (c *claim) id() ClaimID { return ClaimID{c.session.id, c.sequence} }
