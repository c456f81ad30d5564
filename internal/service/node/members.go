package node

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
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
	n.founder.reconsider()
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

// records holds what this server knows of the data directories of the others. Other
// goroutines use it for handshakes.
type records struct {
	mu sync.Mutex
	// founding makes the decisions about founding the cluster.
	founding founding.Machine
	// hellos has the newest introduction of each server.
	hellos map[uint64]transport.Hello
	// agreed has the members in the registry, and gone the removed servers.
	agreed map[uint64]registry.Member
	gone   map[uint64]bool
	// version counts the updates of agreed.
	version atomic.Uint64
}

// met keeps an introduction.
func (r *records) met(hello transport.Hello) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hellos == nil {
		r.hellos = make(map[uint64]transport.Hello)
	}
	r.hellos[hello.Server] = hello
	r.founding.Hear(hello.Server, hello.Answer())
}

// lost notes that the connection to a server is broken.
func (r *records) lost(server uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.founding.Lose(server) {
		delete(r.hellos, server)
	}
}

// takes reports whether to accept a server that this one does not know.
func (r *records) takes(hello transport.Hello) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.founding.Takes(hello.Answer())
}

// with calls f with the machine that decides about founding.
func (r *records) with(f func(*founding.Machine)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.founding)
}

// phase returns the state of founding at this server, as it tells the others.
func (r *records) phase() (founding.Phase, founding.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	says := r.founding.Says()
	return says.Phase, says.Record
}

// all returns the introductions of the other servers, by id.
func (r *records) all() []transport.Hello {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []transport.Hello
	for _, id := range slices.Sorted(maps.Keys(r.hellos)) {
		all = append(all, r.hellos[id])
	}
	return all
}

// update takes over the members and the removed servers from the log.
func (r *records) update(members []replica.Member, gone []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.agreed, r.gone = make(map[uint64]registry.Member), make(map[uint64]bool)
	for _, m := range members {
		if !m.Admitted() {
			m.ClientAddress = "" // so far anybody may have named it
		}
		r.agreed[m.ID] = m.Member
	}
	for _, id := range gone {
		r.gone[id] = true
	}
	r.version.Add(1)
}

// removed reports whether a server was removed for good.
func (r *records) removed(server uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone[server]
}

// clientAddress returns the recorded client address of a server, if there is one.
func (r *records) clientAddress(server uint64) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.agreed[server].ClientAddress
}

// size returns the number of servers on record.
func (r *records) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.agreed)
}
