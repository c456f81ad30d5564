package world

import (
	"errors"
	"slices"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
	"github.com/conclave-io/conclave/internal/service/stream"
	"github.com/conclave-io/conclave/internal/test/vopr/network"
)

// call is a stream to a server. A client opened it, or a server that relays the stream of a client.
type call struct {
	w        *World
	server   *Server // the server that was called
	life     int     // the life of the server when it was called
	up, down network.Pipe
	at       far  // the end of the stream at the server; nil before the call arrived
	home     bool // the stream is to a home
	over     bool // the caller has ended it

	// take passes an input to the caller. If the caller is paused, it receives the input later.
	take  func(func())
	heard func(*api.ServerFrame) // calls down.Took when it has processed the frame
	// ended is called at the end of the stream. orderly means that the server closed it in order.
	ended func(orderly bool)
}

// far is the end of a stream at the server.
type far interface {
	comes(*api.ClientFrame)
	leave()
}

// open opens a stream to a server. who is the authenticated caller. asked means that the caller
// wants to be passed on to the leader.
func (l *call) open(from network.Endpoint, who stream.Caller, asked bool) {
	w, s := l.w, l.server
	l.life = s.Life
	l.up = network.Pipe{Net: w.Net, From: from, To: s.Endpoint(), Ordered: who.Vouched, Room: l.up.Room, Broken: func() { l.snap(true) }}
	l.down = network.Pipe{Net: w.Net, From: s.Endpoint(), To: from, Ordered: who.Vouched, Room: func() {}, Broken: func() { l.snap(false) }}
	l.up.Send(func() {
		l.up.Opened()
		if s.Life != l.life || !s.Up() {
			l.Reset()
			return
		}
		if l.home && s.Host != nil {
			s.TakeAlways(func() { s.attachHome(l, who) })
			return
		}
		s.TakeAlways(func() { s.attach(l, who, asked) })
	})
}

// send sends a frame to the server.
func (l *call) send(frame *api.ClientFrame) {
	l.up.Send(func() {
		switch {
		case l.server.Life != l.life:
			l.Reset()
		case l.at != nil:
			l.server.TakeAlways(func() { l.at.comes(frame) })
		}
	})
}

// hear sends a frame to the caller.
func (l *call) hear(frame *api.ServerFrame) {
	l.down.Send(func() {
		l.take(func() {
			if l.over {
				l.down.Took()
			} else {
				l.heard(frame)
			}
		})
	})
}

// end informs the caller that the server has ended the stream.
func (l *call) end(orderly bool) {
	l.take(func() {
		if !l.over {
			l.over = true
			l.ended(orderly)
		}
	})
}

// close closes the stream for the caller. Frames that it has sent may still arrive.
func (l *call) close() {
	if l.over {
		return
	}
	l.over = true
	l.gone()
}

// gone informs the server that the caller has left.
func (l *call) gone() {
	l.w.Net.Carry(l.up.From, l.up.To, func() {
		if l.at != nil && l.server.Life == l.life {
			l.server.TakeAlways(l.at.leave)
		}
	}, func() {})
}

// Reset informs the caller that the server is not reachable.
func (l *call) Reset() {
	l.w.Net.Carry(l.down.From, l.down.To, func() { l.end(false) }, func() {})
}

// snap breaks the connection. The side that could not send notices it. The other side notices it if
// a message can reach it.
func (l *call) snap(up bool) {
	if up {
		l.gone()
		l.end(false)
		return
	}
	if l.at != nil && l.server.Life == l.life {
		l.server.TakeAlways(l.at.leave)
	}
	l.Reset()
}

// clientStream is a stream from a client to a server.
type clientStream struct {
	call
	stream uint64 // the number by which the client identifies it
}

// dial connects the client to the server at an address.
func (c *client) dial(o line.Output) {
	l := &clientStream{call: call{w: c.w, server: c.w.serverAt(o.Address), take: c.read, home: o.Home}, stream: o.Stream}
	c.streams = append(c.streams, l)
	l.heard = func(frame *api.ServerFrame) {
		l.down.Took()
		c.hears(frame)
		c.step(line.Input{Kind: line.Received, Stream: l.stream, Frame: frame})
	}
	l.ended = func(bool) {
		c.streams = slices.DeleteFunc(c.streams, func(other *clientStream) bool { return other == l })
		c.step(line.Input{Kind: line.Ended, Stream: l.stream, Err: errReset})
	}
	if l.server == nil { // the server is on record, but has not started yet
		c.later(c.w.Net.Delay(), func() { l.end(false) })
		return
	}
	l.open(c.endpoint(), stream.Caller{Principal: c.principal(), Via: "grpc"}, o.Relayed)
}

var errReset = errors.New("connection reset")

// serverAt returns the server with the given address for clients, or nil.
func (w *World) serverAt(address string) *Server {
	for _, s := range w.Servers {
		if s.said().ClientAddress == address {
			return s
		}
	}
	return nil
}

// transmit sends a frame of the client. The client sends the next frame when the pipe has room.
func (c *client) transmit(l *clientStream, frame *api.ClientFrame) {
	sent := func() { c.step(line.Input{Kind: line.Sent, Stream: l.stream}) }
	l.up.Room = func() {}
	if l.send(frame); !l.up.Full() {
		sent()
		return
	}
	l.up.Room = func() {
		l.up.Room = func() {}
		c.receive(func() {
			if !l.over {
				sent()
			}
		})
	}
}

// ping sends a ping to the server of the stream.
func (c *client) ping(l *clientStream) {
	w, s := c.w, l.server
	w.Net.Carry(c.endpoint(), s.Endpoint(), func() {
		if s.Life == l.life {
			s.Receive(func() {
				w.Net.Carry(s.Endpoint(), c.endpoint(), func() {
					c.receive(func() {
						if !l.over {
							c.step(line.Input{Kind: line.Pong, Stream: l.stream})
						}
					})
				}, func() {})
			})
		}
	}, func() {})
}
