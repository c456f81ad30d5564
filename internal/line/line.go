package line

import (
	"errors"
	"slices"

	"github.com/conclave-io/conclave/service/api"
)

const ms = int64(1e6)

// The errors of calls and streams.
var (
	// ErrClosed ends the calls of a Line that was closed.
	ErrClosed = errors.New("the client is closed")
	// ErrSessionGone ends the calls about a hold whose session is lost or closed.
	ErrSessionGone = errors.New("the session is gone")
	// ErrWithdrawn ends a call that was withdrawn.
	ErrWithdrawn = errors.New("the call was withdrawn")
	// ErrWrongCluster says that a server belongs to another cluster than expected.
	ErrWrongCluster = errors.New("wrong cluster")
	// ErrReplaced ends a stream that is not needed because another server is in use.
	ErrReplaced = errors.New("another server was faster")
	// ErrSilent ends a stream whose server did not send its Welcome in time.
	ErrSilent = errors.New("no answer within 1s")
)

// Refused is the error of a call for which no session could be opened.
type Refused struct{ Reply *api.Reply }

func (e *Refused) Error() string { return "no session: " + e.Reply.GetMessage() }

// Config is what a Line needs to know.
type Config struct {
	// Servers are addresses of servers; there must be one at least.
	Servers []string
	// Cluster is the expected identity of the cluster. If it is empty, the first
	// server that answers decides it.
	Cluster string
	// Open is how the session introduces itself; it has the TTL in ns.
	Open *api.Open
	// Home makes it a line to a home: to one server at a time, which keeps the session by
	// itself. Prefer is the address to try first, or empty.
	Home   bool
	Prefer string
	// Secret returns 16 random bytes, Chance a random number from 0 to below n.
	Secret func() []byte
	Chance func(n int64) int64
}

// Line is a program's connection to a cluster, with one session at a time. Times are
// readings of the clock of deadlines, in ns; the first must be positive.
type Line struct {
	cfg    Config
	ttl    int64
	now    int64
	out    []Output
	closed bool

	sessions []*Session // all: being opened, open, being closed
	session  *Session   // the newest that was opened, or nil
	waiting  []*Call    // for a session that is open
	farewell *Call      // the Close of a Line that was closed

	search
}

// New returns a Line that begins its search at once.
func New(now int64, cfg Config) *Line {
	l := &Line{cfg: cfg, ttl: cfg.Open.GetTtlNs(), now: now}
	l.search = search{identity: cfg.Cluster, attempts: make(map[string]error), tryAt: now, leader: cfg.Prefer, turn: int(cfg.Chance(int64(len(cfg.Servers))))}
	return l
}

// Kind is what an Input is.
type Kind int

// The kinds of input.
const (
	// Tick says that time has passed: what is due is done. Next says when.
	Tick Kind = iota
	// Submit is a Call of the program.
	Submit
	// Withdraw says that the caller of a Call has gone. If the call is or will be
	// granted, the grant is given back.
	Withdraw
	// Lapse says that the host saw the deadline of Session pass.
	Lapse
	// Close ends the session and all calls. Closed follows.
	Close
	// Received is a Frame that came over a Stream.
	Received
	// Sent says that a Stream has taken the frame that it was given, and takes another.
	Sent
	// Ended says that a Stream has ended, or could not be opened, because of Err.
	Ended
	// Pong says that the server of a Stream answered a Ping.
	Pong
)

// Input is what happens to a Line.
type Input struct {
	Kind    Kind
	Call    *Call
	Session *Session
	Stream  uint64
	Frame   *api.ServerFrame
	Err     error
	// Permanent says of an Err that it does no good to try this server again.
	Permanent bool
}

// Action is what an Output asks for or tells.
type Action int

// The kinds of output.
const (
	// Dial asks for a Stream to the server at Address. If Relayed is set, the server is
	// asked to pass the stream on to the leader if it does not lead.
	Dial Action = iota
	// HangUp ends a Stream because of Err. Nothing is expected of it afterwards.
	HangUp
	// Send gives a Stream a Frame. It gets no other before it says Sent.
	Send
	// Ping asks the server of a Stream, at Address, for a sign of life.
	Ping
	// Done is the outcome of a Call: a Reply or an Err. Known says of a call that
	// was withdrawn that the cluster has answered it, and is there.
	Done
	// Again says that a Call begins again in another session, or under another number.
	Again
	// Opened says that a Session is open until Until.
	Opened
	// Extended says that a Session is now open until Until.
	Extended
	// Revoked says that the holder of a Call that was granted is asked to leave, and
	// why, in Reason.
	Revoked
	// Lost says that a Session is lost or closed, because of Err, with all holds.
	Lost
	// Attached says that a server of the cluster has answered for the first time.
	Attached
	// Hopeless says that it does no good to try any server again, because of Err.
	Hopeless
	// Closed says that the servers have ended the session of a Line that was closed.
	Closed
	// Routed says that Server, Servers or SessionID have changed.
	Routed
	// Adopted, Suspected and Left are news of the server in use, at Address.
	Adopted
	Suspected
	Left
	// homeless says that a server knows of none that takes part: of no home.
	homeless
)

// Output is what a Line wants done, or tells.
type Output struct {
	Action  Action
	Call    *Call
	Reply   *api.Reply
	Session *Session
	Until   int64
	Stream  uint64
	Address string
	Relayed bool
	Home    bool // of Dial: the server is to be a home
	Known   bool
	Frame   *api.ClientFrame
	Reason  string
	Err     error
}

