package world

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/test/vopr/deadlock"
	"github.com/conclave-io/conclave/internal/test/vopr/events"
	"github.com/conclave-io/conclave/internal/test/vopr/expect"
	"github.com/conclave-io/conclave/internal/test/vopr/history"
	"github.com/conclave-io/conclave/internal/test/vopr/linger"
	"github.com/conclave-io/conclave/internal/test/vopr/patience"
	"github.com/conclave-io/conclave/internal/test/vopr/periods"
)

// judge checks the promises after each step. It records what clients were told.
type judge struct {
	resources []*Resource
	Guarded   []*Resource                 // resources that an algorithm guards at times
	fences    map[uint64]history.ClaimID  // the claim that was given each fence
	shown     map[uint64]history.ClaimID  // holders that were observed at a server, by fence
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

	patience  *patience.Judge // of the candidates of elections
	deadlocks *deadlock.Judge // nil if the plan has no deadlocks
	lingers   *linger.Judge
	expected  *expect.Judge
	periods   *periods.Judge

	limited limited // limits of the size of the state

	raised int64 // when a leader last wrote a raise of the level

	record  founding.Record // the record with which the cluster was founded
	founded map[uint64]bool // the servers that have founded

	served int64 // when all waiters at the end were served, or 0
}

func newJudge(run *events.Run, lingers, jobs bool) judge {
	resources := newResources(lingers, jobs)
	return judge{
		resources: resources, patience: patience.New(run, elections(resources)), lingers: linger.New(run), expected: expect.New(run), periods: periods.New(run),
		fences: make(map[uint64]history.ClaimID), shown: make(map[uint64]history.ClaimID), states: make(map[uint64]uint64),
		founded: make(map[uint64]bool), closed: make(map[registry.SessionID]bool),
		leaders: make(map[uint64]uint64), ended: make(map[registry.SessionID]int64),
	}
}

// elections returns the names of the elections.
func elections(resources []*Resource) (names []string) {
	for _, r := range resources {
		if r.Class == registry.Election {
			names = append(names, r.Name)
		}
	}
	return names
}

// watch checks a server that may have applied something.
func (j *judge) watch(s *Server) {
	w := s.w
	if s.Replica.Leading() {
		j.leads(s)
	}
	applied := s.Replica.Applied()
	if applied == s.applied {
		return
	}
	j.compare(s, s.applied, applied)
	s.applied = applied
	s.Log.Trim(2048)
	if w.Plan.Limits {
		j.bounds(s)
	}
	if applied%8 == 0 {
		j.hash(s, applied)
	}
	if w.Guards != nil {
		w.Guards.Watch(s, applied > j.frontier)
	}
	if applied > j.frontier {
		j.frontier = applied
		j.advance(s)
		if j.deadlocks != nil {
			j.deadlocks.Follow(&s.Log, applied)
		}
		if w.rules != nil {
			w.rules.Follow(s, applied)
		}
		if w.names != nil {
			w.names.Follow(s, applied)
		}
		j.applied = s.Replica.Registry().Counts().Fence
		j.lookAt(j.applied, s.w.Now)
		for _, res := range j.resources {
			res.look(s, s.w.Now)
		}
		if w.Plan.Expect {
			j.expected.Follow(s.Replica.Registry().Freeze(), j.claimOf)
		}
	}
	j.promises(s)
	w.Note("applied", s.ID, applied)
}

func (j *judge) leads(s *Server) {
	term := s.Replica.Term()
	switch other, known := j.leaders[term]; {
	case !known:
		j.leaders[term] = s.ID
		s.w.Stats.Leaders++
		s.w.Note("leads", s.ID, term)
	case other != s.ID:
		s.w.Violate("leader", "servers %d and %d both lead in term %d", other, s.ID, term)
	}
}

// compare checks that no two servers apply different entries at one index. So no committed entry is
// lost.
func (j *judge) compare(s *Server, from, to uint64) {
	for index := from + 1; index <= to; index++ {
		mark, known := s.Log.At(index)
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
			s.w.Violate("log", "server %d applies another entry at index %d than others before", s.ID, index)
			return
		default:
			s.w.Stats.Alike++
		}
	}
}

// hash checks that servers which have applied the same entries have the same state.
func (j *judge) hash(s *Server, applied uint64) {
	state := s.Replica.Registry()
	if applied%64 == 0 {
		if err := state.Check(); err != nil {
			s.w.Violate("registry", "server %d: %v", s.ID, err)
		}
	}
	h := uint64(0xcbf29ce484222325)
	for _, b := range state.Freeze().Encode() {
		h = (h ^ uint64(b)) * 0x100000001b3
	}
	switch other, known := j.states[applied]; {
	case !known:
		j.states[applied] = h
	case other != h:
		s.w.Violate("state", "server %d is in another state at index %d than others", s.ID, applied)
	default:
		s.w.Stats.Alike++
	}
}

