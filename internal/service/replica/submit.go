package replica

import (
	"cmp"
	"fmt"

	"github.com/conclave-io/conclave/internal/kit/histogram"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// Submit takes the requests of the client that the host knows as conn, a number below 1<<63.
// Each is answered by a Reply, unless Deposed comes first. The answer to an OpEnd, OpGuard,
// OpAccess, OpNote, OpSet or OpExpect has the number of the request, Origin.Request, instead of the session, and
// no sequence.
func (r *Replica) Submit(now int64, conn uint64, commands []registry.Command) {
	r.now = now
	for i := range commands {
		r.submit(conn, &commands[i])
	}
}

func (r *Replica) submit(conn uint64, c *registry.Command) {
	at := routeOf(c)
	_, awaited := r.clients.routes[at]
	problem := c.Validate()
	var refusal registry.Result
	switch {
	case problem != "":
		r.clients.refuse(conn, at, registry.Invalid, problem)
		return
	case !r.Leading():
		r.clients.refuse(conn, at, registry.NotLeader, fmt.Sprintf("server %d does not lead", r.cfg.ID))
		return
	case !awaited && r.exceeds(c):
		r.clients.refuse(conn, at, registry.StateLimit, fmt.Sprintf("state limit: %s reached: release locks, close sessions, or raise --state-limit", size(r.cfg.StateLimit)))
		return
	case !awaited && r.restricted != "" && r.adds(c):
		r.clients.refuse(conn, at, registry.Exhausted, r.restricted)
		return
	case !awaited && r.ready && !r.reg.Admits(c, &refusal):
		// It would also be refused when applied: this only keeps it out of the log.
		r.clients.refuse(conn, at, refusal.Code, refusal.Message)
		return
	case !r.ready && r.rounds.renewals() >= r.cfg.MaxPending:
		r.clients.refuse(conn, at, registry.Exhausted, r.full())
		return
	case r.ofServer(c):
		r.clients.refuse(conn, at, registry.Invalid, "only a server may send requests for its seat")
		return
	}
	if c.Op.Renews() {
		r.clients.homes[c.Session] = r.clients.homes[c.Session].With(conn)
	}
	r.forward(conn, at, c)
}

// ofServer reports whether a command is for a seat. The id of a seat proves nothing, because
// everybody may know it.
func (r *Replica) ofServer(c *registry.Command) bool {
	s, open := r.reg.Session(c.Session)
	return c.Op.Seated() && c.Op.ForGuards() || open && s.Server != 0 && !c.Op.Unbound()
}

// forward processes a valid request.
func (r *Replica) forward(conn uint64, at routeKey, c *registry.Command) {
	to, awaited := r.clients.routes[at]
	r.clients.routes[at] = route{conn, to.queued, c.Op == registry.OpClose}
	if c.Op == registry.OpRenew && (!r.ready || r.leases.Renew(c.Session, r.leaseClock())) {
		given := r.rounds.ask(asked{renewal: at})
		if given != 0 {
			r.giveUp(routeKey{c.Session, given})
		}
		return
	}
	if awaited && !to.queued && !c.Op.Renews() {
		return // it is under way, and is answered over the new stream
	}
	r.enqueue(c)
}

// enqueue makes a request wait for its turn to get into the log. If too many wait, the newest
// request of the principal, and of its session, with the most waiting bytes is refused.
func (r *Replica) enqueue(c *registry.Command) {
	s, open := r.reg.Session(c.Session)
	held, awaited := r.clients.routes[routeKey{c.Session, c.Hold}]
	r.pending.push(c, cmp.Or(s.Owner, c.Owner), r.pending.inFirst(c, open, awaited && !held.queued))
	for r.pending.count > r.cfg.MaxPending || r.pending.bytes > r.cfg.MaxPendingBytes {
		last := r.pending.refuse()
		r.giveUp(routeOf(&last))
	}
}

// giveUp answers a request that this server has no room for. If the request already has a place
// in a queue of the registry and was sent again, it keeps the place and is told so.
func (r *Replica) giveUp(at routeKey) {
	to := r.clients.routes[at]
	if to.queued {
		r.clients.refuse(to.conn, at, registry.Queued, "")
		return
	}
	delete(r.clients.routes, at)
	r.clients.refuse(to.conn, at, registry.Exhausted, r.full())
}

func (r *Replica) full() string {
	return fmt.Sprintf("the server has %d requests waiting, the most it takes: try again", r.pending.count)
}

// exceeds reports whether a request would make the state larger than this server allows,
// including requests on their way into it. The leader checks before it proposes. Applying an
// entry never checks, because the meaning of an entry must not depend on the settings of
// a server. Requests that make room, renew, or were carried out before are always accepted; so
// are all requests until this server knows the entries of earlier leaders.
func (r *Replica) exceeds(c *registry.Command) bool {
	if !r.ready || r.reg.Size()+r.proposed+r.pending.bytes+weight(c) <= r.cfg.StateLimit {
		return false
	}
	switch c.Op {
	case registry.OpOpen:
		_, open := r.reg.Session(c.Session)
		return !open
	case registry.OpAcquire:
		return !r.reg.Carried(c.Session, c.Sequence)
	case registry.OpUpdate:
		return len(c.Value) > r.reg.ValueSize(c.Session, c.Hold)
	case registry.OpExpect:
		return c.Every != 0
	}
	return false
}

// Restrict makes this server, as the leader, refuse administration, new sessions and
// acquisitions for the given reason; an empty reason ends that.
func (r *Replica) Restrict(why string) { r.restricted = why }

// adds reports whether a request is an act of administration, or creates a session or a claim.
func (r *Replica) adds(c *registry.Command) bool {
	switch c.Op {
	case registry.OpOpen:
		_, open := r.reg.Session(c.Session)
		return !open
	case registry.OpAcquire:
		return !r.reg.Carried(c.Session, c.Sequence)
	case registry.OpRevoke, registry.OpEnd, registry.OpGuard, registry.OpAccess, registry.OpNote, registry.OpSet, registry.OpExpect:
		return true
	}
	return false
}

// size formats a number of bytes for people.
func size(bytes int) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// Stats are figures of a replica at one moment.
type Stats struct {
	registry.Counts
	// Commit is the index of the newest entry known to be committed.
	Commit uint64
	Term   uint64
	// Pending is the number of requests that wait to get into the log.
	Pending int
	// StateBytes is the approximate size of the state, encoded. At StateLimit this
	// server, as the leader, refuses requests that make it larger.
	StateBytes, StateLimit int
	// LastBackup is when the last backup on record was taken, ns since 1970, or 0.
	LastBackup int64
	// Shunned is how often this server, as the leader, stopped renewing a seat, by
	// Whys.
	Shunned [len(Whys)]uint64
}

// Deeds counts the effects of the entries that this server wrote as the leader and applied in the
// same term. So each entry counts at one server at most. Entries left by an earlier leader count
// at none.
type Deeds struct {
	registry.Deeds
	// Commits are the times from the proposal of an entry to its application.
	Commits histogram.Durations
	// Forgiven is how long, in ns, this server was suspended while it led. It moved the
	// deadlines of sessions by as much.
	Forgiven int64
}

// Deeds returns the counts. They are large, so call it rarely.
func (r *Replica) Deeds() Deeds { return r.deeds }

// Lag is the number of entries that a server lacks, compared with the leader.
type Lag struct{ Server, Entries uint64 }

// Lags returns the lags of the other servers, by id, if this one leads.
func (r *Replica) Lags() (lags []Lag) {
	if !r.Leading() {
		return nil
	}
	status := r.core.Status()
	for _, p := range status.Peers {
		if p.ID != r.cfg.ID {
			lags = append(lags, Lag{p.ID, max(status.Last, p.Match) - p.Match})
		}
	}
	return lags
}

// Stats returns the present figures. It only reads fields.
func (r *Replica) Stats() Stats {
	return Stats{
		Counts: r.reg.Counts(), Commit: r.core.Commit(), Term: r.term,
		Pending: r.pending.count, StateBytes: r.reg.Size(), StateLimit: r.cfg.StateLimit, LastBackup: r.reg.LastBackup(), Shunned: r.seats.counts,
	}
}
