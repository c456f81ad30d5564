package vopr

import (
	"fmt"
	"maps"
	"slices"

	"github.com/conclave-io/conclave/service/registry"
)

// client is a program with one session at a time, after the rules of the Go client:
// it looks for the leader, sends again what is unanswered, renews, and believes in
// its holds until its own deadline. It is a model of that client and not the client
// itself, which is made of goroutines, timers and gRPC; what decides (session.go) is
// as there.
type client struct {
	w     *world
	slot  int
	life  int
	clock clock
	ttl   int64

	paused, dead bool
	inbox        []func()

	sessions     []*session // the last is the current one
	sessionsMade int

	links    []*link
	current  *link
	suspect  bool
	leader   uint64 // who was named last, until tried
	hops     int
	turn     int
	failures int
	tryAt    int64 // when to try one more server, 0 for not at all

	workers []*worker
}

// ttls are those of the clients, by slot.
var ttls = []int64{300, 500, 1000, 1500, 2000, 3000, 5000, 800}

const (
	workersEach = 2
	// dialLimit is how long a server may take to answer at all.
	dialLimit = 1000 * ms
)

func newClient(w *world, slot int) *client {
	c := &client{w: w, slot: slot, ttl: ttls[slot%len(ttls)] * ms, clock: clock{base: int64(slot+1) * 7e11}}
	for n := range workersEach {
		c.workers = append(c.workers, &worker{client: c, number: n})
	}
	c.begin()
	return c
}

// begin is the start of the program.
func (c *client) begin() {
	c.dead, c.paused, c.inbox = false, false, nil
	c.sessions, c.links, c.current, c.suspect = nil, nil, nil, false
	c.turn, c.tryAt = c.w.work.IntN(len(c.w.servers)), c.w.now+1
	c.sessions = append(c.sessions, newSession(c))
	for _, k := range c.workers {
		k.begin()
	}
	c.tend()
}

// principal is who the program proves to be.
func (c *client) principal() string { return fmt.Sprint("cert:client-", c.slot) }

func (c *client) now() int64 { return c.clock.read(c.w.now) }

func (c *client) session() *session { return c.sessions[len(c.sessions)-1] }

// unansweredLimit is how long a request may be unanswered before other servers are
// tried beside the one in use.
func unansweredLimit(ttl int64) int64 { return min(max(ttl/4, 100*ms), 500*ms) }

// receive lets the client take something in, when it does not stand still.
func (c *client) receive(input func()) {
	switch {
	case c.dead:
	case c.paused:
		c.inbox = append(c.inbox, input)
	default:
		input()
	}
}

// later has the client do something after a while.
func (c *client) later(d int64, do func()) {
	life := c.life
	c.w.after(c.clock.real(d), func() {
		if c.life == life {
			c.receive(do)
		}
	})
}

func (c *client) resume() {
	if !c.paused {
		return
	}
	c.paused = false
	inputs := c.inbox
	c.inbox = nil
	for _, input := range inputs {
		c.receive(input)
	}
}

// die ends the program without a word. Another takes its place after a while.
func (c *client) die() {
	if c.dead {
		return
	}
	c.w.note("die", uint64(c.slot), 0)
	c.dead = true
	c.life++
	for _, k := range c.workers {
		k.abandon()
	}
	for _, s := range c.sessions {
		s.clear()
	}
	for _, l := range c.links {
		l.close()
	}
	c.w.after(100*ms+c.w.work.Int64N(2000*ms), func() { c.begin() })
}

// tend is the heartbeat: it renews, retires what is lost, and watches the server in
// use.
func (c *client) tend() {
	now := c.now()
	for _, s := range c.sessions {
		s.check()
		s.ended = s.ended || s.gone && (len(s.pending) == 0 || now-s.retire > c.ttl)
	}
	if c.session().gone {
		c.sessions = append(c.sessions, newSession(c))
	}
	current := c.session()
	c.sessions = slices.DeleteFunc(c.sessions, func(s *session) bool { return s.ended && s != current })
	if c.current != nil && now >= current.nextRenewal() {
		current.extend()
	}
	c.watch(now)
	for _, l := range slices.Clone(c.links) {
		if !l.welcomed && !l.closed && now-l.born > dialLimit {
			c.close(l)
			c.onEnded(l, 0)
		}
	}
	if c.tryAt != 0 && c.w.now >= c.tryAt {
		c.hops = 0
		c.attempt()
	}
	c.later(min(unansweredLimit(c.ttl)/4, 30*ms), c.tend)
}

