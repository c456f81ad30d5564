package replica

import (
	"container/heap"

	"github.com/conclave-io/conclave/service/registry"
)

// lanes holds the requests that wait to get into the log, so that sessions with many requests
// do not delay sessions with few.
//
// The first lane has requests that keep sessions alive and that make room: renewals, releases,
// cancels, closes, revocations, ends, and requests about seats, guards and rules. It goes first
// and leaves a quarter of an entry to the second lane, which has requests that take room. In each
// lane every session has a FIFO queue. The queues are served by deficit round robin in two rings,
// as in FQ-CoDel (RFC 8290). A new queue is in the first ring, where it has one turn of quantum
// bytes. If it is not empty then, it moves to the second ring, where a turn has backlogQuantum
// bytes. The first ring goes first and leaves half of the room to the second. So a session that
// waits for each answer gets into the next entry, however many others have a backlog. Those with a
// backlog have long turns, because many requests of one session are read, applied and answered
// together for less. An empty queue is removed, so it costs nothing. No choice depends on the
// order of a map.
//
// Requests of one session can overtake each other only from the first lane past the second.
// Requests that must not overtake stay behind (see inFirst):
//
//   - All requests of a session stay behind an Open of the session that waits in the second lane.
//     A Close that overtook it would find no session, and the Open would then leave one that
//     nobody closes.
//   - A Release stays behind the Acquire that it names until that was answered. It would find
//     nothing to release, and the lock would then be held for nobody.
//
// All other requests may overtake. A Cancel that comes before its Acquire withdraws it in
// advance. A Close ends the session, so the Acquires that it overtook are told that the session
// is gone, as if they had come later. A renewal or a revocation does not refer to another request
// of its session.
//
// There is no further level for principals above the sessions: while all callers are anonymous
// it would have a single queue.
type lanes struct {
	first, second lane
	// longest is a heap of all queues, with the one with the most bytes at the top.
	longest longest
	count   int
	bytes   int
	made    uint64 // number of queues created
	// spare has freed requests and queues for reuse.
	spare       []*waiting
	spareQueues []*queue
}

const (
	// quantum is the cost of the requests that a session may put into the log in its first turn,
	// in bytes, and backlogQuantum in each later one.
	quantum        = 16 << 10
	backlogQuantum = 64 << 10
	// leastCost is the least cost of a request, however few bytes it has: to decode, apply and
	// answer it costs all servers about as much as storing this many bytes. It keeps entries
	// short, so that a request that arrives while all entries are full of another session's
	// requests does not wait long.
	leastCost = 4 << 10
	// spares bounds the freed requests, and the freed queues, that are kept for reuse.
	spares = 1024
)

func newLanes() *lanes {
	return &lanes{first: newLane(), second: newLane()}
}

// lane is a set of queues that take turns.
type lane struct {
	bySession map[registry.SessionID]*queue
	fresh     ring // queues that have not ended a turn
	backlog   ring // the others
}

func (l *lane) cost() int { return l.fresh.cost + l.backlog.cost }

// ring is queues in the order of their turns.
type ring struct {
	turn *queue // the queue whose turn it is
	cost int    // of all requests in its queues
}

func newLane() lane { return lane{bySession: make(map[registry.SessionID]*queue)} }

// queue has the waiting requests of one session in one lane. It is never empty.
type queue struct {
	session registry.SessionID
	lane    *lane
	ring    *ring
	head    *waiting // the oldest
	tail    *waiting
	bytes   int
	cost    int
	// opens counts the Opens among the commands.
	opens int
	// deficit is how much the queue may still put into the log in this turn, if begun
	// is set.
	deficit    int
	begun      bool
	next, prev *queue
	at         int    // in lanes.longest
	number     uint64 // no two queues have the same
}

// waiting is a request in a queue.
type waiting struct {
	command      registry.Command
	older, newer *waiting
}

// weight returns the approximate size of a command in the log and in memory.
func weight(c *registry.Command) int {
	return 64 + c.KeepsSize() + c.ChangeSize() + len(c.Name) + len(c.Value) + len(c.Host) + len(c.Program) + len(c.Owner) +
		len(c.Origin.Actor) + len(c.Origin.Via) + len(c.Origin.Remote) + c.LiveSize()
}

// cost returns what a command uses of its session's turn and of an entry's room.
func cost(c *registry.Command) int { return max(weight(c), leastCost) }

// payer returns the session to whose account a command is charged. An operator's command is
// charged to no session: it must not wait behind the session that it ends.
func payer(c *registry.Command) registry.SessionID {
	if c.Op.Unbound() {
		return registry.SessionID{}
	}
	return c.Session
}

