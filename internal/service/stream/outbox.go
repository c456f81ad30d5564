package stream

import (
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// Limits bound the replies that wait for a client.
type Limits struct {
	// Frame is the most replies that one frame carries.
	Frame int
	// HighWater is how many replies may wait before no more requests are accepted. Most is
	// the number at which the stream is cut, because grants come without a new request. Most
	// must be larger than the number of requests that one session can have unanswered:
	// otherwise such a client would be cut again whenever it reconnects and repeats them.
	HighWater, Most int
}

// DefaultLimits are those of a server.
var DefaultLimits = Limits{Frame: 1024, HighWater: 4096, Most: 65536}

// Outbox has the replies for one client until they are sent. Times are readings of one clock,
// in ns.
type Outbox struct {
	limits   Limits
	outcomes []registry.Outcome
	refusals []*api.Reply // of requests that were never submitted
	asked    map[question]asked
	deposed  bool
	ended    bool          // the client sends no more requests
	farewell *api.Farewell // why this server ends the stream
	cut      bool
}

// question identifies a request that has no reply yet.
type question struct {
	session  registry.SessionID
	sequence uint64
}

type asked struct {
	op registry.Op
	at int64
}

// NewOutbox returns an empty Outbox.
func NewOutbox(l Limits) Outbox { return Outbox{limits: l, asked: make(map[question]asked)} }

// Deliver queues replies, in order.
func (o *Outbox) Deliver(replies []registry.Outcome) {
	o.outcomes = append(o.outcomes, replies...)
	o.bound()
}

// Refuse queues replies of this server itself.
func (o *Outbox) Refuse(replies ...*api.Reply) {
	o.refusals = append(o.refusals, replies...)
	o.bound()
}

// bound cuts the stream if far too many replies wait.
func (o *Outbox) bound() {
	if o.waiting() > o.limits.Most {
		o.cut = true
	}
	if o.cut {
		o.outcomes, o.refusals = nil, nil
	}
}

func (o *Outbox) waiting() int { return len(o.outcomes) + len(o.refusals) }

// Cut reports whether replies were dropped because the client does not read them. The stream
// must end at once: the client would wait for these replies forever.
func (o *Outbox) Cut() bool { return o.cut }

// Full reports whether no more requests should be accepted because too many replies wait.
func (o *Outbox) Full() bool { return o.waiting() > o.limits.HighWater }

// Depose notes that this server ceased to lead: the stream ends.
func (o *Outbox) Depose() { o.deposed = true }

// End notes that the client has closed its side. With a farewell, the stream ends without
// waiting for answers.
func (o *Outbox) End(farewell *api.Farewell) { o.ended, o.farewell = true, farewell }

// Note notes that commands await replies.
func (o *Outbox) Note(now int64, commands []registry.Command) {
	for i := range commands {
		o.asked[question{commands[i].Session, commands[i].Sequence}] = asked{commands[i].Op, now}
	}
}

// Take returns the next frame, or nil if there is nothing to send, and whether the stream ends
// after it. It calls timed with the code of each first reply, and how long the request has
// waited for it, in ns.
func (o *Outbox) Take(now int64, names Names, timed func(op registry.Op, code registry.Code, waited int64)) (frame *api.ServerFrame, last bool) {
	n := min(len(o.outcomes), o.limits.Frame)
	refused := min(len(o.refusals), o.limits.Frame-n)
	if n+refused > 0 {
		frame = &api.ServerFrame{Replies: make([]*api.Reply, 0, n+refused)}
	}
	var secret []byte
	for i := range o.outcomes[:n] {
		if i == 0 || o.outcomes[i].Session != o.outcomes[i-1].Session {
			secret = names.Secret(o.outcomes[i].Session)
		}
		frame.Replies = append(frame.Replies, ReplyProto(secret, &o.outcomes[i]))
	}
	o.answered(now, o.outcomes[:n], timed)
	if n > 0 {
		o.outcomes = o.outcomes[n:]
	}
	if refused > 0 {
		frame.Replies = append(frame.Replies, o.refusals[:refused]...)
		o.refusals = o.refusals[refused:]
	}
	if o.waiting() > 0 {
		return frame, false
	}
	return frame, o.deposed || o.farewell != nil || o.ended && len(o.asked) == 0
}

// answered notes the first replies to requests.
func (o *Outbox) answered(now int64, outcomes []registry.Outcome, timed func(registry.Op, registry.Code, int64)) {
	for i := range outcomes {
		q := question{outcomes[i].Session, outcomes[i].Sequence}
		if a, waits := o.asked[q]; waits {
			delete(o.asked, q)
			timed(a.op, outcomes[i].Result.Code, now-a.at)
		}
	}
}

// Parting returns how a stream ends after Take has returned the last frame: with the farewell
// that was set, or because this server was deposed.
func (o *Outbox) Parting() (farewell *api.Farewell, deposed bool) { return o.farewell, o.deposed }
