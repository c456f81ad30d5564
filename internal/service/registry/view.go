package registry

import (
	"cmp"
	"math"
	"slices"
)

// Holder describes a hold, for people and for observers of elections.
type Holder struct {
	Session  SessionID
	Owner    string // the principal that opened the session
	Sequence uint64
	Fence    uint64
	Since    int64 // wall clock of the leader at the grant, ns since 1970
	Host     string
	PID      int64
	Program  string
	Value    string
	Shared   bool
	Priority int64
	// Revoked means that the holder is asked to leave, and Reason says why.
	Revoked bool
	Reason  string
}

// Waiter describes a place in a queue.
type Waiter struct {
	Session  SessionID
	Owner    string // the principal that opened the session
	Sequence uint64
	Since    int64 // wall clock of the leader at queueing, ns since 1970
	Host     string
	PID      int64
	Program  string
	Value    string
	Shared   bool
	Priority int64
}

// Resource describes a lock or an election that somebody holds, or of which places linger.
type Resource struct {
	Name    string
	Class   Class
	Limit   uint32
	Holders []Holder
	// Waiters are the first of the queue, whose length is QueueLength.
	Waiters     []Waiter
	QueueLength int
	// Closed are the places that linger after their holds, by fence.
	Closed []Linger
}

// Session describes a session.
type Session struct {
	ID      SessionID
	Owner   string // the principal that opened it
	TTL     int64  // ns
	Host    string
	PID     int64
	Program string
	Holds   int
	Waits   int
	Opened  int64 // wall clock of the leader, ns since 1970
	// Renewals changes with every Open and renewal through the log, and is never the same
	// for two of them. A verdict about the session names it.
	Renewals uint64
	// Silent means that the session is recorded as silent, with Remaining ns left.
	Silent    bool
	Remaining int64
	// Leaving means that the session is being ended by somebody else.
	Leaving bool
	// Server is the server whose seat it is, or 0.
	Server uint64
}

// Counts has totals of the registry.
type Counts struct {
	Sessions, Locks, Elections, Waiters int
	// Fence is the newest fence, or 0.
	Fence uint64
}

func (c *claim) holder() Holder {
	s := c.session
	return Holder{
		Session: s.id, Owner: s.owner, Sequence: c.sequence, Fence: c.fence, Since: c.since,
		Host: s.host, PID: s.pid, Program: s.program,
		Value: c.value, Shared: c.shared, Priority: c.priority, Revoked: c.revoked, Reason: c.reason,
	}
}

func (c *claim) waiter() Waiter {
	s := c.session
	return Waiter{
		Session: s.id, Owner: s.owner, Sequence: c.sequence, Since: c.since,
		Host: s.host, PID: s.pid, Program: s.program,
		Value: c.value, Shared: c.shared, Priority: c.priority,
	}
}

// describe fills in the description of a resource.
func (res *resource) describe(view *Resource, waiters int) {
	*view = Resource{
		Name: res.name, Class: res.class, Limit: res.limit, QueueLength: len(res.queue()),
		Holders: view.Holders[:0], Waiters: view.Waiters[:0],
	}
	for _, c := range res.holders() {
		view.Holders = append(view.Holders, c.holder())
	}
	for _, c := range res.queue()[:min(len(res.queue()), waiters)] {
		view.Waiters = append(view.Waiters, c.waiter())
	}
}

func (r Resource) clone() Resource {
	r.Holders, r.Waiters = slices.Clone(r.Holders), slices.Clone(r.Waiters) // Closed is new each time
	return r
}

// Each calls f for every session, in the order of ids.
func (st *state) Each(f func(Session)) {
	for s := range st.all() {
		f(s.view())
	}
}

// Counts returns the totals.
func (st *state) Counts() Counts { return st.counts(len(st.sessions)) }

// Session returns one session.
func (st *state) Session(id SessionID) (Session, bool) {
	s := st.sessions[id]
	if s == nil {
		return Session{}, false
	}
	return s.view(), true
}

func (st *sessionState) view() Session {
	s := st.of
	return Session{
		ID: s.id, Owner: s.owner, TTL: s.ttl, Host: s.host, PID: s.pid, Program: s.program,
		Opened: s.opened, Renewals: st.renewals, Silent: st.silent, Remaining: st.remaining, Leaving: st.leaving, Server: s.server,
		Holds: int(st.holds), Waits: int(st.waits),
	}
}

// Order is an order of resources other than by name. The numbers are those of the public
// interface.
type Order uint8

// The orders. Resources that are equal in an order are sorted by name.
const (
	ByQueue Order = 1 + iota // the longest queue first
	ByAge                    // the longest held first, and last what nobody holds

	orders
)

// Valid reports whether there is such an order.
func (o Order) Valid() bool { return o > 0 && o < orders }

// MaxRanked is the most resources that Rank examines.
const MaxRanked = 100_000

// ranked is a resource with its sort key; smaller ones come first.
type ranked struct {
	key
	of     *resource // or nil
	closed bool      // whether places linger
	rank   int64
}

// Rank returns the first limit resources of the class whose names start with prefix, in
// an order, each with at most waiters of its queue, and whether there are more. It returns
// ok = false if there are more than MaxRanked such resources.
func (v *Version) Rank(class Class, prefix string, order Order, limit, waiters int) (list []Resource, more, ok bool) {
	var first []ranked
	seen := 0
	v.each(class, prefix, prefix, func(k key, res *resource, closed bool) bool {
		seen++
		one := ranked{k, res, closed, res.rank(order)}
		// A later resource has a larger name, so it goes behind its equals.
		if len(first) == limit && (limit == 0 || one.rank >= first[limit-1].rank) {
			return seen <= MaxRanked
		}
		at, _ := slices.BinarySearchFunc(first, one.rank, func(r ranked, rank int64) int {
			return cmp.Or(cmp.Compare(r.rank, rank), -1)
		})
		if len(first) == limit {
			first = first[:limit-1]
		}
		first = slices.Insert(first, at, one)
		return seen <= MaxRanked
	})
	if seen > MaxRanked {
		return nil, false, false
	}
	for _, r := range first {
		list = append(list, Resource{})
		v.describe(r.key, r.of, r.closed, &list[len(list)-1], waiters)
	}
	return list, seen > len(list), true
}

// rank returns the sort key of a resource, which may be nil, in an order.
func (res *resource) rank(order Order) int64 {
	switch {
	case res == nil && order == ByQueue:
		return 0
	case res == nil:
		return math.MaxInt64
	case order == ByQueue:
		return -int64(len(res.queue()))
	}
	since := int64(math.MaxInt64) // while its guard changes, a lock may have only waiters
	for _, c := range res.holders() {
		since = min(since, c.since)
	}
	return since
}
