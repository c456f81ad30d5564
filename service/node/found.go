package node

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/conclave-io/conclave/service/agreement"
	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/replica"
	"github.com/conclave-io/conclave/service/transport"
)

// begin makes the replica from what the disk holds. A server with an empty
// data directory is either a founder of the cluster or one that lost its data,
// and must find out first: a founder may vote, the other has forgotten its vote
// and what it acknowledged, and waits until the others take it back. One that
// joined is no founder, and waits as well.
//
// It leaves the replica nil if the node is stopped meanwhile.
func (n *Node) begin() error {
	disk := agreement.Disk{HardState: n.found.HardState, Snapshot: n.found.Snapshot, Entries: n.found.Entries}
	if n.found.Fresh && !n.cfg.Joined {
		founder, err := n.isFounder()
		if err != nil || n.stopping() {
			return err
		}
		if founder {
			if disk.Snapshot, err = n.foundingState(); err != nil {
				return err
			}
		}
	}
	cfg := n.cfg.replica()
	cfg.UID = n.found.UID
	made, err := replica.New(cfg, disk)
	if err != nil {
		return err
	}
	n.replica = made
	for _, hello := range n.records.all() {
		n.replica.Met(memberOf(hello))
	}
	n.acquaint()
	return nil
}

func (n *Node) stopping() bool {
	select {
	case <-n.stop:
		return true
	default:
		return false
	}
}

// isFounder finds out whether the cluster knew this server with other data. It
// asks until a majority, itself included, has spoken: so a new cluster comes up
// with a minority of its servers missing. One server that lost its data is thus
// found out for certain, since some other that answers was there when its
// identity was put on record. Not so if, besides, servers that were there are
// down and others that answer never were: that is more loss than a cluster of
// this size stands.
func (n *Node) isFounder() (bool, error) {
	if n.cfg.Memory {
		return true, nil // it has nobody to ask
	}
	marker := filepath.Join(n.cfg.Dir, "rejoining")
	if _, err := os.Stat(marker); err == nil {
		return false, nil
	}
	tick := time.NewTicker(n.cfg.tick())
	defer tick.Stop()
	for {
		opinions := n.records.opinions()
		for _, id := range slices.Sorted(maps.Keys(opinions)) {
			if known := opinions[id]; known != 0 && known != n.found.UID {
				n.log.Warn("the cluster knows this server with other data, which is gone: rejoining as an empty member", "told by", id)
				return false, mark(marker)
			}
		}
		if 1+len(opinions) > len(n.cfg.Peers)/2 {
			return true, nil
		}
		select {
		case <-tick.C:
		case <-n.messages: // from a cluster that this server is not part of yet
		case s := <-n.requests:
			n.refuse(s)
		case f := <-n.calls:
			f()
		case r := <-n.refused:
			if err := n.weigh(r); err != nil {
				return false, err
			}
		case <-n.stop:
			return false, nil
		}
	}
}

// refuse answers requests that no replica can take.
func (n *Node) refuse(s submission) {
	c := n.clients[s.conn]
	if c == nil {
		return
	}
	c.Depose()
	delete(n.clients, s.conn)
}

// mark makes the decision to rejoin outlive a restart: by then the others know
// the new UID, and would take this server for a founder.
func mark(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("noting that this server rejoins: %w", err)
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return fmt.Errorf("noting that this server rejoins: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("noting that this server rejoins: %w", err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("noting that this server rejoins: %w", err)
	}
	defer dir.Close()
	return dir.Sync()
}

// records is what this server knows of the data directories of the others, for
// the handshakes that other goroutines make.
type records struct {
	mu sync.Mutex
	// hellos are the newest introductions of each server.
	hellos map[uint64]transport.Hello
	// agreed is what the registry has on record, and gone who was removed.
	agreed map[uint64]registry.Member
	gone   map[uint64]bool
	// version counts the updates of agreed.
	version atomic.Uint64
}

func (r *records) met(hello transport.Hello) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hellos == nil {
		r.hellos = make(map[uint64]transport.Hello)
	}
	r.hellos[hello.Server] = hello
}

// uid returns the UID on record for a server, or 0. What the cluster agreed on
// comes before what this server saw itself.
func (r *records) uid(server uint64) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if agreed := r.agreed[server].UID; agreed != 0 {
		return agreed
	}
	return r.hellos[server].UID
}

// opinions returns what each server that introduced itself has on record for
// this one.
func (r *records) opinions() map[uint64]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	opinions := make(map[uint64]uint64)
	for id, hello := range r.hellos {
		opinions[id] = hello.KnownUID
	}
	return opinions
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

// update takes over what is on record.
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

// clientAddress returns where a server takes clients, if that is on record.
func (r *records) clientAddress(server uint64) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.agreed[server].ClientAddress
}

// size returns how many servers are on record.
func (r *records) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.agreed)
}
