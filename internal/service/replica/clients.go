package replica

import (
	"github.com/conclave-io/conclave/internal/service/lease"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// clients is what a leader knows about the clients that are connected to it: which of their
// requests await an answer, and over which streams they renew their sessions. It puts the answers
// into the output. While this server does not lead, both maps are empty.
type clients struct {
	*self
	routes map[routeKey]route                   // who awaits the answer
	homes  map[registry.SessionID]lease.Streams // who renewed the session last
}

// routeKey identifies a request that awaits an answer.
type routeKey struct {
	session  registry.SessionID
	sequence uint64
}

// routeOf returns the key that identifies the answer to a command.
func routeOf(c *registry.Command) routeKey {
	if c.Op.Unbound() {
		return routeKey{session: registry.SessionID(c.Origin().Request)}
	}
	return routeKey{c.Session, c.Sequence}
}

// route is the stream over which a request last came, whether its client was told that it
// waits, and whether it closes its session.
type route struct {
	conn           uint64
	queued, closes bool
}

func newClients(own *self) clients {
	return clients{self: own, routes: make(map[routeKey]route), homes: make(map[registry.SessionID]lease.Streams)}
}

// depose resets what only a leader knows.
func (r *clients) depose() {
	clear(r.routes)
	clear(r.homes)
}

// answer passes an outcome to the client that awaits it, if that is connected to this
// server.
func (r *clients) answer(outcome registry.Outcome) {
	at := routeKey{outcome.Session, outcome.Sequence}
	if outcome.Result.Code == registry.Revoked && outcome.Result.Fence != 0 {
		// The grant answered the request: this outcome is for whoever has the hold. Without a
		// fence it is the answer to a request that was not granted.
		if conn := r.homes[outcome.Session][0]; conn != 0 {
			r.out.Replies = append(r.out.Replies, Reply{conn, outcome})
		}
		return
	}
	to, awaited := r.routes[at]
	if !awaited {
		return
	}
	r.reply(to.conn, outcome)
	if outcome.Result.Code == registry.Queued {
		r.routes[at] = route{conn: to.conn, queued: true}
		return
	}
	delete(r.routes, at)
	if present, known := r.homes[at.session]; known && to.closes {
		r.homes[at.session] = present.Without(to.conn)
	}
	if to.queued {
		r.spread(to.conn, outcome)
	}
}

// spread sends the end of a wait over the other streams of its client too. The request may have
// come last over a stream that the client tried in addition and has closed since. As the
// client was told that it waits, it does not ask again.
func (r *clients) spread(told uint64, outcome registry.Outcome) {
	for _, conn := range r.homes[outcome.Session] {
		if conn != 0 && conn != told {
			r.out.Replies = append(r.out.Replies, Reply{conn, outcome})
		}
	}
}

// farewell reports that a session was closed, without being the answer to a request, over every
// stream that renewed it except the one that closed it. So a copy of its program need not wait
// for its next renewal. Nobody is told that a session expired: its client has given it up by
// itself, and if such a message came late, it would end the session that an older Open on its
// way has opened again.
func (r *clients) farewell(id registry.SessionID) {
	if _, alive := r.reg.Session(id); alive {
		return
	}
	for _, conn := range r.homes[id] {
		if conn != 0 {
			r.out.Replies = append(r.out.Replies, Reply{conn, registry.Outcome{Session: id, Result: registry.NoSession(id)}})
		}
	}
}

// refuse answers a request that does not get into the log.
func (r *clients) refuse(conn uint64, at routeKey, code registry.Code, message string) {
	outcome := registry.Outcome{Session: at.session, Sequence: at.sequence, Result: registry.Result{Code: code, Message: message}}
	r.reply(conn, outcome)
}

// reply sends an answer to a client, or to the server of a seat.
func (r *clients) reply(conn uint64, outcome registry.Outcome) {
	if conn >= ofServer {
		r.out.Seats = append(r.out.Seats, SeatReply{conn &^ ofServer, outcome})
		return
	}
	r.out.Replies = append(r.out.Replies, Reply{conn, outcome})
}

// later refuses a request that may be repeated after a while.
func (r *clients) later(conn uint64, at routeKey, wait int64, why string) bool {
	result := registry.Result{Code: registry.Unavailable, Remaining: max(wait, 0), Message: why}
	r.reply(conn, registry.Outcome{Session: at.session, Sequence: at.sequence, Result: result})
	return true
}
