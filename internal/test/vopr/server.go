package vopr

import (
	"errors"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/host"
	"github.com/conclave-io/conclave/internal/service/peering"
	"github.com/conclave-io/conclave/internal/service/queue"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/test/vopr/clock"
)

const (
	tick = 10 * ms
	// maxInbox limits the number of inputs that wait for a paused server.
	maxInbox = 4096
)

// server runs a replica. It corresponds to the real internal/service/node.
type server struct {
	w        *world
	id       uint64
	on       bool // the process is running
	founding founding.Machine
	replica  *replica.Replica // nil while the server is down or does not know its id
	disk     disk
	joined   bool                     // it is not a founder, or it joined again
	peers    []uint64                 // the servers that it knew at its start
	contacts map[uint64]peering.Hello // the introductions of servers with which it did a handshake
	remotes  map[uint64]*remote
	narrow   int64 // the time that each frame for another server takes
	ready    bool  // its disk is read and has no state of the cluster
	served   bool  // it has had a leader
	slowness int64 // the time that the next boot takes

	lost       bool // its disk was emptied, and it was not taken back since
	members         // as it knew them last
	askingBack bool // an operator joins it again

	clock clock.Clock
	time  int64 // the latest clock reading that the replica received
	wall  int64 // the error of the wall clock
	life  int   // counts starts and crashes; callbacks of an earlier life have no effect

	paused  bool
	removed bool // removed from the cluster; it stays down
	held    int  // number of faults that keep it down

	inbox   []func()
	turning bool // a turn is scheduled
	streams []*attached
	viewers []*viewer
	conns   map[uint64]*attached   // streams that this server serves, by number
	queue   queue.Turns[*attached] // requests of these streams
	reads   map[uint64]func(ok bool)
	reading uint64 // number of reads so far

	host     *host.Host // nil in plans without hosts
	guests   []*visit
	shown    *access.State // the rules that the host knows
	answered uint64        // the revision of those rules when the host was last asked for answers

	levels replica.Levels // levels that its release supports
	before uint32         // the newest level of the release before
	began  int64          // when this life began
	ended  int64          // when the previous life ended
	woken  int64          // when it last resumed after a pause

	applied uint64 // at the last check by the judge
	log     ledger // the entries of its log, for the judge
	turns   turns
}

// addServer creates a machine with an empty disk.
func (w *world) addServer() *server {
	id := uint64(len(w.servers)) + 1
	s := &server{w: w, id: id, clock: clock.Clock{Base: int64(id) * 1e12}}
	s.disk.w, s.disk.owner = w, s
	w.servers = append(w.servers, s)
	return s
}

func (s *server) up() bool { return s.replica != nil }

func (s *server) now() int64 { return s.clock.Read(s.w.now) }

// tellTime returns the clock reading for the replica.
func (s *server) tellTime() int64 {
	s.time = s.now()
	return s.time
}

// crash takes a server down. Data that its disk has not synced is lost.
func (s *server) crash() {
	if !s.on {
		return
	}
	s.noteMembers()
	s.w.note("crash", s.id, s.applied)
	s.w.well &^= s.endpoint() // the judge may not query it before it runs again
	s.on, s.replica, s.inbox, s.paused, s.ended = false, nil, nil, false, s.w.now
	s.hangUp()
	s.life++
	s.clock.Begin(s.w.now, s.w.plan.Seed^s.id<<32^uint64(s.life)<<48)
	s.disk.crash()
	s.w.stats.Restarts++
	for _, a := range s.streams {
		a.call.reset()
		if a.above != nil {
			a.above.close()
		}
	}
	for _, v := range s.viewers {
		s.transmit(v, told{end: true})
	}
	s.streams, s.viewers = nil, nil
	if s.w.hosts != nil {
		s.w.hosts.stop(s)
	}
}

// stopForWant stops a server whose disk is full.
func (s *server) stopForWant() {
	s.w.tell("server %d stops: its disk is full", s.id)
	s.crash()
}

// retire takes a removed server down permanently.
func (s *server) retire() {
	s.w.note("retire", s.id, 0)
	s.crash()
	s.removed = true
}

// scheduleTick schedules the next tick. Like a real ticker, it is sometimes a little late.
func (s *server) scheduleTick(life int) {
	s.w.after(s.clock.Real(tick), func() {
		if s.life != life {
			return
		}
		if !s.paused {
			s.take(s.tick)
		}
		s.scheduleTick(life)
	})
}

