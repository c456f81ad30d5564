package conclave

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/internal/line"
	"github.com/conclave-io/conclave/service/api"
)

// answerLimit is how long one server may take to answer before the next is
// asked.
const answerLimit = 2 * time.Second

// Status returns the view of any server that can be reached, the one in use
// first. It does not need a leader. Without a deadline in ctx it tries for 10
// seconds, as do List, ListElections and Sessions.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var answer Status
	err := c.ask(ctx, "status", func(ctx context.Context, server api.ConclaveClient, _ *api.StatusResponse) error {
		s, err := server.Status(ctx, &api.StatusRequest{Certificates: true})
		if err == nil {
			answer = statusOf(s)
		}
		return err
	})
	return answer, err
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
		err := c.ask(ctx, "list", func(ctx context.Context, server api.ConclaveClient, _ *api.StatusResponse) error {
			page, err := server.List(ctx, &api.ListRequest{Class: class, Prefix: prefix, After: after})
			if err != nil {
				return err
			}
			for _, r := range page.GetResources() {
				all = append(all, resourceOf(r))
				after = r.GetName()
			}
			silent = append(silent, page.GetSilent()...)
			more = page.GetMore() && len(page.GetResources()) > 0
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
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
	err = c.ask(ctx, "explain", func(ctx context.Context, server api.ConclaveClient, _ *api.StatusResponse) error {
		e, err := server.Explain(ctx, &api.ExplainRequest{Class: class, Name: name})
		answer = explanationOf(e)
		return err
	})
	return answer, err
}

// Sessions returns the live sessions by id.
func (c *Client) Sessions(ctx context.Context) ([]SessionInfo, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var all []SessionInfo
	var after []byte
	for more := true; more; {
		err := c.ask(ctx, "sessions", func(ctx context.Context, server api.ConclaveClient, _ *api.StatusResponse) error {
			page, err := server.Sessions(ctx, &api.SessionsRequest{After: after})
			if err != nil {
				return err
			}
			for _, s := range page.GetSessions() {
				all = append(all, sessionInfoOf(s))
				after = s.GetId()
			}
			more = page.GetMore() && len(page.GetSessions()) > 0
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("%w (after session %s)", err, publicID(after))
		}
	}
	return all, nil
}

// query is one question to one server, which has just given its status.
type query func(ctx context.Context, server api.ConclaveClient, status *api.StatusResponse) error

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
	return q(ctx, server, s)
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
