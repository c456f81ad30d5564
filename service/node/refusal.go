package node

import (
	"errors"
	"fmt"

	"github.com/conclave-io/conclave/service/replica"
	"github.com/conclave-io/conclave/service/transport"
)

// refusal is the word of a peer that it will never have this server as it is.
type refusal struct {
	peer uint64
	err  error
}

// weigh decides who is wrong when a peer refuses this server. If most of the
// others do, and it was never part of a cluster that has a leader, then it is
// this one, and it stops. Otherwise it is the peer: one server with a wrong
// setting must not bring the others down.
//
// That this server was removed is no opinion: the peer has it from the log. And a
// server that has just joined may reach one that has not heard of it yet.
func (n *Node) weigh(r refusal) error {
	var why *transport.Refusal
	if errors.As(r.err, &why) && why.Code == transport.Removed {
		return &replica.RemovedError{ID: n.cfg.ID}
	}
	if n.cfg.Joined && why != nil && why.Code == transport.UnknownServer {
		return nil
	}
	n.refusals[r.peer] = r.err
	if n.served {
		n.log.Warn("a server refuses this one, which goes on without it", "server", r.peer, "err", r.err)
		return nil
	}
	if others := max(len(n.cfg.Peers), n.records.size()) - 1; 2*len(n.refusals) <= others {
		return nil // the transport has told
	}
	return fmt.Errorf("server %d refuses this one: %w", r.peer, r.err)
}
