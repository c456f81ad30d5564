package world

import (
	"errors"
	"slices"

	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/peering"
	"github.com/conclave-io/conclave/internal/service/queue"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/version"
	"github.com/conclave-io/conclave/internal/test/vopr/disk"
	"github.com/conclave-io/conclave/internal/test/vopr/turns"
)

// foundCluster creates the founders with empty disks, and starts them.
func (w *World) foundCluster() {
	for range w.Plan.Servers {
		w.founders = append(w.founders, w.addServer().ID)
	}
	for _, s := range w.Servers {
		s.peers = w.founders
		s.start()
	}
}

// drawUID returns a UID for a new directory.
func (w *World) drawUID() uint64 {
	w.directories++
	return w.directories * 1000
}

// start starts a server with the contents of its disk.
func (s *Server) start() {
	switch {
	case s.On || s.removed || s.disk.Hangs():
	case s.disk.UID == 0 && s.mustJoin():
		s.askBack()
	default:
		s.install()
		s.boot()
	}
}

// boot starts a server with the installed release. The server receives messages and answers them
// while it reads its disk.
func (s *Server) boot() {
	s.Start()
	s.transport.Start()
	s.served, s.ready = false, false
	if s.nonce = 0; s.w.Plan.Copies {
		s.nonce, s.born = s.w.nonces.Uint64()|1, s.Now()
	}
	s.founding, s.contacts = founding.Machine{}, make(map[uint64]peering.Hello)
	s.streams, s.viewers = nil, nil
	s.conns, s.queue = make(map[uint64]*attached), queue.Turns[*attached]{}
	s.reads = make(map[uint64]func(bool))
	s.applied, s.began = 0, s.w.Now
	s.w.Note("boot", s.ID, s.disk.UID)
	s.scheduleTick()
	s.transport.Acquaint()
	life := s.Life
	s.w.After(s.w.disks.Int64N(2*ms)+s.slowness, func() {
		if s.Life == life {
			s.Take(s.load)
		}
	})
	s.slowness = 0
}

// load reads the disk. If there is no directory, it creates one.
func (s *Server) load() {
	if s.disk.UID == 0 {
		s.disk.Add(disk.Write{UID: s.w.drawUID(), Then: s.load})
		return
	}
	self := founding.Server{ID: s.ID, UID: s.disk.UID, Founders: s.w.founders, Record: s.disk.Record}
	s.ready = s.disk.Fresh()
	s.founding.Load(founding.Disk{Server: self, Joined: s.joined, State: !s.disk.Fresh()})
	s.transport.Acquaint()
	s.transport.Introduce()
	s.decide()
}

// decide carries out the decisions of the founding machine, as internal/service/node does.
func (s *Server) decide() {
	for life := s.Life; s.Life == life && s.On; {
		a := s.founding.Step(s.Now())
		if a.Introduce {
			s.transport.Introduce()
		}
		if a.Tell {
			s.w.Tell("server %d waits for %v, which differ: %v", s.ID, a.Missing, a.Differs)
		}
		switch a.Step {
		case founding.Write:
			s.disk.Add(disk.Write{Record: a.Record, Then: s.recorded})
		case founding.Found:
			s.w.Note("founds", s.ID, s.disk.UID)
			s.disk.Add(disk.Write{Snapshot: replica.Bootstrap(s.w.founders), Kept: func() { s.w.Judge.founds(s) }, Then: s.hasFounded})
		case founding.Rejoin:
			s.w.Note("rejoins", s.ID, s.disk.UID)
			s.w.Stats.Rejoined++
			s.run()
		case founding.Resume:
			s.run()
		case founding.Wait:
			return
		}
	}
}

func (s *Server) recorded() {
	if s.founding.Written(true); s.Up() {
		s.Replica.Founded(s.founders())
	}
	s.decide()
}

func (s *Server) hasFounded() {
	s.founding.Gained()
	s.decide()
	s.run()
}

// founders returns the founders in the record.
func (s *Server) founders() (all []registry.Member) {
	for _, f := range s.founding.Record() {
		all = append(all, registry.Member{ID: f.ID, UID: f.UID, PeerAddress: peerAddress(f.ID)})
	}
	return all
}

// run creates the replica from the contents of the disk.
func (s *Server) run() {
	said := s.said()
	cfg := replica.Config{
		ID: s.ID, UID: said.UID, PeerAddress: said.PeerAddress, ClientAddress: said.ClientAddress,
		Tick: tick, SnapshotBytes: 12_000, TailEntries: 24, Levels: s.levels, LevelSoak: levelSoak, DigestEvery: 64,
		MaxBatchBytes: turns.BatchBytes,
	}
	if s.w.Plan.Limits {
		cfg.StateLimit = stateLimit - int(s.ID%3)*stateLimit/8
	}
	cfg.Founders = s.founders()
	kept := s.disk.State
	kept.Entries = slices.Clone(kept.Entries)
	made, err := replica.New(cfg, kept)
	var gone *replica.RemovedError
	var unread *version.Error
	switch {
	case errors.As(err, &unread) && s.w.Plan.Levels:
		s.other()
		return
	case errors.As(err, &gone):
		s.retire()
		return
	case err != nil:
		s.w.Violate("start", "server %d does not start: %v", s.ID, err)
		return
	}
	s.Replica = made
	s.Log.Begin(kept)
	s.w.Note("start", s.ID, made.Applied())
	if s.w.Hosts != nil {
		s.w.Hosts.Begin(s)
	}
	for _, other := range s.w.Servers {
		if h, met := s.contacts[other.ID]; met {
			made.Met(memberOf(h), levelsOf(h))
		}
	}
	s.gained()
}

// gained records that the replica has state of the cluster, if it has.
func (s *Server) gained() {
	if !s.Replica.Blank() {
		s.founding.Gained()
	}
	s.transport.Acquaint()
	s.decide()
}
