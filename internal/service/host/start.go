package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm/view"
)

// Reasons are the reasons, in metrics, why an epoch begins: other members, another guard of a
// prefix, another coordinator or watch stack, or a request of a server or a change of the
// level.
var Reasons = [...]string{"members", "guard", "coordinator", "watch", "asked"}

const (
	forMembers = iota
	forGuard
	forCoordinator
	forWatch
	forAsked
)

// Start is the START of an epoch, as this server saw it.
type Start struct {
	Epoch uint64
	At    int64  // by the wall clock, in ns; for people
	Why   string // for people; everything that changed if this server missed epochs
}

// maxStarts is the number of STARTs that a host remembers.
const maxStarts = 16

// starts are the latest epochs that began here.
type starts struct {
	seen   view.Log // the parts of the latest that are compared with the next
	latest []Start  // the newest last
	counts [len(Reasons)]uint64
}

// add notes the START of an epoch.
func (s *starts) add(l *view.Log, wall int64) {
	var whys [len(Reasons)][]string
	for _, m := range l.Members {
		if !slices.Contains(s.seen.Members, m) {
			whys[forMembers] = append(whys[forMembers], fmt.Sprintf("server %d takes part", m.Server))
		}
	}
	for _, m := range s.seen.Members {
		if !slices.Contains(l.Members, m) {
			whys[forMembers] = append(whys[forMembers], fmt.Sprintf("the seat of server %d has ended", m.Server))
		}
	}
	for i := range l.Guards {
		g := &l.Guards[i]
		if before := s.seen.Find(g.Prefix); !g.New && s.seen.Epoch != 0 && (before == nil || before.Use != g.Use) {
			whys[forGuard] = append(whys[forGuard], fmt.Sprintf("%q has another guard", g.Prefix))
		}
	}
	for i := range s.seen.Guards {
		if prefix := s.seen.Guards[i].Prefix; l.Find(prefix) == nil {
			whys[forGuard] = append(whys[forGuard], fmt.Sprintf("%q has no guard of its own any more", prefix))
		}
	}
	if s.seen.Epoch != 0 && l.Coordinator != s.seen.Coordinator {
		whys[forCoordinator] = append(whys[forCoordinator], fmt.Sprintf("server %d was elected", l.Coordinator))
	}
	if s.seen.Epoch != 0 && l.Watch != s.seen.Watch {
		whys[forWatch] = append(whys[forWatch], "the watch stack changed")
	}
	if all := slices.Concat(whys[:]...); len(all) == 0 {
		whys[forAsked] = []string{"a server, or a change of the level, asked for it"}
	}
	for i, texts := range whys {
		if len(texts) > 0 {
			s.counts[i]++
		}
	}
	if len(s.latest) == maxStarts {
		s.latest = slices.Delete(s.latest, 0, 1)
	}
	s.latest = append(s.latest, Start{l.Epoch, wall, strings.Join(slices.Concat(whys[:]...), ", ")})
	s.seen = *l.Clone()
}
