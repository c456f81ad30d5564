package registry

import "slices"

// resource is a named lock or election that somebody holds.
//
// Invariant: the holders are all shared or all not, the first waiter does not
// fit beside them, and there is a resource only while somebody holds it.
type resource struct {
	name    string
	class   Class
	limit   uint32
	holders []*claim
	queue   []*claim
	// swept is set while claims of ended sessions wait to be swept out.
	swept bool
}

// claim is a hold, or a place in a queue while its fence is 0.
type claim struct {
	session  *session
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
	// named says that the leader wants this candidate to be the next.
	named bool
	// revoked says that the holder is asked to leave, and reason why.
	revoked bool
	reason  string
}

var plain, shared = &terms{}, &terms{shared: true}

// termsOf returns the terms of a request to acquire.
func termsOf(c *Command) *terms {
	switch {
	case c.Class == Election:
		return &terms{value: c.Value, priority: c.Priority, patience: c.Patience}
	case c.Shared:
		return shared
	}
	return plain
}

// amend replaces the terms of a claim by others.
func (c *claim) amend(change func(*terms)) {
	amended := *c.terms
	change(&amended)
	c.terms = &amended
}

func (c *claim) held() bool { return c.fence != 0 }

// fits reports whether a hold with such terms may stand beside the present ones.
func (res *resource) fits(t *terms) bool {
	switch {
	case len(res.holders) == 0:
		return true
	case t.shared:
		return res.holders[0].shared && len(res.holders) < MaxLimit
	}
	return !res.holders[0].shared && len(res.holders) < int(res.limit)
}

// admits reports whether a newcomer need not wait. Nobody overtakes a waiter:
// a reader that fits beside other readers waits behind the writer that does not.
func (res *resource) admits(t *terms) bool { return len(res.queue) == 0 && res.fits(t) }

// enqueue gives c its place: behind all of its priority or a higher one, and
// behind one that is named.
func (res *resource) enqueue(c *claim) (ahead uint32) {
	at := len(res.queue)
	for at > 0 && res.queue[at-1].priority < c.priority && !res.queue[at-1].named {
		at--
	}
	res.queue = slices.Insert(res.queue, at, c)
	return uint32(at)
}

// prefer moves a waiter to the front, where it stays.
func (res *resource) prefer(at int) {
	heir := res.queue[at]
	heir.amend(func(t *terms) { t.named = true })
	res.queue = slices.Insert(slices.Delete(res.queue, at, at+1), 0, heir)
}

// ahead counts the waiters before c.
func (res *resource) ahead(c *claim) uint32 {
	return uint32(slices.Index(res.queue, c))
}

// remove takes c out of the holders or the queue.
func (res *resource) remove(c *claim) {
	if c.held() {
		res.holders = without(res.holders, c)
		return
	}
	if len(res.queue) > 0 && res.queue[0] == c {
		// The usual case costs the same however long the queue is.
		res.queue[0] = nil
		res.queue = res.queue[1:]
		return
	}
	res.queue = without(res.queue, c)
}

// sweep takes out the claims of ended sessions, all in one pass: ten thousand
// waiters that expire together must not cost their number squared.
func (res *resource) sweep() {
	over := func(c *claim) bool { return c.session.ended }
	res.holders = slices.DeleteFunc(res.holders, over)
	res.queue = slices.DeleteFunc(res.queue, over)
	res.swept = false
}

func without(claims []*claim, c *claim) []*claim {
	i := slices.Index(claims, c)
	if i < 0 {
		panic("registry: a claim is missing from its resource")
	}
	return slices.Delete(claims, i, i+1)
}

// key finds a resource.
type key struct {
	class Class
	name  string
}
