package registry

import "slices"

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

// Resource describes a lock or an election that somebody holds.
type Resource struct {
	Name    string
	Class   Class
	Limit   uint32
	Holders []Holder
	// Waiters are the first of the queue, whose length is QueueLength.
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

func (res *resource) view(waiters int) (view Resource) {
	res.describe(&view, waiters)
	return view
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
	r.Holders, r.Waiters = slices.Clone(r.Holders), slices.Clone(r.Waiters)
	return r
}

// List returns List of the present version.
func (r *Registry) List(class Class, prefix, after string, limit, waiters int) (list []Resource, more bool) {
	return r.Freeze().List(class, prefix, after, limit, waiters)
}

// Sessions returns Sessions of the present version.
func (r *Registry) Sessions(after SessionID, limit int) (list []Session, more bool) {
	return r.Freeze().Sessions(after, limit)
}

// Leader returns Leader of the present version.
func (r *Registry) Leader(name string) (Holder, bool) { return r.Freeze().Leader(name) }

// Uses returns Uses of the present version.
func (r *Registry) Uses(level uint32) (features []string) { return r.Freeze().Uses(level) }

// Explain returns Explain of the present version.
func (r *Registry) Explain(class Class, name string, waiters int) (res Resource, held bool, past []Ended) {
	return r.Freeze().Explain(class, name, waiters)
}

// Each calls f for every session, in the order of ids.
func (r *Registry) Each(f func(Session)) {
	for s := range r.all() {
		f(s.view())
	}
}

// Counts returns the totals.
func (r *Registry) Counts() Counts { return r.counts(len(r.sessions)) }

// Session returns one session.
func (r *Registry) Session(id SessionID) (Session, bool) {
	s := r.sessions[id]
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
