package conclave

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/conclave-io/conclave/internal/client"
)

// Client is a program's connection to a cluster, with one session. Its methods
// may be called by many goroutines at once. Package admin has the methods for
// operators of a cluster.
type Client struct {
	conn    *client.Conn
	program string
	ttl     time.Duration
}

func init() {
	client.Of = func(c any) *client.Conn { return c.(*Client).conn }
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
	cfg = cfg.WithDefaults()
	conn, err := client.Dial(ctx, cfg.connection())
	var failed *client.Unattached
	if errors.As(err, &failed) {
		return nil, &DialError{Attempts: attemptsOf(failed.Attempts), Err: publicError(failed.Err)}
	}
	return &Client{conn, cfg.Program, cfg.TTL}, nil
}

// connection returns what makes a connection of a configuration that is valid.
func (cfg Config) connection() client.Config {
	_, socket := cfg.socket()
	return client.Config{
		Servers: slices.Compact(slices.Clone(cfg.Servers)), Cluster: cfg.Cluster, Home: cfg.Home, Socket: socket,
		TTL: cfg.TTL, Program: cfg.Program, TLS: cfg.TLS, Token: cfg.Token, Dial: cfg.Dialer,
		Logger: cfg.Logger, Near: cfg.Near,
		Errors: client.Errors{
			Lost: ErrLost, Released: ErrReleased, Call: callFailed,
			Revoked: func(reason string) error { return &RevokedError{reason} },
		},
	}
}

// Cluster returns the identity of the cluster, 16 hexadecimal digits.
func (c *Client) Cluster() string { return c.conn.Cluster() }

// Server returns the address of the server in use, or "" while the client looks for
// one: the leader as far as the client knows, or, if the leader cannot be reached, one
// that passes everything on to it.
func (c *Client) Server() string { return c.conn.Server() }

// SessionID returns the public id of the session, as lists show it: "s-" and 32
// hexadecimal digits. It is "" before the session is open, and changes when the
// session is lost and another one opened. Nobody can act in the session with it.
func (c *Client) SessionID() string { return c.conn.SessionID() }

// Close ends the session, which releases all that it holds, and the connection.
// The contexts of handles end first, with ErrReleased as their cause; calls that
// wait return ErrClosed. If no server confirms within 2 seconds, Close returns
// an error: the session then ends by itself when its TTL is over. A second Close
// waits for the first and returns the same.
func (c *Client) Close() error {
	if c.conn.Close() {
		return nil
	}
	return fmt.Errorf("conclave: close: no server confirmed the end of session %s within %v; it expires within %v", c.SessionID(), client.CloseLimit, c.ttl)
}

// Ready opens the session, unless it is open, and so tells that the cluster has
// a leader and that leader a quorum. The first Lock or Campaign does the same,
// but waits for the lock as well.
func (c *Client) Ready(ctx context.Context) error {
	return c.conn.Failed("session for", c.program, c.conn.Ready(ctx))
}
