package conclave

import (
	"cmp"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/conclave-io/conclave/internal/boottime"
	"github.com/conclave-io/conclave/internal/line"
	"github.com/conclave-io/conclave/service/api"
)

// few is for how many calls the goroutine that posts an input takes the turn itself, because to
// wake another would take longer than the turn. With more of them a frame should carry many.
const few = 4

// mailbox takes inputs from any goroutine, in order. One goroutine at a time has the driver.
type mailbox struct {
	wake  chan struct{} // has a value if the driver's own goroutine has it now
	calls atomic.Int32  // that wait

	mu     sync.Mutex
	inputs []line.Input
	taken  bool // somebody has the driver
	closed bool
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

// put reports whether the input will be taken, and whether the caller now has the driver.
func (m *mailbox) put(in line.Input) (ok, drives bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false, false
	}
	m.inputs = append(m.inputs, in)
	if m.taken {
		return true, false
	}
	m.taken = true
	if m.calls.Load() > few {
		m.wake <- struct{}{}
		return true, false
	}
	return true, true
}

// take returns all inputs, and keeps empty for those to come. Without any, the driver is free.
func (m *mailbox) take(empty []line.Input) []line.Input {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.inputs) == 0 || m.closed {
		m.free()
		return nil
	}
	inputs := m.inputs
	m.inputs = empty[:0]
	return inputs
}

// pass gives the driver up: to its own goroutine if there are more inputs.
func (m *mailbox) pass() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.inputs) > 0 && !m.closed {
		m.wake <- struct{}{}
		return
	}
	m.free()
}

// free lets the next that posts have the driver. After close, close has it.
func (m *mailbox) free() {
	if m.taken = false; m.closed {
		m.wake <- struct{}{}
	}
}

// close refuses inputs from now on, waits until no other goroutine has the driver, and returns
// the inputs that are left.
func (m *mailbox) close() []line.Input {
	m.mu.Lock()
	m.closed = true
	taken := m.taken
	m.mu.Unlock()
	if taken {
		<-m.wake
	}
	return m.inputs
}

// pending is a call that a goroutine waits for.
type pending struct {
	// acquisition is what the call wants to acquire, nil if it is another call.
	acquisition *acquisition
	done        chan outcome // takes the outcome once
}

// outcome is how a call ended.
type outcome struct {
	reply *api.Reply
	hold  *hold // of a call to acquire that was granted
	err   error
	// known says of a call that was withdrawn that the cluster has answered it, and is
	// there; attempts are what became of each server.
	known    bool
	attempts []Attempt
}

// driver has the lines: it feeds them with what happens, and carries out what comes of that.
// Its fields belong to the goroutine that has it.
type driver struct {
	client   *Client
	inputs   []line.Input // used by turns in turn
	line     *line.Lines
	streams  map[uint64]*stream
	sessions map[*line.Session]*tenure
	timer    *time.Timer
	due      int64 // when the timer fires, by the clock of deadlines; 0 if it has
}

// tenure is an open session with what it holds.
type tenure struct {
	lease *lease
	holds map[*line.Call]*hold
}

