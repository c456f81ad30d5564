package peering

import "fmt"

// Lane is the purpose of a connection.
type Lane int

// The lanes.
const (
	Messages Lane = iota
	Snapshots
	Frames // of algorithms that guard names
	Lanes  // the number of lanes
)

// Peer is what a server knows of another server from its connections with it, which are
// identified by values of type L. The zero value of L stands for no connection.
type Peer[L comparable] struct {
	known   Hello    // of the last handshake
	live    int      // connections on which the peer introduced itself as known
	inbound [Lanes]L // connections that the peer dialled
}

// Known returns the introduction of the peer, and whether a live connection confirms it.
func (p *Peer[L]) Known() (h Hello, live bool) { return p.known, p.live > 0 }

// Inbound returns the connection that the peer dialled for a lane.
func (p *Peer[L]) Inbound(ln Lane) L { return p.inbound[ln] }

// differs reports whether a live connection contradicts an introduction.
func (p *Peer[L]) differs(h Hello) bool { return p.live > 0 && p.known.Differs(h) }

// Join counts a connection that this server dialled and on which the peer introduced itself.
// If a live connection contradicts the introduction, Join counts nothing and returns false.
func (p *Peer[L]) Join(h Hello) bool {
	if p.differs(h) {
		return false
	}
	p.known = h
	p.live++
	return true
}

// Part undoes Join.
func (p *Peer[L]) Part() { p.live-- }

// Seat makes l the connection that the peer dialled for a lane, and counts it, unless it
// conflicts with others: if connections with a different server of that id are live, it is
// contested, and Contest decides. If there is an old connection of the same server, the
// caller must close it and call Leave for it before it calls Seat again, so that the order of
// messages holds.
func (p *Peer[L]) Seat(ln Lane, l L, h Hello) (old L, contested bool) {
	var none L
	if p.differs(h) {
		return none, true
	}
	if old = p.inbound[ln]; old != none {
		return old, false
	}
	p.inbound[ln] = l
	p.known = h
	p.live++
	return none, false
}

// Leave undoes Seat. After it, nothing that came over the connection is delivered.
func (p *Peer[L]) Leave(ln Lane) {
	var none L
	p.inbound[ln] = none
	p.live--
}

// Again takes a new introduction of the peer on a connection that it dialled.
func (p *Peer[L]) Again(peer uint64, h Hello) error {
	if k := p.known; h.Cluster != k.Cluster || h.Server != k.Server || h.Differs(k) {
		return fmt.Errorf("server %d introduces itself again as server %d with uid %016x: it had uid %016x", peer, h.Server, h.UID, k.UID)
	}
	p.known = h
	return nil
}

// Contest is about a newcomer that has the id of a server with live connections. The server
// may have lost its data and come back before its old connections were detected to be dead.
// So they get the time of one ping to end. The newcomer is refused only if something arrives
// on them after that.
type Contest struct {
	looked bool
	heard  uint64
}

// Verdict is the result of looking at a Contest.
type Verdict int

// The verdicts.
const (
	Wait    Verdict = iota // look again after another ping
	Retry                  // the other server is gone: call Seat again
	Refuted                // the other server is alive
)

// Look decides what to do with a newcomer that introduced itself as h. The host calls it
// after each ping interval, with the number of frames that have arrived from the peer on all
// connections.
func (c *Contest) Look(known Hello, live bool, h Hello, heard uint64) Verdict {
	switch {
	case !live || !known.Differs(h):
		return Retry
	case c.looked && heard != c.heard:
		return Refuted
	}
	c.looked, c.heard = true, heard
	return Wait
}

// Twice refuses a newcomer because a live server has its id.
func Twice(self uint64, newcomer, known Hello) *Refusal {
	return Refuse(Duplicate, "two servers have the id %d: one at %s (uid %016x) is connected to server %d, another at %s (uid %016x) wants to be; give each its own id",
		known.Server, known.PeerAddress, known.UID, self, newcomer.PeerAddress, newcomer.UID)
}

// Backoff decides how long to wait between two attempts to connect to a peer. Times are in ns.
type Backoff struct {
	// Min and Max bound the pause, which doubles with each attempt. Refused is the pause
	// after a final refusal.
	Min, Max, Refused int64
	// Lasting is the duration of a connection, with the attempt, after which the pause is
	// short again.
	Lasting int64

	pause int64
}

// Next returns the pause after an attempt that lasted for a time. A random part of up to a
// half is taken off, so that servers that failed together do not retry together forever.
// Chance returns a random number from 0 to n-1.
func (b *Backoff) Next(lasted int64, refused bool, chance func(n int64) int64) int64 {
	if b.pause == 0 || lasted > b.Lasting {
		b.pause = b.Min
	}
	pause := b.pause
	b.pause = min(2*b.pause, b.Max)
	if refused {
		pause = b.Refused
	}
	return pause - chance(pause/2+1)
}
