package vopr

import (
	"errors"

	"github.com/conclave-io/conclave/service/replica"
	"github.com/conclave-io/conclave/service/version"
)

const (
	// newestLevel is the newest that a simulated release reads. All have the formats
	// of the first; what is tried is who may change the level when.
	newestLevel = 3
	// levelSoak is short, so that levels change within a run.
	levelSoak = 3000 * ms
)

// install lets a server start as whatever release an operator may have put there: the
// one before, the same, or the one after, as far as they read what is on the disk. A
// plan without mixed levels has the first alone.
func (s *server) install() {
	switch {
	case !s.w.plan.Levels:
		s.levels = replica.Levels{Min: 1, Max: 1}
		return
	case s.levels.Max == 0:
		s.levels.Max = 1 + s.w.releases.Uint32N(2)
	default:
		s.levels.Max = min(max(s.levels.Max+s.w.releases.Uint32N(3), 2)-1, newestLevel)
	}
	s.levels.Min = max(s.levels.Max, 2) - 1
}

// other installs another release in place of one that does not read what is on the
// disk.
func (s *server) other() {
	s.levels.Max = s.levels.Max%newestLevel + 1
	s.levels.Min = max(s.levels.Max, 2) - 1
	s.boot()
}

// outdated takes a server down that says it does not read the level of the cluster, and
// starts it again as a newer release. That may happen to one which has just been set
// back, and to no other: the level rises only when all can follow.
func (s *server) outdated(err error) bool {
	var unread *version.Error
	if !errors.As(err, &unread) {
		return false
	}
	if s.w.now-s.began > levelSoak {
		s.w.violate("level", "server %d ran for %d ms and does not read the level that the cluster went to: %v", s.id, (s.w.now-s.began)/ms, err)
		return true
	}
	s.crash()
	s.levels.Max = min(s.levels.Max+1, newestLevel)
	s.w.after(100*ms, func() {
		if s.held == 0 {
			s.start()
		}
	})
	return true
}
