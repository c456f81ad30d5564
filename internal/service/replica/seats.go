package replica

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/version"
)

// Report is what a server reports about the others with its seat's renewals. Servers are
// identified by their ids.
type Report struct {
	Seat  registry.SessionID
	Epoch uint64 // the one that it is in
	// Reaches are the servers that its frames reach.
	Reaches []uint64
	// Complains are the members that do not answer its frames or hold up the epoch.
	Complains []uint64
	// Doubts are the members that its failure detector suspects.
	Doubts []uint64

	at int64 // when it came
}

// SeatReply is the answer to a command that a server sent for its seat.
type SeatReply struct {
	Server uint64
	registry.Outcome
}

// ofServer turns the id of a server into the number of a connection. Those of clients are lower.
const ofServer = 1 << 63

const (
	// A server whose seat has expired waits before it gets another one. The pause doubles each
	// time, until the server has had a seat for longer than seatedLong.
	firstPause, longestPause = 1e9, 60e9
	seatedLong               = 600e9
	// sweepEvery and electEvery are the least times between epochs that begin on request.
	sweepEvery, electEvery = 60e9, 10e9
)

// Whys are the reasons, in metrics, why the leader stops renewing a seat: another member
// complains of it, most others doubt it, or its server has no vote.
var Whys = [...]string{"complaint", "doubt", "no vote"}

const (
	whyComplaint = iota
	whyDoubt
	whyNoVote
)

// seats is what a server knows about seats that is not in the log. It is lost when the server
// stops; no promise depends on it.
type seats struct {
	*self
	since  map[view.Seat]int64 // when each was seen first
	pauses map[uint64]pause    // by server

	// The following fields are the leader's.
	reports map[uint64]Report // the last of each server
	shunned map[registry.SessionID]bool
	outside map[registry.SessionID]int64 // since when the server has had no vote
	waiting map[uint64]int64             // since when changes of guards have been under way
	swept   int64                        // when the last epoch began that was asked for to sweep
	elected int64                        // and to elect

	counts [len(Whys)]uint64 // how often the renewal of a seat was stopped
}

// pause is until when a server gets no other seat, and how long the next pause is.
type pause struct{ until, next int64 }

func newSeats(own *self) seats {
	s := seats{self: own, since: make(map[view.Seat]int64), pauses: make(map[uint64]pause)}
	s.depose()
	return s
}

// depose resets what only a leader knows.
func (r *seats) depose() {
	r.reports, r.shunned = make(map[uint64]Report), make(map[registry.SessionID]bool)
	r.outside, r.waiting = make(map[registry.SessionID]int64), make(map[uint64]int64)
	r.swept, r.elected = 0, 0
}

// SubmitSeat takes the commands of a server's seat, and its report. Output.Seats answers
// them, as Replies answer those of clients, except that a renewal of a seat that is to end
// gets no answer.
func (r *Replica) SubmitSeat(now int64, server uint64, commands []registry.Command, report Report) {
	r.now = now
	if r.Leading() {
		report.at = now
		r.seats.reports[server] = report
	}
	for i := range commands {
		r.submitSeat(server, &commands[i])
	}
}

func (r *Replica) submitSeat(server uint64, c *registry.Command) {
	at, conn := routeOf(c), server|ofServer
	s, open := r.reg.Session(c.Session)
	_, awaited := r.clients.routes[at]
	switch problem := c.Validate(); {
	case problem != "":
		r.clients.refuse(conn, at, registry.Invalid, problem)
	case !c.Op.Seated():
		r.clients.refuse(conn, at, registry.Invalid, fmt.Sprintf("operation %d is not one of a seat", c.Op))
	case !r.Leading():
		r.clients.refuse(conn, at, registry.NotLeader, fmt.Sprintf("server %d does not lead", r.cfg.ID))
	case open && s.Server != server, c.Op == registry.OpEnter && c.Guarding.Server != server:
		r.clients.refuse(conn, at, registry.Invalid, fmt.Sprintf("session %v is not the seat of server %d", c.Session, server))
	case r.seats.shunned[c.Session] && c.Op.Renews():
		// Its lease must expire.
	case c.Op == registry.OpEnter && !open && !awaited && r.entersLater(conn, server, at):
	case c.Op == registry.OpTurn && !awaited && r.turnsLater(conn, c, at):
	default:
		r.forward(conn, at, c)
	}
}

