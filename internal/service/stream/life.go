package stream

import (
	"fmt"

	"github.com/conclave-io/conclave/api"
)

const (
	// looksPerHeartbeat is how often a server without a leader looks for one. It does so for
	// looksForLeader looks, which is two heartbeats: an election takes less.
	looksPerHeartbeat = 5
	looksForLeader    = 2 * looksPerHeartbeat
)

// Phase is where a stream is in its life.
type Phase int

// The phases, in their order. A stream may skip any but the last.
const (
	// Arriving: the server waits until it knows who leads.
	Arriving Phase = iota
	// Serving: the server carries out the requests.
	Serving
	// Passing: the server passes the stream on to the leader.
	Passing
	// Leaving: the server waits until it knows which leader to name in the farewell.
	Leaving
	// Gone: the stream has ended, with the farewell that Life.Farewell returns.
	Gone
)

// Sight is what a server knows when it looks at a stream.
type Sight struct {
	// Leads means that this server leads. Self is its id, and Leader the id of the leader
	// as far as it knows, or 0.
	Leads        bool
	Self, Leader uint64
	// Stopping means that the server is about to stop. It waits for nothing then.
	Stopping bool
	// Relayed is the number of other streams that this server passes on.
	Relayed int
	// Dismissal returns the farewell of a server that does not lead, which names the leader.
	Dismissal func(leader uint64) *api.Farewell
}

// Life is the life of a client's stream at a server. The host calls Look when the stream arrives,
// when its phase has changed, and after the time that Look returns.
type Life struct {
	// Heartbeat and Election are the times of the server, in ns.
	Heartbeat, Election int64
	// Caller opened the stream. Asked means that it wants its stream passed on if this server does
	// not lead, because it cannot reach the leader itself.
	Caller Caller
	Asked  bool

	phase    Phase
	looks    int // at an unknown leader, in this phase
	leader   uint64
	relay    Relay
	farewell *api.Farewell
}

// Phase returns the phase.
func (l *Life) Phase() Phase { return l.phase }

// Leader returns the leader that the stream is passed on to, or was.
func (l *Life) Leader() uint64 { return l.leader }

// Farewell returns the farewell of a stream that is gone, or nil if the client is told nothing.
func (l *Life) Farewell() *api.Farewell { return l.farewell }

// Look moves the stream on, and returns in how many ns to look again at the latest, or 0 if never.
// now is the reading of a clock, in ns.
func (l *Life) Look(now int64, s Sight) (again int64) {
	if l.phase == Passing {
		l.Pass(func(r *Relay) { r.Look(now, s.Leader) })
	}
	if l.phase == Arriving {
		if !s.Leads && l.searches(s) {
			return l.Heartbeat / looksPerHeartbeat
		}
		l.arrive(now, s)
	}
	switch l.phase {
	case Leaving:
		if l.searches(s) {
			return l.Heartbeat / looksPerHeartbeat
		}
		l.phase, l.farewell = Gone, s.Dismissal(s.Leader)
	case Passing:
		if due := l.relay.Due(now); due > 0 {
			return min(l.Election, due)
		}
		return l.Election
	}
	return 0
}

// searches reports whether to wait until the leader is known.
func (l *Life) searches(s Sight) bool {
	if s.Leader != 0 || s.Stopping || l.looks == looksForLeader {
		return false
	}
	l.looks++
	return true
}

// arrive decides what to do with the stream.
func (l *Life) arrive(now int64, s Sight) {
	l.looks, l.phase = 0, Leaving
	if s.Stopping {
		return
	}
	arrival := Arrival{Caller: l.Caller, Asked: l.Asked, Leads: s.Leads, Self: s.Self, Leader: s.Leader, Relayed: s.Relayed}
	switch arrival.Way() {
	case Serve:
		l.phase = Serving
	case PassOn:
		l.phase, l.leader, l.relay = Passing, s.Leader, NewRelay(now, s.Leader)
	case Crowded:
		message := fmt.Sprintf("server %d passes on %d streams already, the most it does", s.Self, MaxRelayed)
		l.End(&api.Farewell{Code: api.Code_CODE_NOT_LEADER, Message: message}, false)
	}
}

// Pass tells the relay what became of it, while the stream is passed on.
func (l *Life) Pass(change func(*Relay)) {
	if l.phase != Passing {
		return
	}
	if change(&l.relay); l.relay.Over() {
		farewell, told := l.relay.Farewell()
		l.End(farewell, !told)
	}
}

// End ends a stream with a farewell. Without one, the client is told who leads now, if dismissed is
// set, and nothing otherwise.
func (l *Life) End(farewell *api.Farewell, dismissed bool) {
	l.looks, l.phase, l.farewell = 0, Gone, farewell
	if farewell == nil && dismissed {
		l.phase = Leaving
	}
}
