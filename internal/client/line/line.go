package line

import (
	"errors"
	"slices"

	"github.com/conclave-io/conclave/api"
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
	// ErrWrongCluster means that a server belongs to a different cluster than expected.
	ErrWrongCluster = errors.New("wrong cluster")
	// ErrReplaced ends a stream that is not needed because another server is in use.
	ErrReplaced = errors.New("another server was faster")
	// ErrSilent ends a stream whose server did not send its Welcome in time.
	ErrSilent = errors.New("no answer within 1s")
)

// Refused is the error of a call for which no session could be opened.
type Refused struct{ Reply *api.Reply }

func (e *Refused) Error() string { return "no session: " + e.Reply.GetMessage() }

// Config configures a Line.
type Config struct {
	// Servers are addresses of servers; there must be one at least.
	Servers []string
	// Cluster is the expected identity of the cluster. If it is empty, the first
	// server that answers decides it.
	Cluster string
	// Open is how the session introduces itself; it has the TTL in ns.
	Open *api.Open
	// Home makes it a Line to a home: to one server at a time, which keeps the session by
	// itself. Prefer is the address to try first, or empty.
	Home   bool
	Prefer string
	// Secret returns 16 random bytes, and Chance a random number from 0 to n-1.
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
	session  *Session   // the last one that was opened, or nil
	waiting  []*Call    // for an open session
	farewell *Call      // the Close of a Line that was closed

	search
}

// New returns a Line that begins its search at once.
func New(now int64, cfg Config) *Line {
	l := &Line{cfg: cfg, ttl: cfg.Open.GetTtlNs(), now: now}
	l.search = search{identity: cfg.Cluster, attempts: make(map[string]error), tryAt: now, leader: cfg.Prefer, turn: int(cfg.Chance(int64(len(cfg.Servers))))}
	return l
}

// Kind is the kind of an Input.
type Kind int

// The kinds of input.
const (
	// Tick means that time has passed: the line does what is due. Next returns when to tick.
	Tick Kind = iota
	// Submit is a Call of the program.
	Submit
	// Withdraw means that the caller of a Call is gone. If the call is or will be granted, the
	// grant is released.
	Withdraw
	// Lapse means that the host saw the deadline of Session pass.
	Lapse
	// Close ends the session and all calls. Closed follows.
	Close
	// Received is a Frame that came over a Stream.
	Received
	// Sent means that a Stream has sent its last frame, and can take another.
	Sent
	// Ended means that a Stream has ended, or could not be opened, because of Err.
	Ended
	// Pong means that the server of a Stream answered a Ping.
	Pong
)

// Input is an event for a Line.
type Input struct {
	Kind    Kind
	Call    *Call
	Session *Session
	Stream  uint64
	Frame   *api.ServerFrame
	Err     error
	// Permanent means that trying this server again because of Err is useless.
	Permanent bool
}

// Action is the kind of an Output.
type Action int

// The kinds of output.
const (
	// Dial asks for a Stream to the server at Address. With Relayed, the server should pass the
	// stream on to the leader if it does not lead itself.
	Dial Action = iota
	// HangUp ends a Stream because of Err. The line ignores the stream afterwards.
	HangUp
	// Send gives a Stream a Frame. The stream gets no other before the input Sent.
	Send
	// Ping sends a Ping to the server of a Stream, at Address.
	Ping
	// Done is the outcome of a Call: a Reply or an Err. For a withdrawn call, Known means that
	// the cluster has answered it, so the cluster is reachable.
	Done
	// Again means that a Call starts again in another session, or with another number.
	Again
	// Opened means that a Session is open until Until.
	Opened
	// Extended means that a Session is now open until Until.
	Extended
	// Revoked means that the holder of a granted Call is asked to leave, and why, in
	// Reason.
	Revoked
	// Lost means that a Session is lost or closed, with all its holds, because of Err.
	Lost
	// Attached means that a server of the cluster has answered for the first time.
	Attached
	// Hopeless means that trying any server again because of Err is useless.
	Hopeless
	// Closed means that the servers have ended the session of a Line that was closed.
	Closed
	// Routed means that Server, Servers or SessionID have changed.
	Routed
	// Adopted, Suspected and Left report changes of the server in use, at Address.
	Adopted
	Suspected
	Left
	// noHome means that a server knows of no server that takes part, so there is no home.
	noHome
)

// Output is an action or a report of a Line.
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
	Leader  string // of Left: the server that the one in use has named, because it does not lead; or ""
	Err     error
}

// Step processes an input at the reading now.
func (l *Line) Step(now int64, in Input) {
	l.now = max(l.now, now)
	if l.serves() && l.now >= l.session.until {
		l.session.retire(ErrSessionGone, false)
	}
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

// Outputs returns the outputs of the steps since the last Clear, in order. Frames are created
// now, so that requests of many steps travel together; now must be read before any of them is
// sent.
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

// Clear removes the outputs after the host has carried them out.
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

// span returns the longest time for which a renewal of the session is valid.
func (l *Line) span() int64 {
	if l.serves() {
		return l.session.span
	}
	return l.ttl
}

// begin submits a call to the open session, or makes it wait for one.
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

// open asks the server of a stream for a session, if calls wait for one and the server has not
// been asked yet.
func (l *Line) open(st *stream) {
	asked := func(s *Session) bool { return s.opens() && s.via == st.id }
	if st == nil || len(l.waiting) == 0 || l.closed || l.serves() || slices.ContainsFunc(l.sessions, asked) {
		return
	}
	s := newSession(l, st)
	l.sessions = append(l.sessions, s)
	s.extend(&api.Request{Op: &api.Request_Open{Open: l.cfg.Open}})
}

// opened starts to use a session, and gives up others that are being opened.
func (l *Line) opened(s *Session) {
	l.session = s
	l.emit(Output{Action: Opened, Session: s, Until: s.until})
	l.emit(Output{Action: Routed})
	l.abandon(func(*Session) bool { return true })
	l.admit()
}

// abandon gives up sessions that are being opened. It returns the request to close the last
// of them.
func (l *Line) abandon(which func(*Session) bool) (farewell *Call) {
	for _, s := range slices.Clone(l.sessions) {
		if s.opens() && which(s) {
			farewell = s.retire(ErrSessionGone, false)
		}
	}
	return farewell
}

// admit submits the calls that have waited for the session that is now open.
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

// finish reports the outcome of a call, once.
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

var actions = [...]string{
	"dial", "hang up", "send", "ping", "done", "again", "opened", "extended", "revoked", "lost",
	"attached", "hopeless", "closed", "routed", "adopted", "suspected", "left", "no home",
}

func (a Action) String() string { return actions[a] }
