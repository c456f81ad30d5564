package replica

import (
	"fmt"
	"maps"
	"slices"
)

// DigestVersion identifies how Digest.Hash is computed. Digests of different versions are not
// compared.
const DigestVersion = 2

// keptDigests is how many of the newest digests of each server are kept. A server that lags is
// compared later.
const keptDigests = 16

// Digest is a hash of a server's state after the entry at an index. It is the same on all
// servers.
type Digest struct {
	Version     uint32
	Index, Hash uint64
}

// DivergedError means that the state of this server differs from that of the others, although
// it applied the same log. Its memory, its disk or its release is faulty, and it must stop.
type DivergedError struct {
	ID, Index uint64
	Others    []uint64
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("server %d: state at log index %d: differs from that of servers %v, which agree; move the data directory away and start the server again, and it comes back as an empty member",
		e.ID, e.Index, e.Others)
}

// digests compares the state of this server with those of the others.
type digests struct {
	*self
	newest map[uint64][]Digest // of each server
}

func newDigests(own *self) digests { return digests{self: own, newest: make(map[uint64][]Digest)} }

func (r *digests) add(server uint64, digest Digest) {
	all := append(r.newest[server], digest)
	r.newest[server] = all[max(0, len(all)-keptDigests):]
}

// at returns the hash of a server at an index, if it is kept.
func (r *digests) at(server, index uint64) (hash uint64, known bool) {
	for _, digest := range r.newest[server] {
		if digest.Index == index {
			return digest.Hash, true
		}
	}
	return 0, false
}

// digest computes the hash of the state after every DigestEvery entries, for comparison with
// the other servers.
func (r *digests) digest(index uint64) error {
	if index%r.cfg.DigestEvery != 0 {
		return nil
	}
	digest := Digest{DigestVersion, index, r.reg.Digest()}
	r.add(r.cfg.ID, digest)
	r.out.Digests = append(r.out.Digests, digest)
	return r.compare(index)
}

// Compare takes a digest of another server.
func (r *digests) Compare(from uint64, digest Digest) {
	if digest.Version != DigestVersion || r.out.Err != nil {
		return
	}
	r.add(from, digest)
	if err := r.compare(digest.Index); err != nil {
		r.out.Err = err
	}
}

// compare stops this server if a majority of all voters has reached the same state at an index,
// and that state differs from this server's.
func (r *digests) compare(index uint64) error {
	own, known := r.at(r.cfg.ID, index)
	if !known {
		return nil
	}
	voters := r.core.Status().Voters
	agree := make(map[uint64][]uint64)
	for _, id := range voters {
		if hash, known := r.at(id, index); known {
			agree[hash] = append(agree[hash], id)
		}
	}
	for _, hash := range slices.Sorted(maps.Keys(agree)) {
		if others := agree[hash]; hash != own && len(others) > len(voters)/2 {
			return &DivergedError{ID: r.cfg.ID, Index: index, Others: others}
		}
	}
	return nil
}