// tick processes a tick.
func (s *server) tick() {
	s.losses()
	if s.up() {
		s.replica.Tick(s.tellTime())
		s.w.trace.ticks(s)
		if s.w.hosts != nil {
			s.w.hosts.tick(s)
		}
		s.strays()
		return
	}
	s.decide()
}

// receive queues an input for the replica. The next turn processes it.
func (s *server) receive(input func()) {
	if s.up() {
		s.take(input)
	}
}

// take queues any input.
func (s *server) take(input func()) {
	if !s.on || len(s.inbox) >= maxInbox {
		return
	}
	s.takeAlways(input)
}

// takeAlways is like take, but has no limit. It is for inputs from streams, whose windows already
// limit them.
func (s *server) takeAlways(input func()) {
	if s.on {
		s.inbox = append(s.inbox, input)
		s.wake()
	}
}

// wake schedules a turn. All inputs until then share one output.
func (s *server) wake() {
	if s.turning || s.paused || !s.on {
		return
	}
	s.turning = true
	life := s.life
	s.w.after(s.w.net.Int64N(ms/10), func() {
		if s.life == life {
			s.turning = false
			s.turn()
		}
	})
}

func (s *server) turn() {
	if s.paused {
		return
	}
	life := s.life
	inputs := s.inbox
	s.inbox = nil
	for _, input := range inputs {
		if input(); s.life != life {
			return
		}
	}
	if s.up() {
		s.takeRequests()
		s.carryOut(s.replica.Output(s.w.now + s.wall))
	}
	if s.w.hosts != nil && s.up() {
		s.w.hosts.carryOut(s)
	}
}

// pause stops the server, and resume continues it. After resume, a due tick and all inputs that
// arrived during the pause are processed in random order.
func (s *server) pause() { s.paused = true }

func (s *server) resume() {
	if !s.paused {
		return
	}
	s.paused, s.woken = false, s.w.now
	at := 0
	if len(s.inbox) > 0 {
		at = s.w.net.IntN(min(len(s.inbox), 20) + 1)
	}
	s.inbox = slices.Insert(s.inbox, at, s.tick)
	s.wake()
	for _, other := range s.w.servers {
		if c := s.over(other.id); c != nil {
			s.write(c)
		}
	}
	s.disk.begin()
}

// saved informs the replica that writes are durable.
func (s *server) saved(done []write) {
	for _, x := range done {
		if x.then != nil {
			x.then()
			continue
		}
		if x.snapshot != nil {
			s.replica.SnapshotStored()
			continue
		}
		if x.save.Snapshot != nil {
			s.w.stats.Snapshots++
		}
		s.replica.Saved(s.tellTime(), x.save)
	}
}

func (s *server) carryOut(out *replica.Output) {
	var gone *replica.RemovedError
	if errors.As(out.Err, &gone) {
		s.retire()
		return
	}
	if s.outdated(out.Err) {
		return
	}
	if out.Err != nil {
		s.w.violate("stop", "server %d stops: %v", s.id, out.Err)
		return
	}
	// Refused requests do not wait. They were refused before the entries were chosen.
	s.turns.answer(out.Replies)
	for _, save := range out.Saves {
		s.log.append(save)
		s.w.judge.raises(s, save)
		s.turns.enter(s, save)
	}
	s.w.trace.output(s, out)
	s.w.judge.watch(s)
	s.takenBack()
	s.served = s.served || s.replica.Leader() != 0
	for _, m := range out.Send {
		s.w.judge.answers(s, m)
		s.send(m)
	}
	for _, d := range out.Digests {
		s.tell(d)
	}
	s.store(out)
	s.deliver(out.Replies)
	if s.w.live != nil {
		s.w.live.answer(s, out.Seats)
		s.w.live.tell(out.Replies)
	}
	if s.w.hosts != nil {
		s.w.hosts.follow(s, out)
	}
	for _, read := range out.Reads {
		finish := s.reads[read.ID]
		delete(s.reads, read.ID)
		finish(read.OK)
	}
	s.announce(out.Elections, out.Locks)
	if out.Deposed {
		s.dropViewers()
		s.w.note("deposed", s.id, s.replica.Term())
		for _, n := range sorted(s.conns) {
			s.conns[n].depose()
		}
	}
	if out.Members {
		s.gained()
	}
	s.replica.Clear()
}

