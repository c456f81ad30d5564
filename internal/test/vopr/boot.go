package vopr

import (
	"errors"
	"slices"

	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/peering"
	"github.com/conclave-io/conclave/internal/service/queue"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/version"
)

// foundCluster creates the founders with empty disks, and starts them.
func (w *world) foundCluster() {
	for range w.plan.Servers {
		w.founders = append(w.founders, w.addServer().id)
	}
	for _, s := range w.servers {
		s.peers = w.founders
		s.start()
	}
}

// drawUID returns a UID for a new directory.
func (w *world) drawUID() uint64 {
	w.directories++
	return w.directories * 1000
}

// start starts a server with the contents of its disk.
func (s *server) start() {
	switch {
	case s.on || s.removed || s.disk.hung > 0:
	case s.disk.uid == 0 && s.mustJoin():
		s.askBack()
	default:
		s.install()
		s.boot()
	}
}

// boot starts a server with the installed release. The server receives messages and answers them
// while it reads its disk.
func (s *server) boot() {
	s.on, s.served, s.ready = true, false, false
	s.founding, s.contacts = founding.Machine{}, make(map[uint64]peering.Hello)
	s.remotes = make(map[uint64]*remote)
	s.inbox, s.turning, s.streams, s.viewers = nil, false, nil, nil
	s.conns, s.queue = make(map[uint64]*attached), queue.Turns[*attached]{}
	s.reads, s.life = make(map[uint64]func(bool)), s.life+1
	s.applied, s.began = 0, s.w.now
	s.w.note("boot", s.id, s.disk.uid)
	s.scheduleTick(s.life)
	s.acquaint()
	life := s.life
	s.w.after(s.w.disks.Int64N(2*ms)+s.slowness, func() {
		if s.life == life {
			s.take(s.load)
		}
	})
	s.slowness = 0
}

// load reads the disk. If there is no directory, it creates one.
func (s *server) load() {
	if s.disk.uid == 0 {
		s.disk.add(write{uid: s.w.drawUID(), then: s.load})
		return
	}
	self := founding.Server{ID: s.id, UID: s.disk.uid, Founders: s.w.founders, Record: s.disk.record}
	s.ready = s.disk.fresh()
	s.founding.Load(founding.Disk{Server: self, Joined: s.joined, State: !s.disk.fresh()})
	s.acquaint()
	s.introduce()
	s.decide()
}

// decide carries out the decisions of the founding machine, as internal/service/node does.
func (s *server) decide() {
	for life := s.life; s.life == life && s.on; {
		a := s.founding.Step(s.now())
		if a.Introduce {
			s.introduce()
		}
		if a.Tell {
			s.w.tell("server %d waits for %v, which differ: %v", s.id, a.Missing, a.Differs)
		}
		switch a.Step {
		case founding.Write:
			s.disk.add(write{record: a.Record, then: s.recorded})
		case founding.Found:
			s.w.note("founds", s.id, s.disk.uid)
			s.disk.add(write{snapshot: replica.Bootstrap(s.w.founders), founds: true, then: s.hasFounded})
		case founding.Rejoin:
			s.w.note("rejoins", s.id, s.disk.uid)
			s.w.stats.Rejoined++
			s.run()
		case founding.Resume:
			s.run()
		case founding.Wait:
			return
		}
	}
}

func (s *server) recorded() {
	if s.founding.Written(true); s.up() {
		s.replica.Founded(s.founders())
	}
	s.decide()
}

func (s *server) hasFounded() {
	s.founding.Gained()
	s.decide()
	s.run()
}

// founders returns the founders in the record.
func (s *server) founders() (all []registry.Member) {
	for _, f := range s.founding.Record() {
		all = append(all, registry.Member{ID: f.ID, UID: f.UID, PeerAddress: peerAddress(f.ID)})
	}
	return all
}

// run creates the replica from the contents of the disk.
func (s *server) run() {
	said := s.said()
	cfg := replica.Config{
		ID: s.id, UID: said.UID, PeerAddress: said.PeerAddress, ClientAddress: said.ClientAddress,
		Tick: tick, SnapshotBytes: 12_000, TailEntries: 24, Levels: s.levels, LevelSoak: levelSoak, DigestEvery: 64,
		MaxBatchBytes: batchBytes,
	}
	if s.w.plan.Limits {
		cfg.StateLimit = stateLimit - int(s.id%3)*stateLimit/8
	}
	cfg.Founders = s.founders()
	kept := s.disk.kept
	kept.Entries = slices.Clone(kept.Entries)
	made, err := replica.New(cfg, kept)
	var gone *replica.RemovedError
	var unread *version.Error
	switch {
	case errors.As(err, &unread) && s.w.plan.Levels:
		s.other()
		return
	case errors.As(err, &gone):
		s.retire()
		return
	case err != nil:
		s.w.violate("start", "server %d does not start: %v", s.id, err)
		return
	}
	s.replica = made
	s.log.begin(kept)
	s.w.note("start", s.id, made.Applied())
	if s.w.hosts != nil {
		s.w.hosts.begin(s)
	}
	for _, other := range s.w.servers {
		if h, met := s.contacts[other.id]; met {
			made.Met(memberOf(h), levelsOf(h))
		}
	}
	s.gained()
}

// gained records that the replica has state of the cluster, if it has.
func (s *server) gained() {
	if !s.replica.Blank() {
		s.founding.Gained()
	}
	s.acquaint()
	s.decide()
}
