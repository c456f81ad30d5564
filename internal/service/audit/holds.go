package audit

import (
	"fmt"
	"strings"
	"sync"

	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/service/registry"
)

const (
	// Grants has the grants and ends of holds that a server was told to write, in its own file
	// only. The number of a line is the index of the log entry, so several lines can have the
	// same number. For a hold that no entry decides it is that of the line before, and the
	// server in the target is the home.
	Grants = "grants"
	// EveryName, as the prefix of a Holds, means all names.
	EveryName = "*"
	// MostHeld bounds the grants and ends that wait to be written.
	MostHeld = 1 << 16

	kindGrant, kindEnd = "grant", "end"
)

// Holds is a queue of grants and ends of holds on their way into an audit log. If it is full,
// it drops the oldest, because a server that starts reports those again that it has written.
type Holds struct {
	prefix string
	// Wake has a token if something was added.
	Wake chan struct{}

	mu      sync.Mutex
	waiting []registry.Holdings
	count   int
	// dropped is the index of the newest entry with a dropped record. skipped is the
	// index of the newest entry that came as a snapshot. lost counts what was dropped of
	// holds that no entry decides.
	dropped, skipped, lost uint64
}

// NewHolds returns a queue for the names with a prefix; EveryName means all.
func NewHolds(prefix string) *Holds { return &Holds{prefix: prefix, Wake: make(chan struct{}, 1)} }

func (q *Holds) wake() {
	select {
	case q.Wake <- struct{}{}:
	default:
	}
}

// Wants reports whether the holds of a name are written.
func (q *Holds) Wants(name string) bool {
	return q.prefix == EveryName || strings.HasPrefix(name, q.prefix)
}

// Held adds the grants and ends of a log entry.
func (q *Holds) Held(held registry.Holdings) {
	q.mu.Lock()
	for q.waiting, q.count = append(q.waiting, held), q.count+len(held.List); q.count > MostHeld; q.waiting = q.waiting[1:] {
		oldest := q.waiting[0]
		q.count -= len(oldest.List)
		if oldest.Index == 0 {
			q.lost++
		}
		q.dropped = max(q.dropped, oldest.Index)
	}
	q.mu.Unlock()
	q.wake()
}

// Skipped notes that the entries up to an index came as a snapshot, so that nobody knows the
// grants and ends in them.
func (q *Holds) Skipped(index uint64) {
	q.mu.Lock()
	q.skipped = max(q.skipped, index)
	q.mu.Unlock()
	q.wake()
}

// take empties the queue.
func (q *Holds) take() (waiting []registry.Holdings, missing, lost uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting, missing, lost = q.waiting, max(q.dropped, q.skipped), q.lost
	q.waiting, q.count, q.dropped, q.skipped, q.lost = nil, 0, 0, 0, 0
	return waiting, missing, lost
}

// holds returns the lines for the grants and ends in a queue.
func (j *Journal) holds(now int64, q *Holds) (lines []jsonform.AuditRecord) {
	waiting, missing, lost := q.take()
	if missing > j.held.number || lost > 0 {
		reason := fmt.Sprintf("grants and ends of holds up to log entry %d are missing here", max(missing, j.held.number))
		lines = append(lines, j.line(&registry.Record{Time: now, Kind: KindGap, Name: Grants, Reason: reason, Count: 1}))
	}
	for i := range waiting {
		for _, h := range j.unwritten(&waiting[i]) {
			lines = append(lines, j.holdLine(&waiting[i], h))
		}
	}
	return lines
}

// unwritten returns those of an entry that are not in the file yet.
func (j *Journal) unwritten(held *registry.Holdings) []registry.Holding {
	switch {
	case held.Index == 0 || held.Index > j.held.number:
		return held.List
	case held.Index < j.held.number || j.lastHeld == nil:
		return nil
	}
	for i := range held.List {
		if rec := recordOf(held, &held.List[i]); rec.Kind == j.lastHeld.Kind && rec.Class == j.lastHeld.Class && rec.Name == j.lastHeld.Name && rec.Fence == j.lastHeld.Fence {
			return held.List[i+1:]
		}
	}
	return nil
}

// how are the reasons of ends.
var how = [...]string{registry.Released: "released", registry.Closed: "closed", registry.Expired: "expired", registry.Dropped: "dropped"}

func recordOf(held *registry.Holdings, h *registry.Holding) registry.Record {
	rec := registry.Record{
		Number: held.Index, Term: held.Term, Time: h.Time, Kind: kindGrant,
		Class: h.Class, Name: h.Name, Fence: h.Fence, Owner: h.Owner, Result: registry.OK, Count: 1,
	}
	if h.How != 0 {
		rec.Kind, rec.Reason = kindEnd, how[h.How]
	}
	return rec
}

func (j *Journal) holdLine(held *registry.Holdings, h registry.Holding) jsonform.AuditRecord {
	rec := recordOf(held, &h)
	if held.Index == 0 {
		rec.Number, rec.Server = j.held.number, j.server
	}
	rec.Hash = rec.Chained(j.held.hash)
	l := LineOf(Grants, j.held.hash, &rec)
	l.Server = j.server
	j.held, j.lastHeld = marked(&rec, 0), &rec
	return l
}
