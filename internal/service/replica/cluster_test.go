package replica

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/cryptotest"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/registry"
)

const ms = int64(1e6)

// cluster is a cluster in virtual time: replicas, disks that take a while, and
// a network that takes a while too, loses and reorders. One seed, one history.
type cluster struct {
	t       *testing.T
	rng     *rand.Rand
	now     int64
	servers map[uint64]*server
	flying  []packet
	loss    float64            // share of messages lost
	lost    raftpb.MessageType // all messages of this type are lost, unless it is MsgHup
	cfg     Config

	// replies, in order, and the other receivers of each.
	replies []received
	onReply func(received)
	// ended counts, per session, the first moment at which any server applied
	// its end.
	ended map[registry.SessionID]int64
	asked byte // changes of guards that were asked for
}

type received struct {
	Reply
	server uint64
	at     int64
}

type packet struct {
	at      int64
	message *raftpb.Message
}

// server is a replica with its disk. What is durable survives a crash.
type server struct {
	id, uid uint64
	replica *Replica // nil while it is down
	paused  bool
	cut     bool // no message reaches or leaves it
	stopped error
	removed bool // from the cluster: it is down for good
	ticked  int64
	wall    int64 // how far its wall clock is off, ns

	newest  uint32 // the newest level that its release reads, 0 for 1
	durable agreement.Disk
	hung    bool // the disk finishes nothing
	writing []pendingWrite
	made    []uint64 // the entries for which it made snapshots
	reads   []Read
	seat    *seated // its seat, if it has one or wants one
	alive   map[registry.SessionID]bool
}

type pendingWrite struct {
	at       int64
	save     *agreement.Save
	snapshot *raftpb.Snapshot
}

func newCluster(t *testing.T, n int, seed uint64) *cluster {
	cryptotest.SetGlobalRandom(t, seed)
	c := &cluster{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), servers: make(map[uint64]*server),
		now: 1000 * ms, ended: make(map[registry.SessionID]int64),
	}
	var ids []uint64
	for id := uint64(1); id <= uint64(n); id++ {
		ids = append(ids, id)
	}
	for _, id := range ids {
		c.servers[id] = &server{id: id, uid: id * 100, durable: agreement.Disk{Snapshot: Bootstrap(ids)}}
	}
	return c
}

// start brings up all servers that are down.
func (c *cluster) start() {
	for _, s := range c.each() {
		if s.replica == nil && !s.removed {
			c.restart(s)
		}
	}
}

// said is what a server says of itself.
func (s *server) said() registry.Member {
	return registry.Member{ID: s.id, UID: s.uid, PeerAddress: fmt.Sprint("peer-", s.id), ClientAddress: fmt.Sprint("client-", s.id)}
}

// levels are those that a server reads.
func (s *server) levels() Levels {
	return Levels{Min: 1, Max: max(s.newest, 1), Build: fmt.Sprintf("v0.%d.0", max(s.newest, 1))}
}

// each returns the servers by id: no test may depend on the order of a map.
func (c *cluster) each() []*server {
	var all []*server
	for id := uint64(1); id <= uint64(len(c.servers)); id++ {
		all = append(all, c.servers[id])
	}
	return all
}

// members returns the servers that were not told to stop for good.
func (c *cluster) members() []*server {
	return slices.DeleteFunc(c.each(), func(s *server) bool { return s.removed })
}

func (c *cluster) restart(s *server) {
	c.t.Helper()
	cfg := c.cfg
	cfg.Levels = s.levels()
	cfg.ID, cfg.UID, cfg.PeerAddress, cfg.ClientAddress = s.id, s.uid, s.said().PeerAddress, s.said().ClientAddress
	made, err := New(cfg, s.durable)
	var gone *RemovedError
	if errors.As(err, &gone) {
		c.stopRemoved(s)
		return
	}
	if err != nil {
		c.t.Fatalf("server %d does not start: %v", s.id, err)
	}
	s.replica, s.writing, s.paused, s.ticked = made, nil, false, 0
	s.alive = make(map[registry.SessionID]bool)
	for _, other := range c.each() {
		if other != s {
			made.Met(other.said(), other.levels())
			if other.replica != nil {
				other.replica.Met(s.said(), s.levels())
			}
		}
	}
}

// crash takes a server down; what its disk has not finished is lost.
func (c *cluster) crash(s *server) { s.replica, s.writing = nil, nil }

