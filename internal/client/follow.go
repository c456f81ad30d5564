package client

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"

	"github.com/conclave-io/conclave/api"
)

// followPing is the interval between pings to a server whose stream is followed, and the time in
// which it must answer. An election may not change for months, so silence alone proves nothing.
const followPing = time.Second

// Feed starts a task that fills a channel until ctx ends or the connection is closed, and then
// closes the channel. The error is line.ErrClosed if the connection is closed already.
func Feed[T any](ctx context.Context, c *Conn, out chan T, fill func(context.Context)) error {
	ctx, cancel := context.WithCancel(ctx)
	err := c.start(func() {
		defer context.AfterFunc(c.ctx, cancel)()
		defer cancel()
		defer close(out)
		fill(ctx)
	})
	if err != nil {
		cancel()
	}
	return err
}

// Roam follows what one server after the other has to tell, until ctx ends. follow returns when
// there is no more, and reports whether anything came.
func (c *Conn) Roam(ctx context.Context, follow func(ctx context.Context, address string) bool) {
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

// Opening opens a stream at one server.
type Opening[Event any] func(ctx context.Context, server api.ConclaveClient) (grpc.ServerStreamingClient[Event], error)

// OpenAt opens a stream at the server with an address. The stream outlives the question that makes
// sure of the cluster.
func OpenAt[Event any](ctx context.Context, c *Conn, address string, open Opening[Event]) (stream grpc.ServerStreamingClient[Event], err error) {
	err = c.askAt(ctx, address, func(_ context.Context, server api.ConclaveClient) (err error) {
		stream, err = open(ctx, server)
		return err
	})
	return stream, err
}

// Subscribe fills a channel with what one server after the other streams, as Feed does. It leaves a
// server that does not answer pings. op says in the log what is followed.
func Subscribe[Event, T any](ctx context.Context, c *Conn, op string, out chan T, open Opening[Event], report func(context.Context, *Event)) error {
	follow := func(ctx context.Context, address string) (heard bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := OpenAt(ctx, c, address, open)
		if err != nil {
			c.CannotFollow(op, address, err)
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
	return Feed(ctx, c, out, func(ctx context.Context) { c.Roam(ctx, follow) })
}

// CannotFollow is called after a stream of a server failed.
func (c *Conn) CannotFollow(op, address string, err error) {
	c.pool.Failed(address)
	c.cfg.Logger.Debug("cannot follow", "call", op, "server", address, "err", err)
}

// listen returns when the server no longer answers pings, or ctx ends.
func (c *Conn) listen(ctx context.Context, address string) {
	tick := time.NewTicker(followPing)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := c.pingOnce(ctx, address, followPing); err != nil {
			if !errors.Is(ctx.Err(), context.Canceled) {
				c.pool.Silent(address)
			}
			return
		}
	}
}
