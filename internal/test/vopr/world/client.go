package world

import (
	"errors"
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/test/vopr/clock"
	"github.com/conclave-io/conclave/internal/test/vopr/history"
	"github.com/conclave-io/conclave/internal/test/vopr/network"
	"github.com/conclave-io/conclave/internal/test/vopr/periods"
)

// client is a program. It contains the core of the Go client, and drives it as the root package
// does.
type client struct {
	w     *World
	slot  int
	life  int
	clock clock.Clock
	ttl   int64

	paused, dead bool
	awake, heard int64 // times of the world: when it began or resumed, and when it last received a reply
	inbox        []func()
	away         bool     // it does not read its streams
	untaken      []func() // what arrived on them in the meantime

	reaches      network.Endpoint // servers of a working majority that it reached at the last check
	reachesSince int64

	line     *line.Lines
	carrying bool  // the outputs of the line are being processed
	due      int64 // the clock reading for which a tick is scheduled

	streams      []*clientStream
	sessions     []*session // open sessions
	sessionsMade int
	requests     []*request // requests of workers that have no outcome yet

	Workers  []*worker
	observer *observer
}

// ttls has the TTL of each client, by slot.
var ttls = []int64{300, 500, 1000, 1500, 2000, 3000, 5000, 800}

const workersEach = 2

// sharers is the number of clients that authenticate with the same name, in a plan with shared
// names.
const sharers = 4

func newClient(w *World, slot int) *client {
	c := &client{w: w, slot: slot, ttl: ttls[slot%len(ttls)] * ms, clock: clock.Clock{Base: int64(slot+1) * 7e11}}
	for n := range workersEach {
		c.Workers = append(c.Workers, &worker{client: c, number: n})
	}
	if w.Plan.Periods && slot < periods.Machines {
		c.Workers = append(c.Workers, &worker{client: c, number: workersEach, cron: true})
	}
	c.begin()
	return c
}

// begin starts the program.
func (c *client) begin() {
	c.dead, c.paused, c.inbox, c.awake = false, false, nil, c.w.Now
	c.away, c.untaken = false, nil
	c.sessions, c.streams, c.requests, c.due = nil, nil, nil, history.Forever
	var servers []string
	for _, s := range c.w.Servers[:c.w.Plan.Servers] {
		servers = append(servers, s.said().ClientAddress)
	}
	c.line = line.NewLines(c.now(), line.Config{
		Servers: servers, Open: &api.Open{TtlNs: c.ttl, Program: "vopr"},
		Secret: c.secret, Chance: c.w.work.Int64N,
	})
	for _, k := range c.Workers {
		k.begin()
	}
	c.observe()
	c.arm()
}

func (c *client) endpoint() network.Endpoint { return network.Client(c.slot) }

// secret returns a random secret for the next session.
func (c *client) secret() []byte {
	c.sessionsMade++
	return []byte{0: 1, 13: byte(c.sessionsMade >> 8), 14: byte(c.sessionsMade), 15: byte(c.slot + 1)}
}

// principal returns the authenticated name of the program.
func (c *client) principal() string {
	if c.w.Plan.Shared && c.slot < sharers {
		return "cert:clients"
	}
	return fmt.Sprint("cert:client-", c.slot)
}

// derive returns the public id of the session with a secret.
func (c *client) derive(secret []byte) registry.SessionID {
	return registry.Derive(c.principal(), secret)
}

func (c *client) now() int64 { return c.clock.Read(c.w.Now) }

// receive passes an input to the client. If the client is paused, it receives the input later.
func (c *client) receive(input func()) {
	switch {
	case c.dead:
	case c.paused:
		c.inbox = append(c.inbox, input)
	default:
		input()
	}
}

// read passes an input from a stream to the client. If the client does not read its streams, it
// receives the input later.
func (c *client) read(input func()) {
	if c.away && !c.dead {
		c.untaken = append(c.untaken, input)
	} else {
		c.receive(input)
	}
}

