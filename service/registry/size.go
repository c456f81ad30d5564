package registry

import (
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// tally sums the state up: about how many bytes its encoding has, and a hash of its
// parts. Each change keeps it up to date, so that both are there at any time. It is
// not part of the state; no command depends on it.
type tally struct {
	bytes  int
	digest uint64
}

// add counts a part of the state that is new, and remove one that is gone.
func (t *tally) add(bytes int, digest uint64)    { t.bytes, t.digest = t.bytes+bytes, t.digest+digest }
func (t *tally) remove(bytes int, digest uint64) { t.bytes, t.digest = t.bytes-bytes, t.digest-digest }

// Size returns about how many bytes Encode would return.
func (r *Registry) Size() int { return 64 + 96*len(r.members) + r.tally.bytes }

// Digest returns a hash of the state: equal states have equal ones, and states that
// differ have different ones but for one chance in 2^64. Only the order of those who
// wait, and which names have left the past, is not in it; both show in what follows.
func (r *Registry) Digest() uint64 {
	head := sum(uint64(r.level), r.epoch, r.counter, uint64(r.now), r.renewals, uint64(r.waiters))
	for _, m := range r.Members() {
		head += sum(m.ID, m.UID, uint64(m.Standing), hashText(m.PeerAddress), hashText(m.ClientAddress))
	}
	return head + r.tally.digest
}

// Carried reports whether a request was carried out before, so that carrying it out
// again changes nothing.
func (r *Registry) Carried(id SessionID, sequence uint64) bool {
	s := r.sessions[id]
	if s == nil {
		return false
	}
	_, answered := s.find(sequence)
	return answered || sequence < s.low || s.claims.get(number(sequence)) != nil
}

// ValueSize returns the length of the value of a claim, or 0 if there is none.
func (r *Registry) ValueSize(id SessionID, sequence uint64) int {
	if s := r.sessions[id]; s != nil {
		if c := s.claims.get(number(sequence)); c != nil {
			return len(c.value)
		}
	}
	return 0
}

// weight is that of a session without its answers and claims.
func (st *sessionState) weight() (bytes int, digest uint64) {
	s := st.of
	return 64 + len(s.owner) + len(s.host) + len(s.program),
		sum(1, s.id.high(), s.id.low(), s.texts, uint64(s.ttl), uint64(s.opened), st.renewals, bit(st.silent), uint64(st.remaining), bit(st.leaving), st.low)
}

// weight is that of an answer of a session.
func (a *answer) weight(s *session) (bytes int, digest uint64) {
	bytes = 12 + len(a.message)
	if a.fence != 0 {
		bytes += 14 // and its floor
	}
	return bytes, sum(2, s.id.high(), s.id.low(), a.sequence, uint64(a.code), a.fence, a.floor, hashText(a.message))
}

func (c *claim) weight() (bytes int, digest uint64) {
	id := c.session.id
	digest = sum(3, id.high(), id.low(), c.sequence, c.fence, uint64(c.since), c.resource.key().hash(), bit(c.shared))
	if c.terms != plain && c.terms != shared && *c.terms != (terms{shared: c.shared}) {
		digest = sum(digest, hashText(c.value), uint64(c.priority), uint64(c.patience), uint64(c.at), bit(c.named), bit(c.revoked), hashText(c.reason), hashText(c.by))
	}
	return 44 + len(c.value) + len(c.reason) + len(c.by), digest
}

func (res *resource) weight() (bytes int, digest uint64) {
	return 8 + len(res.name), sum(4, res.key().hash(), uint64(res.limit))
}

// weight is that of the name of a record.
func (rec *record) weight() (bytes int, digest uint64) {
	return 8 + len(rec.name), sum(5, rec.key.hash())
}

func (e *Ended) weight(k key) (bytes int, digest uint64) {
	return 44 + len(e.Host) + len(e.Program) + len(e.Reason) + len(e.Owner) + len(e.By),
		sum(6, k.hash(), e.Fence, uint64(e.Since), uint64(e.Until), uint64(e.PID), uint64(e.How),
			hashText(e.Host), hashText(e.Program), hashText(e.Reason), hashText(e.Owner), hashText(e.By))
}

// sum hashes words, whose order counts: each is multiplied in, and the halves of the
// product are folded together, as in wyhash (Wang Yi, 2019).
func sum(words ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, w := range words {
		high, low := bits.Mul64(h^w, 0xd6e8feb86659fd93)
		h = high ^ low
	}
	return mixed(h)
}

// hashText is that of a text. All servers must come to the same, so it has no seed.
func hashText(text string) uint64 {
	if text == "" {
		return 0
	}
	return xxhash.Sum64String(text)
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func (id SessionID) high() uint64 { return binary.BigEndian.Uint64(id[:]) }
func (id SessionID) low() uint64  { return binary.BigEndian.Uint64(id[8:]) }