// inFirst reports whether a command goes into the first lane. Open means that the registry has
// the session; unanswered means that the request which a Release names still waits for its
// first answer.
func (l *lanes) inFirst(c *registry.Command, open, unanswered bool) bool {
	if q := l.second.bySession[payer(c)]; q != nil && q.opens > 0 {
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
	return c.Op.Live() || c.Op.ForAccess()
}

// push appends a command to the queue of its session in a lane.
func (l *lanes) push(c *registry.Command, first bool) {
	lane, id := &l.second, payer(c)
	if first {
		lane = &l.first
	}
	q := lane.bySession[id]
	if q == nil {
		l.made++
		q = reuse(&l.spareQueues)
		q.session, q.lane, q.number = id, lane, l.made
		lane.bySession[id] = q
		lane.fresh.link(q)
		heap.Push(&l.longest, q)
	}
	w := reuse(&l.spare)
	w.command = *c
	q.append(w)
	l.grow(q, c, 1)
	heap.Fix(&l.longest, q.at)
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
// one command from each ring of each lane that has some.
func (l *lanes) draw(entry []registry.Command, room int) []registry.Command {
	before := l.first.cost()
	entry = l.empty(&l.first, entry, room-min(room/4, l.second.cost()))
	return l.empty(&l.second, entry, room-(before-l.first.cost()))
}

// empty takes requests from one lane.
func (l *lanes) empty(from *lane, entry []registry.Command, room int) []registry.Command {
	before, kept := from.cost(), min(room/2, from.backlog.cost)
	entry = l.serve(from, &from.fresh, quantum, entry, room-kept)
	if left := room - (before - from.cost()); left > 0 || kept > 0 {
		entry = l.serve(from, &from.backlog, backlogQuantum, entry, left)
	}
	return entry
}

// serve takes requests from one ring of a lane, whose queues may take turns of some bytes.
func (l *lanes) serve(of *lane, from *ring, turn int, entry []registry.Command, room int) []registry.Command {
	for any := false; from.turn != nil; {
		q := from.turn
		if !q.begun {
			q.begun, q.deficit = true, q.deficit+turn
		}
		for q.head != nil {
			price := cost(&q.head.command)
			if price > q.deficit {
				break
			}
			if any && price > room {
				heap.Fix(&l.longest, q.at)
				return entry // the turn continues in the next entry
			}
			any = true
			room -= price
			q.deficit -= price
			entry = append(entry, l.remove(q, q.head))
		}
		if q.head == nil {
			l.forget(q)
			continue
		}
		heap.Fix(&l.longest, q.at)
		q.begun = false
		from.unlink(q)
		of.backlog.link(q)
	}
	return entry
}

// refuse removes the newest command from the longest queue. There must be one.
func (l *lanes) refuse() registry.Command {
	q := l.longest[0]
	c := l.remove(q, q.tail)
	if q.head == nil {
		l.forget(q)
	} else {
		heap.Fix(&l.longest, q.at)
	}
	return c
}

// remove removes a request from its queue.
func (l *lanes) remove(q *queue, w *waiting) registry.Command {
	c := w.command
	l.grow(q, &c, -1)
	q.remove(w)
	keep(&l.spare, w)
	return c
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

// grow counts a command that is added (1) or removed (-1).
func (l *lanes) grow(q *queue, c *registry.Command, by int) {
	bytes := by * weight(c)
	l.count += by
	l.bytes += bytes
	q.ring.cost += by * cost(c)
	q.cost += by * cost(c)
	q.bytes += bytes
	if c.Op == registry.OpOpen {
		q.opens += by
	}
}

func (l *lanes) forget(q *queue) {
	heap.Remove(&l.longest, q.at)
	q.ring.unlink(q)
	delete(q.lane.bySession, q.session)
	keep(&l.spareQueues, q)
}

// link adds a queue at the end of the ring.
func (r *ring) link(q *queue) {
	q.ring = r
	r.cost += q.cost
	if r.turn == nil {
		q.next, q.prev, r.turn = q, q, q
		return
	}
	q.next, q.prev = r.turn, r.turn.prev
	q.prev.next, q.next.prev = q, q
}

func (r *ring) unlink(q *queue) {
	r.cost -= q.cost
	if r.turn == q {
		r.turn = q.next
	}
	if r.turn == q {
		r.turn = nil
	}
	q.prev.next, q.next.prev = q.next, q.prev
}

// longest is a heap of queues. Among queues with equally many bytes the newest is on top,
// because it has waited the shortest time.
type longest []*queue

func (h longest) Len() int { return len(h) }

func (h longest) Less(i, j int) bool {
	if h[i].bytes != h[j].bytes {
		return h[i].bytes > h[j].bytes
	}
	return h[i].number > h[j].number
}

func (h longest) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *longest) Push(x any) {
	q := x.(*queue)
	q.at = len(*h)
	*h = append(*h, q)
}

func (h *longest) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
