package node

import "fmt"

// refusal is the word of a peer that it will never have this server as it is.
type refusal struct {
	peer uint64
	err  error
}

// weigh decides who is wrong when a peer refuses this server. If most of the
// others do, and it was never part of a cluster that has a leader, then it is
// this one, and it stops. Otherwise it is the peer: one server with a wrong
// setting must not bring the others down.
func (n *Node) weigh(r refusal) error {
	n.refusals[r.peer] = r.err
	if n.served {
		n.log.Warn("a server refuses this one, which goes on without it", "server", r.peer, "err", r.err)
		return nil
	}
	if 2*len(n.refusals) <= len(n.cfg.Peers)-1 {
		return nil // the transport has told
	}
	return fmt.Errorf("server %d refuses this one: %w", r.peer, r.err)
}
