package conclave

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
)

// answerLimit is how long one server may take to answer before the next is
// asked.
const answerLimit = 2 * time.Second

// Status returns the view of any server that can be reached, the one in use
// first. It does not need a leader. Without a deadline in ctx it tries for 10
// seconds, as do List, ListElections and Sessions.
func (c *Client) Status(ctx context.Context) (Status, error) {
	answer, err := call(ctx, c, "status", api.ConclaveClient.Status, &api.StatusRequest{Certificates: true})
	return statusOf(answer), err
}

// List returns the locks that are held and whose names begin with prefix, by
// name. While it reads page after page others come and go: each lock is shown
// as it was at one moment, but not all as they were at the same.
func (c *Client) List(ctx context.Context, prefix string) ([]Resource, error) {
	return c.list(ctx, api.Class_CLASS_LOCK, prefix)
}

// ListElections is like List, for elections.
func (c *Client) ListElections(ctx context.Context, prefix string) ([]Resource, error) {
	return c.list(ctx, api.Class_CLASS_ELECTION, prefix)
}

// ListKnown is like List, and returns also the servers that guard locks by algorithms and did not
// answer. A lock that a client of such a server holds is missing, or has no holder: it is not free.
func (c *Client) ListKnown(ctx context.Context, prefix string) (known []Resource, silent []uint64, err error) {
	return c.pages(ctx, api.Class_CLASS_LOCK, prefix)
}

func (c *Client) list(ctx context.Context, class api.Class, prefix string) ([]Resource, error) {
	all, _, err := c.pages(ctx, class, prefix)
	return all, err
}

func (c *Client) pages(ctx context.Context, class api.Class, prefix string) (all []Resource, silent []uint64, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	for after, more := "", true; more; {
		page, err := call(ctx, c, "list", api.ConclaveClient.List, &api.ListRequest{Class: class, Prefix: prefix, After: after})
		if err != nil {
			return nil, nil, err
		}
		for _, r := range page.GetResources() {
			all = append(all, resourceOf(r))
			after = r.GetName()
		}
		silent = append(silent, page.GetSilent()...)
		more = page.GetMore() && len(page.GetResources()) > 0
	}
	slices.Sort(silent)
	return all, slices.Compact(silent), nil
}

// Explain returns who holds a lock, who waits for it in which order, and how its
// last holds ended.
func (c *Client) Explain(ctx context.Context, name string) (Explanation, error) {
	return c.explain(ctx, api.Class_CLASS_LOCK, name)
}

// ExplainElection is like Explain, for an election.
func (c *Client) ExplainElection(ctx context.Context, name string) (Explanation, error) {
	return c.explain(ctx, api.Class_CLASS_ELECTION, name)
}

func (c *Client) explain(ctx context.Context, class api.Class, name string) (answer Explanation, err error) {
	if err := ValidateName(name); err != nil {
		return answer, err
	}
	e, err := call(ctx, c, "explain", api.ConclaveClient.Explain, &api.ExplainRequest{Class: class, Name: name})
	return explanationOf(e), err
}

// Sessions returns the live sessions by id.
func (c *Client) Sessions(ctx context.Context) ([]SessionInfo, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var all []SessionInfo
	var after []byte
	for more := true; more; {
		page, err := call(ctx, c, "sessions", api.ConclaveClient.Sessions, &api.SessionsRequest{After: after})
		if err != nil {
			return nil, fmt.Errorf("%w (after session %s)", err, publicID(after))
		}
		for _, s := range page.GetSessions() {
			all = append(all, sessionInfoOf(s))
			after = s.GetId()
		}
		more = page.GetMore() && len(page.GetSessions()) > 0
	}
	return all, nil
}

// call sends a request to one server after the other until one answers it.
func call[Request, Answer any](
	ctx context.Context, c *Client, op string,
	method func(api.ConclaveClient, context.Context, *Request, ...grpc.CallOption) (*Answer, error), req *Request,
) (answer *Answer, err error) {
	err = c.ask(ctx, op, func(ctx context.Context, server api.ConclaveClient) (err error) {
		answer, err = method(server, ctx, req)
		return err
	})
	return answer, err
}

// query is one question to one server.
type query func(ctx context.Context, server api.ConclaveClient) error

// ask puts a question to one server after the other until one answers it.
func (c *Client) ask(ctx context.Context, op string, q query) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	for round := 1; ; round++ {
		var failures []Attempt
		for _, address := range c.addresses() {
			err := c.put(ctx, address, q)
			switch {
			case err == nil:
				return nil
			case c.ctx.Err() != nil:
				return fmt.Errorf("conclave: %s: %w", op, ErrClosed)
			case !elsewhere(err):
				return fmt.Errorf("conclave: %s: %w", op, plain(err))
			}
			c.pool.failed(address)
			failures = append(failures, Attempt{address, plain(err)})
		}
		select {
		case <-time.After(pause(round)):
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("conclave: %s: %w", op, ctx.Err())
			}
			return &UnavailableError{Op: op, Attempts: failures, Err: ctx.Err()}
		}
	}
}

// put puts a question to one server. The status that goes before it makes sure
// of the cluster: another one may have taken over the address.
func (c *Client) put(ctx context.Context, address string, q query) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	conn, err := c.pool.get(address)
	if err != nil {
		return err
	}
	server := api.NewConclaveClient(conn)
	s, err := server.Status(ctx, &api.StatusRequest{})
	if err != nil {
		return err
	}
	if err := line.Identify(c.identity, s.GetCluster()); err != nil {
		return err
	}
	return q(ctx, server)
}

// elsewhere reports whether another server may do better.
func elsewhere(err error) bool {
	if errors.Is(err, ErrWrongCluster) {
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
func (c *Client) addresses() []string {
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
