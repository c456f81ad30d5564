package replica

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/registry"
)

var seeds = flag.Int("seeds", 20, "how many random histories TestPromisesHold tries")

// caller is a client under random faults. It renews, claims, releases, repeats unanswered
// requests, and is sometimes silent.
type caller struct {
	id       registry.SessionID // its last byte says which client it is
	ttl      int64
	next     uint64
	silent   bool
	renewAt  int64
	promised int64 // the session must live until then

	sent map[uint64]int64 // when each request was first sent
	// warned are the holds that it was asked to give up before it learned of their
	// grants.
	warned map[uint64]bool
	// open is the request under way that is not a renewal, if any.
	open  *registry.Command
	retry int64
	hold  uint64 // the claim that is granted, or 0
	fence uint64
	name  string
}

// TestPromisesHold runs clusters under crashes, pauses, cuts and losses, while servers
// join and are removed. A session lives as long as promised. An acknowledged hold stays,
// unless the holder was asked to leave and knows it. No fence is granted twice. In the
// end, all servers agree.
func TestPromisesHold(t *testing.T) {
	told, dropped, changes := 0, 0, 0
	for seed := range uint64(*seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := keepPromises(t, seed)
			told, dropped, changes = told+w.told, dropped+len(w.dropped), changes+w.changes
		})
	}
	t.Logf("%d changes of the members, %d holders asked to leave, %d holds dropped", changes, told, dropped)
	if changes < 2**seeds {
		t.Errorf("%d changes of the members in %d histories: that shows nothing", changes, *seeds)
	}
	if told < *seeds || dropped < *seeds/2 {
		t.Errorf("%d holders were asked to leave and %d holds were dropped in %d histories: that shows nothing", told, dropped, *seeds)
	}
}

type world struct {
	*cluster
	callers []*caller
	past    int               // sessions that ended
	told    int               // holders that were asked to leave
	dropped map[uint64]bool   // the fences of holds that were taken away
	fences  map[uint64]string // who was granted each fence
	asking  *Change           // the change of the members that is asked for, if any
	changes int               // those that were made
}

func keepPromises(t *testing.T, seed uint64) *world {
	w := &world{cluster: newCluster(t, 3+2*int(seed%2), seed), fences: make(map[uint64]string), dropped: make(map[uint64]bool)}
	w.cfg = Config{SnapshotBytes: 4000, TailEntries: 20}
	w.onReply = w.hear
	w.start()
	w.await()
	for n := byte(1); n <= 5; n++ {
		ttl := []int64{300, 1000, 1500, 2000, 4000}[n-1] * ms
		w.callers = append(w.callers, &caller{id: id(n), ttl: ttl, next: 1, sent: make(map[uint64]int64), warned: make(map[uint64]bool)})
	}
	for range 400 {
		w.fault()
		for range 10 {
			w.act()
			w.reshape()
			w.run(10 * ms)
			w.check()
		}
	}
	w.heal()
	w.run(8000 * ms)
	w.check()
	w.same()
	w.checkMembers()
	w.checkHolds()
	if w.past == 0 || len(w.fences) < 20 {
		w.t.Fatalf("%d sessions ended and %d holds were granted: this history shows nothing", w.past, len(w.fences))
	}
	return w
}

// fault does something to a server, seldom enough that there is mostly a
// quorum.
func (w *world) fault() {
	if w.rng.IntN(3) > 0 {
		return
	}
	members := w.members()
	s := members[w.rng.IntN(len(members))]
	switch w.rng.IntN(8) {
	case 0:
		w.crash(s)
	case 1:
		s.cut = true
	case 2:
		s.paused = s.replica != nil
	case 3:
		w.loss = w.rng.Float64() * 0.2
	default:
		w.mend(s)
	}
	down := 0
	for _, s := range members {
		if s.replica == nil || s.cut || s.paused {
			down++
		}
	}
	if 2*down >= len(members) && w.rng.IntN(3) > 0 {
		w.heal()
	}
}

func (w *world) mend(s *server) {
	s.cut, s.paused = false, false
	if s.replica == nil {
		w.restart(s)
	}
}

func (w *world) heal() {
	w.loss = 0
	for _, s := range w.members() {
		w.mend(s)
	}
}

