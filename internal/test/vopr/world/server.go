package world

import (
	"errors"

	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/host"
	"github.com/conclave-io/conclave/internal/service/peering"
	"github.com/conclave-io/conclave/internal/service/queue"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/test/vopr/disk"
	"github.com/conclave-io/conclave/internal/test/vopr/ledger"
	"github.com/conclave-io/conclave/internal/test/vopr/machine"
	"github.com/conclave-io/conclave/internal/test/vopr/trace"
	"github.com/conclave-io/conclave/internal/test/vopr/transport"
	"github.com/conclave-io/conclave/internal/test/vopr/turns"
)

const tick = 10 * ms

// Server runs a replica. It corresponds to the real internal/service/node.
type Server struct {
	machine.Machine
	w         *World
	transport *transport.Transport
	founding  founding.Machine
	Replica   *replica.Replica // nil while the server is down or does not know its id
	disk      disk.Disk
	joined    bool                     // it is not a founder, or it joined again
	peers     []uint64                 // the servers that it knew at its start
	contacts  map[uint64]peering.Hello // the introductions of servers with which it did a handshake
	ready     bool                     // its disk is read and has no state of the cluster
	served    bool                     // it has had a leader
	slowness  int64                    // the time that the next boot takes
	nonce     uint64                   // of this process, 0 of a release that has none
	born      int64                    // when this process started, on its clock

	lost       bool // its disk was emptied, and it was not taken back since
	members         // as it knew them last
	askingBack bool // an operator joins it again

	time int64 // the latest clock reading that the replica received
	Wall int64 // the error of the wall clock

	removed bool // removed from the cluster; it stays down
	held    int  // number of faults that keep it down

	streams []*attached
	viewers []*viewer
	conns   map[uint64]*attached   // streams that this server serves, by number
	queue   queue.Turns[*attached] // requests of these streams
	reads   map[uint64]func(ok bool)
	reading uint64 // number of reads so far

	Host     *host.Host // nil in plans without hosts
	Guests   []*visit
	Shown    *access.State // the rules that the host knows
	Answered uint64        // the revision of those rules when the host was last asked for answers

	levels replica.Levels // levels that its release supports
	before uint32         // the newest level of the release before
	began  int64          // when this life began
	ended  int64          // when the previous life ended

	applied uint64        // at the last check by the judge
	Log     ledger.Ledger // the entries of its log, for the judge
	turns   turns.Turns
}

// addServer creates a machine with an empty disk.
func (w *World) addServer() *Server {
	id := uint64(len(w.Servers)) + 1
	s := &Server{w: w, Machine: machine.New(id, w.Net)}
	s.Turn, s.transport = s.turn, w.transports.Add(&s.Machine, handler{s})
	s.disk = disk.New(w.Run, w.disks, &s.Machine, owner{s})
	s.turns.Facts = turns.Facts{
		Server: id, Leads: s.leadsIn, HasHold: w.hasHold, Violate: w.Violate,
		Owner: func(id registry.SessionID) string { return w.owners[id] },
	}
	w.Servers = append(w.Servers, s)
	return s
}

// Up reports whether the process of the server runs.
func (s *Server) Up() bool { return s.Replica != nil }

// leadsIn returns the term in which the server leads, or 0.
func (s *Server) leadsIn() uint64 {
	if !s.Replica.Leading() {
		return 0
	}
	return s.Replica.Term()
}

// TellTime returns the clock reading for the replica.
func (s *Server) TellTime() int64 {
	s.time = s.Now()
	return s.time
}

// Crash takes a server down. Data that its disk has not synced is lost.
func (s *Server) Crash() {
	if !s.On {
		return
	}
	s.noteMembers()
	s.w.Note("crash", s.ID, s.applied)
	s.w.well &^= s.Endpoint() // the judge may not query it before it runs again
	s.Replica, s.ended = nil, s.w.Now
	s.Stop(s.w.Plan.Seed ^ s.ID<<32)
	s.transport.Stop()
	s.disk.Crash()
	s.w.Stats.Restarts++
	for _, a := range s.streams {
		a.call.Reset()
		if a.above != nil {
			a.above.close()
		}
	}
	for _, v := range s.viewers {
		s.transmit(v, told{end: true})
	}
	s.streams, s.viewers = nil, nil
	if s.w.Hosts != nil {
		s.w.Hosts.Stop(s)
	}
}

// observed returns what the check of traces observes of the server.
func (s *Server) observed() trace.Server {
	return trace.Server{ID: s.ID, Life: s.Life, Time: s.time, Replica: s.Replica, Log: &s.Log}
}

// retire takes a removed server down permanently.
func (s *Server) retire() {
	s.w.Note("retire", s.ID, 0)
	s.Crash()
	s.removed = true
}

// scheduleTick schedules the next tick. Like a real ticker, it is sometimes a little late.
func (s *Server) scheduleTick() {
	s.Alarm(tick, func() {
		if !s.Paused {
			s.Take(s.tick)
		}
		s.scheduleTick()
	})
}

