package stream

import (
	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/registry"
)

const (
	// MaxRelayed bounds the streams that a server passes on.
	MaxRelayed = 4096
	// Patience is how long the leader may take to welcome a stream that is passed on,
	// in ns.
	Patience = 1e9
)

// Way is what a server does with a stream.
type Way int

// The ways of a stream.
const (
	// Dismiss ends it: this server does not lead.
	Dismiss Way = iota
	// Serve has its requests carried out here.
	Serve
	// PassOn passes it on to the leader.
	PassOn
	// Crowded ends it: this server passes on too many streams.
	Crowded
)

// Arrival is a stream that a server was just asked for.
type Arrival struct {
	Caller Caller
	// Asked says that the client wants to be passed on if this server does not lead,
	// because it cannot reach the leader itself.
	Asked bool
	// Leads says that this server leads. Self is its id, and Leader that of the leader
	// as far as it knows, or 0.
	Leads        bool
	Self, Leader uint64
	// Relayed is how many streams this server passes on already.
	Relayed int
}

// Way decides what to do with the stream. One hop is all there is: two servers that take
// each other for the leader must not send it to and fro.
func (a Arrival) Way() Way {
	switch {
	case a.Leads:
		return Serve
	case !a.Asked || a.Caller.Vouched || a.Leader == 0 || a.Leader == a.Self:
		return Dismiss
	case a.Relayed >= MaxRelayed:
		return Crowded
	}
	return PassOn
}

// Relay passes a client's stream on to the leader until one of them ends it, or
// another server leads. It keeps nothing: a side that takes no frames holds up the
// other. The deadlines of the client hold, since it counts from when it sent.
//
// Nothing of the client is passed on before Welcomed. Times are readings of one clock,
// in ns.
type Relay struct {
	leader   uint64
	since    int64 // when the leader was asked
	welcomed bool
	over     bool
	told     bool // the leader has said why
	farewell *api.Farewell
}

// NewRelay returns a Relay that has asked the leader for a stream.
func NewRelay(now int64, leader uint64) Relay { return Relay{leader: leader, since: now} }

// Welcomed reports whether the leader has taken the stream.
func (r *Relay) Welcomed() bool { return r.welcomed }

// Look tells who leads as far as this server knows. The host calls it again and again,
// and when the leader's patience is over: Due says when.
func (r *Relay) Look(now int64, leader uint64) {
	if leader != r.leader || !r.welcomed && now-r.since >= Patience {
		r.end(nil)
	}
}

// Due returns in how many ns the leader must have welcomed the stream, or 0 if it has.
func (r *Relay) Due(now int64) int64 {
	if r.welcomed {
		return 0
	}
	return max(r.since+Patience-now, 1)
}

// Up returns what the leader is to get of a frame of the client, with ids in place of the
// secrets; and what the client is to get at once. Both may be nil.
func Up(names Names, frame *api.ClientFrame) (passed *api.ClientFrame, refused *api.ServerFrame) {
	requests := frame.GetRequests()[:0]
	for _, req := range frame.GetRequests() {
		id, problem := names.ID(req.GetSession())
		if problem != "" {
			if refused == nil {
				refused = new(api.ServerFrame)
			}
			refused.Replies = append(refused.Replies, Refusal(req, api.Code_CODE_INVALID, problem))
			continue
		}
		req.Session = id[:]
		requests = append(requests, req)
	}
	if frame.Requests = requests; len(requests) == 0 {
		frame = nil
	}
	return frame, refused
}

// Down returns what the client is to get of a frame of the leader, with secrets in place
// of the ids, or nil. The first frame is the leader's welcome: the client has one already.
func (r *Relay) Down(names Names, frame *api.ServerFrame) *api.ServerFrame {
	if !r.welcomed {
		if r.welcomed = frame.GetWelcome() != nil; !r.welcomed {
			r.end(nil)
		}
		return nil
	}
	for _, reply := range frame.GetReplies() {
		if id := reply.GetSession(); len(id) == SecretSize {
			reply.Session = names.Secret(registry.SessionID(id))
		}
	}
	return frame
}

// Mistake ends the stream because the client sent what cannot be read.
func (r *Relay) Mistake(problem string) {
	r.end(&api.Farewell{Code: api.Code_CODE_INVALID, Message: problem})
}

// Closed notes that the leader has ended the stream: it has said why. Before its welcome
// it has not.
func (r *Relay) Closed() {
	r.told = r.welcomed && !r.over
	r.end(nil)
}

// Broken notes that the way to the leader is broken.
func (r *Relay) Broken() { r.end(nil) }

func (r *Relay) end(farewell *api.Farewell) {
	if !r.over {
		r.over, r.farewell = true, farewell
	}
}

// Over reports whether the stream ends.
func (r *Relay) Over() bool { return r.over }

// Farewell returns what to tell the client at the end: nil for who leads now. If it was
// told already, there is nothing to tell.
func (r *Relay) Farewell() (farewell *api.Farewell, told bool) { return r.farewell, r.told }
