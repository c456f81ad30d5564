package conclave

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	// patience bounds calls whose context has no deadline, where waiting for
	// ever would help nobody: Dial, Status, List, Sessions.
	patience = 10 * time.Second
	// closePatience is how long Close waits for the servers to end the session.
	closePatience = 2 * time.Second
)

// Client is a program's connection to a cluster, with one session. Its methods
// may be called by many goroutines at once.
type Client struct {
	cfg  Config
	pool *pool

	ctx    context.Context // ends when the client is closed
	stop   context.CancelFunc
	tasks  sync.WaitGroup
	events chan event    // what happens to links, for the pursuit
	kick   chan struct{} // has a value if the keeper has to look again

	attached chan struct{} // closed when a server of the cluster has answered
	attach   sync.Once
	refused  chan struct{} // closed when it is of no use to try any server again
	refuse   sync.Once
	hopeless error // why, once refused is closed
	closing  sync.Once
	closeErr error

	mu       sync.Mutex
	closed   bool
	identity string              // of the cluster, once known
	session  *session            // the one that serves calls; nil before the first
	sessions map[string]*session // by secret: that one, and those being closed
	link     *link               // where requests are sent; nil while no server is found
	attempts map[string]error    // by address, why the last link to it ended
	learned  []string            // where servers take clients besides those configured
}

// Dial attaches to the cluster that cfg names. It returns once a server of the
// cluster has answered, and keeps trying until ctx ends, or for 10 seconds if
// ctx has no deadline, unless all servers belong to another cluster or no TLS
// connection to any of them is possible; the error is then a *DialError that says what each server
// said. The session is opened by the first call that needs one, so that a
// program which only looks has none.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	c := newClient(cfg.WithDefaults())
	c.tasks.Go(c.pursue)
	c.tasks.Go(c.keep)
	var err error
	select {
	case <-c.attached:
		return c, nil
	case <-c.refused:
		err = c.hopeless
	case <-ctx.Done():
		err = ctx.Err()
	}
	failure := &DialError{Attempts: c.tried(), Err: err}
	c.shutDown()
	return nil, failure
}

func newClient(cfg Config) *Client {
	cfg.Servers = slices.Compact(slices.Clone(cfg.Servers))
	c := &Client{
		cfg: cfg, pool: newPool(&cfg), identity: cfg.Cluster,
		events: make(chan event), kick: make(chan struct{}, 1),
		attached: make(chan struct{}), refused: make(chan struct{}),
		sessions: make(map[string]*session), attempts: make(map[string]error),
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	return c
}

// bounded gives ctx a deadline if it has none.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, patience)
}

// Cluster returns the identity of the cluster, 16 hexadecimal digits.
func (c *Client) Cluster() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.identity
}

// Server returns the address of the server in use, or "" while the client looks for
// one: the leader as far as the client knows, or, if the leader cannot be reached, one
// that passes everything on to it.
func (c *Client) Server() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == nil {
		return ""
	}
	return c.link.address
}

// SessionID returns the public id of the session, as lists show it: "s-" and 32
// hexadecimal digits. It is "" before the session is open, and changes when the
// session is lost and another one opened. Nobody can act in the session with it.
func (c *Client) SessionID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil {
		return ""
	}
	return c.session.public
}

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
	c.mu.Lock()
	c.closed = true
	s := c.session
	if s == nil || s.gone {
		c.mu.Unlock()
		return nil
	}
	farewell := s.retire(c.cfg.now(), ErrClosed, false)
	c.mu.Unlock()
	if farewell == nil {
		return nil
	}
	limit := time.NewTimer(closePatience)
	defer limit.Stop()
	select {
	case <-farewell.done:
		return nil
	case <-limit.C:
		return fmt.Errorf("conclave: no server confirmed the end of session %s within %v; it ends by itself in at most %v", c.SessionID(), closePatience, c.cfg.TTL)
	}
}

func (c *Client) shutDown() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.tasks.Wait()
	c.pool.close()
}

// Ready opens the session, unless it is open, and so tells that the cluster has
// a leader and that leader a quorum. The first Lock or Campaign does the same,
// but waits for the lock as well.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.opened(ctx, "session for", c.cfg.Program)
	return err
}

// opened returns the session that serves calls, once it is open. Kind and name
// say in errors what it was wanted for.
func (c *Client) opened(ctx context.Context, kind, name string) (*session, error) {
	for ctx.Err() == nil {
		s, err := c.current()
		if err != nil {
			return nil, fmt.Errorf("conclave: %s %q: %w", kind, name, err)
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			continue
		}
		if s.err == nil {
			return s, nil
		}
		if !errors.Is(s.err, errSessionGone) {
			return nil, fmt.Errorf("conclave: %s %q: %w", kind, name, s.err)
		}
	}
	return nil, c.interrupted(ctx, kind, name, false)
}

// current returns the session that serves calls, a new one if there is none or
// the last was lost.
func (c *Client) current() (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if c.session != nil {
		c.session.check(c.cfg.now())
	}
	if c.session == nil || c.session.gone {
		s := newSession(&c.cfg, c.transmit)
		c.session = s
		c.sessions[string(s.secret)] = s
		if c.link != nil {
			s.extend(c.cfg.now())
		}
		c.rouse()
	}
	return c.session, nil
}

// transmit has r sent, or leaves it to the next adoption. c.mu is held.
func (c *Client) transmit(r *request) {
	if c.link != nil {
		c.link.enqueue(r)
	}
}

// submit hands a request to its session; its outcome comes in any case.
func (c *Client) submit(s *session, r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.session = s
	switch {
	case c.closed:
		r.finish(outcome{err: ErrClosed})
	case s.gone:
		r.finish(outcome{err: errSessionGone})
	default:
		s.submit(r)
	}
}

// identify pins the identity of the cluster by the first server that answers,
// and refuses servers of any other.
func (c *Client) identify(cluster string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cluster == "" {
		return errors.New("not a Conclave server: it belongs to no cluster")
	}
	if c.identity == "" {
		c.identity = cluster
	}
	if cluster != c.identity {
		return fmt.Errorf("%w: it belongs to %s, not to %s", ErrWrongCluster, cluster, c.identity)
	}
	c.attach.Do(func() { close(c.attached) })
	return nil
}

// learn takes over where the servers of the cluster take clients. They may all be
// others by now than those that the configuration names. mu is held.
func (c *Client) learn(servers []string) {
	c.learned = slices.DeleteFunc(slices.Clone(servers), func(s string) bool { return slices.Contains(c.cfg.Servers, s) })
}

// servers returns the addresses that were configured, then those that were learned.
func (c *Client) servers() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Concat(c.cfg.Servers, c.learned)
}

// tried returns what became of each server.
func (c *Client) tried() []Attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	addresses := slices.Clone(c.cfg.Servers)
	for a := range c.attempts {
		if !slices.Contains(addresses, a) {
			addresses = append(addresses, a)
		}
	}
	slices.Sort(addresses[len(c.cfg.Servers):])
	var tried []Attempt
	for _, a := range addresses {
		err := c.attempts[a]
		if err == nil {
			err = errors.New("no answer")
		}
		tried = append(tried, Attempt{a, err})
	}
	return tried
}

// leads reports whether the server in use has shown that it leads, and is there.
func (c *Client) leads() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.link
	return l != nil && l.proven && !l.suspect && !l.mute
}
