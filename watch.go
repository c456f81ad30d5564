package conclave

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/conclave-io/conclave/api"
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
	return subscribe(ctx, c, fmt.Sprintf("watch %q", req.GetPrefix()), out, open, report)
}

func changesOf(c *api.Changes) Changes {
	return Changes{Resources: each(c.GetResources(), resourceOf), Gone: c.GetGone(), Reset: c.GetReset_(), More: c.GetMore()}
}

// observePing is the interval between pings to an observed server, and the time in which
// it must answer. An election may not change for months, so silence alone proves nothing.
const observePing = time.Second

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
	return subscribe(ctx, c, fmt.Sprintf("observe %q", name), out, open, report)
}

// feed starts a task that fills a channel until ctx ends or the client is closed, and then
// closes the channel.
func feed[T any](ctx context.Context, c *Client, op string, out chan T, fill func(context.Context)) (<-chan T, error) {
	ctx, cancel := context.WithCancel(ctx)
	err := c.start(func() {
		defer context.AfterFunc(c.ctx, cancel)()
		defer cancel()
		defer close(out)
		fill(ctx)
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("conclave: %s: %w", op, err)
	}
	return out, nil
}

// roam follows what one server after the other has to tell, until ctx ends.
// follow returns when there is no more, and reports whether anything came.
func (c *Client) roam(ctx context.Context, follow func(ctx context.Context, address string) bool) {
	for failures := 1; ; failures++ {
		for _, address := range c.addresses() {
			if follow(ctx, address) {
				failures = 1
			}
			if ctx.Err() != nil {
				return
			}
		}
		select {
		case <-time.After(pause(failures)):
		case <-ctx.Done():
			return
		}
	}
}

// opening opens a stream at one server.
type opening[Event any] func(ctx context.Context, server api.ConclaveClient) (grpc.ServerStreamingClient[Event], error)

// openAt opens a stream at the server with an address. The stream outlives the question that makes
// sure of the cluster.
func openAt[Event any](ctx context.Context, c *Client, address string, open opening[Event]) (stream grpc.ServerStreamingClient[Event], err error) {
	err = c.put(ctx, address, func(_ context.Context, server api.ConclaveClient) (err error) {
		stream, err = open(ctx, server)
		return err
	})
	return stream, err
}

// subscribe fills a channel with what one server after the other streams. It leaves a server that
// does not answer pings.
func subscribe[Event, T any](ctx context.Context, c *Client, op string, out chan T, open opening[Event], report func(context.Context, *Event)) (<-chan T, error) {
	follow := func(ctx context.Context, address string) (heard bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := openAt(ctx, c, address, open)
		if err != nil {
			c.pool.failed(address)
			c.cfg.Logger.Debug("cannot follow", "call", op, "server", address, "err", err)
			return false
		}
		c.tasks.Go(func() {
			defer cancel()
			c.listen(ctx, address)
		})
		for {
			event, err := stream.Recv()
			if err != nil {
				return heard
			}
			heard = true
			report(ctx, event)
		}
	}
	return feed(ctx, c, op, out, func(ctx context.Context) { c.roam(ctx, follow) })
}

// listen returns when the server no longer answers pings, or ctx ends.
func (c *Client) listen(ctx context.Context, address string) {
	tick := time.NewTicker(observePing)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := c.pingOnce(ctx, address, observePing); err != nil {
			if !errors.Is(ctx.Err(), context.Canceled) {
				c.pool.silent(address)
			}
			return
		}
	}
}
