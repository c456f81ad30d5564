package conclave

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/conclave-io/conclave/internal/client/line"
	"github.com/conclave-io/conclave/internal/kit/near"
)

const (
	// callLimit bounds calls whose context has no deadline, where waiting forever
	// would help nobody: Dial, Status, List, Sessions.
	callLimit = 10 * time.Second
	// closeLimit is how long Close waits for the servers to end the session.
	closeLimit = 2 * time.Second
)

// Client is a program's connection to a cluster, with one session. Its methods
// may be called by many goroutines at once.
type Client struct {
	cfg    Config
	pool   *pool
	mail   *mailbox // inputs for the driver
	driver *driver
	near   *near.Owner // what people see of those that hold at the server in this process; nil: there is none

	ctx   context.Context // ends when the client is closed
	stop  context.CancelFunc
	tasks sync.WaitGroup

	// What the driver tells. The fields beside a channel are set before it is closed.
	attached chan struct{} // a server of the cluster has answered
	identity string        // of the cluster
	hopeless chan struct{} // it does no good to try any server again
	why      error
	ended    chan struct{} // the servers have ended the session of a closed client
	route    atomic.Pointer[route]

	life     sync.Mutex // guards the start of tasks against Close
	closed   bool
	closing  sync.Once
	closeErr error
}

// route is what a client knows of its way to the cluster.
type route struct {
	server  string   // the one in use, or ""
	servers []string // all that are known
	session string   // the public id of the session, or ""
}

// Dial attaches to the cluster that cfg names. It returns once a server of the
// cluster has answered, and keeps trying until ctx ends, or for 10 seconds if
// ctx has no deadline, unless all servers belong to another cluster, have wrong addresses,
// allow no TLS connection, or refuse the proof of who this program is; the error is then a
// *DialError that says what each server said. The session is opened by the first call that needs one, so that a
// program which only looks has none.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	c := newClient(cfg.WithDefaults())
	d := newDriver(c)
	c.tasks.Go(d.run)
	var err error
	select {
	case <-c.attached:
		return c, nil
	case <-c.hopeless:
		err = c.why
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.shutDown()
	return nil, &DialError{Attempts: attemptsOf(d.line), Err: err}
}

func newClient(cfg Config) *Client {
	cfg.Servers = slices.Compact(slices.Clone(cfg.Servers))
	c := &Client{
		cfg: cfg, pool: newPool(&cfg), mail: newMailbox(),
		attached: make(chan struct{}), hopeless: make(chan struct{}), ended: make(chan struct{}),
	}
	c.route.Store(&route{servers: cfg.Servers})
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.openNear()
	return c
}

// bounded gives ctx a deadline if it has none.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, callLimit)
}

// Cluster returns the identity of the cluster, 16 hexadecimal digits.
func (c *Client) Cluster() string { return c.identity }

// Server returns the address of the server in use, or "" while the client looks for
// one: the leader as far as the client knows, or, if the leader cannot be reached, one
// that passes everything on to it.
func (c *Client) Server() string { return c.route.Load().server }

// SessionID returns the public id of the session, as lists show it: "s-" and 32
// hexadecimal digits. It is "" before the session is open, and changes when the
// session is lost and another one opened. Nobody can act in the session with it.
func (c *Client) SessionID() string { return c.route.Load().session }

// Close ends the session, which releases all that it holds, and the connection.
// The contexts of handles end first, with ErrReleased as their cause; calls that
// wait return ErrClosed. If no server confirms within 2 seconds, Close returns
// an error: the session then ends by itself when its TTL is over. A second Close
// waits for the first and returns the same.
func (c *Client) Close() error {
	c.closing.Do(func() {
		c.closeErr = c.closeSession()
		c.shutDown()
	})
	return c.closeErr
}

func (c *Client) closeSession() error {
	c.forbidTasks()
	c.closeNear()
	c.post(line.Input{Kind: line.Close})
	limit := time.NewTimer(closeLimit)
	defer limit.Stop()
	select {
	case <-c.ended:
		return nil
	case <-limit.C:
		return fmt.Errorf("conclave: close: no server confirmed the end of session %s within %v; it expires within %v", c.SessionID(), closeLimit, c.cfg.TTL)
	}
}

func (c *Client) shutDown() {
	c.forbidTasks()
	c.stop()
	c.tasks.Wait()
	c.pool.close()
}

func (c *Client) forbidTasks() {
	c.life.Lock()
	defer c.life.Unlock()
	c.closed = true
}

// start begins a task that Close waits for, unless the client is closed.
func (c *Client) start(task func()) error {
	c.life.Lock()
	defer c.life.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.tasks.Go(task)
	return nil
}

// Ready opens the session, unless it is open, and so tells that the cluster has
// a leader and that leader a quorum. The first Lock or Campaign does the same,
// but waits for the lock as well.
func (c *Client) Ready(ctx context.Context) error {
	o := c.do(ctx, &line.Call{})
	return c.failed(ctx, "session for", c.cfg.Program, o)
}

// do has a call carried out, and returns its outcome. If ctx ends first the call is
// withdrawn: it then ends with line.ErrWithdrawn, unless its outcome was faster.
func (c *Client) do(ctx context.Context, call *line.Call) outcome {
	done := make(chan outcome, 1)
	if call.Data == nil {
		call.Data = &pending{done: done}
	} else {
		call.Data.(*pending).done = done
	}
	c.mail.calls.Add(1)
	if !c.post(line.Input{Kind: line.Submit, Call: call}) {
		return outcome{err: ErrClosed}
	}
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
		c.post(line.Input{Kind: line.Withdraw, Call: call})
		return <-done
	}
}

// failed returns the error of a call that has no reply, or nil.
func (c *Client) failed(ctx context.Context, op, name string, o outcome) error {
	var refused *line.Refused
	switch {
	case o.err == nil:
		return nil
	case errors.Is(o.err, line.ErrWithdrawn):
		return interrupted(ctx, op, name, o)
	case errors.As(o.err, &refused):
		return fmt.Errorf("conclave: %s %q: %w", op, name, refusal("open a session", "", refused.Reply))
	}
	return fmt.Errorf("conclave: %s %q: %w", op, name, o.err)
}

// pause is the backoff after a number of failures, shortened at random.
func pause(failures int) time.Duration { return time.Duration(line.Pause(failures, rand.Int64N)) }
