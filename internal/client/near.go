package client

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/conclave-io/conclave/internal/kit/near"
)

// NearHold is a lock that is held at the server in this process: that grants it in the very
// call and takes it back in another, without messages, if the algorithm which guards the
// name needs none. Its methods are those of Hold.
type NearHold struct {
	hold  near.Hold
	conn  *Conn
	keeps []keep // what the caller kept

	mu      sync.Mutex
	watched *watched // nil before somebody asks for it
}

// watched is how a near hold reports its end and its renewals.
type watched struct {
	ctx    *holdContext
	errors *Errors
	moved  chan struct{}
}

// openNear makes the client known to the server in this process, if there is one.
func (c *Conn) openNear() {
	if c.cfg.Near == nil {
		return
	}
	open := openOf(&c.cfg)
	c.near = &near.Owner{Host: open.GetHost(), PID: open.GetPid(), Program: open.GetProgram()}
	rand.Read(c.near.Session[:]) // it never fails
	c.cfg.Near.Open(c.near)
}

// closeNear gives up all that is held near.
func (c *Conn) closeNear() {
	if c.near != nil {
		c.cfg.Near.Close(c.near)
	}
}

// HasNear reports whether there is a server in this process.
func (c *Conn) HasNear() bool { return c.near != nil }

// LockNear asks the server in this process for a lock, and reports whether it was granted at once.
// If it was, n is the hold. If it was not, nothing is held and the caller asks as any client does.
func (c *Conn) LockNear(ctx context.Context, name string, n *NearHold) bool {
	n.hold.Name, n.hold.Owner, n.conn, n.keeps = name, c.near, c, keepsOf(ctx)
	return c.cfg.Near.Lock(&n.hold)
}

func (n *NearHold) server() near.Server { return n.conn.cfg.Near }

// valid reports whether the lock is held. It reads the clock.
func (n *NearHold) valid() bool { return n.server().State(&n.hold).Holds() }

// Name is as Hold.Name.
func (n *NearHold) Name() string { return n.hold.Name }

// Fence is as Hold.Fence.
func (n *NearHold) Fence() uint64 { return n.hold.Fence }

// Floor is as Hold.Floor.
func (n *NearHold) Floor() uint64 { return n.hold.Floor }

// Ended is as Hold.Ended.
func (n *NearHold) Ended() error {
	switch n.server().State(&n.hold) {
	case near.Held:
		return nil
	case near.Asked:
		return context.Cause(n.watch().ctx)
	case near.Lost:
		return n.conn.cfg.Errors.Lost
	}
	return n.conn.cfg.Errors.Released
}

// Context is as Hold.Context.
func (n *NearHold) Context() context.Context { return n.watch().ctx }

// Renewed is as Hold.Renewed.
func (n *NearHold) Renewed() <-chan struct{} { return n.watch().moved }

// Deadline is as Hold.Deadline.
func (n *NearHold) Deadline() time.Duration { return n.server().Deadline(&n.hold) }

// TTL is as Hold.TTL: the lease of the server.
func (n *NearHold) TTL() time.Duration { return n.server().Lease() }

// Kept is as Hold.Kept.
func (n *NearHold) Kept() Kept {
	return Kept{Cluster: n.conn.identity, Name: n.hold.Name, Fence: n.hold.Fence}
}

// Release is as Hold.Release. It does not wait.
func (n *NearHold) Release(context.Context) error {
	switch n.server().Unlock(&n.hold) {
	case near.Held, near.Asked:
		return nil
	case near.Lost:
		return &NotHeld{n.conn.cfg.Errors.Lost}
	}
	return &NotHeld{n.conn.cfg.Errors.Released}
}

// Discard is as Release: no name stays closed after such a hold.
func (n *NearHold) Discard(ctx context.Context) error { return n.Release(ctx) }

// watch begins to report what becomes of the hold, unless it does already.
func (n *NearHold) watch() *watched {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.watched == nil {
		w := &watched{newHoldContext(n, n.conn.cfg.Errors.Lost), &n.conn.cfg.Errors, make(chan struct{}, 1)}
		w.ctx.keeps = append(slices.Clip(n.keeps), keep{n.Kept(), w.ctx})
		if now := n.server().Watch(&n.hold, w.notify); now.State != near.Held {
			w.notify(now)
		}
		n.watched = w
	}
	return n.watched
}

// notify receives the end or the revocation of the hold.
func (w *watched) notify(e near.Event) {
	switch e.State {
	case near.Asked:
		w.ctx.end(w.errors.Revoked(e.Reason))
	case near.Given:
		w.ctx.end(w.errors.Released)
	case near.Lost:
		w.ctx.end(w.errors.Lost)
	}
	if e.State.Holds() {
		select {
		case w.moved <- struct{}{}:
		default: // not yet received: one value stands for many moves
		}
	}
}
