package world

import (
	"slices"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/test/vopr/network"
	"github.com/conclave-io/conclave/internal/test/vopr/patience"
)

// lookPeriod is the time between two checks that clients receive answers.
const lookPeriod = 50 * ms

// attention is the maximum time that a client may wait for an answer while a majority of the
// servers works. The answer that a request is queued counts. The time covers ten election timeouts
// of 200 ms, and a second in which the client finds the leader. With homes it is longer: a new
// leader waits until the leases of the seats have expired, and the servers have no seats until
// then.
func (w *World) attention() int64 {
	const usual = 3000 * ms
	if w.Plan.Hosts {
		return usual + SeatTTL
	}
	return usual
}

// attendant records for how long the same servers have worked.
type attendant struct {
	well      network.Endpoint // the working servers
	wellSince int64
}

// attend checks that clients receive answers while a majority of the voters is up, has working
// disks, and can communicate. The other servers may be down, paused, or have a hanging disk. This
// includes the leader. A client needs a connection to one server of the majority. It need not be
// the leader, because the other servers relay.
func (w *World) attend() {
	w.After(lookPeriod, w.attend)
	if well := w.majority(); well != w.well || well == 0 {
		w.well, w.wellSince = well, w.Now
		return
	}
	for _, c := range w.Clients {
		if c.dead || c.paused || c.away {
			continue
		}
		if reach := w.reach(c); reach != c.reaches || reach == 0 {
			c.reaches, c.reachesSince = reach, w.Now
			continue
		}
		if c.observer != nil {
			c.observer.isTold(max(w.wellSince, c.reachesSince, c.awake))
		}
		waits := w.Now - max(c.waitsSince(), w.wellSince, c.reachesSince)
		w.Stats.Attended++
		w.Stats.Longest = max(w.Stats.Longest, waits)
		if waits > w.attention() {
			w.Violate("availability", "client %d has waited %d ms for an answer, while the servers %b were well and it had a way to %b", c.slot, waits/ms, w.well, c.reaches)
		}
	}
}

// reach returns the servers of the majority with which a client can communicate in both directions.
func (w *World) reach(c *client) (reach network.Endpoint) {
	for _, s := range w.Servers {
		if me := s.Endpoint(); w.well&me != 0 && !w.Net.Blocked(me, c.endpoint()) && !w.Net.Blocked(c.endpoint(), me) {
			reach |= me
		}
	}
	return reach
}

// majority returns the voters that work. It returns 0 unless they are a majority in which all can
// communicate with each other.
func (w *World) majority() (well network.Endpoint) {
	between := func(c *network.Cut) bool { return c.From&network.Servers != 0 && c.To&network.Servers != 0 }
	if slices.ContainsFunc(w.Net.Cuts, between) || w.Net.Storm || w.asking != nil || w.outdated() {
		return 0
	}
	var newest *Server
	for _, s := range w.Servers {
		if s.Up() && (newest == nil || s.Replica.Applied() > newest.Replica.Applied()) {
			newest = s
		}
	}
	if newest == nil {
		return 0
	}
	if slices.ContainsFunc(w.Servers, func(s *Server) bool { return s.Narrow > 0 }) {
		return 0
	}
	voters, peers, n := newest.Replica.Status().Voters, w.peers(), 0
	for _, s := range w.Servers {
		if s.Up() && !s.lost && !s.Replica.Blank() && !s.Paused && !s.disk.Hangs() && !s.disk.Full && slices.Contains(voters, s.ID) && !fetches(s, peers) && !w.doubled(s.ID) {
			well |= s.Endpoint()
			n++
		}
	}
	if 2*n <= len(voters) {
		return 0
	}
	return well
}

// watchPatience checks the candidates of elections repeatedly, while there are no faults and a majority
// can commit: too many servers may still wait for snapshots.
func (w *World) watchPatience() {
	if !w.Calm() || w.asking != nil {
		w.uneasy = w.Now
	}
	if leader := w.Leader(); leader == nil || !w.Calm() || w.majority() == 0 {
		w.Judge.patience.Forget()
	} else {
		w.Judge.patience.Watch(&patience.Server{
			ID: leader.ID, Term: leader.Replica.Term(), Clock: &leader.Clock, Registry: leader.Replica.Registry(),
		})
	}
	w.After(tick, w.watchPatience)
}

// Calm reports whether there are no faults at the servers or between them.
func (w *World) Calm() bool {
	if len(w.Net.Cuts) > 0 || w.Net.Storm {
		return false
	}
	for _, s := range w.Servers {
		if !s.removed && (!s.Up() || s.lost || s.Paused || s.Narrow > 0 || s.disk.Slow > 0 || s.disk.Hangs() || s.disk.Full || w.doubled(s.ID)) {
			return false
		}
	}
	return true
}

// outdated reports whether a server does not dial another one because one of them does not support
// the level. After that is corrected, the server may need up to refusedPause to notice.
func (w *World) outdated() bool {
	return slices.ContainsFunc(w.Servers, func(s *Server) bool { return s.transport.Outdated() })
}

// peers returns the leader's status of the other servers.
func (w *World) peers() []agreement.Peer {
	if leader := w.Leader(); leader != nil {
		return leader.Replica.Status().Peers
	}
	return nil
}

// fetches reports whether a server waits for a snapshot. Until it has the snapshot, it acknowledges
// no later entries.
func fetches(s *Server, peers []agreement.Peer) bool {
	return slices.ContainsFunc(peers, func(p agreement.Peer) bool { return p.ID == s.ID && p.State == "StateSnapshot" })
}

// waitsSince returns the time since which a client has waited for an answer. A client with a
// session renews it continuously, so any answer counts. A client without a session may receive
// nothing for a long time, so only its unanswered calls count.
func (c *client) waitsSince() int64 {
	since := c.w.Now
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
