package node

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/conclave-io/conclave/service/founding"
	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/replica"
	"github.com/conclave-io/conclave/service/transport"
)

// records is what this server knows of the data directories of the others, for
// the handshakes that other goroutines make.
type records struct {
	mu sync.Mutex
	// self is this server as a founder, joined says that it is none, and founded
	// that it has state of the cluster.
	self            founding.Server
	joined, founded bool
	// hellos are the newest introductions of each server.
	hellos map[uint64]transport.Hello
	// agreed is what the registry has on record, and gone who was removed.
	agreed map[uint64]registry.Member
	gone   map[uint64]bool
	// version counts the updates of agreed.
	version atomic.Uint64
}

// met keeps an introduction. Handshakes may end in another order than they began,
// and a directory does not lose its record.
func (r *records) met(hello transport.Hello) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hellos == nil {
		r.hellos = make(map[uint64]transport.Hello)
	}
	if old := r.hellos[hello.Server]; old.UID == hello.UID && old.Phase > hello.Phase {
		hello.Phase, hello.Record = old.Phase, old.Record
	}
	r.hellos[hello.Server] = hello
}

// lost forgets that a server is new: it may come back with a record, or with
// another directory.
func (r *records) lost(server uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.hellos[server].Phase; s == founding.New || s == founding.Restored {
		delete(r.hellos, server)
	}
}

// server returns this server as a founder.
func (r *records) server() founding.Server {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.self
}

// settle notes the record of the founding, and whether this server has state of
// the cluster.
func (r *records) settle(record founding.Record, founded bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.self.Record = record
	r.founded = r.founded || founded
}

// complete notes whether this server has state of the cluster, and reports whether
// that is new.
func (r *records) complete(founded bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := founded && !r.founded
	r.founded = r.founded || founded
	return changed
}

// phase is this server's part in the founding, as it tells the others.
func (r *records) phase() (founding.Phase, founding.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.self.Record == nil && (r.founded || r.joined):
		return founding.NotReady, nil
	case r.founded:
		return founding.Founded, r.self.Record
	}
	answer := r.self.Says(r.heard())
	return answer.Phase, answer.Record
}

// answers returns what each server that introduced itself says of the founding.
func (r *records) answers() map[uint64]founding.Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heard()
}

// heard is answers; mu is held.
func (r *records) heard() map[uint64]founding.Answer {
	answers := make(map[uint64]founding.Answer, len(r.hellos))
	for id, hello := range r.hellos {
		answers[id] = founding.Answer{UID: hello.UID, Phase: hello.Phase, Record: hello.Record}
	}
	return answers
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
