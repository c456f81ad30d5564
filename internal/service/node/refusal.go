package node

import (
	"errors"
	"fmt"

	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/peering"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/transport"
)

// refusal is the final refusal of a peer to talk to this server as it is.
type refusal struct {
	peer uint64
	err  error
}

// weigh passes a refusal to package founding, which decides which side is wrong. It
// returns an error if this server must stop.
func (n *Node) weigh(r refusal) error {
	why := founding.Misfit
	var told *transport.Refusal
	if errors.As(r.err, &told) {
		switch told.Code {
		case peering.Removed:
			why = founding.Removed
		case peering.UnknownServer:
			why = founding.Unknown
		}
	}
	others := max(len(n.cfg.Peers), n.records.size()) - 1
	stop := false
	n.records.with(func(m *founding.Machine) { stop = m.Refused(r.peer, why, others, n.served) })
	switch {
	case stop && why == founding.Removed:
		return &replica.RemovedError{ID: n.cfg.ID}
	case stop:
		return fmt.Errorf("server %d refuses connections from this server: %w", r.peer, r.err)
	case n.served && !(n.cfg.Joined && why == founding.Unknown):
		n.log.Warn("a peer refuses connections from this server; continuing without that peer", "peer", r.peer, "err", r.err)
	}
	return nil // the transport has logged it
}
