package registry

import "slices"

// resource is a named lock or election that somebody holds.
//
// Invariant: a waiter exists only while the limit is reached, and a resource
// only while somebody holds it.
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
	value    string
}

func (c *claim) held() bool { return c.fence != 0 }

// full reports whether a newcomer must wait. Nobody overtakes a waiter.
func (res *resource) full() bool {
	return len(res.holders) >= int(res.limit) || len(res.queue) > 0
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
