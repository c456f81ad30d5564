package registry

// A home is the registry of one server, for the sessions of its clients and for guarded names. It
// is not part of the log. Sessions, numbers, queues and answers work as in any registry, but
// a home grants no lock by itself: a request waits until the algorithm admits this server,
// and Admit passes that on.

// NewHome returns the home of a server without clients.
func NewHome() *Registry {
	r := New()
	r.home = true
	return r
}

// Demand reports whether a lock is held, and whether somebody waits for it.
func (r *Registry) Demand(name string) (held, wanted bool) {
	res := r.find(Lock, name)
	if res == nil {
		return false, false
	}
	return len(res.holders()) > 0, len(res.queue()) > 0
}

// HeldBy returns the principal whose session holds a lock, or "" if nobody holds it or the
// holder is anonymous.
func (r *Registry) HeldBy(name string) string {
	if res := r.find(Lock, name); res != nil && len(res.holders()) > 0 {
		return res.holders()[0].session.owner
	}
	return ""
}

// Admit grants a lock that nobody holds to its first waiter, with the given fence, at a time of
// the wall clock. With several set the lock is one of several units, which others may hold
// elsewhere, and the grant has the floor 0. It reports whether anybody waited.
func (r *Registry) Admit(name string, fence uint64, several bool, wall int64, fx *Effects) bool {
	res := r.find(Lock, name)
	if res == nil || len(res.queue()) == 0 || len(res.holders()) > 0 {
		return false
	}
	r.frozen = nil
	res = r.thaw(res)
	res.set(units, several)
	r.wall = wall
	next := r.promote(res)
	r.hold(next, fence, fx)
	fx.granted(next)
	return true
}

// Refuse ends the wait of a claim with the given answer. It ignores a claim that does not
// wait.
func (r *Registry) Refuse(id ClaimID, result *Result, fx *Effects) {
	s := r.sessions[id.Session]
	if s == nil {
		return
	}
	c := s.claims.get(number(id.Sequence))
	if c == nil || c.held() {
		return
	}
	r.frozen = nil
	r.thawSession(s)
	r.drop(c, result.Code, 0)
	fx.Outcomes = append(fx.Outcomes, Outcome{id.Session, id.Sequence, *result})
	r.settle(c.resource, fx)
}

// RefuseAll ends the wait of all waiters of a lock.
func (r *Registry) RefuseAll(name string, result *Result, fx *Effects) {
	for res := r.find(Lock, name); res != nil && len(res.queue()) > 0; res = r.find(Lock, name) {
		r.Refuse(res.queue()[0].id(), result, fx)
	}
}

// RefuseSome ends the waits for a lock for whose owner refuse returns a result.
func (r *Registry) RefuseSome(name string, refuse func(owner string) *Result, fx *Effects) {
	res := r.find(Lock, name)
	if res == nil {
		return
	}
	refused := make(map[ClaimID]*Result)
	var ids []ClaimID
	for _, c := range res.queue() {
		if result := refuse(c.session.owner); result != nil {
			refused[c.id()] = result
			ids = append(ids, c.id())
		}
	}
	for _, id := range ids {
		r.Refuse(id, refused[id], fx)
	}
}

// Revoke asks the holder of a lock to leave, for an operator who need not have a session here.
func (r *Registry) Revoke(c *Command, fx *Effects) Result {
	if problem := firstProblem(c.validateRevoke(), c.Origin().validate()); problem != "" {
		return Result{Code: Invalid, Message: problem}
	}
	r.frozen = nil
	return r.revoke(c, fx)
}

// Dismiss ends a session for an operator: see OpEnd.
func (r *Registry) Dismiss(c *Command, fx *Effects) Result {
	r.frozen = nil
	return r.dismiss(c, fx)
}
