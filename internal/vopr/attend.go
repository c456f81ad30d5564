package vopr

import (
	"slices"

	"github.com/conclave-io/conclave/service/agreement"
)

// lookPeriod is how often the judge looks whether clients are attended to.
const lookPeriod = 50 * ms

// attention is how long a client may wait for an answer, a place in a queue included, while
// a majority of the servers is well: ten election timeouts of 200 ms, and a second in which the
// client finds out who leads. Where servers are homes, a new leader lets the leases of their
// seats lapse, and they have none until then.
func (w *world) attention() int64 {
	const usual = 3000 * ms
	if w.plan.Hosts {
		return usual + seatTTL
	}
	return usual
}

// attendant knows for how long the same servers have been well.
type attendant struct {
	well      endpoint // the servers
	wellSince int64
}

// attend requires that clients get answers while a majority of the voters is up, has
// disks that work, and can talk. Others may be down, stand still, or have a disk
// that hangs: the leader as well as any. A client needs a way to one of the majority, not
// to the leader: the others relay.
func (w *world) attend() {
	w.after(lookPeriod, w.attend)
	if well := w.majority(); well != w.well || well == 0 {
		w.well, w.wellSince = well, w.now
		return
	}
	for _, c := range w.clients {
		if c.dead || c.paused || c.away {
			continue
		}
		if reach := w.reach(c); reach != c.reaches || reach == 0 {
			c.reaches, c.reachesSince = reach, w.now
			continue
		}
		if c.observer != nil {
			c.observer.isTold(max(w.wellSince, c.reachesSince, c.awake))
		}
		waits := w.now - max(c.waitsSince(), w.wellSince, c.reachesSince)
		w.stats.Attended++
		w.stats.Longest = max(w.stats.Longest, waits)
		if waits > w.attention() {
			w.violate("availability", "client %d has waited %d ms for an answer, while the servers %b were well and it had a way to %b", c.slot, waits/ms, w.well, c.reaches)
		}
	}
}

// reach returns the servers of the majority that a client reaches, and that reach it.
func (w *world) reach(c *client) (reach endpoint) {
	for _, s := range w.servers {
		if me := s.endpoint(); w.well&me != 0 && !w.blocked(me, c.endpoint()) && !w.blocked(c.endpoint(), me) {
			reach |= me
		}
	}
	return reach
}

// majority returns the voters that are well, or 0 unless they are a majority that
// nothing keeps from talking to each other.
func (w *world) majority() (well endpoint) {
	between := func(c *cut) bool { return c.from&allServers != 0 && c.to&allServers != 0 }
	if slices.ContainsFunc(w.cuts, between) || w.storm != nil || w.asking != nil || w.outdated() {
		return 0
	}
	var newest *server
	for _, s := range w.servers {
		if s.up() && (newest == nil || s.replica.Applied() > newest.replica.Applied()) {
			newest = s
		}
	}
	if newest == nil {
		return 0
	}
	if slices.ContainsFunc(w.servers, func(s *server) bool { return s.narrow > 0 }) {
		return 0
	}
	voters, peers, n := newest.replica.Status().Voters, w.peers(), 0
	for _, s := range w.servers {
		if s.up() && !s.lost && !s.replica.Blank() && !s.paused && s.disk.hung == 0 && !s.disk.full && slices.Contains(voters, s.id) && !fetches(s, peers) {
			well |= s.endpoint()
			n++
		}
	}
	if 2*n <= len(voters) {
		return 0
	}
	return well
}

// outdated reports whether one server does not dial another because one of them does not
// read the level. It notices up to refusedPause later that this was put right.
func (w *world) outdated() bool {
	for _, s := range w.servers {
		for _, other := range w.servers {
			if r := s.remotes[other.id]; s.on && r != nil && r.dialled != nil && r.dialled.outdated {
				return true
			}
		}
	}
	return false
}

// peers is what the leader knows of the others.
func (w *world) peers() []agreement.Peer {
	if leader := w.leader(); leader != nil {
		return leader.replica.Status().Peers
	}
	return nil
}

// fetches reports whether a server waits for a snapshot: it acknowledges nothing that comes
// after that.
func fetches(s *server, peers []agreement.Peer) bool {
	return slices.ContainsFunc(peers, func(p agreement.Peer) bool { return p.ID == s.id && p.State == "StateSnapshot" })
}

// waitsSince is since when a client has waited for an answer: to anything, if it has a
// session, which is renewed all the time, or to a call. While no server is a home, nobody
// answers a client that has no other session.
func (c *client) waitsSince() int64 {
	since := c.w.now
	if c.session() != nil {
		since = max(c.heard, c.awake)
	}
	for _, r := range c.requests {
		if !r.answered {
			since = min(since, max(r.born, c.awake))
		}
	}
	return since
}
