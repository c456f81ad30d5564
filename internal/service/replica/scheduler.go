package replica

import (
	"container/heap"

	"github.com/conclave-io/conclave/internal/service/registry"
)

// scheduler holds the requests that wait to get into the log, so that those with many requests do not
// delay those with few.
//
// The first band has requests that keep sessions alive and that make room: renewals, releases,
// cancels, closes, revocations, ends, and requests about seats, guards, rules and settings. It goes first
// and leaves a quarter of an entry to the second band, which has requests that take room. In each
// band every principal has an account with a FIFO queue for each of its sessions; each session of
// an anonymous caller has an account of its own. Accounts take turns, and within the turn of an
// account its queues do, both by deficit round robin in two rings, as in FQ-CoDel (RFC 8290).
// A new account or queue is in the first ring, for one turn of quantum bytes. If it is not empty then,
// it moves to the second ring, where a turn has backlogQuantum bytes. The first ring goes first and
// leaves half of the room to the second. So the request of a session that waits for each answer gets
// into the next entry, however many others have a backlog. Those with a backlog have long turns,
// because many requests of one session are read, applied and answered together for less. Empty
// accounts and queues are removed, so they cost nothing. No choice depends on the order of a map.
//
// Requests of one session can overtake each other only from the first band past the second.
// Requests that must not overtake stay behind (see inFirst):
//
//   - All requests of a session stay behind an Open of the session that waits in the second band.
//     A Close that overtook it would find no session, and the Open would then leave one that
//     nobody closes.
//   - A Release stays behind the Acquire that it names until that was answered. It would find
//     nothing to release, and the lock would then be held for nobody.
//
// All other requests may overtake. A Cancel that comes before its Acquire withdraws it in
// advance. A Close ends the session, so the Acquires that it overtook are told that the session
// is gone, as if they had come later. A renewal or a revocation does not refer to another request
// of its session.
type scheduler struct {
	first, second band
	longest       longest[account]
	count         int
	bytes         int
	made          uint64 // number of accounts and queues created
	// spare has freed requests for reuse, and so have the others.
	spare         []*waiting
	spareQueues   []*queue
	spareAccounts []*account
}

const (
	// quantum is the cost of the requests that a principal or a session may put into the log in
	// its first turn, in bytes, and backlogQuantum in each later one.
	quantum        = 16 << 10
	backlogQuantum = 64 << 10
	// leastCost is the least cost of a request, however few bytes it has: to decode, apply and
	// answer it costs all servers about as much as storing this many bytes. It keeps entries
	// short, so that a request that arrives while all entries are full of another session's
	// requests does not wait long.
	leastCost = 4 << 10
	// spares bounds the freed requests, queues and accounts that are kept for reuse, each.
	spares = 1024
)

func newScheduler() *scheduler {
	return &scheduler{first: newBand(), second: newBand()}
}

// band has the accounts that take turns.
type band struct {
	bySession map[registry.SessionID]*queue
	byPayer   map[payer]*account
	turns     turns[account]
}

func newBand() band {
	return band{bySession: make(map[registry.SessionID]*queue), byPayer: make(map[payer]*account)}
}

// payer is who has an account: a principal, an anonymous session or, if both are zero, operators,
// whose commands are charged to no session. They must not wait behind the session that they end.
type payer struct {
	principal string
	session   registry.SessionID
}

// account has the waiting requests of one payer in one band. It is never empty.
type account struct {
	member[account]
	payer   payer
	band    *band
	turns   turns[queue]
	longest longest[queue]
}

// queue has the waiting requests of one session in one band. It is never empty.
type queue struct {
	member[queue]
	session registry.SessionID
	account *account
	head    *waiting // the oldest
	tail    *waiting
	// opens counts the Opens among the commands.
	opens int
}

// waiting is a request in a queue.
type waiting struct {
	command      registry.Command
	weight       int // of the command
	older, newer *waiting
}

// weight returns the approximate size of a command in the log and in memory.
func weight(c *registry.Command) int {
	by := c.Origin()
	return 64 + c.KeepsSize() + c.LingerSize() + c.RuleSize() + c.ChangeSize() + len(c.Name) + len(c.Value) + len(c.Host) + len(c.Program) + len(c.Owner) +
		len(by.Actor) + len(by.Via) + len(by.Remote) + c.GuardingSize()
}

// cost returns what the command uses of its session's turn and of an entry's room.
func (w *waiting) cost() int { return max(w.weight, leastCost) }

// sessionOf returns the session in whose queue a command waits; zero for those of operators.
func sessionOf(c *registry.Command) registry.SessionID {
	if c.Op.Unbound() {
		return registry.SessionID{}
	}
	return c.Session
}

// payerOf returns who pays for a command of a session whose principal is given, "" if it is
// anonymous.
func payerOf(c *registry.Command, principal string) payer {
	if principal == "" || c.Op.Unbound() {
		return payer{session: sessionOf(c)}
	}
	return payer{principal: principal}
}

