package conclave

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client"
)

// List returns the locks that are held and whose names begin with prefix, by
// name. While it reads page after page others come and go: each lock is shown
// as it was at one moment, but not all as they were at the same. Without a
// deadline in ctx it tries for 10 seconds, as does ListElections.
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
	ctx, cancel := client.Bounded(ctx)
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

// call sends a request to one server after the other until one answers it.
func call[Request, Answer any](
	ctx context.Context, c *Client, op string,
	method func(api.ConclaveClient, context.Context, *Request, ...grpc.CallOption) (*Answer, error), req *Request,
) (*Answer, error) {
	answer, err := client.Call(ctx, c.conn, method, req)
	return answer, c.conn.Failed(op, "", err)
}