// turnAway makes the client stop reading its streams for a while.
func (c *client) turnAway(d int64) {
	if c.dead || c.away {
		return
	}
	c.away = true
	life := c.life
	c.w.After(d, func() {
		if c.life == life {
			c.turnBack()
		}
	})
}

// turnBack makes the client read its streams again.
func (c *client) turnBack() {
	if !c.away {
		return
	}
	c.away, c.awake = false, c.w.Now
	inputs := c.untaken
	c.untaken = nil
	for _, input := range inputs {
		c.receive(input)
	}
}

// later makes the client do something after a time.
func (c *client) later(d int64, do func()) {
	life := c.life
	c.w.After(c.clock.Real(d), func() {
		if c.life == life {
			c.receive(do)
		}
	})
}

func (c *client) resume() {
	if !c.paused {
		return
	}
	c.paused, c.awake = false, c.w.Now
	inputs := c.inbox
	c.inbox = nil
	for _, input := range inputs {
		c.receive(input)
	}
}

// die ends the program without closing its session. After a while, another program replaces it.
func (c *client) die() {
	if c.dead {
		return
	}
	c.w.Note("die", uint64(c.slot), 0)
	c.dead, c.away = true, false
	c.life++
	for _, k := range c.Workers {
		k.abandon()
	}
	for _, s := range c.sessions {
		s.conclude()
	}
	for _, l := range c.streams {
		l.close()
	}
	if o := c.observer; o != nil && o.stream != nil {
		o.stream.server.hide(o.stream)
		o.stream = nil
	}
	c.w.After(100*ms+c.w.work.Int64N(2000*ms), func() { c.begin() })
}

// step passes an input to the line.
func (c *client) step(in line.Input) {
	c.line.Step(c.now(), in)
	if c.carrying {
		return // the loop below processes these outputs too
	}
	c.carrying = true
	for outputs := c.line.Outputs(c.now()); len(outputs) > 0; outputs = c.line.Outputs(c.now()) {
		outputs = slices.Clone(outputs)
		c.line.Clear()
		for _, o := range outputs {
			c.carryOut(o)
		}
	}
	c.carrying = false
	c.arm()
}

// arm schedules the next tick of the line.
func (c *client) arm() {
	next := c.line.Next()
	if next >= c.due {
		return
	}
	c.due = next
	c.later(max(next-c.now(), ms), func() {
		if c.due == next {
			c.due = history.Forever
		}
		c.step(line.Input{})
	})
}

func (c *client) carryOut(o line.Output) {
	if o.Address != "" && c.w.Logs() {
		c.w.Tell("client %d: %v stream %d to %s relayed %t: %v", c.slot, o.Action, o.Stream, o.Address, o.Relayed, o.Err)
	}
	switch o.Action {
	case line.Dial:
		c.dial(o)
	case line.HangUp:
		l := c.streamOf(o.Stream)
		c.streams = slices.DeleteFunc(c.streams, func(other *clientStream) bool { return other == l })
		l.close()
	case line.Send:
		c.w.trace.Asks(o.Frame, c.derive, c.now)
		c.asks(o.Frame)
		c.transmit(c.streamOf(o.Stream), o.Frame)
	case line.Ping:
		c.ping(c.streamOf(o.Stream))
	case line.Done:
		c.finish(o)
	case line.Again:
		o.Call.Data.(*request).again()
	case line.Opened:
		c.opened(o)
	case line.Extended:
		if s := c.of(o.Session); s.valid() {
			s.promise(o.Until)
			c.w.trace.Believes(s.ID, s.until)
		} else {
			c.step(line.Input{Kind: line.Lapse, Session: o.Session})
		}
	case line.Revoked:
		if h := o.Call.Data.(*request).hold; h != nil {
			h.told()
		}
	case line.Lost:
		if s := c.of(o.Session); s != nil {
			s.conclude()
		}
	}
}

// streamOf returns the stream with a number, or nil.
func (c *client) streamOf(stream uint64) *clientStream {
	for _, l := range c.streams {
		if l.stream == stream {
			return l
		}
	}
	return nil
}