// inFirst reports whether a command goes into the first band. Open means that the registry has
// the session; unanswered means that the request which a Release names still waits for its
// first answer.
func (l *scheduler) inFirst(c *registry.Command, open, unanswered bool) bool {
	if q := l.second.bySession[sessionOf(c)]; q != nil && q.opens > 0 {
		return false
	}
	switch c.Op {
	case registry.OpOpen:
		return open
	case registry.OpRelease:
		return !unanswered
	case registry.OpRenew, registry.OpCancel, registry.OpClose, registry.OpRevoke, registry.OpEnd:
		return true
	}
	return c.Op.ForGuards() || c.Op.ForAccess() || c.Op == registry.OpSet || c.Op == registry.OpExpect
}

// push appends a command to the queue of its session in a band. The principal of the session is ""
// if it is anonymous.
func (l *scheduler) push(c *registry.Command, principal string, first bool) {
	band, id := &l.second, sessionOf(c)
	if first {
		band = &l.first
	}
	q := band.bySession[id]
	if q == nil {
		q = l.newQueue(l.accountOf(band, payerOf(c, principal)), id)
	}
	w := reuse(&l.spare)
	w.command, w.weight = *c, weight(c)
	q.append(w)
	l.grow(q, w, 1)
	heap.Fix(&q.account.longest, q.at)
	heap.Fix(&l.longest, q.account.at)
}

func (l *scheduler) newQueue(a *account, id registry.SessionID) *queue {
	l.made++
	q := reuse(&l.spareQueues)
	q.member = member[queue]{of: q, number: l.made}
	q.session, q.account = id, a
	a.band.bySession[id] = q
	a.turns.fresh.link(&q.member)
	heap.Push(&a.longest, &q.member)
	return q
}

func (l *scheduler) accountOf(of *band, who payer) *account {
	if a := of.byPayer[who]; a != nil {
		return a
	}
	l.made++
	a := reuse(&l.spareAccounts)
	a.member = member[account]{of: a, number: l.made}
	a.payer, a.band = who, of
	of.byPayer[who] = a
	of.turns.fresh.link(&a.member)
	heap.Push(&l.longest, &a.member)
	return a
}

// reuse takes a zeroed element from the spare ones, or allocates one.
func reuse[T any](spare *[]*T) *T {
	last := len(*spare) - 1
	if last < 0 {
		return new(T)
	}
	t := (*spare)[last]
	*spare = (*spare)[:last]
	return t
}

// keep adds a freed element to the spare ones, if there is room.
func keep[T any](spare *[]*T, t *T) {
	if len(*spare) < spares {
		var zero T
		*t = zero
		*spare = append(*spare, t)
	}
}

// draw appends the requests for the next entry, which has room for this cost. It takes at least
// one command from each band that has some.
func (l *scheduler) draw(entry []registry.Command, room int) []registry.Command {
	before := l.first.turns.cost()
	entry = l.drawBand(&l.first, entry, room-min(room/4, l.second.turns.cost()))
	return l.drawBand(&l.second, entry, max(room-(before-l.first.turns.cost()), 1))
}

func (l *scheduler) drawBand(from *band, entry []registry.Command, room int) []registry.Command {
	return from.turns.draw(entry, room, func(a *account, entry []registry.Command, room int, must bool) []registry.Command {
		if room = min(room, a.deficit); must && a.deficit > 0 {
			room = max(room, 1)
		}
		if room > 0 {
			entry = l.drawAccount(a, entry, room)
		}
		l.settleAccount(a)
		return entry
	})
}

func (l *scheduler) drawAccount(from *account, entry []registry.Command, room int) []registry.Command {
	return from.turns.draw(entry, room, func(q *queue, entry []registry.Command, room int, must bool) []registry.Command {
		for left := q.deficit; q.head != nil; {
			price := q.head.cost()
			if price > left || price > room && !must {
				break
			}
			must = false
			room -= price
			left -= price
			entry = append(entry, q.head.command)
			l.remove(q, q.head)
		}
		l.settleQueue(q)
		return entry
	})
}

// refuse removes the newest command from the longest queue of the principal with the most bytes.
// There must be one.
func (l *scheduler) refuse() registry.Command {
	a := l.longest[0].of
	q := a.longest[0].of
	c := q.tail.command
	l.remove(q, q.tail)
	l.settleQueue(q)
	l.settleAccount(a)
	return c
}

// remove removes a request from its queue.
func (l *scheduler) remove(q *queue, w *waiting) {
	l.grow(q, w, -1)
	q.remove(w)
	keep(&l.spare, w)
}

// append adds a request at the end of the queue.
func (q *queue) append(w *waiting) {
	if w.older = q.tail; w.older != nil {
		w.older.newer = w
	} else {
		q.head = w
	}
	q.tail = w
}

// remove removes a request from the queue.
func (q *queue) remove(w *waiting) {
	if w.older != nil {
		w.older.newer = w.newer
	} else {
		q.head = w.newer
	}
	if w.newer != nil {
		w.newer.older = w.older
	} else {
		q.tail = w.older
	}
}

