package conclave

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/conclave-io/conclave/internal/boottime"
	"github.com/conclave-io/conclave/service/api"
)

const (
	// protocolVersion is the version of the interface that this client speaks. Servers
	// that speak a newer one speak this one too.
	protocolVersion = 1
	// welcomeLimit is how long a server may take from the attempt to connect to
	// its Welcome.
	welcomeLimit = time.Second
	// A frame carries at most so many requests, and about so many bytes: a
	// server takes 4 MiB.
	frameRequests = 256
	frameBytes    = 1 << 20
	// relayHeader is the metadata of a stream that asks to be passed on.
	relayHeader = "conclave-relay"
)

var errSilent = fmt.Errorf("no answer within %v", welcomeLimit)

// link is one Attach stream to one server, from the attempt to its end.
type link struct {
	client  *Client
	address string
	// relayed asks the server to pass the stream on to the leader if it does not lead.
	relayed bool
	opened  time.Time
	cancel  context.CancelCauseFunc
	wake    chan struct{} // has a value if queue may have become non-empty

	welcomed bool // owned by the pursuit

	// The rest is guarded by client.mu.

	// queue holds what is to be sent.
	queue []*request
	heard boottime.Time // when the newest frame came
	// proven: the server has carried out a request, so that it led then.
	proven bool
	// suspect: something that should have been answered by now was not.
	suspect bool
	pinging bool
	// mute: the newest ping was not answered, and nothing came since.
	mute bool

	// leader and err are set when the link has ended.
	leader string
	err    error
}

// open starts an attempt to attach to the server at address, which with relayed set is
// to pass the stream on to the leader. What becomes of it is told by events.
func (c *Client) open(address string, relayed bool) *link {
	ctx, cancel := context.WithCancelCause(c.ctx)
	l := &link{client: c, address: address, relayed: relayed, opened: time.Now(), cancel: cancel, wake: make(chan struct{}, 1)}
	c.tasks.Go(func() {
		err := l.converse(ctx)
		cancel(nil)
		c.mu.Lock()
		l.err = err
		c.mu.Unlock()
		c.tell(event{ended, l})
	})
	return l
}

// converse reads the stream to its end.
func (l *link) converse(ctx context.Context) error {
	patience := time.AfterFunc(welcomeLimit, func() { l.cancel(errSilent) })
	defer patience.Stop()
	stream, frame, err := l.attach(ctx)
	if err != nil {
		return l.failure(ctx, err)
	}
	if err := l.welcome(frame); err != nil {
		return err
	}
	if !patience.Stop() {
		return errSilent
	}
	l.client.tell(event{welcomed, l})
	l.client.tasks.Go(func() { l.write(ctx, stream) })
	for {
		if err := l.take(frame); err != nil {
			return err
		}
		if frame, err = stream.Recv(); err != nil {
			return l.failure(ctx, err)
		}
	}
}

// attach returns the stream and its first frame.
func (l *link) attach(ctx context.Context) (grpc.BidiStreamingClient[api.ClientFrame, api.ServerFrame], *api.ServerFrame, error) {
	conn, err := l.client.pool.get(l.address)
	if err != nil {
		return nil, nil, err
	}
	if l.relayed {
		ctx = metadata.AppendToOutgoingContext(ctx, relayHeader, "1")
	}
	stream, err := api.NewConclaveClient(conn).Attach(ctx)
	if err != nil {
		return nil, nil, err
	}
	frame, err := stream.Recv()
	return stream, frame, err
}

// failure says why the stream ended without a Farewell.
func (l *link) failure(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errSilent):
		l.client.pool.silent(l.address)
		return cause
	case cause != nil:
		return cause
	case errors.Is(err, io.EOF):
		return errors.New("the server ended the stream")
	default:
		l.client.pool.failed(l.address)
		return plain(err)
	}
}

