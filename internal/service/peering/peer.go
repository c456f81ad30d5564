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
	from    string   // where the last connection that it dialled came from
	since   int64    // when its process started, on the clock of this server
	live    int      // connections on which the peer introduced itself as known
	inbound [Lanes]L // connections that the peer dialled
	refused Code     // why the peer last refused this server for good, or 0

	question, answered uint64 // what this server has asked the peer, and what it has answered
	asked              uint64 // what the peer asks this server
	copies             uint64 // newcomers that were refused as copies
	copied             Copy   // the last of them, and when it was refused
	copiedAt           int64
}

// Known returns the introduction of the peer, and whether a live connection confirms it.
func (p *Peer[L]) Known() (h Hello, live bool) { return p.known, p.live > 0 }

// Inbound returns the connection that the peer dialled for a lane.
func (p *Peer[L]) Inbound(ln Lane) L { return p.inbound[ln] }

// differs reports whether a live connection contradicts an introduction.
func (p *Peer[L]) differs(h Hello) bool { return p.live > 0 && p.known.Differs(h) }

// Join counts a connection that this server dialled for a lane and on which the peer introduced
// itself, at a time on the clock of this server. If a live connection contradicts the introduction,
// Join counts nothing and returns false.
func (p *Peer[L]) Join(ln Lane, h Hello, now int64) bool {
	if p.differs(h) {
		return false
	}
	if ln == Messages {
		p.refused = 0
	}
	p.meet(h, now)
	return true
}

// meet takes the introduction on a new connection, and counts the connection.
func (p *Peer[L]) meet(h Hello, now int64) {
	if p.live == 0 || h.Nonce != p.known.Nonce {
		// Perhaps another process: it may ask the same number, and what was answered shows nothing
		// about it.
		p.from, p.asked, p.answered = "", 0, 0
	}
	p.known, p.since = h, now-int64(h.Age)
	p.live++
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

// seat makes n the connection that the peer dialled for a lane, and counts it, unless a live
// connection contradicts the introduction, or an old connection of the same server holds the lane.
func (p *Peer[L]) seat(n *Newcomer[L]) (old L, contested bool) {
	var none L
	if p.differs(n.Hello) {
		return none, true
	}
	if old = p.inbound[n.Lane]; old != none {
		return old, false
	}
	p.inbound[n.Lane] = n.Conn
	p.meet(n.Hello, n.At)
	p.from = n.From
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
		return fmt.Errorf("server %d introduces itself again as server %d with uid %016x and nonce %016x: it had uid %016x and nonce %016x", peer, h.Server, h.UID, h.Nonce, k.UID, k.Nonce)
	}
	p.known = h
	return nil
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
