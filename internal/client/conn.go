package client

import (
	"context"
	"crypto/tls"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/conclave-io/conclave/internal/client/line"
	"github.com/conclave-io/conclave/internal/client/pool"
	"github.com/conclave-io/conclave/internal/kit/boottime"
	"github.com/conclave-io/conclave/internal/kit/near"
)

const (
	// callLimit bounds calls whose context has no deadline, where waiting forever would help
	// nobody.
	callLimit = 10 * time.Second
	// CloseLimit is how long Conn.Close waits for the servers to end the session.
	CloseLimit = 2 * time.Second
)

// Of returns the Conn of a *conclave.Client. The root package sets it.
var Of func(client any) *Conn

// Config configures a Conn. All its fields have been checked, and have no defaults.
type Config struct {
	// Servers are addresses of servers of one cluster, and Cluster is its expected identity, or
	// empty. Home is the server to ask first for locks that an algorithm guards, or empty.
	Servers []string
	Cluster string
	Home    string
	// Socket means that the only server is reached through its admin socket. No other server can
	// be reached then, and there is no token.
	Socket bool

	// TTL is that of the session. Program names this program to people.
	TTL     time.Duration
	Program string

	// TLS, Token and Dial say how to make connections, as in pool.Config.
	TLS   *tls.Config
	Token func(ctx context.Context) (string, error)
	Dial  pool.Dialer

	Logger *slog.Logger
	// Near is the server in this process, or nil.
	Near near.Server
	// Errors are those of the public API.
	Errors Errors
}

// Conn is a program's connection to a cluster, with one session. Its methods may be called by many
// goroutines at once.
type Conn struct {
	cfg    Config
	now    func() boottime.Time
	pool   *pool.Pool
	mail   *mailbox // inputs for the driver
	driver *driver
	near   *near.Owner // what people see of those that hold at the server in this process; nil: there is none

	ctx   context.Context // ends when the connection is closed
	stop  context.CancelFunc
	tasks sync.WaitGroup

	// What the driver reports. The fields beside a channel are set before it is closed.
	attached chan struct{} // a server of the cluster has answered
	identity string        // of the cluster
	hopeless chan struct{} // trying any server again is useless
	why      error
	ended    chan struct{} // the servers have ended the session of a closed connection
	route    atomic.Pointer[route]

	life      sync.Mutex // guards the start of tasks against Close
	closed    bool
	closing   sync.Once
	confirmed bool // the result of Close
}

// route is what is known of the way to the cluster.
type route struct {
	server  string   // the one in use, or ""
	servers []string // all that are known
	session string   // the public id of the session, or ""
}

// Dial returns once a server of the cluster has answered. It tries until ctx ends, or for 10
// seconds if ctx has no deadline, or until every server has failed permanently. The error is then
// an *Unattached.
func Dial(ctx context.Context, cfg Config) (*Conn, error) {
	ctx, cancel := Bounded(ctx)
	defer cancel()
	c := newConn(ctx, cfg)
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
	return nil, &Unattached{Attempts: attemptsOf(d.line), Err: err}
}

func newConn(ctx context.Context, cfg Config) *Conn {
	connections := pool.Config{TLS: cfg.TLS, Token: cfg.Token, Dial: cfg.Dial}
	if cfg.Socket {
		connections.Token = nil
	}
	c := &Conn{
		cfg: cfg, now: clockOf(ctx), pool: pool.New(connections), mail: newMailbox(),
		attached: make(chan struct{}), hopeless: make(chan struct{}), ended: make(chan struct{}),
	}
	c.route.Store(&route{servers: cfg.Servers})
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.openNear()
	return c
}

type clockKey struct{}

// WithClock returns a context with which Dial makes a Conn that reads deadlines from now instead
// of from the clock of the system. It is for tests on virtual time.
func WithClock(ctx context.Context, now func() boottime.Time) context.Context {
	return context.WithValue(ctx, clockKey{}, now)
}

func clockOf(ctx context.Context) func() boottime.Time {
	if now, set := ctx.Value(clockKey{}).(func() boottime.Time); set {
		return now
	}
	return boottime.Now
}

// Bounded gives ctx a deadline of 10 seconds if it has none.
func Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, callLimit)
}

// Cluster returns the identity of the cluster, 16 hexadecimal digits.
func (c *Conn) Cluster() string { return c.identity }

// Server returns the address of the server in use, or "" while there is none.
func (c *Conn) Server() string { return c.route.Load().server }

// SessionID returns the public id of the session, or "" before it is open.
func (c *Conn) SessionID() string { return c.route.Load().session }

// Failed returns the public error of a call, or nil if err is nil. op says what was to be done, and
// name with what, or is empty.
func (c *Conn) Failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return c.cfg.Errors.Call(op, name, err)
}

// Close ends the session, and reports whether the servers have confirmed that within CloseLimit.
// A second Close waits for the first and returns the same.
func (c *Conn) Close() (confirmed bool) {
	c.closing.Do(func() {
		c.confirmed = c.closeSession()
		c.shutDown()
	})
	return c.confirmed
}

func (c *Conn) closeSession() (confirmed bool) {
	c.forbidTasks()
	c.closeNear()
	c.post(line.Input{Kind: line.Close})
	limit := time.NewTimer(CloseLimit)
	defer limit.Stop()
	select {
	case <-c.ended:
		return true
	case <-limit.C:
		return false
	}
}

func (c *Conn) shutDown() {
	c.forbidTasks()
	c.stop()
	c.tasks.Wait()
	c.pool.Close()
}

func (c *Conn) forbidTasks() {
	c.life.Lock()
	defer c.life.Unlock()
	c.closed = true
}

// start begins a task that Close waits for, unless the connection is closed.
func (c *Conn) start(task func()) error {
	c.life.Lock()
	defer c.life.Unlock()
	if c.closed {
		return line.ErrClosed
	}
	c.tasks.Go(task)
	return nil
}

// pause is the backoff after a number of failures, shortened at random.
func pause(failures int) time.Duration { return time.Duration(line.Pause(failures, rand.Int64N)) }