// Step takes in what happened at the reading now.
func (l *Line) Step(now int64, in Input) {
	l.now = max(l.now, now)
	l.checkDeadline()
	switch in.Kind {
	case Tick:
		l.tick()
	case Submit:
		l.submit(in.Call)
	case Withdraw:
		l.withdraw(in.Call)
	case Lapse:
		in.Session.retire(ErrSessionGone, false)
	case Close:
		l.close()
	case Received:
		if st := l.stream(in.Stream); st != nil {
			l.receive(st, in.Frame)
		}
	case Sent:
		if st := l.stream(in.Stream); st != nil {
			st.busy = false
		}
	case Ended:
		if st := l.stream(in.Stream); st != nil {
			l.ended(st, in.Err, in.Permanent, "")
		}
	case Pong:
		if st := l.stream(in.Stream); st != nil {
			st.heard, st.pinging, st.mute = l.now, false, false
		}
	}
}

// Outputs returns what came of the steps since the last Clear, in order. Frames are
// made now, so that requests of many steps travel together; now is read before any of
// them is sent.
func (l *Line) Outputs(now int64) []Output {
	l.now = max(l.now, now)
	for _, st := range l.streams {
		if st.busy || len(st.queue) == 0 {
			continue
		}
		if frame := l.frame(st); frame != nil {
			st.busy = true
			l.emit(Output{Action: Send, Stream: st.id, Frame: frame})
		}
	}
	return l.out
}

// Clear forgets the outputs, which the host has carried out.
func (l *Line) Clear() {
	clear(l.out)
	l.out = l.out[:0]
}

func (l *Line) emit(o Output) { l.out = append(l.out, o) }

// Session returns the session that was opened last, or nil.
func (l *Line) Session() *Session { return l.session }

// SessionID returns the public id of the session that was opened last, 16 bytes, or nil
// if it is not known.
func (l *Line) SessionID() []byte {
	if l.session == nil {
		return nil
	}
	return l.session.id
}

func (l *Line) submit(c *Call) {
	c.line = l
	switch {
	case l.closed:
		l.finish(c, nil, ErrClosed)
	case c.Of != nil && c.Of.session.gone:
		l.finish(c, nil, ErrSessionGone)
	case c.Of != nil:
		c.Of.session.submit(c)
	default:
		l.begin(c)
	}
}

// serves reports whether there is an open session.
func (l *Line) serves() bool { return l.session != nil && !l.session.gone }

// span is the longest time that a renewal of the session is worth.
func (l *Line) span() int64 {
	if l.serves() {
		return l.session.span
	}
	return l.ttl
}

// begin submits a call to the session that is open, or lets it wait for one.
func (l *Line) begin(c *Call) {
	switch {
	case !l.serves():
		l.waiting = append(l.waiting, c)
		l.open(l.using)
	case c.Op == nil:
		l.finish(c, nil, nil)
	default:
		l.session.submit(c)
	}
}

// open asks the server of a stream for a session, if calls wait for one and it was not
// asked yet.
func (l *Line) open(st *stream) {
	asked := func(s *Session) bool { return s.opens() && s.via == st.id }
	if st == nil || len(l.waiting) == 0 || l.closed || l.serves() || slices.ContainsFunc(l.sessions, asked) {
		return
	}
	s := newSession(l, st)
	l.sessions = append(l.sessions, s)
	s.extend(&api.Request{Op: &api.Request_Open{Open: l.cfg.Open}})
}

// opened puts a session in use, and gives up the others that are being opened.
func (l *Line) opened(s *Session) {
	l.session = s
	l.emit(Output{Action: Opened, Session: s, Until: s.until})
	l.emit(Output{Action: Routed})
	l.abandon(func(*Session) bool { return true })
	l.admit()
}

// abandon gives up sessions that are being opened. It returns the request to close the
// last of them.
func (l *Line) abandon(which func(*Session) bool) (farewell *Call) {
	for _, s := range slices.Clone(l.sessions) {
		if s.opens() && which(s) {
			farewell = s.retire(ErrSessionGone, false)
		}
	}
	return farewell
}

// admit submits the calls that have waited for a session that is open now.
func (l *Line) admit() {
	waiting := l.waiting
	l.waiting = nil
	for _, c := range waiting {
		l.begin(c)
	}
}

// refuse ends the calls that have waited for a session that cannot be opened.
func (l *Line) refuse(err error) {
	waiting := l.waiting
	l.waiting = nil
	for _, c := range waiting {
		l.finish(c, nil, err)
	}
}

func (l *Line) withdraw(c *Call) {
	if c.session == nil {
		l.waiting = slices.DeleteFunc(l.waiting, func(other *Call) bool { return other == c })
		l.finish(c, nil, ErrWithdrawn)
		return
	}
	c.session.withdraw(c)
}

// finish tells the outcome of a call, once.
func (l *Line) finish(c *Call, reply *api.Reply, err error) {
	if c.told {
		return
	}
	c.told = true
	l.emit(Output{Action: Done, Call: c, Reply: reply, Err: err, Known: c.answered && l.leads()})
	if c == l.farewell {
		l.emit(Output{Action: Closed})
	}
}

func (l *Line) close() {
	if l.closed {
		return
	}
	l.closed = true
	l.refuse(ErrClosed)
	l.farewell = l.abandon(func(*Session) bool { return true })
	if l.serves() {
		l.farewell = l.session.retire(ErrClosed, false)
	}
	if l.farewell == nil {
		l.emit(Output{Action: Closed})
	}
}

// checkDeadline retires the session whose deadline has passed.
func (l *Line) checkDeadline() {
	if l.serves() && l.now >= l.session.until {
		l.session.retire(ErrSessionGone, false)
	}
}

var actions = [...]string{
	"dial", "hang up", "send", "ping", "done", "again", "opened", "extended", "revoked", "lost",
	"attached", "hopeless", "closed", "routed", "adopted", "suspected", "left", "homeless",
}

func (a Action) String() string { return actions[a] }
