package vopr

import (
	"errors"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/conclave-io/conclave/service/agreement"
	"github.com/conclave-io/conclave/service/founding"
	"github.com/conclave-io/conclave/service/host"
	"github.com/conclave-io/conclave/service/peering"
	"github.com/conclave-io/conclave/service/queue"
	"github.com/conclave-io/conclave/service/replica"
)

const (
	tick = 10 * ms
	// maxInbox bounds what a server that stands still finds when it goes on.
	maxInbox = 4096
)

// server is the host of a replica: what service/node is in earnest.
type server struct {
	w        *world
	id       uint64
	on       bool // the process runs
	founding founding.Machine
	replica  *replica.Replica // nil while it is down, or does not know what it is
	disk     disk
	joined   bool                     // it is no founder, or came back as one that joined
	peers    []uint64                 // whom it was told of
	contacts map[uint64]peering.Hello // whom it has shaken hands with
	remotes  map[uint64]*remote
	narrow   int64 // how long each frame for another server takes it
	ready    bool  // its disk has nothing of the cluster
	served   bool  // it has seen a leader
	slowness int64 // how long the next boot takes

	lost             bool // its disk was emptied, and it was not taken back since
	voters, learners []uint64
	askingBack       bool // an operator joins it again

	clock clock
	time  int64 // the clock's reading that the replica was told last
	wall  int64 // how far the wall clock is off
	life  int   // counts starts and crashes: what belongs to an earlier one is void

	paused  bool
	removed bool // from the cluster: it is down for good
	held    int  // faults that keep it down

	inbox   []func()
	turning bool // a turn is scheduled
	streams []*attached
	viewers []*viewer
	conns   map[uint64]*attached   // those that are served, by number
	queue   queue.Turns[*attached] // what they ask for
	reads   map[uint64]func(ok bool)
	reading uint64 // reads so far

	host   *host.Host // nil but in plans that have hosts
	guests []*visit

	levels replica.Levels // those that its release reads
	before uint32         // the newest of the release before
	began  int64          // when this life did
	ended  int64          // when the one before did
	woken  int64          // when it stood still last

	applied uint64 // as the judge saw it last
	log     ledger // what its log has been, for the judge
	turns   turns
}

// addServer makes a machine with an empty disk.
func (w *world) addServer() *server {
	id := uint64(len(w.servers)) + 1
	s := &server{w: w, id: id, clock: clock{base: int64(id) * 1e12}}
	s.disk.w, s.disk.owner = w, s
	w.servers = append(w.servers, s)
	return s
}

func (s *server) up() bool { return s.replica != nil }

func (s *server) now() int64 { return s.clock.read(s.w.now) }

// tellTime reads the clock for the replica.
func (s *server) tellTime() int64 {
	s.time = s.now()
	return s.time
}

// crash takes a server down. What its disk has not synced is lost.
func (s *server) crash() {
	if !s.on {
		return
	}
	s.noteMembers()
	s.w.note("crash", s.id, s.applied)
	s.w.well &^= s.endpoint() // the judge may look only when it runs again
	s.on, s.replica, s.inbox, s.paused, s.ended = false, nil, nil, false, s.w.now
	s.hangUp()
	s.life++
	s.clock.begin(s.w.now, s.w.plan.Seed^s.id<<32^uint64(s.life)<<48)
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

// stopForWant stops a server whose disk takes no more.
func (s *server) stopForWant() {
	s.w.tell("server %d stops: its disk is full", s.id)
	s.crash()
}

// retire takes a removed server down for good.
func (s *server) retire() {
	s.w.note("retire", s.id, 0)
	s.crash()
	s.removed = true
}

// scheduleTick has the server tick, a little late at times as tickers are.
func (s *server) scheduleTick(life int) {
	s.w.after(s.clock.real(tick), func() {
		if s.life != life {
			return
		}
		if !s.paused {
			s.take(s.tick)
		}
		s.scheduleTick(life)
	})
}

// tick lets a tick pass.
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

// receive puts an input for the replica where the server takes it up in its next turn.
func (s *server) receive(input func()) {
	if s.up() {
		s.take(input)
	}
}

// take puts any input there.
func (s *server) take(input func()) {
	if !s.on || len(s.inbox) >= maxInbox {
		return
	}
	s.takeAlways(input)
}

// takeAlways is take for what comes over streams, of which no more is on its way than
// their windows let.
func (s *server) takeAlways(input func()) {
	if s.on {
		s.inbox = append(s.inbox, input)
		s.wake()
	}
}

// wake schedules a turn: what arrives until then shares one output.
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

// pause lets the server stand still, and resume go on: with a tick that was due,
// and all that has arrived meanwhile, in the order that chance has it.
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

// saved is the report that writes are durable.
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
	// What is refused does not wait, and was refused before the entries were drawn.
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

// store gives the disk what is to be saved.
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

// deliver hands replies over, and has them sent.
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

// reportLater is what is done beside the replica, and takes a while.
func (s *server) reportLater(report func()) {
	life := s.life
	s.w.after(10*ms+s.w.net.Int64N(100*ms), func() {
		if s.life == life {
			s.receive(report)
		}
	})
}

// arrive is a message that comes over the connection that a peer dialled last.
func (s *server) arrive(c *conn, data []byte) {
	if !s.up() || !c.seat {
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

// ledger is what the log of a server has been since it started: a number for each
// entry that tells it from others.
type ledger struct {
	base  uint64 // the index before the first of marks
	marks []uint64
	all   []*raftpb.Entry // those of the marks
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

// at returns the mark of an entry, or false if the ledger does not reach there.
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

// trim forgets entries, but for the newest.
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
