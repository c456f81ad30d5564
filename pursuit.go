package conclave

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

var errReplaced = errors.New("another server was faster")

const (
	// stagger is how long an attempt has the field to itself: a server that is
	// stopped takes connections and never answers.
	stagger = 150 * time.Millisecond
	// maxHops bounds how many namings of a leader are followed without a pause:
	// two servers may name each other.
	maxHops = 3
	// seekLeader is how often a client that another server relays tries to reach the
	// leader itself.
	seekLeader = 2 * time.Second
)

// event is what happened to a link.
type event struct {
	kind eventKind
	link *link
}

type eventKind int

const (
	welcomed  eventKind = iota // the server answered, and belongs to the cluster
	proven                     // the server carried out a request
	suspected                  // the server in use leaves requests unanswered
	trusted                    // it has answered them after all
	ended                      // the link is of no more use
)

// tell reports an event to the pursuit.
func (c *Client) tell(e event) {
	select {
	case c.events <- e:
	case <-c.ctx.Done():
	}
}

// pursuit looks for the leader for as long as the client lives. The first
// server that answers is used at once; if it does not lead it says so in its
// next breath. While the server in use is suspected, others are tried beside
// it, and the first that carries out a request takes its place: a server that
// is merely slow stays in use.
//
// If the server that is said to lead cannot be reached, those that say so are asked to
// relay the stream. A relayed stream costs a hop and the follower's work, so the leader
// is preferred: it is tried again now and then, and used as soon as it answers.
type pursuit struct {
	client   *Client
	links    []*link // all that have not ended
	current  *link   // the one in use, or nil
	suspect  bool
	leader   string // who was named last, until tried
	named    string // who was named last
	barred   string // who was named and did not answer, or ""
	hops     int    // namings followed since the last pause
	turn     int    // which of the configured servers is next
	failures int    // attempts that failed since a server proved to lead
	timer    *time.Timer
}

func (c *Client) pursue() {
	p := &pursuit{client: c, timer: time.NewTimer(0), turn: rand.IntN(len(c.cfg.Servers))}
	defer p.timer.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-p.timer.C:
			p.hops = 0
			p.attempt()
		case e := <-c.events:
			p.handle(e)
		}
	}
}

func (p *pursuit) handle(e event) {
	switch e.kind {
	case welcomed:
		p.onWelcomed(e.link)
	case proven:
		p.onProven(e.link)
	case suspected:
		if e.link == p.current && !p.suspect {
			p.client.cfg.Logger.Warn("server leaves requests unanswered; trying others", "server", e.link.address)
			p.suspect, p.failures = true, 0
			p.attempt()
		}
	case trusted:
		if e.link == p.current {
			p.settle()
		}
	case ended:
		p.onEnded(e.link)
	}
}

func (p *pursuit) onWelcomed(l *link) {
	l.welcomed = true
	if l.address == p.barred {
		p.barred = ""
	}
	switch {
	case p.current == nil, p.current.relayed && l.address == p.named && !p.suspect:
		p.adopt(l)
	case p.suspect:
		p.client.probe(l)
	default:
		l.cancel(errReplaced)
	}
}

func (p *pursuit) onProven(l *link) {
	if l != p.current {
		if p.current != nil && !p.suspect {
			return
		}
		p.adopt(l)
	}
	p.failures, p.hops = 0, 0
	p.settle()
}

// adopt puts l in use.
func (p *pursuit) adopt(l *link) {
	p.client.cfg.Logger.Debug("attached", "server", l.address)
	p.current = l
	p.settle()
	p.client.adopt(l)
}

// settle ends the search.
func (p *pursuit) settle() {
	p.suspect = false
	if p.current.relayed {
		p.timer.Reset(seekLeader)
	} else {
		p.timer.Stop()
	}
	for _, l := range p.links {
		if seeking := p.current.relayed && !l.relayed && l.address == p.named; l != p.current && !seeking {
			l.cancel(errReplaced)
		}
	}
}

func (p *pursuit) onEnded(l *link) {
	p.links = slices.DeleteFunc(p.links, func(other *link) bool { return other == l })
	leader := p.client.noteEnd(l)
	if l == p.current {
		p.client.cfg.Logger.Info("server lost", "server", l.address, "err", l.err)
		p.current, p.suspect = nil, false
		p.replace()
	}
	if !l.welcomed && l.address == p.named && !errors.Is(l.err, errReplaced) {
		p.barred = l.address
	}
	if p.current != nil && !p.suspect {
		return
	}
	p.failures++
	if leader != "" && (leader != l.address || l.relayed) && p.hops < maxHops {
		p.hops++
		p.follow(l, leader)
		return
	}
	p.timer.Reset(pause(p.failures))
}

