package node

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/transport"
)

// Change changes the members, and returns the id of the affected server once the change
// is committed. It fails with ErrNotLeader if this server does not lead, and with a
// *replica.ChangeError if the change is refused. Calling it again is harmless.
func (n *Node) Change(ctx context.Context, c replica.Change) (uint64, error) {
	return n.untilDone(ctx, func(r *replica.Replica) (uint64, bool, error) { return r.Change(now(), c) })
}

// untilDone asks the replica again and again until it reports that something is done.
func (n *Node) untilDone(ctx context.Context, ask func(*replica.Replica) (uint64, bool, error)) (uint64, error) {
	tick := time.NewTicker(n.cfg.tick())
	defer tick.Stop()
	for {
		var (
			id   uint64
			done bool
		)
		err := n.call(ctx, func(r *replica.Replica) (err error) {
			if r == nil {
				return ErrNotLeader
			}
			id, done, err = ask(r)
			return err
		})
		switch {
		case errors.Is(err, agreement.ErrNotLeader):
			return 0, ErrNotLeader
		case err != nil || done:
			return id, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// ChangeLevel changes the level of the cluster, and returns once that is committed. It fails
// as Change does.
func (n *Node) ChangeLevel(ctx context.Context, what replica.Upgrade, to uint32, by registry.Origin) error {
	_, err := n.untilDone(ctx, func(r *replica.Replica) (uint64, bool, error) {
		done, err := r.ChangeLevel(now(), what, to, by)
		return 0, done, err
	})
	return err
}

// acquaint updates what this server knows of the others from the log: which servers there
// are, their addresses, and which were removed.
func (n *Node) acquaint() {
	members, gone := n.replica.Members(), n.replica.Gone()
	n.records.update(members, gone)
	if !n.replica.Blank() {
		n.records.with((*founding.Machine).Gained)
	}
	n.reconsider()
	for _, c := range n.clients {
		c.Deliver(nil)
	}
	for _, id := range gone {
		n.net.RemovePeer(id)
	}
	for _, m := range members {
		if m.PeerAddress != "" && m.ID != n.cfg.ID && !m.Reserved() {
			n.net.SetPeer(m.ID, m.PeerAddress)
		}
	}
}

// reconsider makes package founding decide again after news. A running server does not
// need the record, so an error is only logged.
func (n *Node) reconsider() {
	if _, err := n.decide(); err != nil {
		n.log.Warn("cannot save the founding record", "err", err)
	}
}

// Acquaintance is a number, never 0, that grows when the result of ClientAddresses may
// have changed.
func (n *Node) Acquaintance() uint64 { return 1 + n.records.version.Load() }

// ClientAddresses returns the known client addresses of the members. It leaves out servers
// that are not members: those with a reserved id, those that asked to join and that no
// server has met yet, and those that are being removed.
func (n *Node) ClientAddresses() []string {
	n.records.mu.Lock()
	defer n.records.mu.Unlock()
	var addresses []string
	for _, id := range slices.Sorted(maps.Keys(n.records.agreed)) {
		address := n.records.agreed[id].ClientAddress
		if id == n.cfg.ID {
			address = n.cfg.ClientAddress
		}
		if address != "" {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// levelsOf returns the levels that a server reads, from its introduction.
func levelsOf(h transport.Hello) replica.Levels {
	return replica.Levels{Min: h.MinLevel, Max: h.MaxLevel, Build: h.Build}
}

// memberOf returns a server's introduction in the form that the replica takes.
func memberOf(h transport.Hello) registry.Member {
	return registry.Member{ID: h.Server, UID: h.UID, PeerAddress: h.PeerAddress, ClientAddress: h.ClientAddress}
}
