package line

import (
	"errors"
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/api"
)

const (
	// ProtocolVersion is the version of the interface of this client. Servers with a
	// newer version support this one too.
	ProtocolVersion = 1
	// welcomeLimit is how long a server may take from the attempt to connect until its
	// Welcome.
	welcomeLimit = 1000 * ms
	// probeLimit is how long a server that is tried in addition to the one in use may leave all
	// requests unanswered. After that it can be tried again over another stream.
	probeLimit = 2 * welcomeLimit
	// A frame carries at most frameRequests requests, and about frameBytes bytes: a
	// server takes 4 MiB.
	frameRequests = 256
	frameBytes    = 1 << 20
)

// stream is one stream to one server, from the attempt to its end.
type stream struct {
	id      uint64
	address string
	// relayed: the server should pass the stream on to the leader.
	relayed bool
	opened  int64

	// seat and lease are those of the home, and adopted the other seats whose sessions
	// it has.
	seat    []byte
	adopted [][]byte
	lease   int64

	welcomed bool
	busy     bool    // it was given a frame and has not reported Sent
	queue    []*Call // calls to send
	heard    int64   // when the newest frame or Pong came
	// proven: the server has carried out a request, so it led then.
	proven bool
	// pinging: a Ping is unanswered, since pinged. mute: the last one was not answered in
	// time, and nothing has arrived since.
	pinging, mute bool
	pinged        int64
}

func (l *Line) stream(id uint64) *stream {
	if i := slices.IndexFunc(l.streams, func(st *stream) bool { return st.id == id }); i >= 0 {
		return l.streams[i]
	}
	return nil
}

func (l *Line) dial(address string, relayed bool) {
	l.dialled++
	l.streams = append(l.streams, &stream{id: l.dialled, address: address, relayed: relayed, opened: l.now})
	l.emit(Output{Action: Dial, Stream: l.dialled, Address: address, Relayed: relayed, Home: l.cfg.Home})
	l.tryAt = l.now + stagger
}

// receive processes a frame. The first must be a Welcome.
func (l *Line) receive(st *stream, frame *api.ServerFrame) {
	if !st.welcomed {
		if err := l.welcome(frame); err != nil {
			l.hangUp(st, err, errors.Is(err, ErrWrongCluster), "")
			return
		}
		st.welcomed = true
		st.seat, st.adopted, st.lease = frame.GetWelcome().GetSeat(), frame.GetWelcome().GetAdopted(), frame.GetWelcome().GetLeaseNs()
		if l.welcomes(st); l.stream(st.id) == nil {
			return
		}
	}
	st.heard, st.mute = l.now, false
	refused, useful := l.replies(frame)
	if useful && !st.proven {
		st.proven = true
		clear(l.attempts)
		l.proves(st)
	}
	if st.proven && len(frame.GetServers()) > 0 {
		l.learn(frame.GetServers()) // a server that never led may not know who is gone
	}
	switch farewell := frame.GetFarewell(); {
	case refused != nil:
		l.part(st, refused.GetCode(), refused.GetMessage(), refused.GetLeader())
	case farewell != nil:
		leader := farewell.GetLeader()
		if heir := farewell.GetHeir(); heir != "" {
			leader = heir
			if l.cfg.Home && l.serves() { // the session continues at the server that has taken over its home
				l.session.address, l.session.moves = heir, true
			}
		} else if members := farewell.GetMembers(); len(members) > 0 {
			leader = members[l.cfg.Chance(int64(len(members)))]
		} else if farewell.GetCode() == api.Code_CODE_NOT_MEMBER {
			l.emit(Output{Action: noHome})
		}
		l.part(st, farewell.GetCode(), farewell.GetMessage(), leader)
	}
}

// replies passes the replies of a frame to their sessions. It returns a reply that reports that
// the server does not lead, if there is one, and whether another request was carried out.
func (l *Line) replies(frame *api.ServerFrame) (refused *api.Reply, useful bool) {
	for _, rep := range frame.GetReplies() {
		switch {
		case rep.GetCode() == api.Code_CODE_NOT_MEMBER && l.serves() && len(l.session.grants) > 0:
			// A home that is leaving waits for the release of what is held.
		case elsewhere(rep.GetCode()):
			refused = rep
		default:
			useful = true
		}
		for _, s := range l.sessions {
			if string(s.secret) == string(rep.GetSession()) {
				s.reply(rep)
				break
			}
		}
	}
	return refused, useful
}

