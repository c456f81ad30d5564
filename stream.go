package conclave

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
)

const (
	// relayHeader is the metadata of a stream that asks to be passed on.
	relayHeader = "conclave-relay"
	// pingTimeout ends a ping that was not answered. The line gives it up earlier.
	pingTimeout = time.Second
)

// stream is one stream to one server, which leads, or is to be a home. It carries frames, and knows nothing of
// what is in them.
type stream struct {
	client  *Client
	id      uint64
	address string
	relayed bool
	home    bool
	cancel  context.CancelCauseFunc
	frames  chan *api.ClientFrame // those to be sent
}

type attachStream = grpc.BidiStreamingClient[api.ClientFrame, api.ServerFrame]

// open begins to attach to a server as the line asks for.
func (c *Client) open(o line.Output) *stream {
	ctx, cancel := context.WithCancelCause(c.ctx)
	st := &stream{client: c, id: o.Stream, address: o.Address, relayed: o.Relayed, home: o.Home, cancel: cancel, frames: make(chan *api.ClientFrame, 1)}
	c.tasks.Go(func() {
		err := st.converse(ctx)
		cancel(nil)
		if c.ctx.Err() != nil {
			return // nobody wants to know, and it would hide what became of the servers
		}
		c.post(line.Input{Kind: line.Ended, Stream: st.id, Err: err, Permanent: permanent(err)})
	})
	return st
}

// permanent reports whether it does no good to try a server again that failed so.
func permanent(err error) bool {
	var secrecy *TLSError
	var address *AddressError
	return errors.As(err, &secrecy) || errors.As(err, &address) || errors.Is(err, ErrUnauthenticated) || errors.Is(err, ErrDenied)
}

// converse reads the stream to its end.
func (st *stream) converse(ctx context.Context) error {
	conn, err := st.client.pool.get(st.address)
	if err != nil {
		return err
	}
	attach := ctx
	if _, local := st.client.cfg.socket(); st.relayed || local { // no other server can be reached
		attach = metadata.AppendToOutgoingContext(ctx, relayHeader, "1")
	}
	open := api.NewConclaveClient(conn).Attach
	if st.home {
		open = api.NewConclaveClient(conn).AttachHome
	}
	grpcStream, err := open(attach)
	if err != nil {
		return st.failure(ctx, err)
	}
	st.client.tasks.Go(func() { st.write(ctx, grpcStream) })
	for {
		frame, err := grpcStream.Recv()
		if err != nil {
			return st.failure(ctx, err)
		}
		st.client.post(line.Input{Kind: line.Received, Stream: st.id, Frame: frame})
	}
}

// failure says why the stream ended.
func (st *stream) failure(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, line.ErrSilent):
		st.client.pool.silent(st.address)
		return cause
	case cause != nil:
		return cause
	case errors.Is(err, io.EOF):
		return errors.New("the server ended the stream")
	}
	st.client.pool.failed(st.address)
	err = plain(err)
	if errors.Is(err, ErrUnauthenticated) && st.client.cfg.TLS != nil {
		// The next connection makes another handshake, with a certificate that may be new.
		st.client.pool.silent(st.address)
	}
	return err
}

func (st *stream) write(ctx context.Context, grpcStream attachStream) {
	for {
		select {
		case <-ctx.Done():
			return
		case frame := <-st.frames:
			if grpcStream.Send(frame) != nil {
				return // the reader learns why
			}
			st.client.post(line.Input{Kind: line.Sent, Stream: st.id})
		}
	}
}

func (c *Client) ping(stream uint64, address string) {
	if c.pingOnce(c.ctx, address, pingTimeout) == nil {
		c.post(line.Input{Kind: line.Pong, Stream: stream})
	}
}

// pingOnce returns nil if the server answers within the limit, whatever it
// answers.
func (c *Client) pingOnce(ctx context.Context, address string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := c.pool.get(address)
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