// entersLater refuses a seat to a server that must not have one now (S2, S5).
func (r *Replica) entersLater(conn, server uint64, at routeKey) bool {
	status := r.core.Status()
	switch p := r.seats.pauses[server]; {
	case !r.ready:
		return r.clients.later(conn, at, 0, "seat: the leader has not applied the log yet")
	case p.until > r.now:
		return r.clients.later(conn, at, p.until-r.now, fmt.Sprintf("seat: the last one of server %d expired: wait before the next", server))
	case !slices.Contains(status.Voters, server):
		return r.clients.later(conn, at, 0, fmt.Sprintf("seat: server %d has no vote", server))
	case server != r.cfg.ID && !r.caughtUp(&status, server):
		return r.clients.later(conn, at, 0, fmt.Sprintf("seat: server %d has not caught up with the log", server))
	}
	own := r.seats.reports[server]
	for _, m := range r.reg.Guarded().Members {
		other := r.seats.reports[m.Server]
		if m.Server != server && !(slices.Contains(own.Reaches, m.Server) && slices.Contains(other.Reaches, server)) {
			return r.clients.later(conn, at, 0, fmt.Sprintf("seat: servers %d and %d do not reach each other", server, m.Server))
		}
	}
	return false
}

// turnsLater refuses another epoch too soon after the last requested one (V4).
func (r *Replica) turnsLater(conn uint64, c *registry.Command, at routeKey) bool {
	last, every := &r.seats.swept, int64(sweepEvery)
	if c.Guarding.Coordinator != 0 {
		last, every = &r.seats.elected, electEvery
	}
	if wait := *last + every - r.now; *last != 0 && wait > 0 {
		return r.clients.later(conn, at, wait, "turn: another epoch began of late because a server asked for it")
	}
	*last = r.now
	return false
}

// followSeats notes which seats were taken and left. Every server that applies the log does
// so, so that a new leader knows which servers crash again and again.
func (r *Replica) followSeats() {
	present := r.reg.Guarded().Seats
	for _, s := range present {
		if _, known := r.seats.since[s]; !known {
			r.seats.since[s] = r.now
		}
	}
	for _, s := range slices.SortedFunc(maps.Keys(r.seats.since), compareSeats) {
		if slices.Contains(present, s) {
			continue
		}
		since := r.seats.since[s]
		delete(r.seats.since, s)
		id := registry.SeatID(s)
		delete(r.seats.shunned, id)
		delete(r.seats.outside, id)
		if slices.Contains(r.fx.Ended, id) && !slices.Contains(r.fx.Closed, id) {
			r.seats.pause(s.Server, r.now, r.now-since)
		}
	}
	r.out.View = true
}

func compareSeats(a, b view.Seat) int {
	return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.ID[0], b.ID[0]), cmp.Compare(a.ID[1], b.ID[1]))
}

// pause makes a server wait whose seat has expired, depending on how long it had the seat.
func (r *seats) pause(server uint64, now, seated int64) {
	next := r.pauses[server].next
	if next == 0 || seated >= seatedLong {
		next = firstPause
	}
	r.pauses[server] = pause{now + next, min(2*next, longestPause)}
}

// tend decides, as the leader, which seats are no longer renewed, and which changes of
// guards have taken too long.
func (r *seats) tend() {
	l := r.reg.Guarded()
	if len(l.Seats)+len(l.Guards) == 0 {
		return
	}
	r.shunOutsiders(l)
	r.shun(l)
	waiting := make(map[uint64]int64)
	for _, g := range l.Guards {
		if g.Change == 0 || g.Conditions.Wait == 0 {
			continue
		}
		since, known := r.waiting[g.Change]
		if !known {
			since = r.now
		} else if r.now-since >= g.Conditions.Wait {
			r.verdicts = append(r.verdicts, registry.Command{Op: registry.OpGuard, Name: g.Prefix, Guarding: &registry.Guarding{Change: g.Change}})
			since = r.now // when to try again, if this entry is lost
		}
		waiting[g.Change] = since
	}
	r.waiting = waiting
}

// shunOutsiders shuns the seats of servers that have had no vote for two TTLs. They should
// have left by themselves (P3).
func (r *seats) shunOutsiders(l *view.Log) {
	var voters []uint64
	for _, s := range l.Seats {
		if voters == nil {
			voters = r.core.Status().Voters
		}
		id := registry.SeatID(s)
		if slices.Contains(voters, s.Server) {
			delete(r.outside, id)
			continue
		}
		since, known := r.outside[id]
		if !known {
			r.outside[id] = r.now
		} else if of, _ := r.reg.Session(id); r.now-since > 2*of.TTL && !r.shunned[id] {
			r.shunned[id] = true
			r.counts[whyNoVote]++
		}
	}
}

// shun chooses the members whose seats are no longer renewed, so that they expire. Suspicion
// ends renewals; only time frees names (S7). If one of two members complains of the other, one of
// them is chosen. A member that more than half of the others doubt is chosen too. At most half
// of the members are chosen at a time.
func (r *seats) shun(l *view.Log) {
	reports := r.freshReports(l)
	left := max(len(l.Members)/2, 1)
	members := make(map[uint64]view.Seat)
	for _, m := range l.Members {
		if r.shunned[registry.SeatID(m)] {
			left--
			continue
		}
		members[m.Server] = m
	}
	for ; left > 0; left-- {
		worst := r.worst(members, reports)
		if worst == 0 {
			return
		}
		r.shunned[registry.SeatID(members[worst])] = true
		delete(members, worst)
	}
}