func newDriver(c *Client) *driver {
	d := &driver{
		client: c, streams: make(map[uint64]*stream), sessions: make(map[*line.Session]*tenure),
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

// clip cuts a text to what servers take: 256 bytes of UTF-8 without control characters.
func clip(text string) string {
	return strings.Map(func(char rune) rune {
		if unicode.IsControl(char) {
			return -1
		}
		return char
	}, strings.ToValidUTF8(text[:min(len(text), 256)], ""))
}

func (d *driver) now() int64 { return int64(d.client.cfg.now()) }

// post reports whether the input will be taken.
func (c *Client) post(in line.Input) bool {
	ok, drives := c.mail.put(in)
	if drives && c.driver.turn() {
		c.mail.pass()
	}
	return ok
}

// run is the driver's own goroutine: it ticks, and takes the turns that those who post do not take.
func (d *driver) run() {
	defer d.timer.Stop()
	defer d.end()
	for {
		select {
		case <-d.client.ctx.Done():
			return
		case <-d.client.mail.wake:
			runtime.Gosched() // calls that are about to be made join the frame
			for d.turn() {
			}
		case <-d.timer.C:
			d.client.post(line.Input{Kind: line.Tick})
		}
	}
}

// turn takes inputs in and carries out what comes of them. Without any it frees the driver and
// returns false.
func (d *driver) turn() bool {
	inputs := d.client.mail.take(d.inputs)
	if inputs == nil {
		return false
	}
	now := d.now()
	for _, in := range inputs {
		switch in.Kind {
		case line.Tick:
			d.due = 0 // it is set again in any case
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

// end finishes the calls that came too late.
func (d *driver) end() {
	for _, in := range d.client.mail.close() {
		if in.Kind == line.Submit {
			in.Call.Data.(*pending).done <- outcome{err: ErrClosed}
		}
	}
}

func (d *driver) carryOut(o line.Output) {
	c := d.client
	switch o.Action {
	case line.Dial:
		d.streams[o.Stream] = c.open(o)
	case line.HangUp:
		if st := d.streams[o.Stream]; st != nil { // it may have ended meanwhile
			st.cancel(o.Err)
			delete(d.streams, o.Stream)
		}
	case line.Send:
		d.streams[o.Stream].frames <- o.Frame // there is room: it has taken the one before
	case line.Ping:
		c.tasks.Go(func() { c.ping(o.Stream, o.Address) })
	case line.Done:
		d.finish(o)
	case line.Opened:
		d.sessions[o.Session] = &tenure{newLease(c.cfg.now, boottime.Time(o.Until)), make(map[*line.Call]*hold)}
	case line.Extended:
		d.extend(o)
	case line.Revoked:
		if h := d.hold(o.Call); h != nil {
			h.ctx.end(&RevokedError{o.Reason})
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

// log tells people what happened to the server in use.
func (d *driver) log(o line.Output) {
	switch log := d.client.cfg.Logger; o.Action {
	case line.Adopted:
		log.Debug("attached", "server", o.Address)
	case line.Suspected:
		log.Warn("server leaves requests unanswered; trying others", "server", o.Address)
	case line.Left:
		log.Info("server lost", "server", o.Address, "err", o.Err)
	}
}

// finish tells the caller of a call how it ended. A grant becomes a hold here, before
// anything that follows can concern it.
func (d *driver) finish(o line.Output) {
	p, waits := o.Call.Data.(*pending)
	if !waits {
		return // a request of the line itself
	}
	result := outcome{reply: o.Reply, err: o.Err, known: o.Known}
	switch {
	case errors.Is(o.Err, line.ErrWithdrawn) && !o.Known:
		result.attempts = attemptsOf(d.line)
	case p.acquisition != nil && o.Reply.GetCode() == api.Code_CODE_OK:
		t := d.sessions[o.Call.Session()]
		result.hold = newHold(d.client, o.Call, p.acquisition, t.lease, o.Reply)
		t.holds[o.Call] = result.hold
	}
	d.client.mail.calls.Add(-1)
	p.done <- result
}

// hold returns the hold that a call to acquire was granted, or nil.
func (d *driver) hold(call *line.Call) *hold {
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

// extend moves the deadline of a session, unless somebody saw it pass: then the session
// is lost.
func (d *driver) extend(o line.Output) {
	t := d.sessions[o.Session]
	if !t.lease.extend(boottime.Time(o.Until)) {
		d.client.post(line.Input{Kind: line.Lapse, Session: o.Session})
		return
	}
	for _, h := range t.holds {
		select {
		case h.moved <- struct{}{}:
		default: // not yet received: one value stands for many moves
		}
	}
}

// lose ends a session with all that it holds.
func (d *driver) lose(o line.Output) {
	t := d.sessions[o.Session]
	if t == nil {
		return // it was never open
	}
	t.lease.lose()
	for _, h := range t.holds {
		h.ctx.end(lossOf(o.Err))
	}
	delete(d.sessions, o.Session)
	if !errors.Is(o.Err, ErrClosed) {
		d.client.cfg.Logger.Info("session lost", "err", o.Err)
	}
}

// publish tells other goroutines what the line knows of the way to the cluster.
func (d *driver) publish() {
	r := &route{server: d.line.Server(), servers: d.line.Servers()}
	if id := d.line.SessionID(); id != nil {
		r.session = publicID(id)
	}
	d.client.route.Store(r)
}

func attemptsOf(l *line.Lines) []Attempt {
	var tried []Attempt
	for _, a := range l.Attempts() {
		tried = append(tried, Attempt{a.Server, cmp.Or(a.Err, errNoAnswer)})
	}
	return tried
}

var errNoAnswer = errors.New("no answer")