// of returns the judge's record of a session of the line, or nil.
func (c *client) of(x *line.Session) *session {
	for _, s := range c.sessions {
		if s.line == x {
			return s
		}
	}
	return nil
}

// session returns the open session, or nil.
func (c *client) session() *session { return c.of(c.line.Session()) }

// server returns the server in use, or nil.
func (c *client) server() *Server { return c.w.serverAt(c.line.Server()) }

// request is a call of a worker.
type request struct {
	client   *client
	call     line.Call
	res      *Resource // set for an acquire
	born     int64     // time of the world, for the judge
	answered bool      // a reply arrived, perhaps only QUEUED
	claim    *claim    // set for an acquire that was transmitted
	hold     *Hold     // set for an acquire that was granted
	keeps    *Hold     // the hold that the caller keeps until the request has ended
	done     func(reply *api.Reply)
}

// submit starts a call. It calls done at the end of the call, with nil if there was no reply.
func (c *client) submit(r *request, done func(*api.Reply)) {
	r.client, r.born, r.done, r.call.Data = c, c.w.Now, done, r
	c.requests = append(c.requests, r)
	c.step(line.Input{Kind: line.Submit, Call: &r.call})
}

// finish informs the worker about the result of its call.
func (c *client) finish(o line.Output) {
	r, ours := o.Call.Data.(*request)
	if !ours {
		return
	}
	c.drop(r)
	if errors.Is(o.Err, line.ErrWithdrawn) || r.done == nil {
		return
	}
	r.done(o.Reply)
}

func (c *client) drop(r *request) {
	r.letGo()
	c.requests = slices.DeleteFunc(c.requests, func(other *request) bool { return other == r })
}

// withdraw ends a call whose worker does not need the answer any more.
func (c *client) withdraw(r *request) {
	r.done = nil
	c.drop(r)
	if r.claim != nil {
		r.claim.leave()
	}
	c.step(line.Input{Kind: line.Withdraw, Call: &r.call})
}

// again starts the call again, in another session or with another number.
func (r *request) again() {
	r.answered, r.born = false, r.client.w.Now
	if r.claim != nil {
		r.claim.vanish()
		r.claim = nil
	}
}

// Flood makes the program request many locks at once, and release each of them. No other client
// uses these locks.
func (c *client) Flood(n int) {
	if c.dead || c.paused {
		return
	}
	c.w.Stats.Floods++
	for i := range n {
		a := &api.Acquire{Name: fmt.Sprint("flood/", c.slot, "/", i), Try: true}
		if c.w.Plan.Limits {
			a.Class, a.Value = api.Class_CLASS_ELECTION, make([]byte, floodValue)
		}
		c.visit(a)
	}
}

// Try makes the program request a lock that no other client uses, and release it.
func (c *client) Try(name string) {
	if !c.dead && !c.paused {
		c.visit(&api.Acquire{Name: name, Try: true})
	}
}

// visit requests a lock that no other client uses, and releases it.
func (c *client) visit(a *api.Acquire) {
	r := &request{res: &Resource{Name: a.GetName()}, call: line.Call{Op: &api.Request{Op: &api.Request_Acquire{Acquire: a}}}}
	c.submit(r, func(reply *api.Reply) {
		if codeOf(reply) == registry.OK {
			op := &api.Request{Op: &api.Request_Release{Release: &api.Release{}}}
			c.submit(&request{call: line.Call{Of: &r.call, Op: op}}, func(*api.Reply) {})
		}
	})
}

// turnClock changes the drift of a client's clock.
func (c *client) turnClock(drift int64) {
	c.clock.Turn(c.w.Now, drift)
	for _, s := range c.sessions {
		if !s.lost && c.now() < s.until {
			s.EndsAt = c.clock.When(s.until)
		}
	}
	c.due = history.Forever
	c.arm()
}

// codeOf converts the code of a reply. Both types have the same numbers.
func codeOf(rep *api.Reply) registry.Code { return registry.Code(rep.GetCode()) }