// welcome checks the first frame of a stream. The first server that answers determines the
// identity of the cluster.
func (l *Line) welcome(frame *api.ServerFrame) error {
	welcome := frame.GetWelcome()
	switch farewell := frame.GetFarewell(); {
	case welcome == nil && farewell != nil:
		return parting(farewell.GetCode(), farewell.GetMessage(), farewell.GetLeader())
	case welcome == nil:
		return errors.New("not a Conclave server: its first frame has no welcome")
	case welcome.GetVersion() < ProtocolVersion:
		return fmt.Errorf("the server speaks version %d of the interface; this client needs version %d: install a newer release on the server", welcome.GetVersion(), ProtocolVersion)
	}
	if err := Identify(l.identity, welcome.GetCluster()); err != nil {
		return err
	}
	if l.identity = welcome.GetCluster(); !l.attached {
		l.attached = true
		l.emit(Output{Action: Attached})
	}
	return nil
}

// Identify returns an error if a server does not belong to the expected cluster, if one is
// expected.
func Identify(expected, cluster string) error {
	switch {
	case cluster == "":
		return errors.New("not a Conclave server: it belongs to no cluster")
	case expected != "" && cluster != expected:
		return fmt.Errorf("%w: it belongs to %s, not to %s", ErrWrongCluster, cluster, expected)
	}
	return nil
}

// part ends a stream whose server has reported that it cannot serve it any more.
func (l *Line) part(st *stream, code api.Code, message, leader string) {
	err := parting(code, message, leader)
	l.hangUp(st, err, errors.Is(err, ErrWrongCluster), leader)
}

func parting(code api.Code, message, leader string) error {
	switch {
	case code == api.Code_CODE_WRONG_CLUSTER:
		return fmt.Errorf("%w: %s", ErrWrongCluster, message)
	case message != "":
		return errors.New(message)
	case code == api.Code_CODE_NOT_MEMBER:
		return errors.New("it takes no part in guarding locks by algorithms")
	case code == api.Code_CODE_UNAVAILABLE:
		return errors.New("no quorum answered")
	case leader != "":
		return fmt.Errorf("it does not lead, and names %s", leader)
	}
	return errors.New("it does not lead, and knows no leader")
}

// hangUp ends a stream on this side.
func (l *Line) hangUp(st *stream, err error, permanent bool, leader string) {
	l.emit(Output{Action: HangUp, Stream: st.id, Address: st.address, Err: err})
	l.ended(st, err, permanent, leader)
}

// transmit sends a call over the stream in use, or leaves it to the next adoption. An Open has
// its own stream.
func (l *Line) transmit(c *Call) {
	st := l.using
	if c.Op.GetOpen() != nil {
		st = l.stream(c.session.via)
	}
	if st != nil {
		st.queue = append(st.queue, c)
	}
}

// resend queues all unfinished calls on a stream, and drops its previous queue.
func (l *Line) resend(st *stream) {
	st.queue = slices.DeleteFunc(st.queue, func(c *Call) bool { return c.Op.GetOpen() == nil })
	for _, s := range l.sessions {
		if !s.opens() {
			st.queue = append(st.queue, s.unfinished()...)
		}
	}
	l.open(st)
}

// frame takes a frame off the queue of a stream, or returns nil.
func (l *Line) frame(st *stream) *api.ClientFrame {
	frame := new(api.ClientFrame)
	size, taken := 0, 0
	for taken < len(st.queue) && len(frame.Requests) < frameRequests && size < frameBytes {
		c := st.queue[taken]
		st.queue[taken] = nil
		taken++
		if c.finished || c.session == nil {
			continue
		}
		last := c.last
		frame.Requests = append(frame.Requests, c.session.wire(c))
		if st != l.using && last != 0 {
			c.last = last // the server in use still owes the answer
		}
		size += c.size()
	}
	st.queue = st.queue[taken:]
	if len(frame.Requests) == 0 {
		return nil
	}
	return frame
}
