package guarded

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/test/vopr/world"
)

// tenantConn is the connection of the first tenant.
const tenantConn = 1 << 51

// mayHaveNone reports whether a server may still be without a seat.
func (l *seating) mayHaveNone(id uint64) bool {
	h := l.homes[id]
	return h != nil && h.later > l.w.Now
}

// end checks a seat that ends. No client of the seat may rely on a hold, unless the home has
// announced the end.
func (l *seating) end(seat view.Seat, log *view.Log) {
	h := l.seats[seat]
	if h == nil || h.seat != seat {
		return
	}
	if h.closes == 0 {
		l.w.Stats.Seats.Expired++
		if h.promise > l.w.Now {
			l.w.Violate("seat", "the seat of server %d ends %d ms before the deadlines of its clients", seat.Server, (h.promise-l.w.Now)/ms)
		}
		return
	}
	l.w.Stats.Seats.Closed++
	for _, x := range h.held() {
		if heir := h.heir; heir != nil && heir.runs() && slices.Contains(log.Seats, heir.seat) {
			x.home = heir
			l.w.Stats.Seats.Adopted++
		} else {
			x.over = true
		}
	}
}

// enter checks a client of a home that begins to hold a name.
func (h *home) enter(name string) {
	fresh := &guardedHold{name: name, home: h}
	for _, x := range h.holds {
		if x.name == name && x.believed() {
			h.w.Violate("live", "%s is entered at server %d in epoch %d, and a client of server %d holds it for another %d ms", name, h.s.ID, h.epoch, x.home.s.ID, (x.home.promise-h.w.Now)/ms)
		}
	}
	for _, t := range h.tenant {
		if t.holds(name) {
			h.w.Violate("guard", "%s is entered at server %d in epoch %d, and agreement has granted it to a session that lives for another %d ms", name, h.s.ID, h.epoch, (t.deadline-h.w.Now)/ms)
		}
	}
	h.w.Stats.Seats.Entered++
	h.seating.holds = append(slices.DeleteFunc(h.seating.holds, func(x *guardedHold) bool { return x.over }), fresh)
}

func (x *guardedHold) believed() bool { return !x.over && x.home.w.Now < x.home.promise }

// tenant is a program that acquires, by agreement, names that algorithms guard at other times.
type tenant struct {
	*seating
	conn     uint64
	id       registry.SessionID
	opened   bool
	deadline int64
	sequence uint64
	sent     map[uint64]int64
	name     string
	asked    int64  // when it sent the request
	claim    uint64 // the request, or 0
	granted  bool
	leaves   int64 // when it releases the name
}

func newTenant(l *seating, n int) *tenant { return &tenant{seating: l, conn: tenantConn + uint64(n)} }

func (t *tenant) holds(name string) bool {
	return t.granted && t.name == name && t.w.Now < t.deadline
}

// act does the next step of the tenant if it is due.
func (t *tenant) act() {
	switch {
	case t.id == (registry.SessionID{}) || t.opened && t.w.Now >= t.deadline:
		*t = tenant{seating: t.seating, conn: t.conn, id: t.sessionID(), sent: make(map[uint64]int64)}
		fallthrough
	case !t.opened:
		t.sequence = 1
		t.send(registry.Command{Op: registry.OpOpen, Sequence: 1, TTL: 2000 * ms})
		return
	case t.rng.IntN(4) == 0:
		t.sequence++
		t.send(registry.Command{Op: registry.OpRenew, Sequence: t.sequence})
	}
	switch {
	case t.claim == 0 && !t.w.Healed && t.rng.IntN(2) == 0:
		t.sequence++
		t.name, t.claim, t.asked = world.GuardedNames[t.rng.IntN(len(world.GuardedNames))], t.sequence, t.w.Now
		t.send(registry.Command{Op: registry.OpAcquire, Sequence: t.claim, Name: t.name, Try: t.rng.IntN(2) == 0})
	case t.claim != 0 && !t.granted && t.w.Now-t.asked > 2500*ms, t.w.Healed && t.claim != 0 && !t.granted:
		t.sequence++
		t.send(registry.Command{Op: registry.OpClose, Sequence: t.sequence})
		t.id = registry.SessionID{}
	case t.granted && (t.w.Now >= t.leaves || t.w.Healed):
		// The answer to a release may be lost. So the tenant repeats it until the claim has ended.
		t.leaves = t.w.Now + 300*ms
		t.sequence++
		t.name = ""
		t.send(registry.Command{Op: registry.OpRelease, Sequence: t.sequence, Hold: t.claim})
	}
}

func (t *tenant) send(c registry.Command) {
	leader := t.w.Leader()
	if leader == nil || t.rng.IntN(40) == 0 {
		return
	}
	c.Session = t.id
	if c.Op == registry.OpOpen || c.Op == registry.OpRenew {
		t.sent[c.Sequence] = t.w.Now
	}
	t.w.After(t.rng.Int64N(2*ms), func() {
		leader.Receive(func() { leader.Replica.Submit(leader.TellTime(), t.conn, []registry.Command{c}) })
	})
}

// Tell passes the answers of a server to the tenants.
func (l *seating) Tell(replies []replica.Reply) {
	for _, r := range replies {
		if n := r.Conn - tenantConn; r.Conn >= tenantConn && n < uint64(len(l.tenant)) && l.rng.IntN(40) > 0 {
			l.w.After(l.rng.Int64N(2*ms), func() { l.tenant[n].hear(r.Outcome) })
		}
	}
}

func (t *tenant) hear(o registry.Outcome) {
	if o.Session != t.id {
		return
	}
	if sent, renewal := t.sent[o.Sequence]; renewal && o.Result.Code == registry.OK {
		t.opened, t.deadline = true, max(t.deadline, sent+believed(o.Result.Remaining))
		if slices.Contains(o.Result.Revoked, t.claim) {
			t.leaves = 0
		}
		return
	}
	switch code := o.Result.Code; {
	case code == registry.SessionGone:
		t.id = registry.SessionID{}
	case code == registry.Revoked && o.Sequence == t.claim:
		t.leaves = 0
	case o.Sequence == t.claim && code == registry.OK && !t.granted:
		t.begin()
	case o.Sequence == t.claim && code != registry.Queued && !t.granted:
		if t.claim = 0; code == registry.Moved {
			t.w.Stats.Seats.Moved++
		}
	case t.granted && t.name == "" && (code == registry.OK || code == registry.NotHeld):
		t.claim, t.granted = 0, false
	}
}

// begin records a grant.
func (t *tenant) begin() {
	t.granted, t.leaves = true, t.w.Now+t.rng.Int64N(1500*ms)
	t.w.Stats.Seats.Granted++
	if t.w.Now >= t.deadline {
		return
	}
	for _, x := range t.seating.holds {
		if x.name == t.name && x.believed() {
			t.w.Violate("guard", "agreement grants %s, and a client of server %d holds it for another %d ms", t.name, x.home.s.ID, (x.home.promise-t.w.Now)/ms)
		}
	}
}
