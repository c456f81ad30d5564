package vopr

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
)

// witness looks into all hosts: at what their machines were asked for, whatever their
// clients believe.
type witness struct {
	said   map[view.Seat]uint64 // the newest epoch in which a seat has said RESUMED
	fences map[granted]uint64   // the newest fence
	stuck  map[string]wait
}

// granted is a name in an epoch.
type granted struct {
	name  string
	epoch uint64
}

// wait is since when somebody waits for a name, nobody is inside, and nothing is granted.
type wait struct {
	epoch, fence uint64
	since        int64
}

func newWitness() witness {
	return witness{said: make(map[view.Seat]uint64), fences: make(map[granted]uint64), stuck: make(map[string]wait)}
}

// look looks into the host of a server after its inputs.
func (l *hosting) look(s *server) {
	m := s.host.Member()
	if m.State == view.Out {
		if len(s.guests) > 0 && s.host.Status().Sessions > 0 {
			l.w.violate("home", "server %d takes no part, and has sessions of clients", s.id)
		}
		return
	}
	if m.Said {
		l.said[view.Seat{Server: s.id, ID: m.Seat}] = m.Epoch
	}
	if m.State == view.Open {
		l.barrier(s, m)
	}
	for _, res := range l.w.judge.live {
		l.inspect(s, m, res.name, s.host.Name(res.name))
	}
}

// refused requires of a member that it takes all frames of its epoch, and of those to come
// (N6). Those for an earlier process of its server it may refuse.
func (l *hosting) refused(s, from *server, epoch uint64, err error) {
	if v := l.views[epoch]; v != nil && slices.Contains(v.Members, view.Seat{Server: s.id, ID: s.host.Member().Seat}) {
		l.w.violate("frames", "server %d does not take what server %d sends in epoch %d: %v", s.id, from.id, epoch, err)
	}
}

// barrier requires that all members have left the epoch before and entered again what
// their clients hold when one asks for names (N5).
func (l *hosting) barrier(s *server, m *view.Member) {
	for _, member := range m.Members {
		if l.said[member] < m.Epoch {
			l.w.violate("barrier", "server %d asks for names in epoch %d, and server %d has not said RESUMED", s.id, m.Epoch, member.Server)
		}
	}
}

// inspect looks at a name at a member.
func (l *hosting) inspect(s *server, m *view.Member, name string, n view.Name) {
	w := l.w
	home, _, _ := s.host.Explain(name, 0)
	switch inside := n.Phase == view.Inside; {
	case n.Held != (len(home.Holders) > 0):
		w.violate("home", "server %d takes %q for held: %t, and its clients are %+v", s.id, name, n.Held, home.Holders)
	case m.Said && n.Held && !inside:
		w.violate("barrier", "server %d has said RESUMED in epoch %d, and has not entered %q, which a client holds", s.id, m.Epoch, name)
	case inside && !n.Held:
		w.violate("home", "server %d keeps %q, which none of its clients has", s.id, name)
	case inside:
		l.inside(s, m, name, home.Holders[0].Fence)
	}
	if n.Held || n.Phase != view.Idle {
		l.quiet(s, m, name)
	}
}

// inside requires of the machines of an epoch that no more are inside than may be, and
// that their fences grow (N6, N8).
func (l *hosting) inside(s *server, m *view.Member, name string, fence uint64) {
	units := l.views[m.Epoch].GuardOf(name).Use.Algorithm == "k-ricart-agrawala"
	others, most := 0, 1
	if units {
		most = liveUnits
	}
	for _, o := range l.w.servers {
		if o == s || o.host == nil {
			continue
		}
		if other := o.host.Member(); other.State != view.Out && other.Epoch == m.Epoch && o.host.Name(name).Phase == view.Inside {
			others++
		}
	}
	if others >= most {
		l.w.violate("inside", "server %d is inside %q in epoch %d beside %d others", s.id, name, m.Epoch, others)
	}
	key := granted{name, fence >> fenceBits}
	if known := l.fences[key]; !units && fence < known {
		l.w.violate("inside", "server %d grants %q with fence %d after another was granted with %d", s.id, name, fence, known)
	}
	l.fences[key] = max(l.fences[key], fence)
}

// quiet requires that a member which has said that it holds nothing under a prefix, and
// asks for nothing, does so no more (G4).
func (l *hosting) quiet(s *server, m *view.Member, name string) {
	g := l.last.GuardOf(name)
	if g == nil || l.last.Epoch != m.Epoch {
		return
	}
	for _, id := range g.Quiet {
		if id == s.id {
			l.w.violate("quiet", "server %d has said that nothing is held under %s in epoch %d, and %q is held or asked for", s.id, g.Prefix, m.Epoch, name)
		}
	}
}

// unheld requires that nobody holds a name whose guard an entry has changed (N7).
func (l *hosting) unheld(log *view.Log) {
	for _, res := range l.w.judge.live {
		before, after := l.last.GuardOf(res.name), log.GuardOf(res.name)
		if before == nil || !before.Use.Live() || after != nil && before.Use == after.Use {
			continue
		}
		l.near.unheld(res)
		for _, h := range res.holds {
			if h.session.home() && h.counts() {
				l.w.violate("quiet", "the guard of %q changes, and a client holds it for another %d ms", res.name, (h.session.endsAt-l.w.now)/ms)
			}
		}
	}
}

const (
	// prompt is how long somebody may wait for a name in one epoch while nothing is wrong,
	// every member asks for names, and nobody is inside.
	prompt = 1000 * ms
	// patient is how long if a vote of the majority guards it, which is tried again after
	// up to 2.56 s when too many have asked at once.
	patient = 10_000 * ms
)

// serves requires that names which are wanted and free are granted.
func (l *hosting) serves() {
	ready := l.w.calm() && len(l.last.Members) > 0
	for _, m := range l.last.Members {
		ready = ready && l.asks(l.w.servers[m.Server-1])
	}
	for _, res := range l.w.judge.live {
		g, at := l.last.GuardOf(res.name), l.stuck[res.name]
		now := wait{l.last.Epoch, l.fences[granted{res.name, l.last.Epoch}], at.since}
		switch {
		case !ready || g == nil || !g.Use.Live() || g.Change != 0 || !l.waitedFor(res.name):
			delete(l.stuck, res.name)
		case at.since == 0 || at != now:
			now.since = l.w.now
			l.stuck[res.name] = now
		default:
			waited, most := l.w.now-at.since, prompt
			if g.Use.Algorithm == "majority" {
				most = patient
			}
			l.w.stats.Hosts.Longest = max(l.w.stats.Hosts.Longest, waited*prompt/most)
			if waited > most {
				l.w.violate("progress", "%q is wanted and free for %d ms in epoch %d, guarded by %s", res.name, waited/ms, at.epoch, g.Use.Algorithm)
			}
		}
	}
}

// asks reports whether a server takes part in the present epoch and asks for names.
func (l *hosting) asks(s *server) bool {
	if s.host == nil {
		return false
	}
	m := s.host.Member()
	return m.State == view.Open && m.Epoch == l.last.Epoch && !m.Lapsed
}

// waitedFor reports whether clients wait for a name, and nobody is inside.
func (l *hosting) waitedFor(name string) (waits bool) {
	for _, s := range l.w.servers {
		if s.host == nil {
			continue
		}
		n := s.host.Name(name)
		if n.Held {
			return false
		}
		waits = waits || n.Wanted
	}
	return waits
}
