package peering

import "fmt"

// Lane is what a connection is for.
type Lane int

// The lanes.
const (
	Messages Lane = iota
	Snapshots
	Frames // of algorithms that guard names
	Lanes  // how many there are
)

// Peer is what a server knows of another one from their links, which L tells apart. Its
// zero value is a link that is none.
type Peer[L comparable] struct {
	known   Hello    // of the last handshake
	live    int      // links on which the peer introduced itself as known
	inbound [Lanes]L // links that the peer dialled
}

// Known returns who the peer is, and whether a live link says so.
func (p *Peer[L]) Known() (h Hello, live bool) { return p.known, p.live > 0 }

// Inbound returns the link that the peer dialled for a lane.
func (p *Peer[L]) Inbound(ln Lane) L { return p.inbound[ln] }

// differs reports whether a live link has another idea of who the peer is.
func (p *Peer[L]) differs(h Hello) bool { return p.live > 0 && p.known.Differs(h) }

// Join counts a link that this server dialled and on which the peer introduced itself. It
// reports false, and counts nothing, if a live link has another idea of who the peer is.
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

// Seat makes l the link that the peer dialled for a lane, and counts it, unless something
// is in the way: links with another server of that id, which Contest decides about, or an
// old link of the same server. That one must be closed, and have left, before another
// Seat, so that the order of messages holds.
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

// Leave undoes Seat. Nothing that came over the link is delivered later.
func (p *Peer[L]) Leave(ln Lane) {
	var none L
	p.inbound[ln] = none
	p.live--
}

// Again takes what the peer says of itself now, on a link that it dialled.
func (p *Peer[L]) Again(peer uint64, h Hello) error {
	if k := p.known; h.Cluster != k.Cluster || h.Server != k.Server || h.Differs(k) {
		return fmt.Errorf("server %d introduces itself again as server %d with uid %016x: it had uid %016x", peer, h.Server, h.UID, k.UID)
	}
	p.known = h
	return nil
}

// Contest is a newcomer that has the id of a server with live links. The server may
// have lost its data and come back while its old links are not yet noticed to be dead, so
// they get the time of one ping to end, and only if something arrives on them after that
// is the newcomer refused.
type Contest struct {
	looked bool
	heard  uint64
}

// Verdict is what comes of a Contest.
type Verdict int

// The verdicts.
const (
	Wait    Verdict = iota // look again after another ping
	Retry                  // the other one has gone: Seat again
	Refuted                // the other one is alive
)

// Look decides what to do with a newcomer that introduced itself as h. The host calls it
// after each interval between two pings, with how many frames have arrived from the peer
// on all links.
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

// Twice refuses a newcomer whose id a live server has.
func Twice(self uint64, newcomer, known Hello) *Refusal {
	return Refuse(Duplicate, "two servers have the id %d: one at %s (uid %016x) is connected to server %d, another at %s (uid %016x) wants to be; give each its own id",
		known.Server, known.PeerAddress, known.UID, self, newcomer.PeerAddress, newcomer.UID)
}

// Backoff decides how long to wait between two attempts to reach a peer. Times are in ns.
type Backoff struct {
	// Min and Max bound the pause, which doubles with each attempt. Refused is the pause
	// after a refusal that is for good.
	Min, Max, Refused int64
	// Lasting is how long an attempt with its connection lasts after which the pause is
	// short again.
	Lasting int64

	pause int64
}

// Next returns the pause after an attempt that lasted so long. It is cut by up to a half at
// random, lest servers that fail together try together forever. Chance returns a random
// number from 0 to below n.
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
