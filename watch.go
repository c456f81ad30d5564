package conclave

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client"
	"github.com/conclave-io/conclave/internal/client/line"
)

// Changes are locks, or elections, as they are now.
type Changes struct {
	Resources []Resource
	// Gone are those that nobody holds any more.
	Gone []string
	// Reset means that earlier Changes are obsolete: Resources are all that are held, or the
	// first of them if More is set.
	Reset, More bool
}

// Watch reports the locks whose names begin with prefix: first all that are held,
// then each change, until ctx ends or the client is closed; then the channel is
// closed. What changes while the reader is busy is reported once, as it is then.
// After the loss of a server Watch begins again, which Changes.Reset says.
func (c *Client) Watch(ctx context.Context, prefix string) (<-chan Changes, error) {
	return c.watchClass(ctx, &api.WatchRequest{Class: api.Class_CLASS_LOCK, Prefix: prefix})
}

// WatchElections is like Watch, for elections.
func (c *Client) WatchElections(ctx context.Context, prefix string) (<-chan Changes, error) {
	return c.watchClass(ctx, &api.WatchRequest{Class: api.Class_CLASS_ELECTION, Prefix: prefix})
}

func (c *Client) watchClass(ctx context.Context, req *api.WatchRequest) (<-chan Changes, error) {
	out := make(chan Changes)
	open := func(ctx context.Context, server api.ConclaveClient) (grpc.ServerStreamingClient[api.Changes], error) {
		return server.Watch(ctx, req)
	}
	report := func(ctx context.Context, changes *api.Changes) {
		select {
		case out <- changesOf(changes):
		case <-ctx.Done():
		}
	}
	return follow(ctx, c, fmt.Sprintf("watch %q", req.GetPrefix()), out, open, report)
}

func changesOf(c *api.Changes) Changes {
	return Changes{Resources: client.Each(c.GetResources(), resourceOf), Gone: c.GetGone(), Reset: c.GetReset_(), More: c.GetMore()}
}

// Observe reports who leads an election: first the present state, then each change, until
// ctx ends or the client is closed; then the channel is closed. A reader that is slower
// than the changes finds only the newest. If a server is lost, Observe continues with
// another one, and reports what changed meanwhile once.
func (c *Client) Observe(ctx context.Context, name string) (<-chan Observation, error) {
	if err := ValidateName(name); err != nil {
		return nil, err
	}
	out := make(chan Observation, 1) // what waits in it is the newest
	var seen line.Observed
	open := func(ctx context.Context, server api.ConclaveClient) (grpc.ServerStreamingClient[api.Observation], error) {
		return server.Observe(ctx, &api.ObserveRequest{Name: name})
	}
	report := func(_ context.Context, o *api.Observation) {
		if !seen.News(o) {
			return
		}
		select {
		case <-out: // not yet read, and superseded
		default:
		}
		out <- Observation{Name: o.GetName(), Elected: o.GetElected(), Leader: holderOf(o.GetLeader())} // nobody else sends: there is room
	}
	return follow(ctx, c, fmt.Sprintf("observe %q", name), out, open, report)
}

// follow fills a channel with what one server after the other streams, and returns it.
func follow[Event, T any](ctx context.Context, c *Client, op string, out chan T, open client.Opening[Event], report func(context.Context, *Event)) (<-chan T, error) {
	if err := client.Subscribe(ctx, c.conn, op, out, open, report); err != nil {
		return nil, c.conn.Failed(op, "", err)
	}
	return out, nil
}
