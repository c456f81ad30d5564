package conclave

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/conclave-io/conclave/internal/kit/near"
)

// nearHold is a lock that is held at the server in this process: that grants it in the very
// call and takes it back in another, without messages, if the algorithm which guards the
// name needs none. All of it is one piece of memory.
type nearHold struct {
	lock   Lock
	hold   near.Hold
	client *Client
	keeps  []keep // what the caller kept

	mu      sync.Mutex
	watched *watched // nil before somebody asks for it
}

// watched is what a near hold tells by itself.
type watched struct {
	ctx   *holdContext
	moved chan struct{}
}

// openNear makes the client known to the server in this process, if there is one.
func (c *Client) openNear() {
	if c.cfg.Near == nil {
		return
	}
	open := openOf(&c.cfg)
	c.near = &near.Owner{Host: open.GetHost(), PID: open.GetPid(), Program: open.GetProgram()}
	rand.Read(c.near.Session[:]) // it never fails
	c.cfg.Near.Open(c.near)
}

// closeNear gives up all that is held near.
func (c *Client) closeNear() {
	if c.near != nil {
		c.cfg.Near.Close(c.near)
	}
}

// lockNear returns a lock that the server in this process has granted at once, or nil: then
// the caller asks as any client does.
func (c *Client) lockNear(ctx context.Context, name string, options []LockOption) *Lock {
	if c.near == nil || len(options) > 0 || ctx.Err() != nil || ValidateName(name) != nil {
		return nil
	}
	n := &nearHold{hold: near.Hold{Name: name, Owner: c.near}, client: c, keeps: keepsOf(ctx)}
	if !c.cfg.Near.Lock(&n.hold) {
		return nil
	}
	n.lock.near = n
	return &n.lock
}

func (n *nearHold) server() near.Server { return n.client.cfg.Near }

// valid reports whether the lock is held. It reads the clock.
func (n *nearHold) valid() bool { return n.server().State(&n.hold).Holds() }

// number returns a number of the grant while it is held.
func (n *nearHold) number(number uint64) (uint64, error) {
	switch n.server().State(&n.hold) {
	case near.Held:
		return number, nil
	case near.Asked:
		return 0, fmt.Errorf("conclave: lock %q: %w", n.hold.Name, context.Cause(n.watch().ctx))
	case near.Lost:
		return 0, fmt.Errorf("conclave: lock %q: %w", n.hold.Name, ErrLost)
	}
	return 0, n.notHeld(nil)
}

// notHeld says why the handle holds nothing any more.
func (n *nearHold) notHeld(lost error) error {
	if lost != nil {
		return fmt.Errorf("conclave: lock %q: %w: %w", n.hold.Name, ErrNotHeld, lost)
	}
	return fmt.Errorf("conclave: lock %q: %w: it was released before", n.hold.Name, ErrNotHeld)
}

// watch makes what tells by itself what becomes of the hold.
func (n *nearHold) watch() *watched {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.watched == nil {
		w := &watched{newHoldContext(n), make(chan struct{}, 1)}
		w.ctx.keeps = append(slices.Clip(n.keeps), keep{n.kept(), w.ctx})
		if now := n.server().Watch(&n.hold, w.tell); now.State != near.Held {
			w.tell(now)
		}
		n.watched = w
	}
	return n.watched
}

// tell receives the end or the revocation of the hold.
func (w *watched) tell(e near.Event) {
	switch e.State {
	case near.Asked:
		w.ctx.end(&RevokedError{e.Reason})
	case near.Given:
		w.ctx.end(ErrReleased)
	case near.Lost:
		w.ctx.end(ErrLost)
	}
	if e.State.Holds() {
		select {
		case w.moved <- struct{}{}:
		default: // not yet received: one value stands for many moves
		}
	}
}

func (n *nearHold) deadline() time.Duration { return n.server().Deadline(&n.hold) }

func (n *nearHold) ttl() time.Duration { return n.server().Lease() }

func (n *nearHold) kept() Kept {
	return Kept{Cluster: n.client.identity, Name: n.hold.Name, Fence: n.hold.Fence}
}

func (n *nearHold) release() error {
	switch n.server().Unlock(&n.hold) {
	case near.Held, near.Asked:
		return nil
	case near.Lost:
		return n.notHeld(ErrLost)
	}
	return n.notHeld(nil)
}
