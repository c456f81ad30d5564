package world

import (
	"errors"
	"fmt"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/version"
)

const (
	// newestLevel is the newest level that a simulated release supports. All levels have the
	// formats of the first one. Only the rules for changing the level are tested.
	newestLevel = 3
	// levelSoak is short, so that levels change within a run.
	levelSoak = 1000 * ms
)

// install chooses the release with which a server starts. It is the previous release, the same, or
// the next one, if it supports the data on the disk. In a plan without mixed levels the release
// never changes. The next release is the most likely choice, so that levels rise.
func (s *Server) install() {
	s.before = s.levels.Max
	switch {
	case s.w.Plan.Linger:
		s.levels = replica.Levels{Min: version.Min, Max: version.Linger}
		return
	case s.w.Plan.Access:
		s.levels = replica.Levels{Min: version.Min, Max: version.Access}
		return
	case s.w.Plan.Live:
		s.levels = replica.Levels{Min: version.Min, Max: version.Guarded}
		return
	case s.w.Plan.Names:
		s.levels = replica.Levels{Min: version.Min, Max: version.Settings}
		return
	case !s.w.Plan.Levels && s.w.Plan.Deadlocks:
		s.levels = replica.Levels{Min: version.Min, Max: version.Guarded}
		return
	case !s.w.Plan.Levels:
		s.levels = replica.Levels{Min: 1, Max: 1}
		return
	case s.levels.Max == 0:
		s.levels.Max = 1 + s.w.releases.Uint32N(2)
	default:
		s.levels.Max = min(max(s.levels.Max+min(s.w.releases.Uint32N(8), 2), 2)-1, newestLevel)
	}
	s.levels.Min = max(s.levels.Max, 2) - 1
}

// roll restarts a random server from time to time, with a newly installed release. Between two
// restarts there may or may not be enough time for the level to rise.
func (w *World) roll() {
	if w.Healed {
		return
	}
	s := w.Servers[w.releases.IntN(len(w.Servers))]
	if s.Well() {
		s.Crash()
		w.Hold(s, (100+w.releases.Int64N(6000))*ms)
	}
	w.After((500+w.releases.Int64N(8000))*ms, w.roll)
}

// Well reports whether a server works, so that it may be restarted.
func (s *Server) Well() bool { return s.Up() && !s.Paused && !s.disk.Hangs() }

// other replaces a release that does not support the data on the disk. It installs the release that
// ran before, or any suitable one.
func (s *Server) other() {
	if s.levels.Max = s.levels.Max%newestLevel + 1; s.before != 0 {
		s.levels.Max, s.before = s.before, 0
	}
	s.levels.Min = max(s.levels.Max, 2) - 1
	s.transport.Introduce()
	s.run()
}

// outdated handles a server which reports that it does not support the level of the cluster. It
// restarts the server as a newer release. This may only happen to a server that was downgraded when
// the level was about to rise, or later. The level rises only when all servers support the next
// one.
func (s *Server) outdated(err error) bool {
	var unread *version.Error
	if !errors.As(err, &unread) {
		return false
	}
	var level uint32
	_, _ = fmt.Sscanf(unread.Text, "the state of the cluster: level %d:", &level)
	older := level > 0 && level < s.levels.Min
	if raised := s.w.Judge.raised; !older && raised-s.began > missed {
		s.w.Violate("level", "server %d ran for %d ms when a leader raised the level, and does not read it: %v", s.ID, (raised-s.began)/ms, err)
		return true
	}
	s.Crash()
	if s.levels.Max = min(s.levels.Max+1, newestLevel); older {
		s.levels = replica.Levels{Min: max(level, 2) - 1, Max: level}
	}
	s.w.After(100*ms, func() {
		if s.held == 0 {
			s.start()
		}
	})
	return true
}

// missed is the time within which a leader notices that a server stopped, or restarted with another
// release.
const missed = 2000 * ms

// raises checks a leader that raises the level. All members, including learners, must be up and
// must support the next level.
func (j *judge) raises(s *Server, save *agreement.Save) {
	if !s.w.Plan.Levels || !s.Replica.Leading() {
		return
	}
	for _, e := range save.Entries {
		batch, err := registry.DecodeBatch(e.GetData())
		if err != nil || e.GetTerm() != s.Replica.Term() {
			continue // an entry of raft itself, or of an earlier leader
		}
		for _, c := range batch.Commands {
			if c.Op == registry.OpLevel && c.To > c.From {
				j.raisesTo(s, c.To)
			}
		}
	}
}

func (j *judge) raisesTo(s *Server, level uint32) {
	s.w.Stats.Raised++
	j.raised = s.w.Now
	if s.w.Now-s.Woken < missed {
		return // it may not have noticed the servers that stopped while it was paused
	}
	for _, m := range s.Replica.Members() {
		if m.Standing == registry.Removed || m.ID > uint64(len(s.w.Servers)) {
			continue
		}
		switch other := s.w.Servers[m.ID-1]; {
		case other.removed:
		case !other.Up() && s.w.Now-other.ended > missed:
			s.w.Violate("level", "server %d raises the level to %d while server %d has been down for %d ms", s.ID, level, m.ID, (s.w.Now-other.ended)/ms)
		case other.Up() && other.levels.Max < level && s.w.Now-other.began > missed:
			s.w.Violate("level", "server %d raises the level to %d, which server %d does not read: it reads up to %d", s.ID, level, m.ID, other.levels.Max)
		}
	}
}
