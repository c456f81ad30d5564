package registry

import (
	"iter"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/internal/service/registry/sorted"
)

// state has the sessions, what they hold and wait for, and how past holds ended. It keeps in step
// with them what is derived from them: the indexes of claims, the order of ids and names, the
// totals, what principals use of their quotas, the size and the digest. It makes no decision.
//
// Versions share what has not changed since. So whatever changes a session or a resource thaws it
// first.
type state struct {
	totals
	// No version shares what was created or thawed in the present generation.
	generation uint64

	sessions map[SessionID]*session
	// latest is the session of the newest request, which may have ended since.
	latest *session
	// resources are those that somebody holds and, until the next fold, those that somebody
	// held at their last change: a lock that is taken again and again is created only once.
	resources table[key, *resource]
	indexes
	recent  recent
	lingers lingers

	tally tally
	// byID and names are the sessions and resources in order. fold updates them.
	byID    *sorted.Set[*sessionState]
	names   *sorted.Set[*resource]
	changed changes

	control *control // nil if no rules are enforced
}

// totals are counters of the state.
type totals struct {
	// epoch and counter are the newest fence.
	epoch   uint64
	counter uint64
	waiters int
	held    [classes]int // resources
	// lingering counts the claims whose places are to linger.
	lingering int
}

func newState() state {
	return state{
		totals:     totals{epoch: 1},
		generation: 1,
		sessions:   make(map[SessionID]*session),
		indexes:    newIndexes(),
		lingers:    newLingers(),
		byID:       sorted.New(func(a, b *sessionState) bool { return a.of.id.Compare(b.of.id) < 0 }),
		names:      sorted.New(func(a, b *resource) bool { return a.class < b.class || a.class == b.class && a.name < b.name }),
	}
}

// Epoch returns the present epoch of fences.
func (t *totals) Epoch() uint64 { return t.epoch }

func (t *totals) counts(sessions int) Counts {
	counts := Counts{Sessions: sessions, Locks: t.held[Lock], Elections: t.held[Election], Waiters: t.waiters}
	if t.epoch > 1 || t.counter > 0 {
		counts.Fence = t.fence()
	}
	return counts
}

// fence returns the newest fence.
func (t *totals) fence() uint64 { return t.epoch<<counterBits | t.counter }

// find returns a resource, or nil if nobody holds it or waits for it.
func (st *state) find(class Class, name string) *resource {
	if res := st.resources.get(key{class, name}); res != nil && !res.gone() {
		return res
	}
	return nil
}

// all returns the sessions in the order of ids.
func (st *state) all() iter.Seq[*session] {
	st.fold()
	return func(yield func(*session) bool) {
		st.byID.Scan(func(s *sessionState) bool { return yield(s.of) })
	}
}

// keep adds a session.
func (st *state) keep(s *session) {
	st.sessions[s.id] = s
	st.tally.bytes += s.bytes()
	st.control.countSessions(s, 1)
	st.changed.session(s)
}

// claimed returns the resource for a new claim. If nobody has claimed it yet, its limit is
// that of the claim.
func (st *state) claimed(k key, limit uint32) *resource {
	hash := k.hash()
	res := st.resources.look(k, hash)
	if res == nil {
		res = &resource{name: k.name, class: k.class, generation: st.generation}
		st.resources.add(res, hash)
		st.changed.resource(res)
	}
	if res.gone() {
		res.limit = limit
		st.add(res)
	}
	return res
}

// add counts a resource that is about to be held.
func (st *state) add(res *resource) {
	st.tally.bytes += res.bytes()
	st.held[res.class]++
}

// forget no longer counts a resource that nobody holds any more. The next fold removes it.
func (st *state) forget(res *resource) {
	st.tally.bytes -= res.bytes()
	st.held[res.class]--
}

// waits counts a claim that starts or stops waiting.
func (st *state) waits(c *claim, more int) {
	st.thawSession(c.session)
	st.waiters += more
	c.session.waits += int32(more)
	if c.keeps == nil {
		return
	}
	if more > 0 {
		st.link(c)
	} else {
		st.unlink(c)
	}
}

// thawSession makes the state of a session this registry's own, so that it may be changed: no
// version shares it afterwards.
func (st *state) thawSession(s *session) {
	if s.changed {
		return
	}
	if s.generation != st.generation {
		own := *s.sessionState
		own.generation, own.place = st.generation, outdated
		own.answers = slices.Clone(own.answers)
		s.sessionState = &own
	}
	st.changed.session(s)
}

// thaw does the same for a resource, and returns the one that may be changed. Claims that a
// version may share never change, except for their pointer to the resource, which no
// version reads.
func (st *state) thaw(res *resource) *resource {
	if res.changed {
		return res
	}
	if res.generation != st.generation {
		res = st.copied(res)
	}
	st.changed.resource(res)
	return res
}

// copied replaces a resource that a version shares by a copy.
func (st *state) copied(res *resource) *resource {
	own := new(resource)
	*own = *res
	own.generation, own.place = st.generation, outdated
	if res.crowd != nil {
		own.crowd = &crowd{slices.Clone(res.crowd.holders), slices.Clone(res.crowd.queue), res.crowd.counted}
	}
	for _, c := range own.holders() {
		c.resource = own
	}
	for _, c := range own.queue() {
		c.resource = own
	}
	st.resources.put(own)
	return own
}

// locksUnder returns the locks whose names start with a prefix, by name.
func (st *state) locksUnder(prefix string) (list []*resource) {
	st.fold()
	st.names.Ascend(&resource{class: Lock, name: prefix}, func(res *resource) bool {
		under := res.class == Lock && strings.HasPrefix(res.name, prefix)
		if under {
			list = append(list, res)
		}
		return under
	})
	return list
}

// indexes have the claims that are looked for by something else than session or resource.
type indexes struct {
	// revoked are the holds whose holders are asked to leave, and eager the candidates that
	// may replace a leader after some time.
	revoked map[ClaimID]*claim
	eager   map[ClaimID]*claim
	// graph has the holds that waiters keep.
	graph *sorted.Set[edge]
}

func newIndexes() indexes {
	return indexes{make(map[ClaimID]*claim), make(map[ClaimID]*claim), sorted.New(edge.before)}
}

// list adds a claim to the lists of revoked and eager claims.
func (x *indexes) list(c *claim) {
	if c.revoked {
		x.revoked[c.id()] = c
	}
	if c.patience > 0 && !c.held() {
		x.eager[c.id()] = c
	}
}

// unlist removes a claim from the lists of revoked and eager claims.
func (x *indexes) unlist(c *claim) {
	if c.revoked {
		delete(x.revoked, c.id())
	}
	if c.patience > 0 {
		delete(x.eager, c.id())
	}
}

// listed counts the claims of a resource that have to be, and are, on the lists of revoked and
// eager claims.
func (x *indexes) listed(res *resource) (n int) {
	for _, c := range res.holders() {
		if c.revoked && x.revoked[c.id()] == c {
			n++
		}
	}
	for _, c := range res.queue() {
		if c.patience > 0 && x.eager[c.id()] == c {
			n++
		}
	}
	return n
}