// watch suspects the server in use of being stopped or cut off, or trusts it again.
func (c *client) watch(now int64) {
	if c.current == nil {
		return
	}
	overdue := slices.ContainsFunc(c.sessions, func(s *session) bool { return s.overdue(now) })
	switch {
	case overdue && !c.suspect:
		c.suspect, c.failures = true, 0
		c.attempt()
	case !overdue && c.suspect:
		c.settle()
	}
}

// transmit sends a request over the link in use.
func (c *client) transmit(r *request) {
	if c.current != nil {
		c.send(c.current, []*request{r})
	}
}

// send puts requests on a link, as they are sent at this moment.
func (c *client) send(l *link, requests []*request) {
	now := c.now()
	commands := make([]registry.Command, 0, len(requests))
	for _, r := range requests {
		if r.first == 0 {
			r.first = now
		}
		r.last = now
		command := r.command
		command.Low = r.session.low()
		commands = append(commands, command)
	}
	if len(commands) > 0 {
		l.up(commands)
	}
}

// resend sends all that is unfinished over a link.
func (c *client) resend(l *link) {
	for _, s := range c.sessions {
		c.send(l, s.pending)
	}
}

func (c *client) onWelcome(l *link) {
	l.welcomed = true
	switch {
	case c.current == nil:
		c.adopt(l)
	case c.suspect && l != c.current:
		c.resend(l)
	case l != c.current:
		c.close(l)
	}
}

// adopt puts a link in use.
func (c *client) adopt(l *link) {
	c.current = l
	c.settle()
	c.resend(l)
	if s := c.session(); !s.gone {
		s.extend()
	}
}

// settle ends the search.
func (c *client) settle() {
	c.suspect, c.tryAt = false, 0
	for _, l := range slices.Clone(c.links) {
		if l != c.current {
			c.close(l)
		}
	}
}

func (c *client) close(l *link) {
	l.close()
	c.links = slices.DeleteFunc(c.links, func(o *link) bool { return o == l })
}

// onEnded is the end of a link; leader is who was named, or 0.
func (c *client) onEnded(l *link, leader uint64) {
	l.closed = true
	c.links = slices.DeleteFunc(c.links, func(o *link) bool { return o == l })
	if l == c.current {
		c.current, c.suspect = nil, false
		if i := slices.IndexFunc(c.links, func(l *link) bool { return l.welcomed }); i >= 0 {
			c.adopt(c.links[i])
		}
	}
	if c.current != nil && !c.suspect {
		return
	}
	const maxHops = 3
	c.failures++
	if leader != 0 && leader != l.server.id && c.hops < maxHops {
		c.leader = leader
		c.hops++
		c.attempt()
		return
	}
	c.tryAt = c.w.now + c.backoff()
}

// backoff is 10 ms and half as much again for each failure, up to 250 ms, and up to
// half of it less.
func (c *client) backoff() int64 {
	d := 10 * ms
	for range min(c.failures, 10) - 1 {
		d = min(d*3/2, 250*ms)
	}
	return d - c.w.work.Int64N(d/2)
}

// attempt tries one more server.
func (c *client) attempt() {
	const stagger = 150 * ms
	if c.current != nil && !c.suspect {
		return
	}
	if s := c.choose(); s != nil {
		c.w.numbers++
		l := &link{number: c.w.numbers, client: c, server: s, born: c.now()}
		c.links = append(c.links, l)
		l.attach()
	}
	c.tryAt = c.w.now + stagger
}

func (c *client) choose() *server {
	busy := func(s *server) bool {
		return slices.ContainsFunc(c.links, func(l *link) bool { return l != c.current && l.server == s })
	}
	if leader := c.leader; leader != 0 && leader <= uint64(len(c.w.servers)) {
		c.leader = 0
		if s := c.w.servers[leader-1]; !busy(s) {
			return s
		}
	}
	for range c.w.servers {
		c.turn = (c.turn + 1) % len(c.w.servers)
		if s := c.w.servers[c.turn]; !busy(s) && !s.removed {
			return s
		}
	}
	return nil
}

func (c *client) onReply(l *link, o registry.Outcome) {
	if o.Result.Code == registry.NotLeader || o.Result.Code == registry.Unavailable {
		c.close(l)
		c.onEnded(l, 0)
		return
	}
	if l != c.current && c.suspect {
		c.adopt(l)
	} else if l == c.current && c.suspect {
		c.settle()
	}
	c.failures, c.hops = 0, 0
	c.w.note("reply", uint64(c.slot)<<56|o.Sequence, uint64(o.Result.Code)<<56|o.Result.Fence)
	for _, s := range slices.Clone(c.sessions) {
		if s.id == o.Session {
			s.reply(o.Sequence, o.Result)
		}
	}
}

func sorted[K uint64, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