// shakeHands tells servers that they were removed. A real transport does so because all
// servers constantly try to reach each other.
func (c *cluster) shakeHands() {
	reached := func(s *server) bool { return s.replica != nil && !s.cut && !s.paused }
	for _, s := range c.each() {
		if !reached(s) {
			continue
		}
		for _, id := range s.replica.Gone() {
			if other := c.servers[id]; other != nil && reached(other) {
				c.stopRemoved(other)
			}
		}
	}
}

// stopRemoved takes a server down for good.
func (c *cluster) stopRemoved(s *server) {
	c.crash(s)
	s.removed = true
}

// wipe empties the disk of a server that is down, which gives it a new UID.
func (c *cluster) wipe(s *server) {
	s.durable = agreement.Disk{}
	s.uid++
}

// run lets virtual time pass.
func (c *cluster) run(d int64) {
	c.t.Helper()
	for end := c.now + d; c.now < end; {
		c.now += ms
		c.deliver()
		if c.now%(20*ms) == 0 {
			c.shakeHands()
		}
		for _, s := range c.each() {
			if s.replica == nil || s.paused {
				continue
			}
			c.finishWrites(s)
			if c.now-s.ticked >= 10*ms {
				s.ticked = c.now
				s.replica.Tick(c.now)
				c.seat(s)
			}
			c.carryOut(s)
		}
	}
}

func (c *cluster) deliver() {
	var later []packet
	for _, p := range c.flying {
		if p.at > c.now {
			later = append(later, p)
			continue
		}
		to, from := c.servers[p.message.GetTo()], c.servers[p.message.GetFrom()]
		if to.paused {
			later = append(later, p)
			continue
		}
		if to.replica == nil || to.cut || from.cut {
			continue
		}
		to.replica.Receive(c.now, p.message)
	}
	c.flying = later
}

func (c *cluster) finishWrites(s *server) {
	for !s.hung && len(s.writing) > 0 && s.writing[0].at <= c.now {
		w := s.writing[0]
		s.writing = s.writing[1:]
		if w.snapshot != nil {
			store(&s.durable, nil, nil, w.snapshot)
			s.replica.SnapshotStored()
			continue
		}
		store(&s.durable, w.save.HardState, w.save.Entries, w.save.Snapshot)
		s.replica.Saved(c.now, w.save)
	}
}

// tell hands a digest to all who can be reached.
func (c *cluster) tell(s *server, d Digest) {
	for _, other := range c.each() {
		if other != s && other.replica != nil && !other.cut && !s.cut {
			other.replica.Compare(s.id, d)
		}
	}
}

func (c *cluster) carryOut(s *server) {
	c.t.Helper()
	out := s.replica.Output(c.now + s.wall)
	var gone *RemovedError
	if errors.As(out.Err, &gone) {
		c.stopRemoved(s)
		return
	}
	if out.Err != nil {
		var diverged *DivergedError
		if !errors.As(out.Err, &diverged) {
			c.t.Fatalf("server %d stops: %v", s.id, out.Err)
		}
		s.stopped = out.Err
		c.crash(s)
		return
	}
	for _, m := range out.Send {
		c.send(s, m)
	}
	for _, d := range out.Digests {
		c.tell(s, d)
	}
	for _, save := range out.Saves {
		c.write(s, pendingWrite{save: save})
	}
	if e := out.Encode; e.Version != nil {
		s.made = append(s.made, e.Index)
		s.replica.Encoded(e.Index, e.Version.Encode())
	}
	if out.Snapshot != nil {
		c.write(s, pendingWrite{snapshot: out.Snapshot})
	}
	c.noteEnds(s)
	for _, r := range out.Replies {
		got := received{r, s.id, c.now}
		c.replies = append(c.replies, got)
		if c.onReply != nil {
			c.onReply(got)
		}
	}
	for _, r := range out.Seats {
		c.servers[r.Server].seat.hear(c.now, r.Outcome)
	}
	s.reads = append(s.reads, out.Reads...)
	s.replica.Clear()
	if err := s.replica.Registry().Check(); err != nil {
		c.t.Fatalf("server %d: %v", s.id, err)
	}
}

func (c *cluster) send(s *server, m *raftpb.Message) {
	if m.GetType() == raftpb.MsgSnap {
		s.replica.SnapshotSent(m.GetTo(), true)
	}
	if s.cut || c.rng.Float64() < c.loss || m.GetType() == c.lost {
		return
	}
	// A copy, as a network makes: what one server does to a message must not
	// be seen by another.
	c.flying = append(c.flying, packet{c.now + ms + c.rng.Int64N(3)*ms, proto.Clone(m).(*raftpb.Message)})
}

