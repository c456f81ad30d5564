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

	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/registry"
)

const (
	// relayHeader is the metadata by which a client asks a server that does not lead
	// to pass its stream on to the leader, because it cannot reach the leader itself.
	relayHeader = "conclave-relay"
	// maxRelayed bounds the streams that a server passes on.
	maxRelayed = 4096
	// relayPatience is how long the leader may take to answer to a stream.
	relayPatience = time.Second
)

// wantsRelay reports whether a client asks for its stream to be passed on. One hop is
// all there is: two servers that take each other for the leader must not send it to
// and fro.
func wantsRelay(ctx context.Context) bool {
	return len(metadata.ValueFromIncomingContext(ctx, relayHeader)) > 0 && !passedOn(ctx)
}

// relay passes a client's stream on to the leader until one of them ends it, or
// another server leads. It keeps nothing: a side that takes no frames holds up the
// other. The deadlines of the client hold, since it counts from when it sent.
func (s *Server) relay(stream attachStream, known *sessions) error {
	if s.relayed.Add(1) > maxRelayed {
		s.relayed.Add(-1)
		message := fmt.Sprintf("server %d passes on %d streams already, the most it does", s.cfg.ID, maxRelayed)
		return s.dismiss(stream, &api.Farewell{Code: api.Code_CODE_NOT_LEADER, Message: message})
	}
	defer s.relayed.Add(-1)
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	leader := s.awaitLeader(ctx)
	upstream, err := s.attachTo(ctx, cancel, leader)
	if err != nil {
		return s.dismiss(stream, nil)
	}
	stream = &sharedStream{attachStream: stream}
	wrong := make(chan *api.Farewell, 1)
	s.tasks.Go(func() {
		if farewell := passUp(stream, upstream, known); farewell != nil {
			wrong <- farewell
			cancel()
		}
	})
	s.tasks.Go(func() {
		s.whileLeads(ctx, leader)
		cancel()
	})
	if passDown(stream, upstream, known) == nil {
		return nil
	}
	select {
	case farewell := <-wrong:
		return s.dismiss(stream, farewell)
	default:
		return s.dismiss(stream, nil)
	}
}

// sharedStream is a stream that two goroutines send to.
type sharedStream struct {
	attachStream
	mu sync.Mutex
}

func (s *sharedStream) Send(frame *api.ServerFrame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attachStream.Send(frame)
}

// attachTo opens a stream to the leader for the caller of ctx, and takes its welcome.
func (s *Server) attachTo(ctx context.Context, cancel func(), leader uint64) (api.Conclave_AttachClient, error) {
	if leader == 0 || leader == s.cfg.ID {
		return nil, errMoved
	}
	client, err := s.callees.get(leader)
	if err != nil {
		return nil, err
	}
	if ctx, err = vouch(ctx); err != nil {
		return nil, err
	}
	patience := time.AfterFunc(relayPatience, cancel)
	defer patience.Stop()
	upstream, err := client.Attach(ctx)
	if err != nil {
		return nil, err
	}
	if frame, err := upstream.Recv(); err != nil || frame.GetWelcome() == nil {
		return nil, errors.Join(errMoved, err)
	}
	return upstream, nil
}

// whileLeads returns when another server leads than the given one, when this server
// stops, or when ctx ends.
func (s *Server) whileLeads(ctx context.Context, leader uint64) {
	tick := time.NewTicker(s.cfg.Election)
	defer tick.Stop()
	for s.node.Metrics().Leader.Load() == leader {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		case <-s.leaving:
			return
		case <-s.ctx.Done():
			return
		}
	}
}

// passUp passes on what the client sends, with ids in place of the secrets, until it
// sends no more: what it asked for is still answered. It returns a farewell if the
// client made a mistake.
func passUp(stream attachStream, upstream api.Conclave_AttachClient, known *sessions) *api.Farewell {
	for {
		frame, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			_ = upstream.CloseSend() // the other direction learns why that fails
			return nil
		}
		if err != nil {
			return &api.Farewell{Code: api.Code_CODE_INVALID, Message: status.Convert(err).Message()}
		}
		refused := new(api.ServerFrame)
		passed := frame.GetRequests()[:0]
		for _, req := range frame.GetRequests() {
			id, problem := known.id(req.GetSession())
			if problem != "" {
				refused.Replies = append(refused.Replies, refusal(req, api.Code_CODE_INVALID, problem))
				continue
			}
			req.Session = id[:]
			passed = append(passed, req)
		}
		if len(refused.GetReplies()) > 0 && stream.Send(refused) != nil {
			return nil
		}
		if frame.Requests = passed; len(passed) > 0 && upstream.Send(frame) != nil {
			return nil
		}
	}
}

// passDown passes on what the leader sends, with secrets in place of the ids, until it
// ends the stream.
func passDown(stream attachStream, upstream api.Conclave_AttachClient, known *sessions) error {
	for {
		frame, err := upstream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, reply := range frame.GetReplies() {
			if id := reply.GetSession(); len(id) == secretSize {
				reply.Session = known.secret(registry.SessionID(id))
			}
		}
		if err := stream.Send(frame); err != nil {
			return err
		}
	}
}
