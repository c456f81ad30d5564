package conclave

import (
	"context"
	"errors"
	"time"
)

type Client struct{}

type hold struct {
	name string
	ctx  context.Context
}
type acquisition struct{}

var errSoon = errors.New("conclave: not connected")

func lockOf(name string, try bool) acquisition          { return acquisition{} }
func electionOf(name string, value []byte) acquisition { return acquisition{} }

// Dial attaches to the cluster that cfg names. It returns once a server of the
// cluster has answered, and keeps trying until ctx ends, or for 10 seconds if
// ctx has no deadline; the error is then a *DialError that says what each server
// said. The session is opened by the first call that needs one.
func Dial(ctx context.Context, cfg Config) (*Client, error) { return nil, errSoon }

// Close ends the session, which releases all that it holds, and the connection.
// Contexts of handles end first; calls that wait return ErrClosed.
func (c *Client) Close() error { return errSoon }

// Observe reports who leads an election: first the present state, then each
// change.
func (c *Client) Observe(ctx context.Context, name string) (<-chan Observation, error) {
	return nil, errSoon
}

// Status returns the view of any server that can be reached.
func (c *Client) Status(ctx context.Context) (Status, error) { return Status{}, errSoon }

// List returns the locks whose names begin with prefix, by name.
func (c *Client) List(ctx context.Context, prefix string) ([]Resource, error) { return nil, errSoon }

// ListElections returns the elections whose names begin with prefix, by name.
func (c *Client) ListElections(ctx context.Context, prefix string) ([]Resource, error) {
	return nil, errSoon
}

// Sessions returns the live sessions by id.
func (c *Client) Sessions(ctx context.Context) ([]SessionInfo, error) { return nil, errSoon }

func (c *Client) acquire(ctx context.Context, a acquisition) (*hold, error) { return nil, errSoon }
func (h *hold) fenced() (uint64, error)                                     { return 0, errSoon }
func (h *hold) deadline() time.Duration                                     { return 0 }
func (h *hold) renewed() <-chan struct{}                                    { return nil }
func (h *hold) release(ctx context.Context) error                           { return errSoon }
func (h *hold) update(ctx context.Context, value []byte) error              { return errSoon }
