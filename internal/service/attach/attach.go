// Package attach serves the streams of client processes: it reads their requests, sends the replies,
// passes streams on to the leader and says farewell. Package stream decides; this package has the
// goroutines and gRPC.
package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/kit/wait"
	"github.com/conclave-io/conclave/internal/service/auditlog"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/metrics"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// protocolVersion is the version of the interface of this server.
const protocolVersion = 1

// Stream is a stream of a client.
type Stream = grpc.BidiStreamingServer[api.ClientFrame, api.ServerFrame]

// Config sets up Streams.
type Config struct {
	// Cluster names the cluster, and Server is the id of this server.
	Cluster string
	Server  uint64
	Node    *node.Node
	Forward *forward.Forwarder
	// Heartbeat and Election are the times of the node.
	Heartbeat, Election time.Duration
	Metrics             *metrics.Metrics
	Audit               *auditlog.Log
	Log                 *slog.Logger
	// Go starts a goroutine that the server waits for when it stops.
	Go func(func())
	// Leaving is closed when the server begins to stop.
	Leaving <-chan struct{}
	// Divert returns a function that removes from the frames of a stream the requests that this
	// server answers by itself. They are answered by a call of answer, then or later.
	Divert func(ctx context.Context, who stream.Caller, answer func(...*api.Reply)) func(*api.ClientFrame)
}

// Streams serves the streams of clients.
type Streams struct {
	cfg Config
	ctx context.Context // ends when the server stops
}

// New returns what serves the streams of a server that stops when ctx ends.
func New(ctx context.Context, cfg Config) *Streams { return &Streams{cfg, ctx} }

// attached is one stream of a client.
type attached struct {
	*Streams
	Stream
	out *outbox
	// cut is closed if the client does not read its replies, and others share its connection.
	cut chan struct{}

	mu   sync.Mutex // held to use life, as another goroutine does while the stream is passed on
	life stream.Life
}

func (s *Streams) newAttached(frames Stream, who stream.Caller) *attached {
	ctx, cut := frames.Context(), make(chan struct{})
	out := newOutbox(who, func() {
		s.cfg.Log.Warn("closing the connection of a client that does not read its replies", "remote", who.Remote)
		if who.Vouched {
			close(cut)
		} else {
			go authn.HangUp(ctx)
		}
	})
	out.denied = func(r registry.Result) { s.cfg.Audit.Answered(who, "Attach", api.Code(r.Code), r.Message) }
	out.divert = s.cfg.Divert(ctx, who, out.refuse)
	life := stream.Life{Caller: who, Asked: wantsRelay(ctx), Heartbeat: int64(s.cfg.Heartbeat), Election: int64(s.cfg.Election)}
	return &attached{Streams: s, Stream: frames, out: out, cut: cut, life: life}
}

// welcome returns the first frame for a client.
func (s *Streams) welcome() *api.Welcome {
	return &api.Welcome{Cluster: s.cfg.Cluster, Server: s.cfg.Server, Version: protocolVersion}
}

// Attach serves one client process.
func (s *Streams) Attach(frames Stream) error {
	if err := frames.Send(&api.ServerFrame{Welcome: s.welcome()}); err != nil {
		return err
	}
	who, err := authn.CallerOf(frames.Context())
	if err != nil {
		return err
	}
	s.cfg.Metrics.Attached.Add(1)
	defer s.cfg.Metrics.Attached.Add(-1)
	return s.newAttached(frames, who).live()
}

// live carries out the phases of the stream.
func (a *attached) live() error {
	for {
		phase, conn, again := a.look()
		var err error
		switch phase {
		case stream.Serving:
			err = a.converse(conn)
			conn.Close()
			a.life.End(a.out.parting())
		case stream.Passing:
			err = a.relay()
			a.cfg.Metrics.Relayed.Add(-1)
		case stream.Gone:
			if farewell := a.life.Farewell(); farewell != nil {
				return a.Send(&api.ServerFrame{Farewell: farewell})
			}
			return nil
		default:
			err = wait.For(a.Context(), again)
		}
		if err != nil {
			return err
		}
	}
}

// look moves a stream on that is neither served nor passed on. It returns the connection to the node
// if the stream is served from now on, and otherwise when to look again.
func (a *attached) look() (phase stream.Phase, conn *node.Conn, again time.Duration) {
	sight := stream.Sight{Self: a.cfg.Server, Dismissal: a.dismissal}
	before := a.phase()
	if before == stream.Arriving {
		var err error
		conn, err = a.cfg.Node.Connect(a.Context(), a.out)
		sight.Leads, sight.Stopping = err == nil, err != nil && !errors.Is(err, node.ErrNotLeader)
	}
	relays := before == stream.Arriving && a.life.Asked && !sight.Leads
	if relays {
		sight.Relayed = int(a.cfg.Metrics.Relayed.Add(1) - 1)
	}
	if !sight.Leads && before != stream.Gone {
		err := a.cfg.Node.View(a.Context(), func(r *replica.Replica) { sight.Leader = r.Leader() })
		if errors.Is(err, node.ErrStopped) {
			sight.Leader, sight.Stopping = a.cfg.Forward.Successor(), true
		}
	}
	a.mu.Lock()
	again = time.Duration(a.life.Look(monotonic(), sight))
	phase = a.life.Phase()
	a.mu.Unlock()
	if relays && phase != stream.Passing {
		a.cfg.Metrics.Relayed.Add(-1)
	}
	return phase, conn, again
}

