package leasemodel

import "github.com/conclave-io/conclave/process"

// judge asserts what must be true in every state. That no committed entry is lost is
// asserted where one is committed, and that fences grow where a client enters.
func (w *world) judge() {
	for c := range w.clientCount {
		m := &w.clients[c]
		if !m.believes() {
			continue
		}
		process.Assert(w.registry.status[c] == open, believes+", and its session has ended")
		process.Assert(w.registry.holder == c+1, believes+", and the log has given it to another or taken it away")
		process.Assert(w.registry.fence == m.fence, believes+", with another fence than the log has")
	}
	process.Assert(w.outlived <= 2*w.ttl, outlives+" for more than two TTLs with a leader")
}
