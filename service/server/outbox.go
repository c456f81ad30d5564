package server

import (
	"context"
	"sync"
	"time"

	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/convert"
	"github.com/conclave-io/conclave/service/node"
	"github.com/conclave-io/conclave/service/registry"
)

const (
	// frameReplies is the most that one frame carries.
	frameReplies = 1024
	// highWater is how many replies may wait for a client before no more of
	// its requests are taken, maxOutbox before the client is cut off: grants
	// come without being asked for.
	highWater = 4096
	maxOutbox = 65536
)

// outbox holds what a node has for one client until the client's stream takes
// it.
type outbox struct {
	sessions *sessions
	// overflow is called once, if the client does not take its replies.
	overflow func()
	// wake has a value if there may be news for the writer.
	wake chan struct{}
	// room has a value if the reader may go on.
	room chan struct{}

	mu       sync.Mutex
	outcomes []node.Reply
	refusals []*api.Reply // of requests that never got to the node
	asked    map[question]asked
	deposed  bool
	ended    bool          // the client sends no more requests
	farewell *api.Farewell // why this server ends the stream
	cut      bool
}

// question finds a request that has no reply yet.
type question struct {
	session  registry.SessionID
	sequence uint64
}

type asked struct {
	op registry.Op
	at time.Time
}

func newOutbox(who caller, overflow func()) *outbox {
	return &outbox{
		sessions: newSessions(who),
		overflow: overflow,
		wake:     make(chan struct{}, 1), room: make(chan struct{}, 1),
		asked: make(map[question]asked),
	}
}

// Deliver implements node.Client.
func (o *outbox) Deliver(replies []node.Reply) {
	o.update(func() { o.outcomes = append(o.outcomes, replies...) })
}

// Depose implements node.Client.
func (o *outbox) Depose() { o.update(func() { o.deposed = true }) }

// refuse queues a reply of the server's own.
func (o *outbox) refuse(reply *api.Reply) {
	o.update(func() { o.refusals = append(o.refusals, reply) })
}

// end notes that the client will ask for nothing more; with a farewell, that
// the stream ends at once.
func (o *outbox) end(farewell *api.Farewell) {
	o.update(func() { o.ended, o.farewell = true, farewell })
}

func (o *outbox) update(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change()
	if len(o.outcomes)+len(o.refusals) > maxOutbox && !o.cut {
		o.cut = true
		o.overflow()
	}
	if o.cut {
		o.outcomes, o.refusals = nil, nil
	}
	signal(o.wake)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // one is waiting already
	}
}

// command translates a request of the client, or reports what is wrong with it.
func (o *outbox) command(req *api.Request) (registry.Command, string) {
	id, problem := o.sessions.id(req.GetSession())
	if problem != "" {
		return registry.Command{}, problem
	}
	return convert.Command(o.sessions.caller.origin(), id, req)
}

// note remembers that commands await replies.
func (o *outbox) note(commands []registry.Command) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range commands {
		o.asked[question{commands[i].Session, commands[i].Sequence}] = asked{commands[i].Op, now}
	}
}

// admit waits until the client has taken enough of its replies to be given
// more.
func (o *outbox) admit(ctx context.Context) error {
	for {
		o.mu.Lock()
		full := len(o.outcomes)+len(o.refusals) > highWater
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

// take returns the next frame, or nil if nothing is to be sent; and whether the
// stream ends after it.
func (o *outbox) take(timed func(registry.Op, time.Duration)) (frame *api.ServerFrame, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer signal(o.room)
	n := min(len(o.outcomes), frameReplies)
	refused := min(len(o.refusals), frameReplies-n)
	if n+refused > 0 {
		frame = &api.ServerFrame{Replies: make([]*api.Reply, 0, n+refused)}
	}
	for i := range o.outcomes[:n] {
		frame.Replies = append(frame.Replies, convert.Reply(o.sessions.secret(o.outcomes[i].Session), &o.outcomes[i]))
	}
	o.answered(o.outcomes[:n], timed)
	if n > 0 {
		o.outcomes = o.outcomes[n:]
	}
	if refused > 0 {
		frame.Replies = append(frame.Replies, o.refusals[:refused]...)
		o.refusals = o.refusals[refused:]
	}
	if len(o.outcomes)+len(o.refusals) > 0 {
		return frame, false
	}
	return frame, o.deposed || o.farewell != nil || o.ended && len(o.asked) == 0
}

// answered ends the wait for first replies.
func (o *outbox) answered(outcomes []node.Reply, timed func(registry.Op, time.Duration)) {
	now := time.Now()
	for i := range outcomes {
		q := question{outcomes[i].Session, outcomes[i].Sequence}
		if a, waits := o.asked[q]; waits {
			delete(o.asked, q)
			timed(a.op, now.Sub(a.at))
		}
	}
}

// parting returns the farewell that was set, and whether the node deposed.
func (o *outbox) parting() (*api.Farewell, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.farewell, o.deposed
}