// advance records which sessions have ended.
func (j *judge) advance(s *Server) {
	var alive []registry.SessionID
	s.Replica.Registry().Each(func(x registry.Session) { alive = append(alive, x.ID) })
	for _, id := range j.alive {
		if _, found := slices.BinarySearchFunc(alive, id, registry.SessionID.Compare); !found {
			j.ended[id] = s.w.Now
			s.w.Stats.Ended++
		}
	}
	for _, id := range alive {
		if _, over := j.ended[id]; over {
			s.w.Violate("reopened", "session %v has ended, and is open again", id)
		}
	}
	j.alive = alive
}

// promises checks a server that has applied everything that clients rely on. It must have their
// sessions until their deadlines, and their holds until they are released.
func (j *judge) promises(s *Server) {
	state := s.Replica.Registry()
	for _, c := range s.w.Clients {
		for _, x := range c.sessions {
			if x.Home() || !x.believed() || s.applied < x.opened {
				continue
			}
			view, alive := state.Session(x.ID)
			switch {
			case !alive && !x.dismissed:
				s.w.Violate("session", "session %v is over on server %d, %d ms before the deadline of its client", x.ID, s.ID, (x.EndsAt-s.w.Now)/ms)
			case alive && (view.Owner != c.principal() || view.Leaving && !x.dismissed):
				s.w.Violate("owner", "session %v of %q is shown as %+v", x.ID, c.principal(), view)
			}
			s.w.Stats.Alive++
		}
	}
	for _, res := range j.resources {
		res.Holds = slices.DeleteFunc(res.Holds, func(h *Hold) bool { return h.over || h.Session.lost })
		for _, h := range res.Holds {
			if !h.Counts() || s.applied < h.known {
				continue
			}
			s.w.Stats.Kept++
			if !holds(state, h) {
				s.w.Violate("hold", "%q is not held by session %v with fence %d on server %d, though its client was granted it and has not given it up", res.Name, h.Session.ID, h.Claim.Fence, s.ID)
			}
		}
	}
}

func holds(state *registry.Registry, h *Hold) bool {
	// The list has the names with this prefix in order, so the name itself comes first.
	list, _ := state.Freeze().List(h.Claim.Res.Class, h.Claim.Res.Name, "", 1, 0)
	return len(list) == 1 && list[0].Name == h.Claim.Res.Name && slices.ContainsFunc(list[0].Holders, func(x registry.Holder) bool {
		return x.Session == h.Session.ID && x.Sequence == h.Claim.sequence && x.Fence == h.Claim.Fence
	})
}

