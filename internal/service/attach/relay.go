package attach

import (
	"context"
	"errors"
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

// passing is a stream while it is passed on. One goroutine passes frames up, one passes them down,
// and one watches who leads.
type passing struct {
	*attached
	ctx    context.Context
	cancel func() // ends the stream to the leader
}

// shared is a stream on which two goroutines send.
type shared struct {
	Stream
	mu sync.Mutex
}

// Send sends a frame to the client.
func (s *shared) Send(frame *api.ServerFrame) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Stream.Send(frame)
}

// relay passes a client's stream on until the relay ends it. What passes frames up may send after that,
// beside a farewell: the stream stays shared.
func (a *attached) relay() error {
	a.Stream = &shared{Stream: a.Stream}
	ctx, cancel := context.WithCancel(a.Context())
	defer cancel()
	p := &passing{attached: a, ctx: ctx, cancel: cancel}
	leader := a.life.Leader()
	a.cfg.Go(p.watch)
	return p.passDown(leader)
}

// change tells the relay what became of it, and reports whether it is over. Then the stream to the
// leader ends.
func (p *passing) change(change func(*stream.Relay)) (over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.life.Pass(change)
	return p.isOver()
}

func (p *passing) isOver() bool {
	if p.life.Phase() == stream.Passing {
		return false
	}
	p.cancel()
	return true
}

// attachTo opens a stream to the leader on behalf of the caller of ctx.
func (p *passing) attachTo(leader uint64) (api.Conclave_AttachClient, error) {
	ctx, client, err := p.cfg.Forward.Reach(p.ctx, leader)
	if err != nil {
		return nil, err
	}
	return client.Attach(ctx)
}

// watch looks who leads, until the stream or this server ends.
func (p *passing) watch() {
	for {
		again, over := p.lookWhoLeads()
		if over {
			return
		}
		select {
		case <-time.After(again):
			continue
		case <-p.ctx.Done():
		case <-p.cfg.Leaving:
		case <-p.Streams.ctx.Done():
		}
		p.change((*stream.Relay).Broken)
		return
	}
}

func (p *passing) lookWhoLeads() (again time.Duration, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isOver() {
		return 0, true
	}
	sight := stream.Sight{Self: p.cfg.Server, Leader: p.cfg.Forward.Leader(), Dismissal: p.dismissal}
	again = time.Duration(p.life.Look(monotonic(), sight))
	return again, p.isOver()
}

// passUp passes on what the client sends, until it closes its side. Its requests are still
// answered after that.
func (p *passing) passUp(upstream api.Conclave_AttachClient) {
	for {
		frame, err := p.Recv()
		if errors.Is(err, io.EOF) {
			_ = upstream.CloseSend() // passDown learns the reason
			return
		}
		if err != nil {
			p.change(func(r *stream.Relay) { r.Mistake(status.Convert(err).Message()) })
			return
		}
		passed, refused := stream.Up(p.out.sessions, frame)
		if refused != nil && p.Send(refused) != nil || passed != nil && upstream.Send(passed) != nil {
			return
		}
	}
}

// passDown opens the stream to the leader, and passes on what comes over it until the relay is over.
// It fails if the client does not read.
func (p *passing) passDown(leader uint64) error {
	upstream, err := p.attachTo(leader)
	if err != nil {
		p.change((*stream.Relay).Broken)
		return nil
	}
	for up := false; ; {
		frame, err := upstream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			p.change((*stream.Relay).Closed)
			return nil
		case err != nil:
			p.change((*stream.Relay).Broken)
			return nil
		}
		if p.change(func(r *stream.Relay) { frame = r.Down(p.out.sessions, frame) }) {
			return nil
		}
		if frame != nil {
			if err := p.Send(frame); err != nil {
				return err
			}
		}
		if !up {
			up = true
			p.cfg.Go(func() { p.passUp(upstream) })
		}
	}
}