// tick processes a tick.
func (s *Server) tick() {
	s.transport.Losses()
	if s.Up() {
		s.Replica.Tick(s.TellTime())
		s.w.trace.Ticks(s.observed())
		if s.w.Hosts != nil {
			s.w.Hosts.Tick(s)
		}
		s.strays()
		return
	}
	s.decide()
}

// Receive queues an input for the replica. The next turn processes it.
func (s *Server) Receive(input func()) {
	if s.Up() {
		s.Take(input)
	}
}

// turn carries out what the inputs of a turn gave.
func (s *Server) turn() {
	if s.Up() {
		s.takeRequests()
		s.carryOut(s.Replica.Output(s.w.Now + s.Wall))
	}
	if s.w.Hosts != nil && s.Up() {
		s.w.Hosts.CarryOut(s)
	}
}

// resume continues the server after a pause.
func (s *Server) resume() {
	if !s.Paused {
		return
	}
	s.Resume(s.tick)
	s.transport.Resume()
	s.disk.Begin()
}

// owner is the server as its disk knows it.
type owner struct{ *Server }

// Full stops a server whose disk is full.
func (s owner) Full() {
	s.w.Tell("server %d stops: its disk is full", s.ID)
	s.Crash()
}

// Fused takes the server down in the middle of a write.
func (s owner) Fused() {
	if !s.w.Healed { // after the healing, nothing would start it again
		s.Crash()
	}
}

// release ends one of the faults that make the disk of the server hang.
func (s *Server) release() {
	if s.disk.Release(); !s.disk.Hangs() && s.held == 0 {
		s.start()
	}
}

// Saved informs the replica that writes are durable.
func (s owner) Saved(done []disk.Write) {
	for _, x := range done {
		if x.Then != nil {
			x.Then()
			continue
		}
		if x.Snapshot != nil {
			s.Replica.SnapshotStored()
			continue
		}
		if x.Save.Snapshot != nil {
			s.w.Stats.Snapshots++
		}
		s.Replica.Saved(s.TellTime(), x.Save)
	}
}

func (s *Server) carryOut(out *replica.Output) {
	var gone *replica.RemovedError
	if errors.As(out.Err, &gone) {
		s.retire()
		return
	}
	if s.outdated(out.Err) {
		return
	}
	if out.Err != nil {
		s.w.Violate("stop", "server %d stops: %v", s.ID, out.Err)
		return
	}
	// Refused requests do not wait. They were refused before the entries were chosen.
	s.turns.Answer(out.Replies)
	for _, save := range out.Saves {
		s.Log.Append(save)
		s.w.Judge.raises(s, save)
		s.turns.Enter(save)
	}
	s.w.trace.Output(s.observed(), out)
	s.w.Judge.watch(s)
	s.takenBack()
	s.served = s.served || s.Replica.Leader() != 0
	for _, m := range out.Send {
		s.w.Judge.answers(s, m)
		s.transport.Send(m)
	}
	for _, d := range out.Digests {
		s.transport.Note(d)
	}
	s.store(out)
	s.deliver(out.Replies)
	if s.w.standIn != nil {
		s.w.standIn.Answer(s, out.Seats)
		s.w.standIn.Tell(out.Replies)
	}
	if s.w.Hosts != nil {
		s.w.Hosts.Follow(s, out)
	}
	for _, read := range out.Reads {
		finish := s.reads[read.ID]
		delete(s.reads, read.ID)
		finish(read.OK)
	}
	s.announce(out.Elections, out.Locks)
	if out.Deposed {
		s.dropViewers()
		s.w.Note("deposed", s.ID, s.Replica.Term())
		for _, n := range sorted(s.conns) {
			s.conns[n].depose()
		}
	}
	if out.Members {
		s.gained()
	}
	s.Replica.Clear()
}

// store passes the data to save to the disk.
func (s *Server) store(out *replica.Output) {
	for _, save := range out.Saves {
		s.disk.Add(disk.Write{Save: save})
	}
	if e := out.Encode; e.Version != nil {
		s.reportLater(func() { s.Replica.Encoded(e.Index, e.Version.Encode()) })
	}
	if out.Snapshot != nil {
		s.disk.AddFile(out.Snapshot)
	}
}

// deliver passes replies to their streams, and sends them.
func (s *Server) deliver(replies []replica.Reply) {
	for _, r := range replies {
		if a := s.conns[r.Conn]; a != nil {
			a.deliver(r.Outcome)
		} else if s.w.names != nil && r.Conn == OperatorConn {
			s.w.names.Told(r.Outcome)
		}
	}
	for _, r := range replies {
		if a := s.conns[r.Conn]; a != nil {
			a.pump()
		}
	}
}

// reportLater is for results of work beside the replica. They arrive after a delay.
func (s *Server) reportLater(report func()) {
	life := s.Life
	s.w.After(10*ms+s.w.Net.Rand.Int64N(100*ms), func() {
		if s.Life == life {
			s.Receive(report)
		}
	})
}

// Leader returns the server that leads in the highest term, or nil.
func (w *World) Leader() *Server {
	var leader *Server
	for _, s := range w.Servers {
		if s.Up() && !s.Paused && s.Replica.Leading() && (leader == nil || s.Replica.Term() > leader.Replica.Term()) {
			leader = s
		}
	}
	return leader
}
