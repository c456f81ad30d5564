package vopr

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// judge checks the promises after each step. It records what clients were told.
type judge struct {
	resources []*resource
	live      []*resource                 // resources that an algorithm guards at times
	fences    map[uint64]claimID          // the claim that was given each fence
	shown     map[uint64]claimID          // holders that were observed at a server, by fence
	spans     []span                      // intervals in which fences were given
	looked    int64                       // when the newest fence was last checked
	newest    uint64                      // the largest fence that a client has received
	applied   uint64                      // the newest fence in an entry that a server has applied
	closed    map[registry.SessionID]bool // sessions that their clients closed

	// frontier is the last entry that any server has applied. entries has a number for each entry.
	// Different entries have different numbers.
	frontier uint64
	entries  []uint64
	states   map[uint64]uint64 // the hash of the registry as of some entries
	leaders  map[uint64]uint64 // leaders of the servers, by term

	alive []registry.SessionID // open sessions at the frontier
	ended map[registry.SessionID]int64

	patience patience // of the candidates of elections

	limited limited // limits of the size of the state

	tested *pretested // nil if the plan has no deadlocks

	raised int64 // when a leader last wrote a raise of the level

	record  founding.Record // the record with which the cluster was founded
	founded map[uint64]bool // the servers that have founded

	served int64 // when all waiters at the end were served, or 0
}

func newJudge() judge {
	return judge{
		resources: newResources(), fences: make(map[uint64]claimID), shown: make(map[uint64]claimID), states: make(map[uint64]uint64),
		founded: make(map[uint64]bool), closed: make(map[registry.SessionID]bool),
		leaders: make(map[uint64]uint64), ended: make(map[registry.SessionID]int64), patience: make(patience),
	}
}

// watch checks a server that may have applied something.
func (j *judge) watch(s *server) {
	w := s.w
	if s.replica.Leading() {
		j.leads(s)
	}
	applied := s.replica.Applied()
	if applied == s.applied {
		return
	}
	j.compare(s, s.applied, applied)
	s.applied = applied
	s.log.trim(2048)
	if w.plan.Limits {
		j.bounds(s)
	}
	if applied%8 == 0 {
		j.hash(s, applied)
	}
	if w.guards != nil {
		w.guards.watch(s, applied > j.frontier)
	}
	if applied > j.frontier {
		j.frontier = applied
		j.advance(s)
		if j.tested != nil {
			j.tested.follow(s, applied)
		}
		if w.rules != nil {
			w.rules.follow(s, applied)
		}
		j.applied = s.replica.Registry().Counts().Fence
		j.lookAt(j.applied, s.w.now)
		for _, res := range j.resources {
			res.look(s, s.w.now)
		}
	}
	j.promises(s)
	w.note("applied", s.id, applied)
}

func (j *judge) leads(s *server) {
	term := s.replica.Term()
	switch other, known := j.leaders[term]; {
	case !known:
		j.leaders[term] = s.id
		s.w.stats.Leaders++
		s.w.note("leads", s.id, term)
	case other != s.id:
		s.w.violate("leader", "servers %d and %d both lead in term %d", other, s.id, term)
	}
}

// compare checks that no two servers apply different entries at one index. So no committed entry is
// lost.
func (j *judge) compare(s *server, from, to uint64) {
	for index := from + 1; index <= to; index++ {
		mark, known := s.log.at(index)
		if !known {
			continue // it came with a snapshot
		}
		for uint64(len(j.entries)) <= index {
			j.entries = append(j.entries, 0)
		}
		switch present := j.entries[index]; {
		case present == 0:
			j.entries[index] = mark
		case present != mark:
			s.w.violate("log", "server %d applies another entry at index %d than others before", s.id, index)
			return
		default:
			s.w.stats.Alike++
		}
	}
}

// hash checks that servers which have applied the same entries have the same state.
func (j *judge) hash(s *server, applied uint64) {
	state := s.replica.Registry()
	if applied%64 == 0 {
		if err := state.Check(); err != nil {
			s.w.violate("registry", "server %d: %v", s.id, err)
		}
	}
	h := uint64(0xcbf29ce484222325)
	for _, b := range state.Encode() {
		h = (h ^ uint64(b)) * 0x100000001b3
	}
	switch other, known := j.states[applied]; {
	case !known:
		j.states[applied] = h
	case other != h:
		s.w.violate("state", "server %d is in another state at index %d than others", s.id, applied)
	default:
		s.w.stats.Alike++
	}
}

