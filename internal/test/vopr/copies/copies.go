// Package copies has processes that somebody starts with a copy of the data directory of a server, on
// another machine of a simulated world, while the server runs.
//
// Such a process only introduces itself. Where it is refused, nothing that it sends arrives. Where it
// is admitted, because the server was cut off, the promises of a cluster do not hold.
package copies

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/peering"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/test/vopr/machine"
	"github.com/conclave-io/conclave/internal/test/vopr/network"
	"github.com/conclave-io/conclave/internal/test/vopr/transport"
)

// firstPlace is the place in the network of the first copy; no server has so large an id.
const (
	firstPlace = 41
	places     = 7
)

// Copy is a process with a copy of the data of a server.
type Copy struct {
	machine.Machine
	// Began is when it started, Ended when it ended, or 0.
	Began, Ended int64
	// Admitted means that a server was connected with it once.
	Admitted bool

	net       *transport.Net
	transport *transport.Transport
	hello     peering.Hello
	peers     []uint64
	start     int64 // on its clock
}

// Start starts the copy with a number. It introduces itself as hello says, with a nonce, to the
// servers that it finds in its data.
func Start(net *transport.Net, number int, hello peering.Hello, nonce uint64, peers []uint64) *Copy {
	c := &Copy{Machine: machine.New(hello.Server, net.Network), Began: net.Now, net: net, hello: hello, peers: peers}
	c.Place = network.Server(firstPlace + uint64(number)%places)
	c.Turn = func() {}
	c.hello.Nonce = nonce
	c.Machine.Start()
	c.start = c.Now()
	c.transport = net.Apart(&c.Machine, handler{c})
	c.transport.Start()
	c.transport.Acquaint()
	return c
}

// End ends the process, if it still runs.
func (c *Copy) End() {
	if c.On {
		c.Ended = c.net.Now
		c.Machine.Stop(0)
		c.transport.Stop()
	}
}

// handler is what the transport asks and tells the copy.
type handler struct{ *Copy }

func (c handler) Up() bool          { return false }
func (c handler) Directory() uint64 { return c.hello.UID }

func (c handler) Hello(to uint64) peering.Hello {
	h := c.hello
	h.Receiver, h.Age = to, uint64(c.Now()-c.start)
	return h
}

func (c handler) Examiner(of uint64) *peering.Examiner {
	return &peering.Examiner{
		Self: c.Hello(of), Ready: true, Knows: c.Knows,
		Removed: func(uint64) bool { return false },
		Takes:   func(peering.Hello) bool { return false },
	}
}

func (c handler) Knows(id uint64) bool            { return slices.Contains(c.peers, id) }
func (c handler) Gone(uint64) bool                { return false }
func (c handler) Accept(uint64)                   {}
func (c handler) Met(peering.Hello)               {}
func (c handler) Lost(uint64)                     {}
func (c handler) Welcomed(uint64)                 { c.Admitted = true }
func (c handler) Noted(uint64, replica.Digest)    {}
func (c handler) Unreachable(uint64)              {}
func (c handler) SnapshotSent(uint64, bool)       {}
func (c handler) Receive(uint64, *raftpb.Message) {}
func (c handler) Replaced(string) bool            { return false }
func (c handler) Refused(_ uint64, r *peering.Refusal) {
	if r.Code == peering.Copied || r.Code == peering.Removed {
		c.net.Tell("the copy of server %d stops: %s", c.ID, r.Text)
		c.End()
	}
}
