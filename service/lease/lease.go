// Package lease measures the time of sessions for the server that vouches for them: the
// leader for all sessions, a home for those of its clients. It is deterministic: its
// caller gives it the readings of a clock that stands still while the server does.
package lease

import (
	"container/heap"

	"github.com/conclave-io/conclave/service/registry"
)

// lease is what is known of a session's time.
type lease struct {
	ttl      int64
	deadline int64
	// renewals is the session's count, which a verdict names.
	renewals uint64
	// check is when to look at it again for silence.
	check int64
	// silent says that the log has it down as silent, or soon will.
	silent bool
	// expiring says that its expiry is under way.
	expiring bool
}

// Table measures the time of sessions.
type Table struct {
	byID  map[registry.SessionID]*lease
	queue agenda
}

// NewTable returns a table of no session.
func NewTable() *Table {
	return &Table{byID: make(map[registry.SessionID]*lease)}
}

// Begin starts the lease of a session that renewed through the log just now.
func (l *Table) Begin(s registry.Session, now int64) {
	l.put(s.ID, lease{ttl: s.TTL, deadline: now + s.TTL, renewals: s.Renewals, check: now + s.TTL/2})
}

// Inherit starts the lease of a session that an earlier leader vouched for. A
// client that lives finds the new leader soon: one that does not is put on
// record long before its TTL is over, or a series of leaders could keep it for
// ever. Many sessions are put on record a few at a time: a hundred thousand at once
// would take longer than a leader may be silent.
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

// again is how long after a session was put on record as silent its remaining time
// is put on record again: 1 to 10 s with a TTL of more than 4 s. That is what a change
// of the leader may add to its life.
func again(ttl int64) int64 { return max(soon(ttl), min(ttl/16, 10e9)) }

const (
	// atATime is how many inherited sessions are looked at together, and betweenTurns
	// the ns until the next.
	atATime      = 1024
	betweenTurns = 20e6
)

func (l *Table) put(id registry.SessionID, fresh lease) {
	present := l.byID[id]
	if present == nil {
		present = new(lease)
		l.byID[id] = present
	}
	// A lease that had an appointment keeps it: it is early at worst. One that
	// was about to expire had none left.
	if present.ttl == 0 || present.expiring {
		heap.Push(&l.queue, appointment{fresh.next(), id})
	}
	*present = fresh
}

// Renew extends a lease on the word of a renewal that arrived now. It reports
// whether a quorum round suffices to acknowledge it: a silent session must be
// renewed through the log, and one that expires not at all.
func (l *Table) Renew(id registry.SessionID, now int64) bool {
	s := l.byID[id]
	if s == nil || s.silent || s.expiring {
		return false
	}
	s.deadline = max(s.deadline, now+s.ttl)
	s.check = now + s.ttl/2
	return true
}

// Extend lets a session live until a moment at least.
func (l *Table) Extend(id registry.SessionID, until int64) {
	if s := l.byID[id]; s != nil && !s.expiring {
		s.deadline = max(s.deadline, until)
	}
}

// End forgets a session.
func (l *Table) End(id registry.SessionID) { delete(l.byID, id) }

// Remaining returns what the session has left, at least 0.
func (l *Table) Remaining(id registry.SessionID, now int64) int64 {
	s := l.byID[id]
	if s == nil {
		return 0
	}
	return max(0, s.deadline-now)
}

// Due returns the sessions whose time is over, and those whose silence is to
// be put on record. It marks them, so that each is returned once.
func (l *Table) Due(now int64) (expired, silent []registry.Lease) {
	for len(l.queue) > 0 && l.queue[0].when <= now {
		id := l.queue[0].id
		s := l.byID[id]
		switch {
		case s == nil || s.expiring:
			heap.Pop(&l.queue)
			continue
		case s.deadline <= now:
			s.expiring = true
			expired = append(expired, registry.Lease{Session: id, Renewals: s.renewals})
			heap.Pop(&l.queue)
			continue
		case s.check <= now:
			s.silent = true
			s.check = now + again(s.ttl)
			silent = append(silent, registry.Lease{Session: id, Renewals: s.renewals, Remaining: s.deadline - now})
		}
		l.queue[0].when = s.next()
		heap.Fix(&l.queue, 0)
	}
	return expired, silent
}

func (s *lease) next() int64 { return min(s.deadline, s.check) }

// appointment is a moment at which a lease may need attention. It may come too
// early, never too late.
type appointment struct {
	when int64
	id   registry.SessionID
}

// agenda is a heap of appointments; ties are broken by id, so that the order
// in which sessions expire depends on nothing else.
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
