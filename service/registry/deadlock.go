package registry

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// No deadlock ever comes to be: a request that would complete one is refused.
//
// A hold is blocked while a waiter that keeps it is, and a waiter while its resource is.
// A resource is blocked for a writer that waits for readers if any of its holders is,
// and otherwise if all are, since one that leaves makes room. Readers behind a writer
// wait for what it waits for. Beyond that it makes no difference who waits before whom:
// all who wait for a resource wait for the same holders. A hold whose holder is asked to
// leave is not blocked: it ends within one TTL. What else time may bring does not count:
// the end of a wait or of a session, the patience of a candidate.
//
// Only a request that names what its caller keeps can complete a deadlock. A waiter that
// keeps nothing blocks nobody; a grant makes a hold that nobody has named; and whatever
// leaves, or is asked to leave, only makes room. An heir that is put before others waits
// for a leader that is asked to leave.

const (
	// MaxCycle bounds the members of a cycle that an answer describes.
	MaxCycle = 64
	// maxSearched bounds a search: how many times a waiter says that it keeps a hold.
	maxSearched = 1 << 16
)

// Deadlock is the cycle that a request would have completed.
type Deadlock struct {
	// Cycle has the members, the request first: each waits for a hold that the next
	// one keeps, and the last for one that the caller of the request keeps. It has
	// the first MaxCycle of them, which are Length in all.
	Cycle  []Dependency
	Length int
}

// Dependency is one that waits, and what it waits for.
type Dependency struct {
	Waiter Waiter
	Class  Class
	Name   string
	// Holder is in the way.
	Holder Holder
}

// node is a resource on which some wait depends.
type node struct {
	res *resource
	// all says that all holders have to be blocked, not any of them.
	all     bool
	free    bool
	blocked int   // holds that are, as far as is known
	frees   []int // the holds that it blocks
}

// obstacle is a hold that waiters keep, in the way of others.
type obstacle struct {
	claim   *claim
	of      int       // the node that it blocks
	waits   []ClaimID // those that keep it, until they are followed
	keepers []keeper
	blocked int // keepers that are, as far as is known
}

type keeper struct {
	wait *claim
	on   int // the node that it waits for
}

// mayWait notes what the caller of a request keeps, which has to wait. If it must not
// wait, mayWait fills in why, and returns false.
func (r *Registry) mayWait(c *claim, named []Kept, result *Result) bool {
	if !hasKeeps(r.level) {
		return true
	}
	keeps := r.keeping(c.session, named)
	if keeps == nil {
		return true
	}
	t := *c.terms
	t.keeps = keeps
	c.terms = &t
	r.link(c)
	cycle, ok := r.completes(c)
	r.unlink(c) // until it waits
	switch {
	case !ok:
		*result = Result{Code: Exhausted, Message: fmt.Sprintf("the waiters before this one keep more than %d holds: too many to rule a deadlock out", maxSearched)}
	case cycle != nil:
		*result = deadlock(cycle)
	}
	return result.Code == 0
}

// search looks for a deadlock that a request would complete. All that it depends on is
// taken as blocked, and then freed as far as something frees it.
type search struct {
	reg     *Registry
	request *claim // linked, but not in its queue
	nodes   []node // the request waits for the first
	found   map[nodeKey]int
	holds   []obstacle
	free    []int // nodes that are free, and whose holds are not freed yet
	edges   int
}

type nodeKey struct {
	res *resource
	all bool
}

// completes returns the cycle that a request would complete, which is linked but waits
// not yet; nil if it may wait. It reports false if there is too much to search.
func (r *Registry) completes(request *claim) (cycle []Dependency, ok bool) {
	s := &search{reg: r, request: request, found: make(map[nodeKey]int)}
	s.node(request)
	for i := 0; i < len(s.nodes); i++ {
		if !s.expand(i) {
			return nil, false
		}
	}
	s.reduce()
	if s.nodes[0].free {
		return nil, true
	}
	return s.cycle(), true
}

// node returns the node that a claim waits for.
func (s *search) node(c *claim) int {
	k := nodeKey{c.resource, c.resource.needsAll(c)}
	at, known := s.found[k]
	if !known {
		at = len(s.nodes)
		s.found[k] = at
		s.nodes = append(s.nodes, node{res: k.res, all: k.all})
	}
	return at
}

// needsAll reports whether a waiter, present or to come, can go on if only one of the
// holders leaves.
func (res *resource) needsAll(c *claim) bool {
	switch {
	case len(res.holders()) == 0 || !res.holders()[0].shared:
		return true
	case !c.shared:
		return false
	}
	for _, before := range res.queue() {
		if before == c {
			break
		}
		if !before.shared {
			return false
		}
	}
	return true
}

// expand finds which holders of a node's resource are kept by waiters, and for what those
// wait. It reports false if there is too much to search.
func (s *search) expand(at int) bool {
	res, first := s.nodes[at].res, len(s.holds)
	if s.nodes[at].all && s.reg.drains(res) && res.fits(append(slices.Clone(res.queue()), s.request)[0].terms) {
		s.release(at) // there is room: those who wait, wait for the drain to end
		return true
	}
	s.reg.graph.ascend(edge{hold: res.key()}, func(e edge) bool {
		if e.hold != res.key() {
			return false
		}
		s.edges++
		if n := len(s.holds); n > first && s.holds[n-1].claim.fence == e.fence {
			s.holds[n-1].waits = append(s.holds[n-1].waits, e.wait)
		} else if c := res.holder(e.fence); c != nil && !c.revoked {
			s.holds = append(s.holds, obstacle{claim: c, of: at, waits: []ClaimID{e.wait}})
		}
		return s.edges <= maxSearched
	})
	if s.edges > maxSearched {
		return false
	}
	kept := len(s.holds) - first
	if s.nodes[at].all && kept < len(res.holders()) || kept == 0 {
		s.holds = s.holds[:first]
		s.release(at)
		return true
	}
	s.nodes[at].blocked = kept
	for i := first; i < len(s.holds); i++ {
		s.follow(i)
	}
	return true
}