// advance records which sessions have ended.
func (j *judge) advance(s *server) {
	var alive []registry.SessionID
	s.replica.Registry().Each(func(x registry.Session) { alive = append(alive, x.ID) })
	for _, id := range j.alive {
		if _, found := slices.BinarySearchFunc(alive, id, registry.SessionID.Compare); !found {
			j.ended[id] = s.w.now
			s.w.stats.Ended++
		}
	}
	for _, id := range alive {
		if _, over := j.ended[id]; over {
			s.w.violate("reopened", "session %v has ended, and is open again", id)
		}
	}
	j.alive = alive
}

// promises checks a server that has applied everything that clients rely on. It must have their
// sessions until their deadlines, and their holds until they are released.
func (j *judge) promises(s *server) {
	state := s.replica.Registry()
	for _, c := range s.w.clients {
		for _, x := range c.sessions {
			if x.home() || !x.believed() || s.applied < x.opened {
				continue
			}
			view, alive := state.Session(x.id)
			switch {
			case !alive && !x.dismissed:
				s.w.violate("session", "session %v is over on server %d, %d ms before the deadline of its client", x.id, s.id, (x.endsAt-s.w.now)/ms)
			case alive && (view.Owner != c.principal() || view.Leaving && !x.dismissed):
				s.w.violate("owner", "session %v of %q is shown as %+v", x.id, c.principal(), view)
			}
			s.w.stats.Alive++
		}
	}
	for _, res := range j.resources {
		res.holds = slices.DeleteFunc(res.holds, func(h *hold) bool { return h.over || h.session.lost })
		for _, h := range res.holds {
			if !h.counts() || s.applied < h.known {
				continue
			}
			s.w.stats.Kept++
			if !holds(state, h) {
				s.w.violate("hold", "%q is not held by session %v with fence %d on server %d, though its client was granted it and has not given it up", res.name, h.session.id, h.claim.fence, s.id)
			}
		}
	}
}

func holds(state *registry.Registry, h *hold) bool {
	// The list has the names with this prefix in order, so the name itself comes first.
	list, _ := state.List(h.claim.res.class, h.claim.res.name, "", 1, 0)
	return len(list) == 1 && list[0].Name == h.claim.res.name && slices.ContainsFunc(list[0].Holders, func(x registry.Holder) bool {
		return x.Session == h.session.id && x.Sequence == h.claim.sequence && x.Fence == h.claim.fence
	})
}

// handOut checks a grant on which a client begins to rely.
func (j *judge) handOut(w *world, h *hold) {
	res := h.claim.res
	h.known = j.frontier
	others := 0
	w.atHome(h)
	w.homeRules().begins(h)
	if w.hosts != nil {
		w.hosts.near.beside(h)
	}
	for _, other := range res.holds {
		if !other.counts() {
			continue
		}
		others++
		if h.claim.floor > other.claim.fence {
			w.violate("floor", "%q is granted with the floor %d, while session %v holds it with the fence %d", res.name, h.claim.floor, other.session.id, other.claim.fence)
		}
		excluded := !h.claim.shared || !other.claim.shared
		if excluded && (others >= max(res.room(), h.claim.units()) || h.claim.units() != other.claim.units()) {
			w.violate("exclusion", "session %v enters %q with fence %d while session %v holds it with fence %d for another %d ms", h.session.id, res.name, h.claim.fence, other.session.id, other.claim.fence, (other.session.endsAt-w.now)/ms)
		}
	}
	if res.held++; others > 0 {
		w.stats.Shared++
	} else if res.held > 1 && !res.shares && res.room() == 1 {
		w.stats.Handed++
	}
	res.holds = append(res.holds, h)
}

const (
	// bound is the time within which, after all faults have healed, all waiters must be served and
	// all servers must have the same state. It is long because all workers may wait for one name.
	// Some of them hold it for 4 s, and some stay for a TTL after they were asked to leave.
	bound = 60_000 * ms
	// calm is the additional time for delayed events.
	calm = 300 * ms
)

// settled reports whether the run is quiet after its end. It is called after each event.
func (j *judge) settled(w *world) bool {
	if w.now > w.end+bound {
		w.violate("progress", "%d s after all faults have healed %s", bound/ms/1000, w.unfinished())
		return true
	}
	if j.served == 0 && w.now%ms < ms/8 && w.unfinished() == "" {
		j.served = w.now
		w.stats.Slowest = w.now - w.end
	}
	return j.served != 0 && w.now > j.served+calm && w.unfinished() == ""
}

