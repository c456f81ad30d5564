package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The registry prevents deadlocks: it refuses a request that would complete one.
//
// A hold is blocked while a waiter that keeps it is blocked, and a waiter is blocked while its
// resource is. If a writer waits for readers, its resource is blocked if any holder is. Otherwise
// a resource is blocked if all holders are, since one that leaves makes room. Readers behind a
// writer wait for what the writer waits for. Apart from that the order of waiters does not
// matter: all who wait for a resource wait for the same holders. A hold whose holder is asked to
// leave is not blocked, because it ends within one TTL. A resource of which a place lingers is not
// blocked, because that place opens. Other events that only time brings are ignored: the end of a wait or of a session, and the patience of a candidate.
//
// Only a request that names the holds that its caller keeps can complete a deadlock. A waiter
// that keeps nothing blocks nobody. A grant creates a hold that nobody has named yet. Holders
// that leave, or are asked to leave, only make room. A candidate that is moved to the front
// of a queue waits for a leader that is asked to leave.

const (
	// MaxCycle bounds the members of a cycle that an answer describes.
	MaxCycle = 64
	// maxSearched bounds a search, by the number of holds kept by waiters that it looks at.
	maxSearched = 1 << 16
)

// Deadlock is the cycle that a request would have completed.
type Deadlock struct {
	// Cycle has the members of the cycle, the request first. Each waits for a hold that the
	// next one keeps; the last waits for one that the caller of the request keeps. Only the
	// first MaxCycle of all Length members are listed.
	Cycle  []Dependency
	Length int
}

// Dependency is a waiter, and what it waits for.
type Dependency struct {
	Waiter Waiter
	Class  Class
	Name   string
	// Holder is the holder that it waits for.
	Holder Holder
}

// node is a resource on which some wait depends.
type node struct {
	res *resource
	// all means that all holders have to be blocked, otherwise any of them.
	all     bool
	free    bool
	blocked int   // number of holds that are blocked, as far as is known
	frees   []int // the holds that it blocks
}

// obstacle is a hold that waiters keep and for which others wait.
type obstacle struct {
	claim   *claim
	of      int       // the node that it blocks
	waits   []ClaimID // the waiters that keep it, until they are followed
	keepers []keeper
	blocked int // number of keepers that are blocked, as far as is known
}

type keeper struct {
	wait *claim
	on   int // the node that it waits for
}

// mayWait records what the caller of a request keeps, because the request has to wait. If it
// must not wait, mayWait fills in the refusal and returns false.
func (r *Registry) mayWait(c *claim, named []Kept, result *Result) bool {
	if !hasKeeps(r.level) {
		return true
	}
	keeps := r.keeping(c.session, named)
	if keeps == nil {
		return true
	}
	t := *c.extras
	t.keeps = keeps
	c.extras = &t
	r.link(c)
	s := search{reg: r, request: c, found: make(map[nodeKey]int)}
	cycle, ok := s.run()
	r.unlink(c) // until it waits
	switch {
	case !ok:
		*result = Result{Code: Exhausted, Message: fmt.Sprintf("the waiters before this one keep more than %d holds: too many to rule a deadlock out", maxSearched)}
	case cycle != nil:
		*result = deadlock(cycle)
	}
	return result.Code == 0
}

// search looks for a deadlock that a request would complete. At first everything that the
// request depends on counts as blocked; then nodes are freed as far as possible.
type search struct {
	reg     *Registry
	request *claim // linked, but not in its queue
	nodes   []node // the request waits for the first
	found   map[nodeKey]int
	holds   []obstacle
	free    []int // nodes that are free, but whose holds are not freed yet
	edges   int
}

type nodeKey struct {
	res *resource
	all bool
}

// run returns the cycle that the request would complete, nil if it may wait. It returns false if
// there is too much to search.
func (s *search) run() (cycle []Dependency, ok bool) {
	s.node(s.request)
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

// needsAll reports whether a waiter, present or future, needs all holders to leave and not only
// one of them.
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

// expand finds the holders of a node's resource that waiters keep, and what those waiters wait
// for. It returns false if there is too much to search.
func (s *search) expand(at int) bool {
	res, first := s.nodes[at].res, len(s.holds)
	if s.nodes[at].all && s.roomInTime(res) {
		s.release(at)
		return true
	}
	s.reg.graph.Ascend(edge{hold: res.key()}, func(e edge) bool {
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

// roomInTime reports whether the waiters of a resource wait only for time to pass: for the end of a
// drain, or until a place opens that lingers.
func (s *search) roomInTime(res *resource) bool {
	first := append(slices.Clone(res.queue()), s.request)[0]
	return s.reg.lingers.closed(res.key()) > 0 || s.reg.drains(res) && res.fits(first.extras, 0)
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

// reduce frees everything that depends only on free nodes.
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

// hop is a step of a shortest path to a node: through a waiter that keeps a hold.
type hop struct {
	from int // the previous hop, or -1
	node int
	hold *claim
	wait *claim
}

// cycle returns a shortest cycle of blocked holds and waiters through the request. There is
// none if the deadlock exists without the request.
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

// retrace describes the path back from the hop that leads to the request.
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

// deadlock returns the answer to a request that would have completed a cycle.
func deadlock(cycle []Dependency) Result {
	length := len(cycle)
	message := describe(cycle)
	return Result{Code: Deadlocked, Message: message, Deadlock: &Deadlock{cycle[:min(length, MaxCycle)], length}}
}

// describe lists the waits of a deadlock, in at most MaxMessage bytes.
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

// maxBrief is the length to which each text is cut in a message that has many.
const maxBrief = 32

// clipped returns the beginning of a text, brief quotes it.
func clipped(text string) string {
	if len(text) <= maxBrief {
		return text
	}
	return strings.ToValidUTF8(text[:maxBrief], "") + "..."
}

func brief(text string) string { return strconv.Quote(clipped(text)) }

// MaxShownHolders bounds the holders listed in a Waiting.
const MaxShownHolders = 16

// Waiting describes a waiter that keeps other holds meanwhile.
type Waiting struct {
	Waiter Waiter
	// Class and Name are those of what it waits for. Holders are the first of its
	// HolderCount holders.
	Class       Class
	Name        string
	Holders     []Holder
	HolderCount int
	Keeps       []Kept
}

// Waits returns at most limit of the waiters that keep other holds meanwhile, sorted by the
// names that they wait for, and whether there are more.
func (v *Version) Waits(limit int) (list []Waiting, more bool) {
	wanted := make(map[ClaimID]bool)
	var names []key
	v.graph.Scan(func(e edge) bool {
		switch {
		case wanted[e.wait]:
		case len(wanted) == limit:
			more = true
		default:
			wanted[e.wait] = true
			names = append(names, e.of)
		}
		return !more
	})
	slices.SortFunc(names, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.class, b.class), strings.Compare(a.name, b.name))
	})
	for _, k := range slices.Compact(names) {
		res := v.find(k.class, k.name)
		var view Resource
		res.describe(&view, 0)
		for _, c := range res.queue() {
			if wanted[c.id()] {
				list = append(list, Waiting{
					Waiter: c.waiter(), Class: k.class, Name: k.name, Keeps: slices.Clone(c.keeps.holds),
					Holders: view.Holders[:min(len(view.Holders), MaxShownHolders)], HolderCount: len(view.Holders),
				})
			}
		}
	}
	return list, more
}