// follow goes where a server says that the leader is. If that does not answer, the
// server that names it is asked to relay; once, then the leader has its turn again.
func (p *pursuit) follow(l *link, leader string) {
	p.named = leader
	late := func(other *link) bool {
		return other.address == leader && other != p.current && !other.welcomed && time.Since(other.opened) >= stagger
	}
	if !l.relayed && (leader == p.barred || slices.ContainsFunc(p.links, late)) {
		p.try(l.address, true)
		return
	}
	p.barred, p.leader = "", leader
	p.attempt()
}

// replace puts a server in use that has been tried beside the one just lost.
func (p *pursuit) replace() {
	if i := slices.IndexFunc(p.links, func(l *link) bool { return l.welcomed }); i >= 0 {
		p.adopt(p.links[i])
	}
}

// pause is the backoff after so many failures: 10 ms and half as much again for
// each, up to 250 ms, and up to half of it less, so that clients spread out.
func pause(failures int) time.Duration {
	d := shortestBackoff
	for range failures - 1 {
		if d = d * 3 / 2; d >= longestBackoff {
			d = longestBackoff
			break
		}
	}
	return d - rand.N(d/2)
}

// attempt tries one more server, unless the search is over.
func (p *pursuit) attempt() {
	switch {
	case p.current == nil || p.suspect:
		if address := p.choose(); address != "" {
			p.try(address, false)
		}
		p.timer.Reset(stagger)
	case p.current.relayed:
		if !p.busy(p.named) {
			p.try(p.named, false)
		}
		p.timer.Reset(seekLeader)
	}
}

// try opens one more link.
func (p *pursuit) try(address string, relayed bool) {
	p.links = append(p.links, p.client.open(address, relayed))
	p.timer.Reset(stagger)
}

// busy reports whether an address is being tried. That of the server in use counts as
// free: it may be the stream that is broken, and not the server.
func (p *pursuit) busy(address string) bool {
	return slices.ContainsFunc(p.links, func(l *link) bool { return l != p.current && l.address == address })
}

// choose returns the address to try next, or "" if all are being tried.
func (p *pursuit) choose() string {
	leader := p.leader
	p.leader = ""
	if leader != "" && !p.busy(leader) {
		return leader
	}
	servers := p.client.servers()
	for range servers {
		p.turn = (p.turn + 1) % len(servers)
		if !p.busy(servers[p.turn]) {
			return servers[p.turn]
		}
	}
	return ""
}

// adopt has all requests sent over l from now on, those without a final reply
// first, and the sessions renewed.
func (c *Client) adopt(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.cfg.now()
	c.link, l.heard = l, now
	c.resend(l)
	if c.session != nil && !c.session.gone {
		c.session.extend(now)
	}
}

// probe has the unfinished requests sent over l as well: the first that is
// carried out proves that its server leads.
func (c *Client) probe(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resend(l)
}

// resend queues on l all that is unfinished, instead of what is queued there.
func (c *Client) resend(l *link) {
	l.queue = nil
	for _, s := range c.sessions {
		l.enqueue(s.resend()...)
	}
}

// noteEnd takes l out of use, remembers for people why it ended, and returns
// the address of the leader if the server named it.
func (c *Client) noteEnd(l *link) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == l {
		c.link = nil
	}
	if c.ctx.Err() == nil && l.err != nil && l.err != errReplaced {
		c.attempts[l.address] = l.err
	}
	if why := c.permanent(); c.identity == c.cfg.Cluster && why != nil {
		c.refuse.Do(func() {
			c.hopeless = why
			close(c.refused)
		})
	}
	return l.leader
}

// permanent returns why it is of no use to try any configured server again, or nil.
func (c *Client) permanent() (why error) {
	for _, s := range c.cfg.Servers {
		var secrecy *TLSError
		switch err := c.attempts[s]; {
		case errors.Is(err, ErrWrongCluster):
			why = ErrWrongCluster
		case errors.As(err, &secrecy):
			why = secrecy
		default:
			return nil
		}
	}
	return why
}
