package guarded

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/test/vopr/world"
)

// witness checks the state of all hosts. It checks what their machines were asked for, no matter
// what their clients rely on.
type witness struct {
	said   map[view.Seat]uint64 // the newest epoch in which each seat has sent RESUMED
	fences map[granted]uint64   // the newest fence of each name
	stuck  map[string]wait
}

// granted is a name in an epoch.
type granted struct {
	name  string
	epoch uint64
}

// wait is the time since which someone waits for a name while nobody is inside and nothing is
// granted.
type wait struct {
	epoch, fence uint64
	since        int64
}

func newWitness() witness {
	return witness{said: make(map[view.Seat]uint64), fences: make(map[granted]uint64), stuck: make(map[string]wait)}
}

// look checks the host of a server after its inputs.
func (l *hosting) look(s *world.Server) {
	m := s.Host.Member()
	if m.State == view.Out {
		if len(s.Guests) > 0 && s.Host.Status().Sessions > 0 {
			l.w.Violate("home", "server %d takes no part, and has sessions of clients", s.ID)
		}
		return
	}
	if m.Said {
		l.said[view.Seat{Server: s.ID, ID: m.Seat}] = m.Epoch
	}
	if m.State == view.Open {
		l.barrier(s, m)
	}
	for _, res := range l.w.Judge.Guarded {
		l.inspect(s, m, res.Name, s.Host.Name(res.Name))
	}
}

// refused checks a refusal of frames. A member must accept all frames of its epoch and of later
// ones (N6). It may refuse frames for an earlier process of its server.
func (l *hosting) refused(s, from *world.Server, epoch uint64, err error) {
	if v := l.views[epoch]; v != nil && slices.Contains(v.Members, view.Seat{Server: s.ID, ID: s.Host.Member().Seat}) {
		l.w.Violate("frames", "server %d does not take what server %d sends in epoch %d: %v", s.ID, from.ID, epoch, err)
	}
}

// barrier checks a member that asks for names. All members must have left the previous epoch, and
// must have entered again what their clients hold (N5).
func (l *hosting) barrier(s *world.Server, m *view.Member) {
	for _, member := range m.Members {
		if l.said[member] < m.Epoch {
			l.w.Violate("barrier", "server %d asks for names in epoch %d, and server %d has not said RESUMED", s.ID, m.Epoch, member.Server)
		}
	}
}

// inspect checks a name at a member.
func (l *hosting) inspect(s *world.Server, m *view.Member, name string, n view.Name) {
	w := l.w
	home, _, _ := s.Host.Explain(name, 0)
	switch inside := n.Phase == view.Inside; {
	case n.Held != (len(home.Holders) > 0):
		w.Violate("home", "server %d takes %q for held: %t, and its clients are %+v", s.ID, name, n.Held, home.Holders)
	case m.Said && n.Held && !inside:
		w.Violate("barrier", "server %d has said RESUMED in epoch %d, and has not entered %q, which a client holds", s.ID, m.Epoch, name)
	case inside && !n.Held:
		w.Violate("home", "server %d keeps %q, which none of its clients has", s.ID, name)
	case inside:
		l.inside(s, m, name, home.Holders[0].Fence)
	}
	if n.Held || n.Phase != view.Idle {
		l.quiet(s, m, name)
	}
}

// inside checks the machines of an epoch. No more of them may be inside than allowed, and their
// fences must increase (N6, N8).
func (l *hosting) inside(s *world.Server, m *view.Member, name string, fence uint64) {
	units := l.views[m.Epoch].GuardOf(name).Use.Algorithm == "k-ricart-agrawala"
	others, most := 0, 1
	if units {
		most = world.GuardedUnits
	}
	for _, o := range l.w.Servers {
		if o == s || o.Host == nil {
			continue
		}
		if other := o.Host.Member(); other.State != view.Out && other.Epoch == m.Epoch && o.Host.Name(name).Phase == view.Inside {
			others++
		}
	}
	if others >= most {
		l.w.Violate("inside", "server %d is inside %q in epoch %d beside %d others", s.ID, name, m.Epoch, others)
	}
	key := granted{name, fence >> world.FenceBits}
	if known := l.fences[key]; !units && fence < known {
		l.w.Violate("inside", "server %d grants %q with fence %d after another was granted with %d", s.ID, name, fence, known)
	}
	l.fences[key] = max(l.fences[key], fence)
}

