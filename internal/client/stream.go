package client

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
	"github.com/conclave-io/conclave/internal/client/pool"
)

const (
	// relayHeader is the metadata of a stream that asks to be passed on.
	relayHeader = "conclave-relay"
	// pingTimeout ends a ping that was not answered. The line gives it up earlier.
	pingTimeout = time.Second
)

// stream is one stream to one server, which leads, or is to be a home. It carries frames,
// whatever they contain.
type stream struct {
	conn    *Conn
	id      uint64
	address string
	relayed bool
	home    bool
	cancel  context.CancelCauseFunc
	frames  chan *api.ClientFrame // those to be sent
}

type attachStream = grpc.BidiStreamingClient[api.ClientFrame, api.ServerFrame]

// open begins to attach to a server as the line asks for.
func (c *Conn) open(o line.Output) *stream {
	ctx, cancel := context.WithCancelCause(c.ctx)
	st := &stream{conn: c, id: o.Stream, address: o.Address, relayed: o.Relayed, home: o.Home, cancel: cancel, frames: make(chan *api.ClientFrame, 1)}
	c.tasks.Go(func() {
		err := st.converse(ctx)
		cancel(nil)
		if c.ctx.Err() != nil {
			return // nobody wants to know, and it would hide what became of the servers
		}
		c.post(line.Input{Kind: line.Ended, Stream: st.id, Err: err, Permanent: pool.IsFault(err)})
	})
	return st
}

// converse reads the stream to its end.
func (st *stream) converse(ctx context.Context) error {
	connection, err := st.conn.pool.Get(st.address)
	if err != nil {
		return err
	}
	attach := ctx
	if st.relayed || st.conn.cfg.Socket { // no other server can be reached
		attach = metadata.AppendToOutgoingContext(ctx, relayHeader, "1")
	}
	open := api.NewConclaveClient(connection).Attach
	if st.home {
		open = api.NewConclaveClient(connection).AttachHome
	}
	grpcStream, err := open(attach)
	if err != nil {
		return st.failure(ctx, err)
	}
	st.conn.tasks.Go(func() { st.write(ctx, grpcStream) })
	for {
		frame, err := grpcStream.Recv()
		if err != nil {
			return st.failure(ctx, err)
		}
		st.conn.post(line.Input{Kind: line.Received, Stream: st.id, Frame: frame})
	}
}

// failure says why the stream ended.
func (st *stream) failure(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, line.ErrSilent):
		st.conn.pool.Silent(st.address)
		return cause
	case cause != nil:
		return cause
	case errors.Is(err, io.EOF):
		return errors.New("the server ended the stream")
	}
	st.conn.pool.Failed(st.address)
	err = pool.Plain(err)
	var fault *pool.Fault
	if errors.As(err, &fault) && fault.Kind == pool.Unauthenticated && st.conn.cfg.TLS != nil {
		// The next connection makes another handshake, with a certificate that may be new.
		st.conn.pool.Silent(st.address)
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
			st.conn.post(line.Input{Kind: line.Sent, Stream: st.id})
		}
	}
}

// ping tells the line if the server of a stream answers.
func (c *Conn) ping(stream uint64, address string) {
	if c.pingOnce(c.ctx, address, pingTimeout) == nil {
		c.post(line.Input{Kind: line.Pong, Stream: stream})
	}
}