func (c *cluster) write(s *server, w pendingWrite) {
	w.at = c.now + ms + c.rng.Int64N(4)*ms
	if n := len(s.writing); n > 0 {
		w.at = max(w.at, s.writing[n-1].at)
	}
	s.writing = append(s.writing, w)
}

// noteEnds records when sessions end anywhere.
func (c *cluster) noteEnds(s *server) {
	seen := make(map[registry.SessionID]bool)
	s.replica.Registry().Each(func(session registry.Session) { seen[session.ID] = true })
	for id := range s.alive {
		if _, known := c.ended[id]; !seen[id] && !known {
			c.ended[id] = c.now
		}
	}
	s.alive = seen
}

// store is what a disk does with a save.
func store(d *agreement.Disk, state *raftpb.HardState, entries []*raftpb.Entry, snapshot *raftpb.Snapshot) {
	if snapshot != nil {
		d.Snapshot = snapshot
		d.Entries = after(d.Entries, snapshot.GetMetadata().GetIndex())
	}
	if len(entries) > 0 {
		d.Entries = append(before(d.Entries, entries[0].GetIndex()), entries...)
	}
	if state != nil {
		d.HardState = state
	}
}

func (c *cluster) leader() *server {
	var leader *server
	for _, s := range c.each() {
		if s.replica != nil && !s.cut && !s.paused && s.replica.Leading() && s.replica.ready &&
			(leader == nil || s.replica.term > leader.replica.term) {
			leader = s
		}
	}
	return leader
}

// await runs until there is a leader that takes requests.
func (c *cluster) await() *server {
	c.t.Helper()
	for range 10000 {
		if s := c.leader(); s != nil {
			return s
		}
		c.run(ms)
	}
	c.t.Fatal("no leader within 10 s")
	return nil
}

// do submits one command to the leader and runs until its final answer.
func (c *cluster) do(command registry.Command) registry.Result {
	c.t.Helper()
	s := c.await()
	s.replica.Submit(c.now, 1, []registry.Command{command})
	return c.answerTo(command.Session, command.Sequence)
}

func (c *cluster) answerTo(id registry.SessionID, sequence uint64) registry.Result {
	c.t.Helper()
	for range 5000 {
		for i, r := range c.replies {
			if r.Session == id && r.Sequence == sequence {
				c.replies = append(c.replies[:i], c.replies[i+1:]...)
				return r.Result
			}
		}
		c.run(ms)
	}
	c.t.Fatalf("request %d of %v is not answered", sequence, id)
	return registry.Result{}
}

func (c *cluster) want(got registry.Result, code registry.Code) registry.Result {
	c.t.Helper()
	if got.Code != code {
		c.t.Fatalf("code %d (%s), want %d", got.Code, got.Message, code)
	}
	return got
}

// same checks that all servers that are up have the same state, once they have applied the same
// entries.
func (c *cluster) same() {
	c.t.Helper()
	for range 1000 {
		applied := make(map[uint64]bool)
		for _, s := range c.each() {
			if s.replica != nil {
				applied[s.replica.Applied()] = true
			}
		}
		if len(applied) <= 1 {
			break
		}
		c.run(ms)
	}
	var first []byte
	for _, s := range c.each() {
		if s.replica == nil {
			continue
		}
		state := s.replica.Registry().Freeze().Encode()
		if first == nil {
			first = state
		}
		if string(state) != string(first) {
			c.t.Fatalf("server %d has another state than the first", s.id)
		}
	}
}

func id(n byte) registry.SessionID { return registry.SessionID{15: n} }

func open(n byte, sequence uint64, ttl int64) registry.Command {
	return registry.Command{Op: registry.OpOpen, Session: id(n), Sequence: sequence, TTL: ttl}
}

func acquire(n byte, sequence uint64, name string) registry.Command {
	return registry.Command{Op: registry.OpAcquire, Session: id(n), Sequence: sequence, Name: name}
}

func release(n byte, sequence, hold uint64) registry.Command {
	return registry.Command{Op: registry.OpRelease, Session: id(n), Sequence: sequence, Hold: hold}
}

func renew(n byte, sequence uint64) registry.Command {
	return registry.Command{Op: registry.OpRenew, Session: id(n), Sequence: sequence}
}

func before(entries []*raftpb.Entry, index uint64) []*raftpb.Entry {
	for i, e := range entries {
		if e.GetIndex() >= index {
			return entries[:i:i]
		}
	}
	return entries[:len(entries):len(entries)]
}

func after(entries []*raftpb.Entry, index uint64) []*raftpb.Entry {
	for i, e := range entries {
		if e.GetIndex() > index {
			return entries[i:]
		}
	}
	return nil
}
