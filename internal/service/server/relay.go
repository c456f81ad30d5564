package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// relayHeader is the metadata by which a client asks a server that does not lead
// to pass its stream on to the leader, because it cannot reach the leader itself.
const relayHeader = "conclave-relay"

// wantsRelay reports whether a client asks for its stream to be passed on.
func wantsRelay(ctx context.Context) bool {
	return len(metadata.ValueFromIncomingContext(ctx, relayHeader)) > 0
}

// pass passes a client's stream on to the leader, if it should be passed on.
func (s *Server) pass(frames attachStream, known *sessions) error {
	before := s.metrics.Relayed.Add(1) - 1
	defer s.metrics.Relayed.Add(-1)
	leader := s.forward.AwaitLeader(frames.Context())
	arrival := stream.Arrival{Caller: known.caller, Asked: true, Self: s.cfg.ID, Leader: leader, Relayed: int(before)}
	switch arrival.Way() {
	case stream.PassOn:
		return s.relay(frames, known, leader)
	case stream.Crowded:
		message := fmt.Sprintf("server %d passes on %d streams already, the most it does", s.cfg.ID, stream.MaxRelayed)
		return s.dismiss(frames, &api.Farewell{Code: api.Code_CODE_NOT_LEADER, Message: message})
	}
	return s.dismiss(frames, nil)
}

// passing is stream.Relay, for the goroutines that pass frames up and down and the one
// that watches who leads.
type passing struct {
	cancel func() // ends the stream to the leader

	mu      sync.Mutex
	machine stream.Relay
}

// update changes the state of the machine. If the relay is then over, it ends the stream
// to the leader.
func (r *passing) update(change func(*stream.Relay)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.machine)
	if r.machine.Over() {
		r.cancel()
	}
}

// relay passes a client's stream on until the machine ends it.
func (s *Server) relay(frames attachStream, known *sessions, leader uint64) error {
	ctx, cancel := context.WithCancel(frames.Context())
	defer cancel()
	r := &passing{cancel: cancel, machine: stream.NewRelay(monotonic(), leader)}
	s.tasks.Go(func() { s.look(ctx, r) })
	frames = &sharedStream{attachStream: frames}
	if err := s.passDown(ctx, frames, known, r, leader); err != nil {
		return err
	}
	r.mu.Lock()
	farewell, told := r.machine.Farewell()
	r.mu.Unlock()
	if told {
		return nil
	}
	return s.dismiss(frames, farewell)
}

// sharedStream is a stream on which two goroutines send.
type sharedStream struct {
	attachStream
	mu sync.Mutex
}

func (s *sharedStream) Send(frame *api.ServerFrame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attachStream.Send(frame)
}

// attachTo opens a stream to the leader on behalf of the caller of ctx.
func (s *Server) attachTo(ctx context.Context, leader uint64) (api.Conclave_AttachClient, error) {
	ctx, client, err := s.forward.Reach(ctx, leader)
	if err != nil {
		return nil, err
	}
	return client.Attach(ctx)
}

// look tells the machine who leads, until the stream or this server ends.
func (s *Server) look(ctx context.Context, r *passing) {
	for {
		pause := s.cfg.Election
		r.update(func(m *stream.Relay) {
			m.Look(monotonic(), s.node.Metrics().Leader.Load())
			if due := time.Duration(m.Due(monotonic())); due > 0 {
				pause = min(pause, due)
			}
		})
		select {
		case <-time.After(pause):
			continue
		case <-ctx.Done():
		case <-s.leaving:
		case <-s.ctx.Done():
		}
		r.update((*stream.Relay).Broken)
		return
	}
}

// passUp passes on what the client sends, until it closes its side. Its requests are still
// answered after that.
func passUp(frames attachStream, upstream api.Conclave_AttachClient, known *sessions, r *passing) {
	for {
		frame, err := frames.Recv()
		if errors.Is(err, io.EOF) {
			_ = upstream.CloseSend() // passDown learns the reason
			return
		}
		if err != nil {
			r.update(func(m *stream.Relay) { m.Mistake(status.Convert(err).Message()) })
			return
		}
		passed, refused := stream.Up(known, frame)
		if refused != nil && frames.Send(refused) != nil || passed != nil && upstream.Send(passed) != nil {
			return
		}
	}
}

// passDown opens the stream to the leader, and passes on what comes over it until it ends.
// It fails if the client does not read.
func (s *Server) passDown(ctx context.Context, frames attachStream, known *sessions, r *passing, leader uint64) error {
	upstream, err := s.attachTo(ctx, leader)
	if err != nil {
		r.update((*stream.Relay).Broken)
		return nil
	}
	for up := false; ; {
		frame, err := upstream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			r.update((*stream.Relay).Closed)
			return nil
		case err != nil:
			r.update((*stream.Relay).Broken)
			return nil
		}
		over := false
		r.update(func(m *stream.Relay) { frame, over = m.Down(known, frame), m.Over() })
		switch {
		case over:
			return nil
		case frame == nil:
		default:
			if err := frames.Send(frame); err != nil {
				return err
			}
		}
		if !up {
			up = true
			s.tasks.Go(func() { passUp(frames, upstream, known, r) })
		}
	}
}
