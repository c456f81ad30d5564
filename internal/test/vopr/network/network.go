// Package network is the network between the machines of a world: it loses, delays and repeats
// messages, blocks directions, and breaks streams.
package network

import (
	"math/rand/v2"
	"slices"

	"github.com/conclave-io/conclave/internal/test/vopr/events"
)

const ms = events.Millisecond

// Network carries messages between endpoints.
type Network struct {
	*events.Run
	// Rand decides what happens to messages.
	Rand *rand.Rand
	// Cuts are the directions that are blocked.
	Cuts []*Cut
	// Storm means that the network is much worse than usual.
	Storm bool
}

// Endpoint is a set of servers and clients, with a bit for each. Servers use the lowest bits, and
// clients the bits from ClientBit up.
type Endpoint uint64

// ClientBit is the bit of the first client.
const ClientBit = 48

// Server returns the Endpoint of the server with an id.
func Server(id uint64) Endpoint { return 1 << (id - 1) }

// Client returns the Endpoint of the client in a slot.
func Client(slot int) Endpoint { return 1 << (ClientBit + slot) }

// The endpoints of all servers, and of everybody.
const (
	Servers   = Endpoint(1)<<ClientBit - 1
	Everybody = ^Endpoint(0)
)

// Cut blocks messages in one direction.
type Cut struct{ From, To Endpoint }

// Blocked reports whether nothing can be sent from one Endpoint to the other.
func (n *Network) Blocked(from, to Endpoint) bool {
	for _, c := range n.Cuts {
		if c.From&from != 0 && c.To&to != 0 {
			return true
		}
	}
	return false
}

// Sever blocks one direction for a while.
func (n *Network) Sever(d int64, from, to Endpoint) { n.block(d, &Cut{from, to}) }

// Split blocks both directions between two endpoints for a while.
func (n *Network) Split(d int64, a, b Endpoint) { n.block(d, &Cut{a, b}, &Cut{b, a}) }

func (n *Network) block(d int64, cuts ...*Cut) {
	n.Cuts = append(n.Cuts, cuts...)
	n.After(d, func() {
		n.Cuts = slices.DeleteFunc(n.Cuts, func(c *Cut) bool { return slices.Contains(cuts, c) })
	})
}

// Packet sends one message that may be lost, duplicated or reordered. It calls lost for each copy
// that is lost.
func (n *Network) Packet(from, to Endpoint, deliver, lost func()) {
	if n.Blocked(from, to) || n.Storm && n.Rand.IntN(5) == 0 {
		lost()
		return
	}
	copies := 1
	if n.Storm && n.Rand.IntN(8) == 0 || n.Rand.IntN(500) == 0 {
		copies = 2
	}
	for range copies {
		n.After(n.Delay(), func() {
			if n.Blocked(from, to) {
				lost()
			} else {
				deliver()
			}
		})
	}
}

// Delay returns a random delay. It is usually short, and sometimes long.
func (n *Network) Delay() int64 {
	d := 100_000 + n.Rand.Int64N(ms)
	switch k := n.Rand.IntN(200); {
	case k == 0:
		d += n.Rand.Int64N(100 * ms)
	case k < 4 || n.Storm && k < 60:
		d += n.Rand.Int64N(20 * ms)
	case n.Storm && k < 80:
		d += n.Rand.Int64N(300 * ms)
	}
	return d
}

const (
	stallStep = 150 * ms
	maxStall  = 20 // steps
)

// Carry sends something over a stream in one direction. While the direction is blocked it waits, as
// TCP retransmits. If the direction is blocked for too long, the connection breaks, and Carry calls
// broken.
func (n *Network) Carry(from, to Endpoint, deliver, broken func()) {
	n.carryOn(from, to, deliver, broken, 0)
}

func (n *Network) carryOn(from, to Endpoint, deliver, broken func(), stalled int) {
	n.After(n.Delay(), func() {
		switch {
		case !n.Blocked(from, to):
			deliver()
		case stalled < maxStall:
			n.After(stallStep, func() { n.carryOn(from, to, deliver, broken, stalled+1) })
		default:
			broken()
		}
	})
}

// flight is the number of frames that a side may send before the other has processed them.
const flight = 8

// Pipe is one direction of a stream. It loses nothing unless it breaks, but it may be slow. Between
// a client and a server, frames may overtake each other. A real stream does not allow that, but
// both sides promise to tolerate it. Between servers, frames keep their order, because a relay
// takes the first frame for the welcome.
type Pipe struct {
	Net      *Network
	From, To Endpoint
	Ordered  bool
	Room     func() // called when there is room again
	Broken   func()

	frames []func() // frames in transit, if the pipe is ordered
	flying int      // number of frames that the other side has not processed
	end    func()   // called when the other side has processed all frames
}

// Full reports whether the side may not send.
func (p *Pipe) Full() bool { return p.flying >= flight }

// Send calls deliver at the other side. That side calls Took when it has processed the frame.
func (p *Pipe) Send(deliver func()) {
	p.flying++
	if !p.Ordered {
		p.Net.Carry(p.From, p.To, deliver, p.Broken)
		return
	}
	p.frames = append(p.frames, deliver)
	p.Net.Carry(p.From, p.To, func() {
		first := p.frames[0]
		p.frames = p.frames[1:]
		first()
	}, p.Broken)
}

// Opened records that the first frame, which opened the stream, has arrived.
func (p *Pipe) Opened() { p.flying-- }

// Took records that the other side has processed a frame.
func (p *Pipe) Took() {
	full := p.Full()
	p.flying--
	if p.close(); full {
		p.Room()
	}
}

// Finish calls deliver at the other side when it has processed all frames.
func (p *Pipe) Finish(deliver func()) {
	p.end = deliver
	p.close()
}

func (p *Pipe) close() {
	if end := p.end; end != nil && p.flying == 0 {
		p.end = nil
		p.Net.Carry(p.From, p.To, end, p.Broken)
	}
}
