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
	// founding decides about the founding.
	founding founding.Machine
	// hellos are the newest introductions of each server.
	hellos map[uint64]transport.Hello
	// agreed is what the registry has on record, and gone who was removed.
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

// lost tells that the connection to a server is broken.
func (r *records) lost(server uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.founding.Lose(server) {
		delete(r.hellos, server)
	}
}

// takes reports whether to talk to a server that this one does not know.
func (r *records) takes(hello transport.Hello) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.founding.Takes(answerOf(hello))
}

// answerOf is what a server said of its part in the founding.
func answerOf(h transport.Hello) founding.Answer {
	return founding.Answer{UID: h.UID, Phase: h.Phase, Record: h.Record}
}

// with lets f see the machine that decides about the founding.
func (r *records) with(f func(*founding.Machine)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.founding)
}

// phase is this server's part in the founding, as it tells the others.
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
