package node

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/conclave-io/conclave/service/agreement"
	"github.com/conclave-io/conclave/service/founding"
	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/replica"
	"github.com/conclave-io/conclave/service/transport"
)

// Change has a change of the members made, and returns the id of the server that it
// is about once the change is committed. ErrNotLeader says that this server does
// not lead; asking again is harmless. Why a change is refused is told by a
// *replica.ChangeError.
func (n *Node) Change(ctx context.Context, c replica.Change) (uint64, error) {
	return n.untilDone(ctx, func(r *replica.Replica) (uint64, bool, error) { return r.Change(now(), c) })
}

// untilDone asks the replica again and again until it says that something is done.
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

// ChangeLevel has the level of the cluster changed, and returns once that is committed.
// It fails as Change does.
func (n *Node) ChangeLevel(ctx context.Context, what replica.Upgrade, to uint32, by registry.Origin) error {
	_, err := n.untilDone(ctx, func(r *replica.Replica) (uint64, bool, error) {
		done, err := r.ChangeLevel(now(), what, to, by)
		return 0, done, err
	})
	return err
}

// acquaint brings what this server knows of the others to what is on record: who
// they are, where they are, and who is not one of them any more.
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

// reconsider lets package founding decide again, after news. A server that runs can do
// without the record.
func (n *Node) reconsider() {
	if _, err := n.decide(); err != nil {
		n.log.Warn("cannot save the founding record", "err", err)
	}
}

// Acquaintance is a number, never 0, that grows when ClientAddresses may return
// something else.
func (n *Node) Acquaintance() uint64 { return 1 + n.records.version.Load() }

// ClientAddresses returns where the servers of the cluster take clients, as far as
// that is on record, by id. It leaves out those that are not members: an id is
// reserved for them, they have asked to join and nobody met them yet, or they are
// being removed.
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

// levelsOf is what a server said of the levels that it reads.
func levelsOf(h transport.Hello) replica.Levels {
	return replica.Levels{Min: h.MinLevel, Max: h.MaxLevel, Build: h.Build}
}

// memberOf is what a server said of itself, as the replica takes it.
func memberOf(h transport.Hello) registry.Member {
	return registry.Member{ID: h.Server, UID: h.UID, PeerAddress: h.PeerAddress, ClientAddress: h.ClientAddress}
}
