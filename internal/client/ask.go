package client

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
	"github.com/conclave-io/conclave/internal/client/pool"
)

// answerLimit is how long one server may take to answer before the next is asked.
const answerLimit = 2 * time.Second

// Query is one question to one server.
type Query func(ctx context.Context, server api.ConclaveClient) error

// Ask puts a question to one server after the other, the one in use first, until one answers it.
// Without a deadline in ctx it tries for 10 seconds. If the question may have been answered, a
// question that changes something must be one that servers carry out once.
func (c *Conn) Ask(ctx context.Context, q Query) error {
	ctx, cancel := Bounded(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	for round := 1; ; round++ {
		var failures []Attempt
		for _, address := range c.addresses() {
			err := c.askAt(ctx, address, q)
			switch {
			case err == nil:
				return nil
			case c.ctx.Err() != nil:
				return line.ErrClosed
			case !elsewhere(err):
				return pool.Plain(err)
			}
			c.pool.Failed(address)
			failures = append(failures, Attempt{address, pool.Plain(err)})
		}
		select {
		case <-time.After(pause(round)):
		case <-ctx.Done():
			return &Interrupted{Attempts: failures, Err: ctx.Err()}
		}
	}
}

// askAt puts a question to one server. The status that goes before it makes sure of the cluster:
// another one may have taken over the address.
func (c *Conn) askAt(ctx context.Context, address string, q Query) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	connection, err := c.pool.Get(address)
	if err != nil {
		return err
	}
	server := api.NewConclaveClient(connection)
	s, err := server.Status(ctx, &api.StatusRequest{})
	if err != nil {
		return err
	}
	if err := line.Identify(c.identity, s.GetCluster()); err != nil {
		return err
	}
	return q(ctx, server)
}

// Call asks for the answer to a request of one server after the other, as Conn.Ask does.
func Call[Request, Answer any](
	ctx context.Context, c *Conn,
	method func(api.ConclaveClient, context.Context, *Request, ...grpc.CallOption) (*Answer, error), req *Request,
) (answer *Answer, err error) {
	err = c.Ask(ctx, func(ctx context.Context, server api.ConclaveClient) (err error) {
		answer, err = method(server, ctx, req)
		return err
	})
	return answer, err
}

// elsewhere reports whether another server may do better.
func elsewhere(err error) bool {
	if errors.Is(err, line.ErrWrongCluster) {
		return true
	}
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.Aborted, codes.OutOfRange, codes.PermissionDenied, codes.Unauthenticated, codes.Internal, codes.Unimplemented:
		return false
	default:
		return true
	}
}

// addresses returns the servers, with the one in use first.
func (c *Conn) addresses() []string {
	r := c.route.Load()
	var first []string
	if r.server != "" {
		first = append(first, r.server)
	}
	for _, s := range r.servers {
		if s != r.server {
			first = append(first, s)
		}
	}
	return first
}

// pingOnce returns nil if the server answers within the limit, whatever it
// answers.
func (c *Conn) pingOnce(ctx context.Context, address string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := c.pool.Get(address)
	if err != nil {
		return err
	}
	_, err = api.NewConclaveClient(conn).Ping(ctx, &api.PingRequest{})
	switch status.Code(err) {
	case codes.DeadlineExceeded, codes.Unavailable, codes.Canceled:
		return err
	default:
		return nil
	}
}
