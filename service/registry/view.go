package registry

import (
	"slices"
	"strings"
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
	// Revoked says that the holder is asked to leave, and Reason why.
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

// Resource describes a lock or an election that somebody holds.
type Resource struct {
	Name    string
	Class   Class
	Limit   uint32
	Holders []Holder
	// Waiters are the first of the queue, which has QueueLength in all.
	Waiters     []Waiter
	QueueLength int
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
	// Renewals changes with every Open and renewal through the log, and is
	// never the same for two of them. A verdict on the session names it.
	Renewals uint64
	// Silent says that the log has the session down with Remaining ns left.
	Silent    bool
	Remaining int64
	// Leaving says that the session is being ended by somebody else.
	Leaving bool
}

// Counts sums the registry up.
type Counts struct {
	Sessions, Locks, Elections, Waiters int
	// Fence is the newest that was given, or 0.
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

// List returns at most limit resources of the class whose names begin with
// prefix and come after the name after, in the order of names, each with at
// most waiters of its queue, and whether there are more.
func (r *Registry) List(class Class, prefix, after string, limit, waiters int) ([]Resource, bool) {
	var found []*resource
	for _, res := range r.resources.slots {
		if res != nil && res.class == class && strings.HasPrefix(res.name, prefix) && res.name > after {
			found = append(found, res)
		}
	}
	slices.SortFunc(found, func(a, b *resource) int { return strings.Compare(a.name, b.name) })
	more := len(found) > limit
	list := make([]Resource, 0, min(len(found), limit))
	for _, res := range found[:min(len(found), limit)] {
		list = append(list, res.view(waiters))
	}
	return list, more
}

// Explain returns a resource with at most so many waiters, if anybody holds it,
// and how its last holds ended, the newest first.
func (r *Registry) Explain(class Class, name string, waiters int) (res Resource, held bool, past []Ended) {
	if found := r.resources.get(key{class, name}); found != nil {
		res, held = found.view(waiters), true
	}
	return res, held, r.past.of(key{class, name})
}

func (res *resource) view(waiters int) Resource {
	view := Resource{Name: res.name, Class: res.class, Limit: res.limit, QueueLength: len(res.queue())}
	for _, c := range res.holders() {
		view.Holders = append(view.Holders, c.holder())
	}
	for _, c := range res.queue()[:min(len(res.queue()), waiters)] {
		view.Waiters = append(view.Waiters, c.waiter())
	}
	return view
}

// Sessions returns at most limit sessions whose ids come after the given one,
// by id, and whether there are more.
func (r *Registry) Sessions(after SessionID, limit int) ([]Session, bool) {
	all := r.sortedSessions()
	first, found := slices.BinarySearchFunc(all, after, func(s *session, id SessionID) int { return s.id.Compare(id) })
	if found {
		first++
	}
	rest := all[first:]
	list := make([]Session, 0, min(len(rest), limit))
	for _, s := range rest[:min(len(rest), limit)] {
		list = append(list, s.view())
	}
	return list, len(rest) > limit
}

// Session returns one session.
func (r *Registry) Session(id SessionID) (Session, bool) {
	s := r.sessions[id]
	if s == nil {
		return Session{}, false
	}
	return s.view(), true
}

// Each calls f for every session, in the order of ids.
func (r *Registry) Each(f func(Session)) {
	for _, s := range r.sortedSessions() {
		f(s.view())
	}
}

func (s *session) view() Session {
	view := Session{
		ID: s.id, Owner: s.owner, TTL: s.ttl, Host: s.host, PID: s.pid, Program: s.program,
		Opened: s.opened, Renewals: s.renewals, Silent: s.silent, Remaining: s.remaining, Leaving: s.leaving,
		Holds: s.claims.len() - s.waits, Waits: s.waits,
	}
	return view
}

// Time returns the replicated time of the newest entry.
func (r *Registry) Time() int64 { return r.now }

// Leader returns who leads the election, if anybody does.
func (r *Registry) Leader(name string) (Holder, bool) {
	res := r.resources.get(key{Election, name})
	if res == nil {
		return Holder{}, false
	}
	return res.holders()[0].holder(), true
}

// Counts returns the sums.
func (r *Registry) Counts() Counts {
	counts := Counts{Sessions: len(r.sessions), Waiters: r.waiters}
	counts.Locks, counts.Elections = r.resources.len()-r.elections, r.elections
	if r.epoch > 1 || r.counter > 0 {
		counts.Fence = r.epoch<<counterBits | r.counter
	}
	return counts
}
