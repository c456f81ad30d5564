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
	refused Code     // why the peer last refused this server for good, or 0
}

// Known returns the introduction of the peer, and whether a live connection confirms it.
func (p *Peer[L]) Known() (h Hello, live bool) { return p.known, p.live > 0 }

// Inbound returns the connection that the peer dialled for a lane.
func (p *Peer[L]) Inbound(ln Lane) L { return p.inbound[ln] }

// differs reports whether a live connection contradicts an introduction.
func (p *Peer[L]) differs(h Hello) bool { return p.live > 0 && p.known.Differs(h) }

// Join counts a connection that this server dialled for a lane and on which the peer introduced
// itself. If a live connection contradicts the introduction, Join counts nothing and returns false.
func (p *Peer[L]) Join(ln Lane, h Hello) bool {
	if p.differs(h) {
		return false
	}
	if ln == Messages {
		p.refused = 0
	}
	p.known = h
	p.live++
	return true
}

// Part undoes Join.
func (p *Peer[L]) Part() { p.live-- }

// Refused notes that the peer refuses the connection for messages, and reports whether the host
// should hear of it: refusals for good are reported once, until a connection succeeds or the peer
// gives another reason.
func (p *Peer[L]) Refused(r *Refusal) (news bool) {
	if !r.Final() || p.refused == r.Code {
		return false
	}
	p.refused = r.Code
	return true
}

// seat makes l the connection that the peer dialled for a lane, and counts it, unless a live
// connection contradicts the introduction, or an old connection of the same server holds the lane.
func (p *Peer[L]) seat(ln Lane, l L, h Hello) (old L, contested bool) {
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

// Leave removes the connection that was admitted for a lane. After it, nothing that came over the connection is delivered.
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