// welcome checks whom the first frame comes from.
func (l *link) welcome(frame *api.ServerFrame) error {
	if frame.GetWelcome() == nil {
		if err := l.farewell(frame); err != nil {
			return err
		}
		return errors.New("not a Conclave server: its first frame has no welcome")
	}
	if v := frame.GetWelcome().GetVersion(); v < protocolVersion {
		return fmt.Errorf("the server speaks version %d of the interface; this client needs version %d: install a newer release on the server", v, protocolVersion)
	}
	return l.client.identify(frame.GetWelcome().GetCluster())
}

// take handles a frame, and returns an error if the stream is of no more use.
func (l *link) take(frame *api.ServerFrame) error {
	c := l.client
	c.mu.Lock()
	now := c.cfg.now()
	l.heard, l.mute = now, false
	var refused *api.Reply
	useful := false
	for _, rep := range frame.GetReplies() {
		if again(rep.GetCode()) {
			refused = rep
		} else {
			useful = true
		}
		if s := c.sessions[string(rep.GetSession())]; s != nil {
			s.reply(rep, now)
		}
	}
	news := useful && !l.proven
	if news {
		l.proven = true
		clear(c.attempts)
	}
	if l.proven && len(frame.GetServers()) > 0 {
		// A server that never led may not know that the others are gone.
		c.learn(frame.GetServers())
	}
	c.mu.Unlock()
	if news {
		c.tell(event{proven, l})
	}
	if refused != nil {
		return l.lost(refused.GetCode(), refused.GetMessage(), refused.GetLeader())
	}
	return l.farewell(frame)
}

// farewell returns the error that ends the stream, if frame has a Farewell.
func (l *link) farewell(frame *api.ServerFrame) error {
	if f := frame.GetFarewell(); f != nil {
		return l.lost(f.GetCode(), f.GetMessage(), f.GetLeader())
	}
	return nil
}

// lost notes where the leader is said to be.
func (l *link) lost(code api.Code, message, leader string) error {
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	l.leader = leader
	switch {
	case code == api.Code_CODE_WRONG_CLUSTER:
		return fmt.Errorf("%w: %s", ErrWrongCluster, message)
	case message != "":
		return errors.New(message)
	case code == api.Code_CODE_UNAVAILABLE:
		return errors.New("no quorum answered")
	case leader != "":
		return fmt.Errorf("it does not lead, and names %s", leader)
	default:
		return errors.New("it does not lead, and knows no leader")
	}
}

// enqueue has r sent over the link. client.mu is held.
func (l *link) enqueue(rs ...*request) {
	l.queue = append(l.queue, rs...)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// write sends whatever is queued each time it comes around: requests that come
// while a frame is being sent travel together in the next.
func (l *link) write(ctx context.Context, stream grpc.BidiStreamingClient[api.ClientFrame, api.ServerFrame]) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		runtime.Gosched() // who is about to ask joins the frame
		for frame := l.next(); frame != nil; frame = l.next() {
			if stream.Send(frame) != nil {
				return // the reader learns why
			}
		}
	}
}

// next takes a frame off the queue, or returns nil. The clock is read here, so
// before anything is sent.
func (l *link) next() *api.ClientFrame {
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	if len(l.queue) == 0 {
		return nil
	}
	now := l.client.cfg.now()
	frame := &api.ClientFrame{}
	size, taken := 0, 0
	for taken < len(l.queue) && len(frame.Requests) < frameRequests && size < frameBytes {
		r := l.queue[taken]
		l.queue[taken] = nil
		taken++
		if !r.finished {
			last := r.last
			frame.Requests = append(frame.Requests, r.session.wire(r, now))
			if l != l.client.link && last != 0 {
				r.last = last // the server in use still owes the answer
			}
			size += 64 + len(r.message.GetAcquire().GetName()) + len(r.message.GetAcquire().GetValue()) + len(r.message.GetUpdate().GetValue())
		}
	}
	l.queue = l.queue[taken:]
	if len(frame.Requests) == 0 {
		return nil
	}
	return frame
}
