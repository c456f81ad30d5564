package stream

import (
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/registry"
)

const (
	// MaxRelayed bounds the streams that a server passes on.
	MaxRelayed = 4096
	// WelcomeTimeout is how long the leader may take to welcome a stream that is passed on,
	// in ns.
	WelcomeTimeout = 1e9
)

// Way is what a server does with a stream.
type Way int

// The ways of a stream.
const (
	// Dismiss ends the stream, because this server does not lead.
	Dismiss Way = iota
	// Serve carries out its requests here.
	Serve
	// PassOn passes it on to the leader.
	PassOn
	// Crowded ends the stream, because this server passes on too many.
	Crowded
)

// Arrival is a new stream at a server.
type Arrival struct {
	Caller Caller
	// Asked means that the client wants its stream passed on if this server does not lead,
	// because it cannot reach the leader itself.
	Asked bool
	// Leads means that this server leads. Self is its id, and Leader the id of the leader
	// as far as it knows, or 0.
	Leads        bool
	Self, Leader uint64
	// Relayed is the number of streams that this server already passes on.
	Relayed int
}

// Way decides what to do with the stream. A stream is passed on over one hop only: otherwise two
// servers that take each other for the leader could send it back and forth.
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

// Relay passes a client's stream on to the leader until one of them ends it, or another server
// leads. It stores nothing: if one side does not read, it blocks the other. The deadlines of
// the client stay valid, since it counts from the time of sending.
//
// Nothing of the client is passed on before Welcomed. Times are readings of one clock, in ns.
type Relay struct {
	leader   uint64
	since    int64 // when the stream to the leader was opened
	welcomed bool
	over     bool
	told     bool // the leader has told the client the reason
	farewell *api.Farewell
}

// NewRelay returns a Relay that has opened a stream to the leader.
func NewRelay(now int64, leader uint64) Relay { return Relay{leader: leader, since: now} }

// Welcomed reports whether the leader has accepted the stream.
func (r *Relay) Welcomed() bool { return r.welcomed }

// Look tells the machine who leads, as far as this server knows. The host calls it regularly,
// and when the time for the leader's welcome is over: see Due.
func (r *Relay) Look(now int64, leader uint64) {
	if leader != r.leader || !r.welcomed && now-r.since >= WelcomeTimeout {
		r.end(nil)
	}
}

// Due returns in how many ns the leader must have welcomed the stream, or 0 if it has.
func (r *Relay) Due(now int64) int64 {
	if r.welcomed {
		return 0
	}
	return max(r.since+WelcomeTimeout-now, 1)
}

// Up returns the part of a client's frame to pass on to the leader, with ids instead of secrets,
// and the replies to send to the client at once. Both may be nil.
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

// Down returns what to send to the client for a frame of the leader, with secrets instead of
// ids, or nil. The first frame is the leader's welcome: the client already has one.
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

// Mistake ends the stream because the client sent something unreadable.
func (r *Relay) Mistake(problem string) {
	r.end(&api.Farewell{Code: api.Code_CODE_INVALID, Message: problem})
}

// Closed notes that the leader has ended the stream. After its welcome it has told the client
// why.
func (r *Relay) Closed() {
	r.told = r.welcomed && !r.over
	r.end(nil)
}

// Broken notes that the connection to the leader is broken.
func (r *Relay) Broken() { r.end(nil) }

func (r *Relay) end(farewell *api.Farewell) {
	if !r.over {
		r.over, r.farewell = true, farewell
	}
}

// Over reports whether the stream has to end.
func (r *Relay) Over() bool { return r.over }

// Farewell returns the farewell for the client at the end; nil means to name the present
// leader. If told is true, the client already has a farewell.
func (r *Relay) Farewell() (farewell *api.Farewell, told bool) { return r.farewell, r.told }
