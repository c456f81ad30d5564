package client

import (
	"cmp"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"os"
	"runtime"
	"strings"
	"time"
	"unicode"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// driver gives inputs to the client core (package line), and carries out its outputs. Only the
// goroutine that owns the driver may use its fields.
type driver struct {
	conn     *Conn
	inputs   []line.Input // memory for the inputs of the next turn
	line     *line.Lines
	streams  map[uint64]*stream
	sessions map[*line.Session]*tenure
	timer    *time.Timer
	due      int64 // when the timer fires, by the clock of deadlines; 0 if it has fired
}

// tenure is an open session with its holds.
type tenure struct {
	lease *lease
	holds map[*line.Call]*Hold
}

func newDriver(c *Conn) *driver {
	d := &driver{
		conn: c, streams: make(map[uint64]*stream), sessions: make(map[*line.Session]*tenure),
		timer: time.NewTimer(0),
	}
	c.driver = d
	d.line = line.NewLines(d.now(), line.Config{
		Servers: c.cfg.Servers, Cluster: c.cfg.Cluster, Open: openOf(&c.cfg), Prefer: c.cfg.Home,
		Secret: secret, Chance: mathrand.Int64N,
	})
	return d
}

func secret() []byte {
	drawn := make([]byte, 16)
	rand.Read(drawn) // it never fails
	return drawn
}

func openOf(cfg *Config) *api.Open {
	host, _ := os.Hostname() // for people; without it they see an empty name
	return &api.Open{TtlNs: int64(cfg.TTL), Host: clip(host), Pid: int64(os.Getpid()), Program: clip(cfg.Program)}
}

// clip cuts a text to what servers accept: 256 bytes of UTF-8 without control characters.
func clip(text string) string {
	return strings.Map(func(char rune) rune {
		if unicode.IsControl(char) {
			return -1
		}
		return char
	}, strings.ToValidUTF8(text[:min(len(text), 256)], ""))
}

func (d *driver) now() int64 { return int64(d.conn.now()) }

// post reports whether the input will be processed.
func (c *Conn) post(in line.Input) bool {
	ok, drives := c.mail.put(in)
	if drives && c.driver.turn() {
		c.mail.pass()
	}
	return ok
}

// run is the driver's own goroutine. It posts ticks, and takes the turns that no posting goroutine
// takes.
func (d *driver) run() {
	defer d.timer.Stop()
	defer d.end()
	for {
		select {
		case <-d.conn.ctx.Done():
			return
		case <-d.conn.mail.wake:
			for more := true; more; {
				runtime.Gosched() // let goroutines that are about to call join the frame
				more = d.turn()
			}
		case <-d.timer.C:
			d.conn.post(line.Input{Kind: line.Tick})
		}
	}
}

// turn processes all inputs and carries out the outputs. If there are no inputs, it frees the
// driver and returns false.
func (d *driver) turn() bool {
	inputs := d.conn.mail.take(d.inputs)
	if inputs == nil {
		return false
	}
	now := d.now()
	for _, in := range inputs {
		switch in.Kind {
		case line.Tick:
			d.due = 0 // the timer is reset below in any case
		case line.Withdraw:
			d.forget(in.Call)
		case line.Submit:
			if in.Call.Op.GetRelease() != nil {
				d.forget(in.Call.Of)
			}
		case line.Ended:
			delete(d.streams, in.Stream)
		}
		d.line.Step(now, in)
	}
	for _, o := range d.line.Outputs(now) {
		d.carryOut(o)
	}
	d.line.Clear()
	if next := d.line.Next(); next < d.due || now >= d.due {
		d.due = next
		d.timer.Reset(max(time.Duration(next-now), time.Millisecond))
	}
	clear(inputs)
	d.inputs = inputs
	return true
}

// end fails the calls that were not processed before the client closed.
func (d *driver) end() {
	for _, in := range d.conn.mail.close() {
		if in.Kind == line.Submit {
			in.Call.Data.(*pending).done <- outcome{err: line.ErrClosed}
		}
	}
}

func (d *driver) carryOut(o line.Output) {
	c := d.conn
	switch o.Action {
	case line.Dial:
		d.streams[o.Stream] = c.open(o)
	case line.HangUp:
		if st := d.streams[o.Stream]; st != nil { // it may have ended meanwhile
			st.cancel(o.Err)
			delete(d.streams, o.Stream)
		}
	case line.Send:
		d.streams[o.Stream].frames <- o.Frame // does not block: the stream has taken the previous frame
	case line.Ping:
		c.tasks.Go(func() { c.ping(o.Stream, o.Address) })
	case line.Done:
		d.finish(o)
	case line.Opened:
		d.sessions[o.Session] = &tenure{newLease(c.now, boottime.Time(o.Until)), make(map[*line.Call]*Hold)}
	case line.Extended:
		d.extend(o)
	case line.Revoked:
		if h := d.hold(o.Call); h != nil {
			h.ctx.end(c.cfg.Errors.Revoked(o.Reason))
		}
	case line.Lost:
		d.lose(o)
	case line.Attached:
		c.identity = d.line.Cluster()
		close(c.attached)
	case line.Hopeless:
		c.why = o.Err
		close(c.hopeless)
	case line.Closed:
		close(c.ended)
	case line.Routed:
		d.publish()
	default:
		d.log(o)
	}
}

// log logs what happened to the server in use.
func (d *driver) log(o line.Output) {
	switch log := d.conn.cfg.Logger; o.Action {
	case line.Adopted:
		log.Debug("attached", "server", o.Address)
	case line.Suspected:
		log.Warn("server leaves requests unanswered; trying others", "server", o.Address)
	case line.Left:
		if o.Leader != "" {
			log.Debug("server does not lead, attaching to the leader", "server", o.Address, "leader", o.Leader)
			return
		}
		log.Info("server lost", "server", o.Address, "err", o.Err)
	}
}

// finish tells the caller how its call ended. It turns a grant into a hold at once, because the
// next outputs may concern that hold.
func (d *driver) finish(o line.Output) {
	p, waits := o.Call.Data.(*pending)
	if !waits {
		return // a request of the line itself
	}
	result := outcome{reply: o.Reply, err: o.Err, known: o.Known}
	switch {
	case errors.Is(o.Err, line.ErrWithdrawn) && !o.Known:
		result.attempts = attemptsOf(d.line)
	case o.Call.Op.GetAcquire() != nil && o.Reply.GetCode() == api.Code_CODE_OK:
		t := d.sessions[o.Call.Session()]
		result.hold = newHold(d.conn, o.Call, p, t.lease, o.Reply)
		t.holds[o.Call] = result.hold
	}
	d.conn.mail.calls.Add(-1)
	p.done <- result
}

// hold returns the hold that a call to acquire was granted, or nil.
func (d *driver) hold(call *line.Call) *Hold {
	if t := d.sessions[call.Session()]; t != nil {
		return t.holds[call]
	}
	return nil
}

// forget drops the hold of a call to acquire.
func (d *driver) forget(call *line.Call) {
	if t := d.sessions[call.Session()]; t != nil {
		delete(t.holds, call)
	}
}

// extend moves the deadline of a session. If a goroutine has already seen the deadline pass, the
// session is lost.
func (d *driver) extend(o line.Output) {
	t := d.sessions[o.Session]
	if !t.lease.extend(boottime.Time(o.Until)) {
		d.conn.post(line.Input{Kind: line.Lapse, Session: o.Session})
		return
	}
	for _, h := range t.holds {
		select {
		case h.moved <- struct{}{}:
		default: // the channel has a value already, which stands for all moves
		}
	}
}

// lose ends a session and all its holds.
func (d *driver) lose(o line.Output) {
	t := d.sessions[o.Session]
	if t == nil {
		return // it was never open
	}
	cause := d.conn.cfg.Errors.Lost
	if errors.Is(o.Err, line.ErrClosed) {
		cause = d.conn.cfg.Errors.Released
	}
	t.lease.lose()
	for _, h := range t.holds {
		h.ctx.end(cause)
	}
	delete(d.sessions, o.Session)
	if !errors.Is(o.Err, line.ErrClosed) {
		d.conn.cfg.Logger.Info("session lost", "err", o.Err)
	}
}

// publish stores which server is in use, for other goroutines.
func (d *driver) publish() {
	r := &route{server: d.line.Server(), servers: d.line.Servers()}
	if id := d.line.SessionID(); id != nil {
		r.session = PublicID(id)
	}
	d.conn.route.Store(r)
}

func attemptsOf(l *line.Lines) (tried []Attempt) {
	for _, a := range l.Attempts() {
		tried = append(tried, Attempt{a.Server, cmp.Or(a.Err, errNoAnswer)})
	}
	return tried
}