func (a *attached) phase() stream.Phase {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.life.Phase()
}

// dismissal is the farewell of a server that does not lead.
func (s *Streams) dismissal(leader uint64) *api.Farewell {
	return &api.Farewell{Code: api.Code_CODE_NOT_LEADER, Leader: s.cfg.Node.ClientAddress(leader), Message: s.cfg.Forward.NotLeading(leader)}
}

// AttachHome serves one client process whose sessions this server keeps by itself.
func (s *Streams) AttachHome(frames Stream) error {
	who, err := authn.CallerOf(frames.Context())
	if err != nil {
		return err
	}
	a, welcome := s.newAttached(frames, who), s.welcome()
	conn, err := s.cfg.Node.Home().Connect(a.out)
	if err == nil {
		defer conn.Close()
		welcome.Seat, welcome.LeaseNs = conn.Seat[:], int64(conn.Lease)
		for _, seat := range conn.Adopted {
			welcome.Adopted = append(welcome.Adopted, seat[:])
		}
	}
	if err := frames.Send(&api.ServerFrame{Welcome: welcome}); err != nil {
		return err
	}
	if err != nil {
		return a.turnAway()
	}
	s.cfg.Metrics.Attached.Add(1)
	defer s.cfg.Metrics.Attached.Add(-1)
	if err := a.converse(conn); err != nil {
		return err
	}
	switch farewell, deposed := a.out.parting(); {
	case farewell != nil:
		return a.Send(&api.ServerFrame{Farewell: farewell})
	case deposed:
		return a.turnAway()
	}
	return nil
}

// turnAway sends a farewell to a client because this server is no home at present.
func (a *attached) turnAway() error {
	n := a.cfg.Node
	farewell := &api.Farewell{Code: api.Code_CODE_NOT_MEMBER, Message: fmt.Sprintf("server %d takes no part in the view: ask a member", a.cfg.Server)}
	if to := n.Home().Successor(); to != 0 {
		farewell.Heir = n.ClientAddress(to)
	}
	// The view of a server that is stopping has no members.
	_ = n.View(a.Context(), func(r *replica.Replica) {
		for _, m := range r.Registry().Guarded().Members {
			if address := n.ClientAddress(m.Server); address != "" && m.Server != a.cfg.Server {
				farewell.Members = append(farewell.Members, address)
			}
		}
	})
	return a.Send(&api.ServerFrame{Farewell: farewell})
}

// submitter accepts the requests of a stream.
type submitter interface {
	Submit(ctx context.Context, commands []registry.Command) error
}

// converse reads and writes until nothing more is to be said but a farewell.
func (a *attached) converse(conn submitter) error {
	// The reader ends when the stream's context ends, which is when the call returns.
	a.cfg.Go(func() { a.out.end(a.read(conn)) })
	if a.out.sessions.caller.Vouched {
		return a.writeUntilCut()
	}
	return a.write()
}

// writeUntilCut writes until cut is closed. The writer ends when the stream's context ends,
// which is when the call returns, even if nobody reads what it sends.
func (a *attached) writeUntilCut() error {
	written := make(chan error, 1)
	a.cfg.Go(func() { written <- a.write() })
	select {
	case err := <-written:
		return err
	case <-a.cut:
		return status.Error(codes.ResourceExhausted, "the client does not read its replies")
	}
}

// read passes requests on until the client closes its side. It returns a farewell if
// a request of the client is the reason.
func (a *attached) read(conn submitter) *api.Farewell {
	ctx := a.Context()
	for {
		frame, err := a.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return nil
			}
			return &api.Farewell{Code: api.Code_CODE_INVALID, Message: status.Convert(err).Message()}
		}
		farewell, err := a.submit(frame, conn)
		if farewell != nil {
			return farewell
		}
		if err != nil || a.out.admit(ctx) != nil {
			return nil // the stream ends, or the node stops and deposes its clients
		}
	}
}

// submit passes the requests of a frame on. It returns a farewell if one of them is the reason for
// it.
func (a *attached) submit(frame *api.ClientFrame, conn submitter) (farewell *api.Farewell, err error) {
	a.out.divert(frame)
	commands, refused, farewell := stream.Commands(a.out.sessions.caller, a.out.sessions, frame)
	if farewell != nil {
		return farewell, nil
	}
	a.out.refuse(refused...)
	a.out.note(commands)
	return nil, conn.Submit(a.Context(), commands)
}

// write sends all queued replies at once, each time: replies that come while a frame is
// being sent travel together in the next frame. It returns after the last.
func (a *attached) write() error {
	ctx := a.Context()
	told := uint64(0)
	for {
		select {
		case <-a.out.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
		for last := false; !last; {
			var frame *api.ServerFrame
			frame, last = a.out.take(a.cfg.Metrics.Observe)
			if now := a.cfg.Node.Acquaintance(); now != told && !last {
				if frame == nil {
					frame = new(api.ServerFrame)
				}
				frame.Servers, told = a.cfg.Node.ClientAddresses(), now
			}
			if frame == nil && !last {
				break
			}
			if frame != nil {
				if err := a.Send(frame); err != nil {
					return err
				}
			}
			if last {
				return nil
			}
		}
	}
}
