package server

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// protocolVersion is the version of the interface of this server.
const protocolVersion = 1

type attachStream = grpc.BidiStreamingServer[api.ClientFrame, api.ServerFrame]

// Attach serves one client process.
func (s service) Attach(frames attachStream) error {
	ctx := frames.Context()
	welcome := &api.Welcome{Cluster: s.identity, Server: s.cfg.ID, Version: protocolVersion}
	if err := frames.Send(&api.ServerFrame{Welcome: welcome}); err != nil {
		return err
	}
	who, err := authn.CallerOf(ctx)
	if err != nil {
		return err
	}
	out, cut := s.outboxFor(ctx, who)
	s.metrics.Attached.Add(1)
	defer s.metrics.Attached.Add(-1)
	conn, err := s.connect(ctx, out)
	switch {
	case errors.Is(err, node.ErrNotLeader) && wantsRelay(ctx):
		return s.pass(frames, out.sessions)
	case err != nil:
		return s.dismiss(frames, nil)
	}
	defer conn.Close()
	return s.converse(frames, conn, out, cut)
}

// outboxFor returns an outbox for a stream. If the client does not read its replies, its
// connection is closed, or cut is closed if others share the connection.
func (s *Server) outboxFor(ctx context.Context, who stream.Caller) (out *outbox, cut chan struct{}) {
	cut = make(chan struct{})
	out = newOutbox(who, func() {
		s.log.Warn("closing the connection of a client that does not read its replies", "remote", who.Remote)
		if who.Vouched {
			close(cut)
		} else {
			go authn.HangUp(ctx)
		}
	})
	out.denied = func(r registry.Result) { s.audit.Answered(who, "Attach", api.Code(r.Code), r.Message) }
	return out, cut
}

// submitter accepts the requests of a stream.
type submitter interface {
	Submit(ctx context.Context, commands []registry.Command) error
}

// converse reads and writes until the stream ends.
func (s *Server) converse(frames attachStream, conn submitter, out *outbox, cut chan struct{}) error {
	// The reader ends when the stream's context ends, which is when this function returns.
	s.tasks.Go(func() { out.end(s.read(frames, conn, out)) })
	if out.sessions.caller.Vouched {
		return s.writeUntil(cut, frames, out)
	}
	return s.write(frames, out)
}

// writeUntil writes until cut is closed. The writer ends when the stream's context ends,
// which is when this function returns, even if nobody reads what it sends.
func (s *Server) writeUntil(cut <-chan struct{}, frames attachStream, out *outbox) error {
	written := make(chan error, 1)
	s.tasks.Go(func() { written <- s.write(frames, out) })
	select {
	case err := <-written:
		return err
	case <-cut:
		return status.Error(codes.ResourceExhausted, "the client does not read its replies")
	}
}

// connect attaches a client to the node. A server that is about to become the leader
// gets a moment to do so.
func (s *Server) connect(ctx context.Context, client node.Client) (*node.Conn, error) {
	conn, err := s.node.Connect(ctx, client)
	if errors.Is(err, node.ErrNotLeader) && s.forward.AwaitLeader(ctx) == s.cfg.ID {
		conn, err = s.node.Connect(ctx, client)
	}
	return conn, err
}

// read passes requests on until the client closes its side. It returns a farewell if
// a request of the client is the reason.
func (s *Server) read(frames attachStream, conn submitter, out *outbox) *api.Farewell {
	ctx := frames.Context()
	for {
		frame, err := frames.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return nil
			}
			return &api.Farewell{Code: api.Code_CODE_INVALID, Message: status.Convert(err).Message()}
		}
		farewell, err := s.submit(ctx, frame, conn, out)
		if farewell != nil {
			return farewell
		}
		if err != nil || out.admit(ctx) != nil {
			return nil // the stream ends, or the node stops and deposes its clients
		}
	}
}

// submit passes the requests of a frame on. It returns a farewell if one of them is the reason for
// it.
func (s *Server) submit(ctx context.Context, frame *api.ClientFrame, conn submitter, out *outbox) (farewell *api.Farewell, err error) {
	s.divert(ctx, frame, out)
	commands, refused, farewell := stream.Commands(out.sessions.caller, out.sessions, frame)
	if farewell != nil {
		return farewell, nil
	}
	out.refuse(refused)
	out.note(commands)
	return nil, conn.Submit(ctx, commands)
}

// write sends all queued replies at once, each time: replies that come while a frame is
// being sent travel together in the next frame.
func (s *Server) write(frames attachStream, out *outbox) error {
	ctx := frames.Context()
	told := uint64(0)
	for {
		select {
		case <-out.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
		for last := false; !last; {
			var frame *api.ServerFrame
			frame, last = out.take(s.metrics.Observe)
			if now := s.node.Acquaintance(); now != told && !last {
				if frame == nil {
					frame = new(api.ServerFrame)
				}
				frame.Servers, told = s.node.ClientAddresses(), now
			}
			if frame == nil && !last {
				break
			}
			if frame != nil {
				if err := frames.Send(frame); err != nil {
					return err
				}
			}
			if last {
				return s.part(frames, out)
			}
		}
	}
}

// part ends a stream.
func (s *Server) part(frames attachStream, out *outbox) error {
	switch farewell, deposed := out.parting(); {
	case farewell != nil:
		return s.dismiss(frames, farewell)
	case deposed && out.home:
		return s.turnAway(frames)
	case deposed:
		return s.dismiss(frames, nil)
	}
	return nil
}

// dismiss sends a farewell. Without one of its own, it reports that this server does not
// lead.
func (s *Server) dismiss(frames attachStream, farewell *api.Farewell) error {
	if farewell == nil {
		leader := s.forward.AwaitLeader(frames.Context())
		farewell = &api.Farewell{Code: api.Code_CODE_NOT_LEADER, Leader: s.node.ClientAddress(leader), Message: s.forward.NotLeading(leader)}
	}
	return frames.Send(&api.ServerFrame{Farewell: farewell})
}

// Ping does nothing.
func (s service) Ping(context.Context, *api.PingRequest) (*api.PingResponse, error) {
	return &api.PingResponse{}, nil
}
