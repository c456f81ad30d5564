package conclave

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/internal/boottime"
	"github.com/conclave-io/conclave/service/api"
)

const (
	// idle is how long the keeper sleeps while there is no session.
	idle = time.Hour
	// A server from which nothing came for quiet is asked for a sign of life
	// while somebody waits in a queue, and has pingLimit to give it. A queue can
	// be silent for hours, and the leader that would grant may be stopped.
	quiet     = 250 * time.Millisecond
	pingLimit = 300 * time.Millisecond
)

// unansweredLimit is how long a request may be unanswered before other servers
// are tried beside the one in use: TTL/4, at least 100 ms and at most 500 ms. A
// slow disk may well take longer, and trying others then does no harm.
func unansweredLimit(ttl time.Duration) time.Duration {
	return min(max(ttl/4, 100*time.Millisecond), 500*time.Millisecond)
}

// rouse makes the keeper look again. c.mu is held.
func (c *Client) rouse() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// keep is the heartbeat: it renews the session, retires it when its deadline
// passes, and watches over the server in use.
func (c *Client) keep() {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-timer.C:
		case <-c.kick:
		}
		timer.Reset(c.tend())
		c.watch()
	}
}

// tend looks after the sessions, and returns how long it can wait to do so
// again.
func (c *Client) tend() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.cfg.now()
	for id, s := range c.sessions {
		s.check(now)
		if s.gone && (len(s.pending) == 0 || now.Sub(s.retired) > c.cfg.TTL) {
			delete(c.sessions, id) // closed, or expired by itself
		}
	}
	s := c.session
	if len(c.sessions) == 0 || c.closed {
		return idle
	}
	wait := unansweredLimit(c.cfg.TTL) / 4
	if s.gone {
		return wait
	}
	if c.link != nil && now >= s.nextRenewal() {
		s.extend(now)
	}
	if c.link != nil {
		wait = min(wait, s.nextRenewal().Sub(now))
	}
	if s.lease != nil {
		wait = min(wait, s.lease.deadline().Sub(now))
	}
	return max(wait, time.Millisecond)
}

// watch suspects the server in use of being stopped or cut off, or trusts it
// again.
func (c *Client) watch() {
	c.mu.Lock()
	l := c.link
	if l == nil {
		c.mu.Unlock()
		return
	}
	now := c.cfg.now()
	suspect := l.mute || c.overdue(now)
	changed := suspect != l.suspect
	l.suspect = suspect
	ping := !l.pinging && now.Sub(l.heard) > quiet && c.session != nil && c.session.waiting()
	l.pinging = l.pinging || ping
	c.mu.Unlock()
	if ping {
		c.tasks.Go(l.ping)
	}
	if changed && suspect {
		c.tell(event{suspected, l})
	} else if changed {
		c.tell(event{trusted, l})
	}
}

// overdue reports whether a request has been unanswered for too long.
func (c *Client) overdue(now boottime.Time) bool {
	for _, s := range c.sessions {
		if last := s.overdue(); last != 0 && now.Sub(last) > unansweredLimit(c.cfg.TTL) {
			return true
		}
	}
	return false
}

// ping asks the server in use for a sign of life.
func (l *link) ping() {
	c := l.client
	err := c.pingOnce(c.ctx, l.address, min(pingLimit, unansweredLimit(c.cfg.TTL)))
	c.mu.Lock()
	defer c.mu.Unlock()
	l.pinging, l.mute = false, err != nil
	if err == nil {
		l.heard = c.cfg.now()
	} else if c.session != nil && !c.session.gone {
		c.session.extend(c.cfg.now()) // by this request another server can prove itself
	}
	c.rouse()
}

// pingOnce returns nil if the server answers within the limit, whatever it
// answers.
func (c *Client) pingOnce(ctx context.Context, address string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := c.pool.get(address)
	if err != nil {
		return err
	}
	_, err = api.NewConclaveClient(conn).Ping(ctx, &api.PingRequest{})
	switch status.Code(err) {
	case codes.DeadlineExceeded, codes.Unavailable, codes.Canceled:
		return err
	default:
		return nil
	}
}
