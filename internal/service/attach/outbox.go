package attach

import (
	"context"
	"sync"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// outbox has the replies for one client. It is stream.Outbox, for the goroutines that fill
// it and the one that empties it.
type outbox struct {
	sessions *sessions
	// overflow is called once, if the client does not read its replies.
	overflow func()
	// denied, if not nil, is called for requests that the rules refused.
	denied func(registry.Result)
	// wake has a value if the writer may have something to send.
	wake chan struct{}
	// room has a value if the reader may continue.
	room chan struct{}
	// divert removes from a frame the requests that are not answered in their turn.
	divert func(*api.ClientFrame)

	mu  sync.Mutex
	box stream.Outbox
}

func newOutbox(who stream.Caller, overflow func()) *outbox {
	return &outbox{
		sessions: newSessions(who),
		overflow: overflow,
		wake:     make(chan struct{}, 1), room: make(chan struct{}, 1),
		box: stream.NewOutbox(stream.DefaultLimits),
	}
}

// Deliver implements node.Client.
func (o *outbox) Deliver(replies []node.Reply) {
	for i := range replies {
		if code := replies[i].Result.Code; code == registry.Denied && o.denied != nil {
			o.denied(replies[i].Result)
		}
	}
	o.update(func() { o.box.Deliver(replies) })
}

// Depose implements node.Client.
func (o *outbox) Depose() { o.update(o.box.Depose) }

// refuse queues replies of this server itself.
func (o *outbox) refuse(replies ...*api.Reply) {
	if len(replies) > 0 {
		o.update(func() { o.box.Refuse(replies...) })
	}
}

// end notes that the client will send nothing more. With a farewell, the stream ends at once.
func (o *outbox) end(farewell *api.Farewell) { o.update(func() { o.box.End(farewell) }) }

func (o *outbox) update(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.box.Cut()
	change()
	if o.box.Cut() && !before {
		o.overflow()
	}
	signal(o.wake)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // one is waiting already
	}
}

// note notes that commands await replies.
func (o *outbox) note(commands []registry.Command) {
	now := monotonic()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.box.Note(now, commands)
}

// admit waits until the client has read enough of its replies to get more.
func (o *outbox) admit(ctx context.Context) error {
	for {
		o.mu.Lock()
		full := o.box.Full()
		o.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-o.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take returns the next frame, or nil if there is nothing to send, and whether the
// stream ends after it.
func (o *outbox) take(timed func(registry.Op, registry.Code, time.Duration)) (frame *api.ServerFrame, last bool) {
	now := monotonic()
	o.mu.Lock()
	defer o.mu.Unlock()
	defer signal(o.room)
	return o.box.Take(now, o.sessions, func(op registry.Op, code registry.Code, waited int64) { timed(op, code, time.Duration(waited)) })
}

// parting returns the farewell that was set, and whether the node has deposed the client.
func (o *outbox) parting() (*api.Farewell, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box.Parting()
}

var began = time.Now()

// monotonic returns the time since this process began, in ns.
func monotonic() int64 { return int64(time.Since(began)) }

// sessions are the sessions of one stream: its reader derives ids from secrets, and its
// writer turns ids back into secrets.
type sessions struct {
	caller stream.Caller

	mu    sync.Mutex
	names *stream.Sessions
}

func newSessions(c stream.Caller) *sessions {
	return &sessions{caller: c, names: stream.NewSessions(c)}
}

// ID implements stream.Names.
func (s *sessions) ID(sent []byte) (registry.SessionID, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names.ID(sent)
}

// Secret implements stream.Names.
func (s *sessions) Secret(id registry.SessionID) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names.Secret(id)
}
