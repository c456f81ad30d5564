package node

import (
	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/transport"
)

// handler passes on the events of the transport. Many goroutines call its methods.
type handler struct{ node *Node }

func (h *handler) Receive(m *raftpb.Message) {
	select {
	case h.node.messages <- m:
	case <-h.node.stop:
	}
}

func (h *handler) Met(hello transport.Hello) {
	h.node.records.met(hello)
	h.node.copies.heard(hello)
	h.post(func(r *replica.Replica) {
		h.node.founder.reconsider()
		r.Met(memberOf(hello), levelsOf(hello))
	})
}

func (h *handler) Connected(peer uint64, up bool) {
	if up {
		h.node.records.with(func(m *founding.Machine) { m.Welcomed(peer) })
		h.node.log.Info("connected to peer", "peer", peer)
	} else {
		h.node.records.lost(peer)
		h.node.log.Warn("lost the connection to peer", "peer", peer)
	}
}

func (h *handler) Noted(peer uint64, note []byte) {
	digest, err := readDigest(note)
	if err != nil {
		return // a note of a later release
	}
	h.post(func(r *replica.Replica) { r.Compare(peer, digest) })
}

func (h *handler) Unreachable(peer uint64) {
	h.post(func(r *replica.Replica) { r.Unreachable(peer) })
}

func (h *handler) SnapshotSent(peer uint64, ok bool) {
	h.post(func(r *replica.Replica) { r.SnapshotSent(peer, ok) })
}

func (h *handler) Refused(peer uint64, err error) {
	select {
	case h.node.refused <- refusal{peer, err}:
	case <-h.node.stop:
	}
}

// post calls f with the replica, if there is one yet.
func (h *handler) post(f func(*replica.Replica)) {
	n := h.node
	select {
	case n.calls <- func() {
		if n.replica != nil {
			f(n.replica)
		}
	}:
	case <-n.stop:
	}
}

// appendDigest appends a digest in the form in which servers exchange it.
func appendDigest(b []byte, d replica.Digest) []byte {
	return wire.AppendUint(wire.AppendUint(wire.AppendUint(b, uint64(d.Version)), d.Index), d.Hash)
}

// readDigest reads what appendDigest wrote.
func readDigest(b []byte) (replica.Digest, error) {
	r := wire.NewReader(b)
	d := replica.Digest{Version: r.Uint32(), Index: r.Uint(), Hash: r.Uint()}
	return d, r.Close()
}
