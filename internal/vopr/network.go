package vopr

import "slices"

// endpoint is a set of servers and clients, a bit for each: servers from the lowest
// bit up, clients from bit 48.
type endpoint uint64

const clientBit = 48

func (s *server) endpoint() endpoint { return 1 << (s.id - 1) }
func (c *client) endpoint() endpoint { return 1 << (clientBit + c.slot) }

const (
	allServers = endpoint(1)<<clientBit - 1
	everybody  = ^endpoint(0)
)

// cut keeps messages of some from reaching others.
type cut struct{ from, to endpoint }

func (w *world) blocked(from, to endpoint) bool {
	for _, c := range w.cuts {
		if c.from&from != 0 && c.to&to != 0 {
			return true
		}
	}
	return false
}

// sever cuts links for a while.
func (w *world) sever(d int64, cuts ...*cut) {
	w.cuts = append(w.cuts, cuts...)
	w.after(d, func() {
		w.cuts = slices.DeleteFunc(w.cuts, func(c *cut) bool { return slices.Contains(cuts, c) })
	})
}

// packet carries one message that may be lost, repeated, or overtaken. lost is called of
// each copy that is.
func (w *world) packet(from, to endpoint, deliver, lost func()) {
	if w.blocked(from, to) || w.storm != nil && w.net.IntN(5) == 0 {
		lost()
		return
	}
	copies := 1
	if w.storm != nil && w.net.IntN(8) == 0 || w.net.IntN(500) == 0 {
		copies = 2
	}
	for range copies {
		w.after(w.delay(), func() {
			if w.blocked(from, to) {
				lost()
			} else {
				deliver()
			}
		})
	}
}

// delay is short mostly, and now and then long.
func (w *world) delay() int64 {
	d := 100_000 + w.net.Int64N(ms)
	switch n := w.net.IntN(200); {
	case n == 0:
		d += w.net.Int64N(100 * ms)
	case n < 4 || w.storm != nil && n < 60:
		d += w.net.Int64N(20 * ms)
	case w.storm != nil && n < 80:
		d += w.net.Int64N(300 * ms)
	}
	return d
}

const (
	stallStep = 150 * ms
	maxStall  = 20 // steps
)

// carry brings something over a stream, in one direction. While the two sides cannot
// reach each other what is on its way waits, as TCP sends again. broken is called if the
// way is blocked for so long that the connection breaks.
func (w *world) carry(from, to endpoint, deliver, broken func()) {
	w.carryOn(from, to, deliver, broken, 0)
}

func (w *world) carryOn(from, to endpoint, deliver, broken func(), stalled int) {
	w.after(w.delay(), func() {
		switch {
		case !w.blocked(from, to):
			deliver()
		case stalled < maxStall:
			w.after(stallStep, func() { w.carryOn(from, to, deliver, broken, stalled+1) })
		default:
			broken()
		}
	})
}

// flight is how many frames a side may send ahead of what the other has taken.
const flight = 8

// pipe is one direction of a stream. Nothing is lost on it unless it breaks, but it may
// take long. Between a client and a server frames may overtake each other, which a stream
// does not let them; both promise to bear it. Between servers they do not: one that
// relays takes the first frame for the welcome.
type pipe struct {
	w        *world
	from, to endpoint
	ordered  bool
	frames   []func() // on their way, of an ordered one
	flying   int      // frames that the other side has not taken
	room     func()   // there is room again
	end      func()   // what to do once all were
	broken   func()
}

func (p *pipe) full() bool { return p.flying >= flight }

// send has something happen on the other side. That side says took when it is done.
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

// took notes that the other side has taken a frame.
func (p *pipe) took() {
	full := p.full()
	p.flying--
	if p.close(); full {
		p.room()
	}
}

// finish has something happen on the other side when it has taken all frames.
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
