package registry

import (
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// Digest returns a hash of the state. Equal states have equal digests; different ones have
// equal digests with probability 2^-64. Only the order of waiters, and which names have
// dropped out of the past, are not covered; differences in these show in later states.
func (r *Registry) Digest() uint64 {
	r.fold()
	head := sum(uint64(r.level), bit(r.stay), r.epoch, r.counter, uint64(r.now), uint64(r.wall), r.renewals, uint64(r.waiters))
	for _, m := range r.Members() {
		head += sum(m.ID, m.UID, uint64(m.Standing), hashText(m.PeerAddress), hashText(m.ClientAddress))
	}
	if hasGuarded(r.level) {
		head += hashText(string(appendGuarded(nil, r.Guarded())))
	}
	return head + r.rulesHash + r.trail.hash() + r.tally.digest
}

// counts reports whether a claim is counted in the digest, provided that all waiters of its
// resource are counted.
func (t *tally) counts(c *claim) bool { return c.fence <= t.fence }

// countQueue counts the waiters that are not counted yet, which are the last ones.
func (res *resource) countQueue() {
	if present := res.crowd; present != nil {
		for _, c := range present.queue[present.counted:] {
			c.session.claimed += c.hash()
		}
		present.counted = len(present.queue)
	}
}

func (s *session) addAnswer(a *answer) {
	s.tally.bytes += a.bytes()
	if a.sequence <= s.counted {
		s.answered += a.hash()
	}
}

func (s *session) removeAnswer(a *answer) {
	s.tally.bytes -= a.bytes()
	if a.sequence <= s.counted {
		s.answered -= a.hash()
	}
}

// removeSession removes a session with its answers, but without its claims. Those are in
// its digest too.
func (t *tally) removeSession(s *session) {
	t.bytes -= s.bytes()
	for i := range s.answers {
		t.bytes -= s.answers[i].bytes()
	}
	t.digest -= s.digest
}

// countGrants counts the holders of a resource that are not counted yet, which are the newest.
func (t *tally) countGrants(res *resource) {
	holders := res.holders()
	for i := len(holders) - 1; i >= 0 && !t.counts(holders[i]); i-- {
		holders[i].session.claimed += holders[i].hash()
	}
}

// countSession counts a session that has changed, and its answers that are not counted yet,
// which are the last ones.
func (t *tally) countSession(s *session) {
	if s.ended {
		return
	}
	for i := len(s.answers) - 1; i >= 0 && s.answers[i].sequence > s.counted; i-- {
		s.answered += s.answers[i].hash()
	}
	if n := len(s.answers); n > 0 {
		s.counted = max(s.counted, s.answers[n-1].sequence)
	}
	t.digest -= s.digest
	s.digest = sum(s.fixed, s.claimed, s.answered, s.renewals, bit(s.silent)|bit(s.leaving)<<1, uint64(s.remaining), s.low)
	t.digest += s.digest
}

// countPast counts the endings that are not counted yet, which are in the newest
// records.
func (t *tally) countPast(l *recent) {
	for rec := l.newest; rec != nil && rec.fresh > 0; rec = rec.older {
		for i := range rec.fresh {
			at := rec.next - 1 - i + len(rec.ended)
			rec.sum += rec.ended[at%len(rec.ended)].hash()
		}
		rec.fresh = 0
		t.digest -= rec.digest
		rec.digest = sum(rec.named, rec.sum)
		t.digest += rec.digest
	}
}

// hash returns the hash of the fixed part of a session.
func (s *session) hash() uint64 {
	return sum(s.id.high(), s.id.low(), s.hashes.owner, uint64(s.ttl), s.hashes.host, uint64(s.pid), s.hashes.program, uint64(s.opened))
}

func (a *answer) hash() uint64 {
	return sum(1, a.sequence, uint64(a.code), a.fence, a.floor, hashText(a.message))
}

// hash returns the hash of a claim and its resource, without its session.
func (c *claim) hash() uint64 {
	h := sum(2, c.sequence, c.fence, uint64(c.since), c.resource.key().sum(), uint64(c.resource.limit), bit(c.shared))
	if c.extras != plain && c.extras != shared && *c.extras != (extras{shared: c.shared}) {
		h = sum(h, hashText(c.value), uint64(c.priority), uint64(c.patience), uint64(c.at), bit(c.named), bit(c.revoked), hashText(c.reason), hashText(c.by))
	}
	if c.keeps != nil {
		h = sum(h, c.keeps.hash())
	}
	return h
}

func (e *ending) hash() uint64 {
	request := e.request()
	return sum(e.fence, uint64(e.since), uint64(e.until), uint64(e.of.pid), uint64(e.how),
		e.of.hashes.host, e.of.hashes.program, hashText(request.reason), e.of.hashes.owner, hashText(request.by))
}

// sum hashes words; their order matters. Each word is multiplied in, and the halves of the
// product are folded together, as in wyhash (Wang Yi, 2019).
func sum(words ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, w := range words {
		high, low := bits.Mul64(h^w, 0xd6e8feb86659fd93)
		h = high ^ low
	}
	return mixed(h)
}

// hashText returns the hash of a text. It has no seed, because all servers must compute the same.
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
