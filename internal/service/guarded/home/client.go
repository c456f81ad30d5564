package home

import (
	"context"
	"time"

	"github.com/conclave-io/conclave/internal/service/host"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// Client receives the replies of a home for one of its clients. The methods are called while the
// home is locked: they must not block.
type Client interface {
	// Deliver hands over replies, in order. The client may keep the slice.
	Deliver(replies []registry.Outcome)
	// Depose reports that this server is no longer a home: all sessions of the client here are
	// gone. Nothing is delivered afterwards.
	Depose()
}

// Conn is the connection of a client to this server as its home.
type Conn struct {
	home   *Home
	number uint64
	// Seat is the seat to which the sessions of this home belong, and Lease its lease.
	// Adopted are the seats of other servers whose sessions this home has taken over.
	Seat    registry.SessionID
	Adopted []registry.SessionID
	Lease   time.Duration
}

// Connect registers a client of this server as its home, which alone keeps the client's
// sessions. Client.Depose reports that the server is no longer a home: all sessions of the
// client are gone.
func (l *Home) Connect(c Client) (*Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.net == nil {
		return nil, ErrStopped
	}
	if !l.host.Serving() {
		return nil, ErrNotMember
	}
	l.numbers++
	l.clients[l.numbers] = c
	seat, lease := l.host.Seat()
	return &Conn{home: l, number: l.numbers, Seat: seat, Adopted: l.host.Adopted(), Lease: time.Duration(lease)}, nil
}

// Successor returns the server at which the clients of this home continue after its seat
// has ended, or 0.
func (l *Home) Successor() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.host.Successor()
}

// Submit passes requests on.
func (c *Conn) Submit(_ context.Context, commands []registry.Command) error {
	if len(commands) > 0 {
		c.home.with(func(h *host.Host, now int64) { h.Submit(now, c.number, commands) })
	}
	return nil
}

// Close forgets the client. Its sessions last until they expire.
func (c *Conn) Close() {
	c.home.with(func(h *host.Host, _ int64) {
		delete(c.home.clients, c.number)
		h.Drop(c.number)
	})
}

// Revoke asks the holders of a guarded lock whose home is this server to release it. The
// result has the fence of a hold, or says that there is none.
func (l *Home) Revoke(c *registry.Command) (result registry.Result) {
	l.with(func(h *host.Host, now int64) { result = h.Revoke(now, c) })
	return result
}

// Revision returns the revision of the rules by which this home goes.
func (l *Home) Revision() (revision uint64) {
	l.with(func(h *host.Host, _ int64) { revision = h.Revision() })
	return revision
}

// SettingsRevision returns the revision of the settings by which this home goes.
func (l *Home) SettingsRevision() (revision uint64) {
	l.with(func(h *host.Host, _ int64) { revision = h.SettingsRevision() })
	return revision
}

// EndSession ends a session whose home is this server. It returns the number of holds
// that the session still has to release.
func (l *Home) EndSession(c *registry.Command) (holds int, result registry.Result) {
	l.with(func(h *host.Host, now int64) { holds, result = h.EndSession(now, c) })
	return holds, result
}

// Sessions returns a page of the sessions whose home is this server: those after an
// id, the remaining time of each in ns, and whether there are more.
func (l *Home) Sessions(after registry.SessionID, limit int) (list []registry.Session, left []int64, more bool) {
	l.with(func(h *host.Host, _ int64) { list, left, more = h.Sessions(after, limit) })
	return list, left, more
}

// IsMember reports whether this server takes part in the view, so that it knows what its clients
// hold.
func (l *Home) IsMember() (home bool) {
	l.with(func(h *host.Host, _ int64) { home = h.IsMember() })
	return home
}

// Explain returns the holders and waiters of a lock at this home, and how its last holds
// here ended.
func (l *Home) Explain(name string, waiters int) (res registry.Resource, known bool, past []registry.Ended) {
	l.with(func(h *host.Host, _ int64) { res, known, past = h.Explain(name, waiters) })
	return res, known, past
}

// List returns a page of the locks that clients of this home hold or wait for: those
// after a name, and whether there are more.
func (l *Home) List(prefix, after string, limit, waiters int) (list []registry.Resource, more bool) {
	l.with(func(h *host.Host, _ int64) { list, more = h.List(prefix, after, limit, waiters) })
	return list, more
}