// unfinished returns what must still happen before the run is quiet, or "".
func (w *world) unfinished() string {
	for _, c := range w.clients {
		for _, k := range c.workers {
			if !k.idle() {
				return k.wants()
			}
		}
		if c.dead {
			return "a client is dead"
		}
	}
	leader := w.leader()
	if leader == nil {
		return "nobody leads"
	}
	for _, s := range w.servers {
		switch {
		case s.removed:
		case !s.up():
			return fmt.Sprintf("server %d does not know what it is", s.id)
		case s.lost:
			return fmt.Sprintf("server %d, which lost its data, is not taken back", s.id)
		case s.replica.Applied() != leader.replica.Applied():
			return "a server lacks entries"
		}
	}
	if n := leader.replica.Registry().Counts(); n.Locks+n.Elections > 0 {
		held, _ := leader.replica.Registry().List(registry.Lock, "", "", 1, 0)
		led, _ := leader.replica.Registry().List(registry.Election, "", "", 1, 0)
		return fmt.Sprintf("nobody wants anything, and %d locks and %d elections are held: %+v", n.Locks, n.Elections, append(held, led...)[0])
	}
	voters := leader.replica.Status().Voters
	for _, m := range leader.replica.Registry().Members() {
		if m.ID <= uint64(len(w.servers)) && !w.servers[m.ID-1].removed && m.Standing == registry.Voter && !slices.Contains(voters, m.ID) {
			return fmt.Sprintf("server %d, which is to vote, does not", m.ID)
		}
	}
	for _, c := range w.clients {
		if c.observer != nil && !c.observer.knows(leader) {
			return fmt.Sprintf("the observer of %q, class %d, does not know the state", c.observer.name, c.observer.class)
		}
	}
	if w.guards != nil {
		return w.guards.unfinished(leader)
	}
	return ""
}

// wants describes what a worker waits for.
func (k *worker) wants() string {
	what, s := "an answer", k.client.session()
	if k.request != nil && k.request.claim != nil {
		p := k.request.claim
		what = fmt.Sprintf("%q, class %d, by request %d of session %v", p.res.name, p.res.class, p.sequence, p.session)
		if leader := k.client.w.leader(); leader != nil {
			view, _, _ := leader.replica.Registry().Explain(p.res.class, p.res.name, 9)
			k.client.w.tell("on server %d it is %+v", leader.id, view)
		}
	}
	if k.hold != nil {
		what = "the end of its hold of " + what
	}
	return fmt.Sprintf("client %d waits for %s; its session is valid: %t, it has %d calls under way", k.client.slot, what, s != nil && s.valid(), len(k.client.requests))
}

// conclude does the checks at the end of a run.
func (j *judge) conclude(w *world) {
	if w.found != nil {
		return
	}
	leader := w.leader()
	for _, s := range w.servers {
		if s.up() && string(s.replica.Registry().Encode()) != string(leader.replica.Registry().Encode()) {
			w.violate("state", "server %d is in another state than server %d at the end", s.id, leader.id)
		}
	}
	j.members(w, leader)
	dark := j.dark()
	for _, res := range j.resources {
		if w.found != nil {
			return
		}
		res.inherited(w)
		res.settle(dark, j.ended)
		switch res.linearizable() {
		case porcupine.Illegal:
			w.violate("linearizability", "what clients saw of %q, class %d, in %d operations, is not possible", res.name, res.class, len(res.history))
		case porcupine.Unknown:
			w.stats.Unknown++
		default:
			w.stats.Histories++
			w.stats.Checked += len(res.history)
		}
	}
}

// members checks that all voters in the record are voters and up, and that all removed servers have
// stopped.
func (j *judge) members(w *world, leader *server) {
	voters := leader.replica.Status().Voters
	for _, m := range leader.replica.Registry().Members() {
		if m.ID > uint64(len(w.servers)) {
			continue // the id was assigned, but the answer was lost
		}
		s := w.servers[m.ID-1]
		out := m.Standing == registry.Removed
		if out && s.up() || out == (m.Standing == registry.Voter && slices.Contains(voters, m.ID)) && m.Standing != registry.Learner {
			w.violate("members", "server %d is on record as %+v, is up: %v; the voters are %v", m.ID, m, s.up(), voters)
		}
	}
}
