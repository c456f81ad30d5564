package line

import (
	"errors"
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/service/api"
)

const (
	// ProtocolVersion is the version of the interface that this client speaks. Servers
	// that speak a newer one speak this one too.
	ProtocolVersion = 1
	// welcomeLimit is how long a server may take from the attempt to connect to its
	// Welcome.
	welcomeLimit = 1000 * ms
	// probeLimit is how long a server that is tried beside the one in use may leave all
	// requests unanswered. Then it can be tried again over another stream.
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
	// relayed: the server is asked to pass the stream on to the leader.
	relayed bool
	opened  int64

	// seat and lease are those of the home, and adopted the other seats whose sessions
	// it has.
	seat    []byte
	adopted [][]byte
	lease   int64

	welcomed bool
	busy     bool    // it was given a frame and has not said Sent
	queue    []*Call // what is to be sent
	heard    int64   // when the newest frame or Pong came
	// proven: the server has carried out a request, so it led then.
	proven bool
	// pinging: a Ping is unanswered, since pinged. mute: the newest was not answered in
	// time, and nothing has come since.
	pinging, mute bool
	pinged        int64
}

func (l *Line) stream(id uint64) *stream {
	if i := slices.IndexFunc(l.streams, func(st *stream) bool { return st.id == id }); i >= 0 {
		return l.streams[i]
	}
	return nil
}

// dial opens a stream.
func (l *Line) dial(address string, relayed bool) {
	l.dialled++
	l.streams = append(l.streams, &stream{id: l.dialled, address: address, relayed: relayed, opened: l.now})
	l.emit(Output{Action: Dial, Stream: l.dialled, Address: address, Relayed: relayed, Home: l.cfg.Home})
	l.tryAt = l.now + stagger
}

// receive takes in a frame. The first must be a Welcome.
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
			l.moveTo(heir)
			leader = heir
		} else if members := farewell.GetMembers(); len(members) > 0 {
			leader = members[l.cfg.Chance(int64(len(members)))]
		} else if farewell.GetCode() == api.Code_CODE_NOT_MEMBER {
			l.emit(Output{Action: homeless})
		}
		l.part(st, farewell.GetCode(), farewell.GetMessage(), leader)
	}
}

// replies hands the replies of a frame to their sessions. It returns one that says that
// the server does not lead, if there is any, and whether another was carried out.
func (l *Line) replies(frame *api.ServerFrame) (refused *api.Reply, useful bool) {
	for _, rep := range frame.GetReplies() {
		switch {
		case rep.GetCode() == api.Code_CODE_NOT_MEMBER && l.serves() && len(l.session.grants) > 0:
			// A home that leaves waits for what is held to be released.
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

// welcome checks the first frame of a stream, and pins the identity of the cluster by
// the first server that answers.
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

// Identify reports whether a server belongs to the expected cluster, or to any if none
// is expected.
func Identify(expected, cluster string) error {
	switch {
	case cluster == "":
		return errors.New("not a Conclave server: it belongs to no cluster")
	case expected != "" && cluster != expected:
		return fmt.Errorf("%w: it belongs to %s, not to %s", ErrWrongCluster, cluster, expected)
	}
	return nil
}

// part ends a stream whose server said that it is of no more use.
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

// transmit has a call sent over the stream in use, or leaves it to the next adoption. An
// Open has a stream of its own.
func (l *Line) transmit(c *Call) {
	st := l.using
	if c.Op.GetOpen() != nil {
		st = l.stream(c.session.via)
	}
	if st != nil {
		st.queue = append(st.queue, c)
	}
}

// resend queues on a stream all that is unfinished, instead of what is queued there.
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
