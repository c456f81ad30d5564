package conclave

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/conclave-io/conclave/internal/line"
	"github.com/conclave-io/conclave/service/api"
)

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
	ctx, cancel := context.WithCancel(ctx)
	o := &observer{client: c, name: name, out: make(chan Observation, 1)}
	err := c.start(func() {
		defer context.AfterFunc(c.ctx, cancel)()
		defer cancel()
		defer close(o.out)
		o.run(ctx)
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("conclave: observe %q: %w", name, err)
	}
	return o.out, nil
}

// observer follows one election from server to server.
type observer struct {
	client *Client
	name   string
	out    chan Observation // of one place: what waits in it is the newest
	seen   line.Observed
}

func (o *observer) run(ctx context.Context) { o.client.roam(ctx, o.follow) }

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

// follow observes through one server until that ends, and reports whether
// anything came.
func (o *observer) follow(ctx context.Context, address string) (heard bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := o.open(ctx, address)
	if err != nil {
		o.client.pool.failed(address)
		o.client.cfg.Logger.Debug("cannot observe", "election", o.name, "server", address, "err", err)
		return false
	}
	o.client.tasks.Go(func() {
		defer cancel()
		o.client.listen(ctx, address)
	})
	for {
		obs, err := stream.Recv()
		if err != nil {
			return heard
		}
		heard = true
		if o.seen.News(obs) {
			o.report(Observation{Name: obs.GetName(), Elected: obs.GetElected(), Leader: holderOf(obs.GetLeader())})
		}
	}
}

func (o *observer) open(ctx context.Context, address string) (stream grpc.ServerStreamingClient[api.Observation], err error) {
	// The stream outlives the question that makes sure of the cluster.
	err = o.client.put(ctx, address, func(_ context.Context, server api.ConclaveClient, _ *api.StatusResponse) (err error) {
		stream, err = server.Observe(ctx, &api.ObserveRequest{Name: o.name})
		return err
	})
	return stream, err
}

// report passes on what is new.
func (o *observer) report(obs Observation) {
	select {
	case <-o.out: // not yet read, and superseded
	default:
	}
	o.out <- obs // nobody else sends: there is room
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