// handOut checks a grant on which a client begins to rely.
func (j *judge) handOut(w *World, h *Hold) {
	res := h.Claim.Res
	h.known = j.frontier
	if h.Claim.recalled {
		w.Violate("recalled", "session %v enters %q with fence %d, of which it was told before that the servers ask for it back", h.Session.ID, res.Name, h.Claim.Fence)
	}
	others := 0
	w.atHome(h)
	if rules := w.HomeRules(); rules != nil {
		rules.Begins(h)
	}
	if w.Hosts != nil {
		w.Hosts.Beside(h)
	}
	for _, other := range res.Holds {
		if !other.Counts() {
			continue
		}
		others++
		if h.Claim.floor > other.Claim.Fence {
			w.Violate("floor", "%q is granted with the floor %d, while session %v holds it with the fence %d", res.Name, h.Claim.floor, other.Session.ID, other.Claim.Fence)
		}
		excluded := !h.Claim.shared || !other.Claim.shared
		if excluded && (others >= max(res.room(), h.Claim.Units()) || h.Claim.Units() != other.Claim.Units()) {
			w.Violate("exclusion", "session %v enters %q with fence %d while session %v holds it with fence %d for another %d ms", h.Session.ID, res.Name, h.Claim.Fence, other.Session.ID, other.Claim.Fence, (other.Session.EndsAt-w.Now)/ms)
		}
	}
	if res.held++; others > 0 {
		w.Stats.Shared++
	} else if res.held > 1 && !res.shares && res.room() == 1 {
		w.Stats.Handed++
	}
	res.Holds = append(res.Holds, h)
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
func (j *judge) settled(w *World) bool {
	if w.Now > w.end+bound {
		w.Violate("progress", "%d s after all faults have healed %s", bound/ms/1000, w.unfinished())
		return true
	}
	if j.served == 0 && w.Now%ms < ms/8 && w.unfinished() == "" {
		j.served = w.Now
		w.Stats.Slowest = w.Now - w.end
	}
	return j.served != 0 && w.Now > j.served+calm && w.unfinished() == ""
}

// unfinished returns what must still happen before the run is quiet, or "".
func (w *World) unfinished() string {
	for _, c := range w.Clients {
		for _, k := range c.Workers {
			if !k.idle() {
				return k.wants()
			}
		}
		if c.dead {
			return "a client is dead"
		}
	}
	leader := w.Leader()
	if leader == nil {
		return "nobody leads"
	}
	for _, s := range w.Servers {
		switch {
		case s.removed:
		case !s.Up():
			return fmt.Sprintf("server %d does not know what it is", s.ID)
		case s.lost:
			return fmt.Sprintf("server %d, which lost its data, is not taken back", s.ID)
		case s.Replica.Applied() != leader.Replica.Applied():
			return "a server lacks entries"
		}
	}
	if n := leader.Replica.Registry().Counts(); n.Locks+n.Elections > 0 {
		held, _ := leader.Replica.Registry().Freeze().List(registry.Lock, "", "", 1, 0)
		led, _ := leader.Replica.Registry().Freeze().List(registry.Election, "", "", 1, 0)
		return fmt.Sprintf("nobody wants anything, and %d locks and %d elections are held: %+v", n.Locks, n.Elections, append(held, led...)[0])
	}
	voters := leader.Replica.Status().Voters
	for _, m := range leader.Replica.Registry().Members() {
		if m.ID <= uint64(len(w.Servers)) && !w.Servers[m.ID-1].removed && m.Standing == registry.Voter && !slices.Contains(voters, m.ID) {
			return fmt.Sprintf("server %d, which is to vote, does not", m.ID)
		}
	}
	for _, c := range w.Clients {
		if c.observer != nil && !c.observer.knows(leader) {
			return fmt.Sprintf("the observer of %q, class %d, does not know the state", c.observer.name, c.observer.class)
		}
	}
	if w.Guards != nil {
		return w.Guards.Unfinished(leader)
	}
	return ""
}

// wants describes what a worker waits for.
func (k *worker) wants() string {
	what, s := "an answer", k.client.session()
	if k.request != nil && k.request.claim != nil {
		p := k.request.claim
		what = fmt.Sprintf("%q, class %d, by request %d of session %v", p.Res.Name, p.Res.Class, p.sequence, p.session)
		if leader := k.client.w.Leader(); leader != nil {
			view, _, _ := leader.Replica.Registry().Freeze().Explain(p.Res.Class, p.Res.Name, 9)
			k.client.w.Tell("on server %d it is %+v", leader.ID, view)
		}
	}
	if k.Hold != nil {
		what = "the end of its hold of " + what
	}
	return fmt.Sprintf("client %d waits for %s; its session is valid: %t, it has %d calls under way", k.client.slot, what, s != nil && s.valid(), len(k.client.requests))
}

// conclude does the checks at the end of a run.
func (j *judge) conclude(w *World) {
	if w.Found != nil {
		return
	}
	leader := w.Leader()
	for _, s := range w.Servers {
		if s.Up() && string(s.Replica.Registry().Freeze().Encode()) != string(leader.Replica.Registry().Freeze().Encode()) {
			w.Violate("state", "server %d is in another state than server %d at the end", s.ID, leader.ID)
		}
	}
	j.members(w, leader)
	dark := j.dark()
	for _, res := range j.resources {
		if w.Found != nil {
			return
		}
		res.inherited(w)
		res.settle(dark, j.ended)
		switch history.Linearizable(res.history, res.room()) {
		case history.Illegal:
			w.Violate("linearizability", "what clients saw of %q, class %d, in %d operations, is not possible", res.Name, res.Class, len(res.history))
		case history.Unknown:
			w.Stats.Unknown++
		default:
			w.Stats.Histories++
			w.Stats.Checked += len(res.history)
		}
	}
}

// members checks that all voters in the record are voters and up, and that all removed servers have
// stopped.
func (j *judge) members(w *World, leader *Server) {
	voters := leader.Replica.Status().Voters
	for _, m := range leader.Replica.Registry().Members() {
		if m.ID > uint64(len(w.Servers)) {
			continue // the id was assigned, but the answer was lost
		}
		s := w.Servers[m.ID-1]
		out := m.Standing == registry.Removed
		if out && s.Up() || out == (m.Standing == registry.Voter && slices.Contains(voters, m.ID)) && m.Standing != registry.Learner {
			w.Violate("members", "server %d is on record as %+v, is up: %v; the voters are %v", m.ID, m, s.Up(), voters)
		}
	}
}
