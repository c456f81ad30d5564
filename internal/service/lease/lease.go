// Package lease measures the remaining time of sessions: the leader measures it for all
// sessions, a home for those of its clients. The package is deterministic. Its caller
// passes in the readings of a clock that stands still while the server is suspended.
package lease

import (
	"container/heap"

	"github.com/conclave-io/conclave/internal/service/registry"
)

// lease is the state of a session's time.
type lease struct {
	ttl      int64
	deadline int64
	// renewals is the session's renewal count, which a verdict names.
	renewals uint64
	// check is when to check the session again for silence.
	check int64
	// silent means that the session is recorded as silent in the log, or soon will be.
	silent bool
	// expiring means that its expiry has been proposed.
	expiring bool
}

// Table measures the time of sessions.
type Table struct {
	byID  map[registry.SessionID]*lease
	queue agenda
}

// NewTable returns a table without sessions.
func NewTable() *Table {
	return &Table{byID: make(map[registry.SessionID]*lease)}
}

// Begin starts the lease of a session that was just renewed through the log.
func (l *Table) Begin(s registry.Session, now int64) {
	l.put(s.ID, lease{ttl: s.TTL, deadline: now + s.TTL, renewals: s.Renewals, check: now + s.TTL/2})
}

// Inherit starts the lease of a session that an earlier leader was responsible for. A live
// client finds the new leader soon. If a client does not, its session is recorded as silent
// long before its TTL is over; otherwise a series of leaders could keep it alive forever.
// Sessions are recorded a few at a time: a hundred thousand at once would take longer than
// a leader may be silent.
func (l *Table) Inherit(s registry.Session, now int64) {
	turn := int64(len(l.byID)/atATime) * betweenTurns
	fresh := lease{ttl: s.TTL, deadline: now + s.TTL, renewals: s.Renewals, check: now + soon(s.TTL) + turn}
	if s.Silent {
		fresh.deadline, fresh.silent = now+s.Remaining, true
	}
	l.put(s.ID, fresh)
}

// soon is how long to wait for a client that has reason to call.
func soon(ttl int64) int64 { return min(ttl/4, 1e9) }

// again is the time between two records of the remaining time of a silent session: 1 to 10 s
// if the TTL is more than 4 s. A change of the leader may extend the session's life by as much.
func again(ttl int64) int64 { return max(soon(ttl), min(ttl/16, 10e9)) }

const (
	// atATime is how many inherited sessions are checked together, and betweenTurns the ns
	// until the next ones.
	atATime      = 1024
	betweenTurns = 20e6
)

func (l *Table) put(id registry.SessionID, fresh lease) {
	present := l.byID[id]
	if present == nil {
		present = new(lease)
		l.byID[id] = present
	}
	// A lease that has an appointment keeps it, which may be too early. A lease that
	// was about to expire has none left.
	if present.ttl == 0 || present.expiring {
		heap.Push(&l.queue, appointment{fresh.next(), id})
	}
	*present = fresh
}

// Renew extends a lease because of a renewal that arrived now. It reports whether a quorum
// round is enough to acknowledge it: the renewal of a silent session must go through the
// log, and an expiring session cannot be renewed.
func (l *Table) Renew(id registry.SessionID, now int64) bool {
	s := l.byID[id]
	if s == nil || s.silent || s.expiring {
		return false
	}
	s.deadline = max(s.deadline, now+s.ttl)
	s.check = now + s.ttl/2
	return true
}

// Extend keeps a session alive until the given time at least.
func (l *Table) Extend(id registry.SessionID, until int64) {
	if s := l.byID[id]; s != nil && !s.expiring {
		s.deadline = max(s.deadline, until)
	}
}

// End forgets a session.
func (l *Table) End(id registry.SessionID) { delete(l.byID, id) }

// Remaining returns the remaining time of a session, at least 0.
func (l *Table) Remaining(id registry.SessionID, now int64) int64 {
	s := l.byID[id]
	if s == nil {
		return 0
	}
	return max(0, s.deadline-now)
}

// Due returns the sessions that have expired, and those that have to be recorded as silent.
// It marks them, so that each is returned once.
func (l *Table) Due(now int64) (expired, silent []registry.Verdict) {
	for len(l.queue) > 0 && l.queue[0].when <= now {
		id := l.queue[0].id
		s := l.byID[id]
		switch {
		case s == nil || s.expiring:
			heap.Pop(&l.queue)
			continue
		case s.deadline <= now:
			s.expiring = true
			expired = append(expired, registry.Verdict{Session: id, Renewals: s.renewals})
			heap.Pop(&l.queue)
			continue
		case s.check <= now:
			s.silent = true
			s.check = now + again(s.ttl)
			silent = append(silent, registry.Verdict{Session: id, Renewals: s.renewals, Remaining: s.deadline - now})
		}
		l.queue[0].when = s.next()
		heap.Fix(&l.queue, 0)
	}
	return expired, silent
}

func (s *lease) next() int64 { return min(s.deadline, s.check) }

// appointment is a time at which a lease may need attention. It may come too early, but
// never too late.
type appointment struct {
	when int64
	id   registry.SessionID
}

// agenda is a heap of appointments. Ties are broken by id, so that the order in which
// sessions expire depends on nothing else.
type agenda []appointment

func (a agenda) Len() int { return len(a) }

func (a agenda) Less(i, j int) bool {
	if a[i].when != a[j].when {
		return a[i].when < a[j].when
	}
	return a[i].id.Compare(a[j].id) < 0
}

func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

func (a *agenda) Push(x any) { *a = append(*a, x.(appointment)) }

func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}