// store passes the data to save to the disk.
func (s *server) store(out *replica.Output) {
	for _, save := range out.Saves {
		s.disk.add(write{save: save})
	}
	if e := out.Encode; e.Version != nil {
		s.reportLater(func() { s.replica.Encoded(e.Index, e.Version.Encode()) })
	}
	if out.Snapshot != nil {
		s.disk.addFile(out.Snapshot)
	}
}

// deliver passes replies to their streams, and sends them.
func (s *server) deliver(replies []replica.Reply) {
	for _, r := range replies {
		if a := s.conns[r.Conn]; a != nil {
			a.deliver(r.Outcome)
		}
	}
	for _, r := range replies {
		if a := s.conns[r.Conn]; a != nil {
			a.pump()
		}
	}
}

// reportLater is for results of work beside the replica. They arrive after a delay.
func (s *server) reportLater(report func()) {
	life := s.life
	s.w.after(10*ms+s.w.net.Int64N(100*ms), func() {
		if s.life == life {
			s.receive(report)
		}
	})
}

// arrive processes a message that arrived on the newest connection of a peer.
func (s *server) arrive(c *conn, data []byte) {
	if !s.up() || !c.current {
		return
	}
	m := new(raftpb.Message)
	if err := proto.Unmarshal(data, m); err != nil {
		s.w.violate("codec", "a message of server %d cannot be read: %v", c.ends[dialler].id, err)
		return
	}
	s.accept(c, m)
}

func (s *server) accept(c *conn, m *raftpb.Message) {
	if s.up() {
		s.w.note(m.GetType().String(), c.ends[dialler].id<<8|s.id, m.GetTerm()<<32|m.GetIndex())
		s.replica.Receive(s.tellTime(), m)
	}
}

// leader returns the server that leads in the highest term, or nil.
func (w *world) leader() *server {
	var leader *server
	for _, s := range w.servers {
		if s.up() && !s.paused && s.replica.Leading() && (leader == nil || s.replica.Term() > leader.replica.Term()) {
			leader = s
		}
	}
	return leader
}

// ledger is a record of the log of a server since its start. It has a number for each entry that
// identifies its contents.
type ledger struct {
	base  uint64 // the index before the first mark
	marks []uint64
	all   []*raftpb.Entry // the entries of the marks
}

func (l *ledger) begin(d agreement.Disk) {
	l.base, l.marks, l.all = d.Snapshot.GetMetadata().GetIndex(), nil, nil
	l.add(d.Entries)
}

func (l *ledger) append(save *agreement.Save) {
	if save.Snapshot != nil {
		l.base, l.marks, l.all = save.Snapshot.GetMetadata().GetIndex(), nil, nil
	}
	l.add(save.Entries)
}

func (l *ledger) add(entries []*raftpb.Entry) {
	for _, e := range entries {
		if e.GetIndex() <= l.base {
			continue
		}
		l.marks = append(l.marks[:e.GetIndex()-l.base-1], markOf(e))
		l.all = append(l.all[:e.GetIndex()-l.base-1], e)
	}
}

// at returns the mark of an entry. It returns false if the ledger does not contain the index.
func (l *ledger) at(index uint64) (uint64, bool) {
	if index <= l.base || index > l.base+uint64(len(l.marks)) {
		return 0, false
	}
	return l.marks[index-l.base-1], true
}

// entry returns an entry, or nil.
func (l *ledger) entry(index uint64) *raftpb.Entry {
	if index <= l.base || index > l.base+uint64(len(l.all)) {
		return nil
	}
	return l.all[index-l.base-1]
}

// trim deletes all entries except the newest.
func (l *ledger) trim(most int) {
	if drop := len(l.marks) - most; drop > most {
		l.base += uint64(drop)
		l.marks, l.all = slices.Clone(l.marks[drop:]), slices.Clone(l.all[drop:])
	}
}

func markOf(e *raftpb.Entry) uint64 {
	h := 0xcbf29ce484222325 ^ e.GetTerm()*0x9e3779b97f4a7c15
	for _, b := range e.GetData() {
		h = (h ^ uint64(b)) * 0x100000001b3
	}
	return h
}
