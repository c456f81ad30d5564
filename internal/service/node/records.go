package node

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/transport"
)

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
	r.founding.Hear(hello.Server, answerOf(hello))
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
	return r.founding.Takes(answerOf(hello))
}

// answerOf returns what a server's introduction says about founding.
func answerOf(h transport.Hello) founding.Answer {
	return founding.Answer{UID: h.UID, Phase: h.Phase, Record: h.Record}
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