// quiet checks a member that has sent QUIET for a prefix. It must hold nothing under the prefix,
// and request nothing, from then on (G4).
func (l *hosting) quiet(s *world.Server, m *view.Member, name string) {
	g := l.last.GuardOf(name)
	if g == nil || l.last.Epoch != m.Epoch {
		return
	}
	for _, id := range g.Quiet {
		if id == s.ID {
			l.w.Violate("quiet", "server %d has said that nothing is held under %s in epoch %d, and %q is held or asked for", s.ID, g.Prefix, m.Epoch, name)
		}
	}
}

// unheld checks that nobody holds a name whose guard an entry has changed (N7).
func (l *hosting) unheld(log *view.Log) {
	for _, res := range l.w.Judge.Guarded {
		before, after := l.last.GuardOf(res.Name), log.GuardOf(res.Name)
		if before == nil || !before.Use.Guarded() || after != nil && before.Use == after.Use {
			continue
		}
		l.near.unheld(res)
		for _, h := range res.Holds {
			if h.Session.Home() && h.Counts() {
				l.w.Violate("quiet", "the guard of %q changes, and a client holds it for another %d ms", res.Name, (h.Session.EndsAt-l.w.Now)/ms)
			}
		}
	}
}

const (
	// prompt is the maximum wait for a name in one epoch. It applies while there are no faults, all
	// members ask for names, and nobody is inside.
	prompt = 1000 * ms
	// patient is the maximum wait if a majority vote guards the name. If too many requests collide,
	// the vote is retried after up to 2.56 s.
	patient = 10_000 * ms
)

// serves checks that names which are wanted and free are granted.
func (l *hosting) serves() {
	ready := l.w.Calm() && len(l.last.Members) > 0
	for _, m := range l.last.Members {
		ready = ready && l.asks(l.w.Servers[m.Server-1])
	}
	for _, res := range l.w.Judge.Guarded {
		g, at := l.last.GuardOf(res.Name), l.stuck[res.Name]
		now := wait{l.last.Epoch, l.fences[granted{res.Name, l.last.Epoch}], at.since}
		switch {
		case !ready || g == nil || !g.Use.Guarded() || g.Change != 0 || !l.waitedFor(res.Name):
			delete(l.stuck, res.Name)
		case at.since == 0 || at != now:
			now.since = l.w.Now
			l.stuck[res.Name] = now
		default:
			waited, most := l.w.Now-at.since, prompt
			if g.Use.Algorithm == "majority" {
				most = patient
			}
			l.w.Stats.Hosts.Longest = max(l.w.Stats.Hosts.Longest, waited*prompt/most)
			if waited > most {
				l.w.Violate("progress", "%q is wanted and free for %d ms in epoch %d, guarded by %s", res.Name, waited/ms, at.epoch, g.Use.Algorithm)
			}
		}
	}
}

// asks reports whether a server participates in the current epoch and asks for names.
func (l *hosting) asks(s *world.Server) bool {
	if s.Host == nil {
		return false
	}
	m := s.Host.Member()
	return m.State == view.Open && m.Epoch == l.last.Epoch && !m.Lapsed
}

// waitedFor reports whether clients wait for a name, and nobody is inside.
func (l *hosting) waitedFor(name string) (waits bool) {
	for _, s := range l.w.Servers {
		if s.Host == nil {
			continue
		}
		n := s.Host.Name(name)
		if n.Held {
			return false
		}
		waits = waits || n.Wanted
	}
	return waits
}
