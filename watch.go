package conclave

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/conclave-io/conclave/service/api"
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
	return subscribe(ctx, c, fmt.Sprintf("watch %q", req.GetPrefix()), out, open, report)
}

func changesOf(c *api.Changes) Changes {
	changes := Changes{Gone: c.GetGone(), Reset: c.GetReset_(), More: c.GetMore()}
	for _, r := range c.GetResources() {
		changes.Resources = append(changes.Resources, resourceOf(r))
	}
	return changes
}
