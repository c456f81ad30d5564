package registry

import (
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"github.com/conclave-io/conclave/internal/service/registry/sorted"
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
	if r.settings != nil || r.backup != 0 {
		head += sum(hashText(string(r.settings.Append(nil))), uint64(r.backup))
	}
	return head + r.rulesHash.sum(r.rules) + r.trail.hash() + r.expected.Digest() + r.tally.digest
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
	if c.lingers() {
		h = sum(h, uint64(c.atLeast), uint64(c.lossDelay))
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

// tally has the size of the state and its digest. It is not part of the state, and no command
// depends on it.
type tally struct {
	// bytes is the approximate size of the encoding. Each change updates it.
	bytes int
	// digest is the sum of the digests of sessions and records. fold updates it.
	digest uint64
	// fence is the newest one at the last fold. Claims with later fences are not counted in the
	// digest; all others are.
	fence uint64
}

// Size returns the approximate size of the result of Encode.
func (r *Registry) Size() int {
	size := 74 + 96*len(r.members) + r.tally.bytes + r.settings.Size() + r.expected.Size(ruleTexts)
	if r.guarded != nil {
		size += r.guarded.bytes
	}
	if r.rules != nil {
		size += r.rules.Size() + r.trail.size()
	}
	return size
}

// Carried reports whether a request was carried out before, so that carrying it out again
// changes nothing.
func (st *state) Carried(id SessionID, sequence uint64) bool {
	s := st.sessions[id]
	return s != nil && s.carried(sequence)
}

func (s *session) carried(sequence uint64) bool {
	_, answered := s.find(sequence)
	return answered || sequence < s.low || s.claims.get(number(sequence)) != nil
}

// ValueSize returns the length of the value of a claim, or 0 if there is none.
func (st *state) ValueSize(id SessionID, sequence uint64) int {
	if s := st.sessions[id]; s != nil {
		if c := s.claims.get(number(sequence)); c != nil {
			return len(c.value)
		}
	}
	return 0
}

// bytes returns the approximate size of the encoding of a session, without its answers and
// claims.
func (s *session) bytes() int { return 64 + len(s.owner) + len(s.host) + len(s.program) }

func (a *answer) bytes() int {
	n := 12 + len(a.message)
	if a.fence != 0 {
		n += 14 // and its floor
	}
	return n
}

func (c *claim) bytes() int {
	n := 44 + len(c.value) + len(c.reason) + len(c.by) + c.keeps.bytes()
	if c.lingers() {
		n += lingerBytes(c.resource.name, c.session.party) // so that its end makes nothing larger
	}
	return n
}

func (res *resource) bytes() int { return 8 + len(res.name) }

// bytes returns the approximate size of the encoding of a record, without its endings.
func (rec *record) bytes() int { return 8 + len(rec.name) }

func (e *ending) bytes() int {
	request := e.request()
	return 44 + len(e.of.host) + len(e.of.program) + len(request.reason) + len(e.of.owner) + len(request.by)
}

// Apply keeps the size of the state up to date, but not its digest, nor the order of ids and
// names. Changed sessions and resources are put on a list. When the digest or the order is
// needed, or the list is long, fold updates both. What is created and removed in between is
// never hashed or sorted.

// mostChanges bounds the list after an entry. So it bounds the work of Freeze and Digest, about
// a microsecond for each change. It is large enough for some hundred clients that take and release
// the same locks again and again: between two folds, each lock is then on the list once.
const mostChanges = 512

// changes are the sessions and resources that changed since the last fold. No version shares
// them, because they were created or thawed since. Sessions that ended since may be shared by
// versions, and may also be among the changed ones.
type changes struct {
	sessions, ended []*sessionState
	resources       []*resource
}

func (c *changes) len() int { return len(c.sessions) + len(c.ended) + len(c.resources) }

// session adds a session that is not on the list.
func (c *changes) session(s *session) {
	s.changed = true
	c.sessions = append(c.sessions, s.sessionState)
}

// resource adds a resource that is not on the list.
func (c *changes) resource(res *resource) {
	res.changed = true
	c.resources = append(c.resources, res)
}

// mark says whether a session or resource is on the list of changes, and whether it is in
// the order.
type mark struct {
	changed bool
	place   position
}

func (m *mark) marked() *mark { return m }

type position uint8

const (
	absent   position = iota
	outdated          // there is a version's copy of it
	present
)

// fold updates the digest, and the order of ids and names.
func (st *state) fold() {
	sessions, ended := st.changed.sessions, st.changed.ended
	held, free := st.partition()
	for _, res := range held {
		st.tally.countGrants(res)
		res.countQueue()
	}
	st.tally.fence = st.fence()
	for _, s := range sessions {
		st.tally.countSession(s.of)
	}
	st.tally.countPast(&st.recent)
	if many(len(free), st.resources.len()) {
		st.resources.prune((*resource).gone)
	} else {
		for _, res := range free {
			st.resources.remove(res.key())
		}
	}
	order(st.byID, sessions, ended, (*sessionState).gone)
	order(st.names, held, free, func(res *resource) bool {
		if res.generation == st.generation {
			return res.gone()
		}
		return st.resources.get(res.key()) == nil // a version has this one
	})
	clear(sessions)
	clear(ended)
	clear(st.changed.resources)
	st.changed = changes{sessions[:0], ended[:0], st.changed.resources[:0]}
}

// partition splits the changed resources into those that somebody holds and those that
// nobody holds any more.
func (st *state) partition() (held, free []*resource) {
	all, n := st.changed.resources, 0
	for i, res := range all {
		if !res.gone() {
			all[i], all[n] = all[n], res
			n++
		}
	}
	return all[:n], all[n:]
}

// ordered is an entry of an order.
type ordered interface {
	gone() bool
	marked() *mark
}

// many reports whether rebuilding an order is faster than removing the entries that are gone
// one by one.
func many(gone, all int) bool { return 4*gone > all }

// order updates entries with what has changed and what is gone. Over reports whether an
// entry has to be removed.
func order[T ordered](entries *sorted.Set[T], changed, gone []T, over func(T) bool) {
	found := 0
	for _, e := range gone {
		if e.marked().place != absent {
			found++
		}
	}
	switch {
	case found == entries.Len():
		entries.Clear()
	case many(found, entries.Len()):
		keep(entries, over)
	default:
		for _, e := range gone {
			if e.marked().place != absent {
				entries.Remove(e)
			}
		}
	}
	for _, e := range changed {
		m := e.marked()
		m.changed = false
		if !e.gone() && m.place != present {
			entries.Put(e)
			m.place = present
		}
	}
}

// keep rebuilds the order with the entries that stay.
func keep[T ordered](entries *sorted.Set[T], over func(T) bool) {
	var stays []T
	entries.Scan(func(e T) bool {
		if !over(e) {
			stays = append(stays, e)
		}
		return true
	})
	entries.Fill(stays)
}
