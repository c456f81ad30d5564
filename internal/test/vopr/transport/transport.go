// Package transport carries messages between simulated servers. It drives the machines of
// internal/service/peering over the simulated network, as internal/service/transport does over
// sockets, and checks what they promise.
package transport

import (
	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/peering"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/test/vopr/events"
	"github.com/conclave-io/conclave/internal/test/vopr/machine"
	"github.com/conclave-io/conclave/internal/test/vopr/network"
)

const ms = events.Millisecond

// Handler is the server of a transport.
type Handler interface {
	// Up reports whether the server has a replica. Directory returns the UID of its data
	// directory, 0 if there is none.
	Up() bool
	Directory() uint64
	// Hello returns its introduction to another server, and Examiner what it uses to examine the
	// introduction of another one.
	Hello(to uint64) peering.Hello
	Examiner(of uint64) *peering.Examiner
	// Knows reports whether the server has the address of another one, and Gone whether that was
	// removed. Accept makes it a peer.
	Knows(id uint64) bool
	Gone(id uint64) bool
	Accept(id uint64)
	// Met, Lost, Noted, Unreachable and SnapshotSent are those of the real transport.
	Met(h peering.Hello)
	Lost(peer uint64)
	// Welcomed is told that a peer has accepted the connection for messages.
	Welcomed(peer uint64)
	Noted(peer uint64, d replica.Digest)
	Unreachable(peer uint64)
	SnapshotSent(peer uint64, ok bool)
	// Receive takes a message of a peer.
	Receive(peer uint64, m *raftpb.Message)
	// Refused is told of a final refusal once. Replaced lets an operator read the text of a refusal
	// because of the level, and reports whether the operator replaces this server.
	Refused(by uint64, refusal *peering.Refusal)
	Replaced(text string) bool
}

// Net connects the transports of all servers.
type Net struct {
	*network.Network
	All []*Transport // by id, from 1
}

// Transport is the transport of one server.
type Transport struct {
	*machine.Machine
	net     *Net
	h       Handler
	remotes map[uint64]*remote // nil while the process is down
	ended   map[int]int64      // when each life ended, for the judge
}

// Add returns the transport of the next server.
func (n *Net) Add(m *machine.Machine, h Handler) *Transport {
	t := n.Apart(m, h)
	n.All = append(n.All, t)
	return t
}

// Apart returns a transport that the others do not dial.
func (n *Net) Apart(m *machine.Machine, h Handler) *Transport {
	return &Transport{Machine: m, net: n, h: h, ended: make(map[int]int64)}
}

// Start begins the life of a process.
func (t *Transport) Start() { t.remotes = make(map[uint64]*remote) }

// Resume continues to send after a pause.
func (t *Transport) Resume() {
	for _, other := range t.net.All {
		if c := t.over(other.ID); c != nil {
			t.write(c)
		}
	}
}

// Outdated reports whether the server does not dial another one because one of them does not support
// the level.
func (t *Transport) Outdated() bool {
	for _, r := range t.remotes {
		if r.dialled != nil && r.dialled.outdated {
			return true
		}
	}
	return false
}