// act lets every client do what is due.
func (w *world) act() {
	for _, c := range w.callers {
		if w.rng.IntN(400) == 0 {
			c.silent = !c.silent
		}
		if c.silent {
			continue
		}
		if w.now >= c.renewAt {
			c.renewAt = w.now + c.ttl/4
			op := registry.OpRenew
			if c.promised == 0 {
				op = registry.OpOpen
			}
			w.send(c, registry.Command{Op: op, Session: c.id, Sequence: c.number(), TTL: c.ttl})
		}
		w.claim(c)
	}
}

func (c *caller) number() uint64 {
	c.next++
	return c.next - 1
}

// claim makes the next request of the client, or repeats the one under way.
func (w *world) claim(c *caller) {
	switch {
	case c.promised == 0 || w.now < c.retry:
		return
	case c.open != nil:
	case c.hold == 0 && w.rng.IntN(2) == 0:
		name := fmt.Sprint("lock ", w.rng.IntN(2))
		c.open = &registry.Command{Op: registry.OpRevoke, Session: c.id, Sequence: c.number(), Name: name}
	case c.hold == 0:
		c.name = fmt.Sprint("lock ", w.rng.IntN(2))
		c.open = &registry.Command{Op: registry.OpAcquire, Session: c.id, Sequence: c.number(), Name: c.name}
	case w.rng.IntN(10) > 0:
		return // enjoy it a little
	default:
		c.open = &registry.Command{Op: registry.OpRelease, Session: c.id, Sequence: c.number(), Hold: c.hold}
		c.hold = 0
	}
	c.open.Low = c.open.Sequence
	c.retry = w.now + 400*ms
	w.send(c, *c.open)
}

// send gives a request to any server that believes to lead.
func (w *world) send(c *caller, command registry.Command) {
	if _, again := c.sent[command.Sequence]; !again {
		c.sent[command.Sequence] = w.now
	}
	for _, s := range w.each() {
		if s.replica != nil && !s.paused && s.replica.Leading() && w.rng.IntN(4) > 0 {
			s.replica.Submit(w.now, uint64(c.id[15]), []registry.Command{command})
		}
	}
}

func (w *world) hear(r received) {
	c := w.callers[r.Session[15]-1]
	switch {
	case r.Session != c.id:
		return // the reply to an earlier session
	case r.Result.Code == registry.SessionGone:
		w.reopen(c)
	case r.Result.Code == registry.Revoked:
		if w.rng.IntN(2) == 0 { // else it is lost on its way, and a renewal tells
			w.asked(c, r.Sequence)
		}
	case r.Result.Remaining > 0 && c.promised == 0 && w.ended[c.id] != 0:
		w.beginAnew(c) // opened, and ended, and opened again, before it heard anything
	case r.Result.Remaining > 0:
		c.promised = max(c.promised, c.sent[r.Sequence]+r.Result.Remaining)
		for _, hold := range r.Result.Revoked {
			w.asked(c, hold)
		}
	case c.open == nil || r.Sequence != c.open.Sequence:
	case r.Result.Code == registry.OK && c.open.Op == registry.OpAcquire:
		w.granted(c, r)
	case r.Result.Code == registry.OK, r.Result.Code == registry.NotHeld, r.Result.Code == registry.NotFound:
		c.open = nil
	}
}

// asked tells a client to leave. Some do, others stop and never say so.
func (w *world) asked(c *caller, hold uint64) {
	if hold != c.hold {
		c.warned[hold] = true
		return
	}
	w.told++
	if w.rng.IntN(2) == 0 {
		c.open = &registry.Command{Op: registry.OpRelease, Session: c.id, Sequence: c.number(), Hold: hold}
		c.open.Low = c.open.Sequence
	}
	c.hold = 0
}

func (w *world) granted(c *caller, r received) {
	c.hold, c.fence, c.open = r.Sequence, r.Result.Fence, nil
	c.retry = w.now + 50*ms
	who := fmt.Sprint(r.Session, r.Sequence)
	if other, given := w.fences[c.fence]; given && other != who {
		w.t.Fatalf("the fence %d was given to %s and to %s", c.fence, other, who)
	}
	w.fences[c.fence] = who
	if c.warned[c.hold] {
		w.asked(c, c.hold)
	}
}