// grow counts a request that is added (1) or removed (-1).
func (l *scheduler) grow(q *queue, w *waiting, by int) {
	bytes, price := by*w.weight, by*w.cost()
	l.count += by
	l.bytes += bytes
	q.grow(bytes, price)
	q.account.grow(bytes, price)
	if w.command.Op == registry.OpOpen {
		q.opens += by
	}
}

// settleQueue puts a queue from which something was removed in its place among the longest, or
// removes it if it is empty.
func (l *scheduler) settleQueue(q *queue) {
	if q.head != nil {
		heap.Fix(&q.account.longest, q.at)
		return
	}
	heap.Remove(&q.account.longest, q.at)
	q.ring.unlink(&q.member)
	delete(q.account.band.bySession, q.session)
	keep(&l.spareQueues, q)
}

// settleAccount does for an account what settleQueue does for a queue.
func (l *scheduler) settleAccount(a *account) {
	if a.cost > 0 {
		heap.Fix(&l.longest, a.at)
		return
	}
	heap.Remove(&l.longest, a.at)
	a.ring.unlink(&a.member)
	delete(a.band.byPayer, a.payer)
	memory := a.longest // used again
	keep(&l.spareAccounts, a)
	a.longest = memory
}

// turns is a set of members that take turns by deficit round robin: those that have not ended a
// turn, which go first, and those with a backlog, to which half of the room is left.
type turns[T any] struct{ fresh, backlog ring[T] }

func (t *turns[T]) cost() int { return t.fresh.cost + t.backlog.cost }

// member is what turns and longest know of a T.
type member[T any] struct {
	of         *T
	ring       *ring[T]
	next, prev *member[T]
	bytes      int
	cost       int
	// deficit is how much the member may still draw in this turn, if begun is set. It is
	// negative if the last request was larger.
	deficit int
	begun   bool
	at      int    // in longest
	number  uint64 // no two members have the same
}

func (m *member[T]) grow(bytes, cost int) {
	m.bytes += bytes
	m.cost += cost
	m.ring.cost += cost
}

// take appends requests of a member that cost at most room. If it must, and the turn allows it, it
// takes one at least. It unlinks the member if that is empty then.
type take[T any] func(of *T, entry []registry.Command, room int, must bool) []registry.Command

// draw appends requests that cost at most room, which is positive, but one at least of those with a
// backlog and one of the others, if they had any before.
func (t *turns[T]) draw(entry []registry.Command, room int, from take[T]) []registry.Command {
	before, kept := t.cost(), min(room/2, t.backlog.cost)
	entry = t.serve(&t.fresh, quantum, entry, room-kept, from)
	if left := room - (before - t.cost()); left > 0 || kept > 0 {
		entry = t.serve(&t.backlog, backlogQuantum, entry, left, from)
	}
	return entry
}

// serve gives turns to the members of one ring until there is no more room.
func (t *turns[T]) serve(r *ring[T], turn int, entry []registry.Command, room int, from take[T]) []registry.Command {
	for must := true; r.first != nil; {
		m := r.first
		if !m.begun {
			m.begun, m.deficit = true, m.deficit+turn
		}
		before, total := m.cost, r.cost
		entry = from(m.of, entry, room, must)
		drawn := total - r.cost
		must = must && drawn == 0
		room -= drawn
		if drawn == before {
			continue // it is empty, and was unlinked
		}
		if m.deficit -= drawn; room < m.deficit && !must {
			return entry // its turn continues in the next entry
		}
		m.begun = false
		r.unlink(m)
		t.backlog.link(m)
	}
	return entry
}

// ring is members in the order of their turns.
type ring[T any] struct {
	first *member[T] // whose turn it is
	cost  int        // of all requests of the members
}

// link adds a member at the end of the ring.
func (r *ring[T]) link(m *member[T]) {
	m.ring = r
	r.cost += m.cost
	if r.first == nil {
		m.next, m.prev, r.first = m, m, m
		return
	}
	m.next, m.prev = r.first, r.first.prev
	m.prev.next, m.next.prev = m, m
}

func (r *ring[T]) unlink(m *member[T]) {
	r.cost -= m.cost
	if r.first == m {
		r.first = m.next
	}
	if r.first == m {
		r.first = nil
	}
	m.prev.next, m.next.prev = m.next, m.prev
}

// longest is a heap with the member that has the most bytes on top. Among members with
// equally many bytes, it is the newest, which has waited the shortest time.
type longest[T any] []*member[T]

func (h longest[T]) Len() int { return len(h) }

func (h longest[T]) Less(i, j int) bool {
	if h[i].bytes != h[j].bytes {
		return h[i].bytes > h[j].bytes
	}
	return h[i].number > h[j].number
}

func (h longest[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *longest[T]) Push(x any) {
	m := x.(*member[T])
	m.at = len(*h)
	*h = append(*h, m)
}

func (h *longest[T]) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
