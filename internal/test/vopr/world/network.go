package world

import "slices"

// endpoint is a set of servers and clients, with a bit for each. Servers use the lowest bits, and
// clients the bits from 48 up.
type endpoint uint64

const clientBit = 48

// Endpoint returns the place of the server in the network.
func (s *Server) Endpoint() endpoint { return 1 << (s.ID - 1) }
func (c *client) endpoint() endpoint { return 1 << (clientBit + c.slot) }

const (
	allServers = endpoint(1)<<clientBit - 1
	everybody  = ^endpoint(0)
)

// cut blocks messages in one direction.
type cut struct{ from, to endpoint }

// Blocked reports whether nothing can be sent from one endpoint to the other.
func (w *World) Blocked(from, to endpoint) bool {
	for _, c := range w.cuts {
		if c.from&from != 0 && c.to&to != 0 {
			return true
		}
	}
	return false
}

// sever blocks directions for a while.
func (w *World) sever(d int64, cuts ...*cut) {
	w.cuts = append(w.cuts, cuts...)
	w.After(d, func() {
		w.cuts = slices.DeleteFunc(w.cuts, func(c *cut) bool { return slices.Contains(cuts, c) })
	})
}

// packet sends one message that may be lost, duplicated or reordered. It calls lost for each copy
// that is lost.
func (w *World) packet(from, to endpoint, deliver, lost func()) {
	if w.Blocked(from, to) || w.Storm != nil && w.net.IntN(5) == 0 {
		lost()
		return
	}
	copies := 1
	if w.Storm != nil && w.net.IntN(8) == 0 || w.net.IntN(500) == 0 {
		copies = 2
	}
	for range copies {
		w.After(w.delay(), func() {
			if w.Blocked(from, to) {
				lost()
			} else {
				deliver()
			}
		})
	}
}

// delay returns a random delay. It is usually short, and sometimes long.
func (w *World) delay() int64 {
	d := 100_000 + w.net.Int64N(ms)
	switch n := w.net.IntN(200); {
	case n == 0:
		d += w.net.Int64N(100 * ms)
	case n < 4 || w.Storm != nil && n < 60:
		d += w.net.Int64N(20 * ms)
	case w.Storm != nil && n < 80:
		d += w.net.Int64N(300 * ms)
	}
	return d
}

const (
	stallStep = 150 * ms
	maxStall  = 20 // steps
)

// carry sends something over a stream in one direction. While the direction is blocked it waits, as
// TCP retransmits. If the direction is blocked for too long, the connection breaks, and carry calls
// broken.
func (w *World) carry(from, to endpoint, deliver, broken func()) {
	w.carryOn(from, to, deliver, broken, 0)
}

func (w *World) carryOn(from, to endpoint, deliver, broken func(), stalled int) {
	w.After(w.delay(), func() {
		switch {
		case !w.Blocked(from, to):
			deliver()
		case stalled < maxStall:
			w.After(stallStep, func() { w.carryOn(from, to, deliver, broken, stalled+1) })
		default:
			broken()
		}
	})
}

// flight is the number of frames that a side may send before the other has processed them.
const flight = 8

// pipe is one direction of a stream. It loses nothing unless it breaks, but it may be slow. Between
// a client and a server, frames may overtake each other. A real stream does not allow that, but
// both sides promise to tolerate it. Between servers, frames keep their order, because a relay
// takes the first frame for the welcome.
type pipe struct {
	w        *World
	from, to endpoint
	ordered  bool
	frames   []func() // frames in transit, if the pipe is ordered
	flying   int      // number of frames that the other side has not processed
	room     func()   // called when there is room again
	end      func()   // called when the other side has processed all frames
	broken   func()
}

func (p *pipe) full() bool { return p.flying >= flight }

// send calls deliver at the other side. That side calls took when it has processed the frame.
func (p *pipe) send(deliver func()) {
	p.flying++
	if !p.ordered {
		p.w.carry(p.from, p.to, deliver, p.broken)
		return
	}
	p.frames = append(p.frames, deliver)
	p.w.carry(p.from, p.to, func() {
		first := p.frames[0]
		p.frames = p.frames[1:]
		first()
	}, p.broken)
}

// took records that the other side has processed a frame.
func (p *pipe) took() {
	full := p.full()
	p.flying--
	if p.close(); full {
		p.room()
	}
}

// finish calls deliver at the other side when it has processed all frames.
func (p *pipe) finish(deliver func()) {
	p.end = deliver
	p.close()
}

func (p *pipe) close() {
	if end := p.end; end != nil && p.flying == 0 {
		p.end = nil
		p.w.carry(p.from, p.to, end, p.broken)
	}
}