// reopen gives the client a new session, as a program would.
func (w *world) reopen(c *caller) {
	if _, over := w.ended[c.id]; !over && c.promised > 0 {
		w.t.Fatalf("session %v is reported gone and never ended", c.id)
	}
	w.checkEnd(c)
	w.past++
	w.beginAnew(c)
}

// beginAnew lets the client begin again, under another id.
func (w *world) beginAnew(c *caller) {
	c.id[0]++
	c.next, c.renewAt, c.promised, c.retry, c.hold, c.open = 1, 0, 0, 0, 0, nil
	clear(c.sent)
	clear(c.warned)
}

// check compares the ends of sessions with what was promised.
func (w *world) check() {
	w.t.Helper()
	for _, c := range w.callers {
		w.checkEnd(c)
		w.checkDropped(c)
	}
}

// checkDropped requires that no hold was taken away from a client that still
// relies on it.
func (w *world) checkDropped(c *caller) {
	w.t.Helper()
	for _, s := range w.each() {
		if s.replica == nil || c.name == "" {
			continue
		}
		_, _, past := s.replica.Registry().Freeze().Explain(registry.Lock, c.name, 0)
		for _, ended := range past {
			if ended.How != registry.Dropped {
				continue
			}
			w.dropped[ended.Fence] = true
			if c.hold != 0 && ended.Fence == c.fence && w.now < c.promised {
				w.t.Fatalf("session %v held %q with fence %d, which was dropped %d ms before the end of what it was promised, and nobody told it",
					c.id, c.name, c.fence, (c.promised-w.now)/ms)
			}
		}
	}
}

func (w *world) checkEnd(c *caller) {
	w.t.Helper()
	if end, over := w.ended[c.id]; over && end < c.promised {
		w.t.Fatalf("session %v ended %d ms before it was promised to", c.id, (c.promised-end)/ms)
	}
}

// checkHolds looks for every acknowledged hold of a session that lives.
func (w *world) checkHolds() {
	w.t.Helper()
	locks, _ := w.await().replica.Registry().Freeze().List(registry.Lock, "", "", 100, 100)
	holders := make(map[string]uint64)
	for _, lock := range locks {
		holders[fmt.Sprint(lock.Name, lock.Holders[0].Session)] = lock.Holders[0].Fence
	}
	for _, c := range w.callers {
		_, over := w.ended[c.id]
		if got := holders[fmt.Sprint(c.name, c.id)]; !over && c.hold != 0 && got != c.fence {
			w.t.Fatalf("session %v was granted %q with fence %d; it is held with fence %d", c.id, c.name, c.fence, got)
		}
	}
}

// reshape asks the present leader from time to time for a change of the members, until it
// is made or refused.
func (w *world) reshape() {
	if w.asking == nil && w.rng.IntN(100) == 0 {
		members := w.members()
		w.asking = &Change{Kind: Remove, ID: members[w.rng.IntN(len(members))].id}
		if len(members) < 4+w.rng.IntN(2) {
			w.asking = &Change{Kind: Join, Server: newcomer(uint64(len(w.servers)) + 1)}
		}
	}
	leader := w.leader()
	if w.asking == nil || leader == nil {
		return
	}
	id, done, err := leader.replica.Change(w.now, *w.asking)
	switch {
	case err != nil && !errors.Is(err, agreement.ErrNotLeader):
		w.asking = nil
	case done:
		w.changes++
		if w.asking.Kind == Join {
			w.servers[id] = &server{id: id, uid: w.asking.Server.UID}
			w.restart(w.servers[id])
		}
		w.asking = nil
	}
}

// checkMembers requires that all changes are complete: each recorded server is a voter
// and runs, and each removed server has stopped.
func (w *world) checkMembers() {
	w.t.Helper()
	r := w.await().replica
	voters := r.Status().Voters
	for _, m := range r.Registry().Members() {
		s := w.servers[m.ID]
		if s == nil && !slices.Contains(voters, m.ID) {
			continue // its id was given to it, and the answer lost
		}
		if removed := m.Standing == registry.Removed; removed != s.removed || removed == slices.Contains(voters, m.ID) {
			w.t.Fatalf("server %d is on record as %+v, has stopped for good: %v; the voters are %v", m.ID, m, s.removed, voters)
		}
	}
}