// follow finds what the keepers of a hold wait for.
func (s *search) follow(hold int) {
	h := &s.holds[hold]
	for _, id := range h.waits {
		c := s.request
		if id != c.id() {
			c = s.reg.sessions[id.Session].claims.get(number(id.Sequence))
		}
		on := s.node(c)
		h.keepers = append(h.keepers, keeper{c, on})
		s.nodes[on].frees = append(s.nodes[on].frees, hold)
	}
	h.waits, h.blocked = nil, len(h.keepers)
}

// release makes a node free.
func (s *search) release(at int) {
	if !s.nodes[at].free {
		s.nodes[at].free = true
		s.free = append(s.free, at)
	}
}

// reduce frees what free nodes free, until nothing more is.
func (s *search) reduce() {
	for len(s.free) > 0 {
		last := len(s.free) - 1
		at := s.free[last]
		s.free = s.free[:last]
		for _, hold := range s.nodes[at].frees {
			h := &s.holds[hold]
			if h.blocked--; h.blocked > 0 {
				continue
			}
			n := &s.nodes[h.of]
			if n.blocked--; n.all || n.blocked == 0 {
				s.release(h.of)
			}
		}
	}
}

// hop is how a shortest way came to a node: by a waiter that keeps a hold.
type hop struct {
	from int // the hop before, or -1
	node int
	hold *claim
	wait *claim
}

// cycle returns a shortest cycle of blocked holds and waiters through the request. There
// is none if the deadlock is there without it.
func (s *search) cycle() []Dependency {
	hops := []hop{{from: -1}}
	reached := make([]bool, len(s.nodes))
	reached[0] = true
	of := s.blockedHolds()
	for at := 0; at < len(hops); at++ {
		for _, hold := range of[hops[at].node] {
			h := &s.holds[hold]
			for _, k := range h.keepers {
				if s.nodes[k.on].free {
					continue
				}
				next := hop{at, k.on, h.claim, k.wait}
				if k.wait == s.request {
					return s.retrace(hops, next)
				}
				if !reached[k.on] {
					reached[k.on] = true
					hops = append(hops, next)
				}
			}
		}
	}
	return nil
}

// blockedHolds returns the blocked holds of each node.
func (s *search) blockedHolds() [][]int {
	of := make([][]int, len(s.nodes))
	for i, h := range s.holds {
		if h.blocked > 0 {
			of[h.of] = append(of[h.of], i)
		}
	}
	return of
}

// retrace describes the way back from the hop that leads to the request.
func (s *search) retrace(hops []hop, last hop) (cycle []Dependency) {
	holds := []*claim{last.hold}
	var waits []*claim
	for at := last.from; at > 0; at = hops[at].from {
		waits = append(waits, hops[at].wait)
		holds = append(holds, hops[at].hold)
	}
	waits = append(waits, s.request)
	slices.Reverse(holds)
	slices.Reverse(waits)
	for i, c := range waits {
		cycle = append(cycle, Dependency{c.waiter(), c.resource.class, c.resource.name, holds[i].holder()})
	}
	return cycle
}

// deadlock is the answer to a request that would have completed a cycle.
func deadlock(cycle []Dependency) Result {
	length := len(cycle)
	message := describe(cycle)
	return Result{Code: Deadlocked, Message: message, Deadlock: &Deadlock{cycle[:min(length, MaxCycle)], length}}
}

// describe says who waits for whom, in at most MaxMessage bytes.
func describe(cycle []Dependency) string {
	last := len(cycle) - 1
	if last == 0 {
		return fmt.Sprintf("deadlock: the caller keeps %s while it waits for it", quoted(cycle[0].Name))
	}
	var b strings.Builder
	b.WriteString("deadlock: ")
	end := fmt.Sprintf(", which waits for %s, which the caller keeps", brief(cycle[last].Name))
	for i := range cycle[:last] {
		verb := "%s is held by process %d (%s) on %s"
		if i > 0 {
			verb = ", which waits for %s, held by process %d (%s) on %s"
		}
		h := &cycle[i].Holder
		who := fmt.Sprintf(verb, brief(cycle[i].Name), h.PID, clipped(h.Program), clipped(h.Host))
		more := fmt.Sprintf(", and so on over %d more", last-i)
		if b.Len()+len(who)+len(more)+len(end) > MaxMessage {
			b.WriteString(more)
			break
		}
		b.WriteString(who)
	}
	b.WriteString(end)
	return b.String()
}

// maxBrief is how much of a text a message has that has many.
const maxBrief = 32

// clipped returns the beginning of a text, brief quotes it.
func clipped(text string) string {
	if len(text) <= maxBrief {
		return text
	}
	return strings.ToValidUTF8(text[:maxBrief], "") + "..."
}

func brief(text string) string { return strconv.Quote(clipped(text)) }
