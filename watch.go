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
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan Changes)
	err := c.start(func() {
		defer context.AfterFunc(c.ctx, cancel)()
		defer cancel()
		defer close(out)
		c.roam(ctx, func(ctx context.Context, address string) bool { return c.follow(ctx, address, req, out) })
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("conclave: watch %q: %w", req.GetPrefix(), err)
	}
	return out, nil
}

// follow watches through one server until that ends, and reports whether
// anything came.
func (c *Client) follow(ctx context.Context, address string, req *api.WatchRequest, out chan<- Changes) (heard bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var stream grpc.ServerStreamingClient[api.Changes]
	// The stream outlives the question that makes sure of the cluster.
	err := c.put(ctx, address, func(_ context.Context, server api.ConclaveClient, _ *api.StatusResponse) (err error) {
		stream, err = server.Watch(ctx, req)
		return err
	})
	if err != nil {
		c.pool.failed(address)
		c.cfg.Logger.Debug("cannot watch", "prefix", req.GetPrefix(), "server", address, "err", err)
		return false
	}
	c.tasks.Go(func() {
		defer cancel()
		c.listen(ctx, address)
	})
	for {
		changes, err := stream.Recv()
		if err != nil {
			return heard
		}
		heard = true
		select {
		case out <- changesOf(changes):
		case <-ctx.Done():
			return heard
		}
	}
}

func changesOf(c *api.Changes) Changes {
	changes := Changes{Gone: c.GetGone(), Reset: c.GetReset_(), More: c.GetMore()}
	for _, r := range c.GetResources() {
		changes.Resources = append(changes.Resources, resourceOf(r))
	}
	return changes
}