// freshReports returns the recent reports of members. What a member says of the others counts if it
// is in the newest epoch. In an earlier one it means the seats that they had then, and a server
// that has come back has another one.
func (r *seats) freshReports(l *view.Log) map[uint64]Report {
	fresh := make(map[uint64]Report)
	for _, m := range l.Members {
		of, _ := r.reg.Session(registry.SeatID(m))
		if said, known := r.reports[m.Server]; known && said.Seat == of.ID && r.now-said.at <= of.TTL/4 {
			if said.Epoch != l.Epoch {
				said.Complains, said.Doubts = nil, nil
			}
			fresh[m.Server] = said
		}
	}
	return fresh
}

// worst returns the member to shun first, or 0, and counts it: the member in the most pairs, then
// the one whose own report has the oldest epoch, then one that does not lead, then the one with
// the highest id. Without pairs it is the member that most others doubt, if they are more than
// half. A pair needs the reports of both members. A member without a report does not renew its seat
// either: the seat ends by itself, and the member that complains must not lose its own.
func (r *seats) worst(members map[uint64]view.Seat, reports map[uint64]Report) uint64 {
	pairs, doubts := make(map[[2]uint64]bool), make(map[uint64]int)
	inPairs := make(map[uint64]int)
	servers := slices.Sorted(maps.Keys(members))
	for _, server := range servers {
		for _, other := range servers {
			if server == other {
				continue
			}
			if _, renews := reports[other]; renews && slices.Contains(reports[server].Complains, other) {
				pairs[[2]uint64{min(server, other), max(server, other)}] = true
			}
			if slices.Contains(reports[server].Doubts, other) {
				doubts[other]++
			}
		}
	}
	for pair := range pairs {
		inPairs[pair[0]]++
		inPairs[pair[1]]++
	}
	if len(pairs) > 0 {
		r.counts[whyComplaint]++
		return slices.MaxFunc(servers, func(a, b uint64) int {
			return cmp.Or(
				cmp.Compare(inPairs[a], inPairs[b]),
				cmp.Compare(reports[b].Epoch, reports[a].Epoch),
				compareBools(a != r.cfg.ID, b != r.cfg.ID),
				cmp.Compare(a, b))
		})
	}
	worst := mostDoubted(servers, doubts)
	if worst != 0 {
		r.counts[whyDoubt]++
	}
	return worst
}

// mostDoubted returns the server that most of the others doubt, if they are more than half,
// or 0.
func mostDoubted(servers []uint64, doubts map[uint64]int) (most uint64) {
	for _, server := range servers {
		if 2*doubts[server] > len(servers)-1 && doubts[server] >= doubts[most] {
			most = server
		}
	}
	return most
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// express removes from the next entry the commands that its level cannot express, or whose names the
// settings forbid, and answers them.
func (r *Replica) express(level uint32) {
	nfc := r.reg.Settings().NFC()
	if level >= version.Linger && !nfc {
		return
	}
	kept := r.entry[:0]
	for i := range r.entry {
		c := &r.entry[i]
		message := inexpressible(c, level)
		if nfc && message == "" {
			message = r.misnames(c)
		}
		if message == "" {
			if kept = kept[:len(kept)+1]; len(kept)-1 != i {
				kept[len(kept)-1] = *c
			}
			continue
		}
		at := routeOf(c)
		if to, awaited := r.clients.routes[at]; awaited {
			delete(r.clients.routes, at)
			r.clients.refuse(to.conn, at, registry.Invalid, message)
		}
	}
	clear(r.entry[len(kept):])
	r.entry = kept
}

// inexpressible returns why a level cannot express a command, or "".
func inexpressible(c *registry.Command, level uint32) string {
	switch {
	case c.ForLinger() && level < version.Linger:
		return fmt.Sprintf("level %d: names stay closed after their holds from level %d on: see conclave upgrade status", level, version.Linger)
	case c.Op == registry.OpSet && level < version.Settings:
		return fmt.Sprintf("level %d: the cluster has settings from level %d on: see conclave upgrade status", level, version.Settings)
	case c.Op == registry.OpExpect && level < version.Linger:
		return fmt.Sprintf("level %d: names are expected to be held from level %d on: see conclave upgrade status", level, version.Linger)
	case c.Op.ForGuards() && level < version.Guarded:
		return fmt.Sprintf("level %d: algorithms guard locks from level %d on: see conclave upgrade status", level, version.Guarded)
	case c.Op.ForAccess() && level < version.Access:
		return fmt.Sprintf("level %d: there are rules of access from level %d on: see conclave upgrade status", level, version.Access)
	}
	return ""
}
