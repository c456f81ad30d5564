package simtest

import (
	"fmt"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// tally counts the faults that happened, by mode. A schedule without its intended fault
// proves nothing.
type tally map[tallied]int

type tallied struct {
	mode  string
	fault process.Fault
}

// missing says which faults the algorithm claims to survive that have not
// happened.
func (t tally) missing(spec *process.Spec, modes []string) []string {
	var texts []string
	for _, mode := range modes {
		for f := process.Reorder; f <= process.Slowness; f++ {
			if spec.Survives(f, mode) && possible(spec, f) && t[tallied{mode, f}] == 0 {
				texts = append(texts, fmt.Sprintf("%s is claimed to survive %s in mode %q, but no schedule had any", spec.Name, f, mode))
			}
		}
	}
	return texts
}

// possible reports whether a fault is meaningful for an algorithm: only an algorithm with
// entries has waiters and holders.
func possible(spec *process.Spec, f process.Fault) bool {
	switch f {
	case process.CrashSpecial:
		return property.HasSpecial(spec)
	case process.CrashWaiter, process.CrashHolder:
		return spec.Top().Family.Locks()
	}
	return true
}

// witness is a judge that reports no violations. It records the faults, the path of the
// token, and the withdrawals.
type witness struct {
	w      *sim.World
	s      *schedule
	token  process.ID            // where it is, or is going
	doomed process.ID            // who was told to crash and has not yet, or None
	phases []sim.ObservationKind // of the clients: Left, Requested or Entered
	// withdrawn are the processes whose last request was withdrawn. For the others, which
	// may not know that yet, they still wait.
	withdrawn process.Set

	links  bool // what happens to messages is of interest
	sent   map[[2]process.ID][]letter
	last   map[[2]process.ID]int // the highest number that arrived
	number int
	raw    []byte
	ups    []int // how often each has crashed or come back
}

// letter is a message that was sent and has not arrived.
type letter struct {
	text   string
	number int
	at     process.Duration
	ups    int // of both ends
}

func (s *schedule) watch(w *sim.World) sim.Watcher {
	n := w.Config().N
	s.seen = &witness{
		w: w, s: s, token: w.Config().Topology.Coordinator, doomed: process.None, withdrawn: process.NewSet(n),
		phases: make([]sim.ObservationKind, n), ups: make([]int, n),
		sent: map[[2]process.ID][]letter{}, last: map[[2]process.ID]int{},
	}
	for _, f := range []process.Fault{process.Reorder, process.Loss, process.Duplication, process.Slowness} {
		s.seen.links = s.seen.links || s.survives(f) && s.tally[tallied{s.mode, f}] == 0
	}
	messages := s.seen.links || property.HasSpecial(s.plan.Spec)
	return sim.Watcher{Name: "witness", Messages: messages, Watch: s.seen.watch, End: s.seen.end}
}

func (v *witness) count(f process.Fault) { v.s.tally[tallied{v.s.mode, f}]++ }

func (v *witness) watch(o *sim.Observation) string {
	switch o.Kind {
	case sim.Requested, sim.Entered:
		v.phases[o.Process] = o.Kind
	case sim.Withdrawn:
		v.withdrawn.Add(o.Process)
		v.phases[o.Process] = sim.Left
	case sim.Left, sim.Revoked:
		v.withdrawn.Remove(o.Process)
		v.phases[o.Process] = sim.Left
	case sim.Crashed:
		v.crashed(o.Process)
	case sim.Restarted:
		v.ups[o.Process]++
		v.count(process.AmnesiaRestart)
	case sim.Sent:
		v.onSent(o)
	case sim.Received:
		if v.links {
			v.received(o)
		}
	}
	return ""
}

// is reports whether a crash of p now would be of the given kind.
func (v *witness) is(f process.Fault, p process.ID) bool {
	inside, waiting := v.phases[p] == sim.Entered, v.phases[p] == sim.Requested || v.withdrawn.Has(p)
	switch f {
	case process.CrashSpecial:
		return v.s.isSpecial(v.w, p)
	case process.CrashHolder:
		return inside
	case process.CrashWaiter:
		return waiting
	case process.CrashBystander:
		return !inside && !waiting
	}
	return f == process.CrashAny
}

func (v *witness) crashed(p process.ID) {
	for f := process.CrashBystander; f <= process.CrashAny; f++ {
		if v.is(f, p) {
			v.count(f)
		}
	}
	v.doomed = process.None
	v.phases[p] = sim.Left
	v.withdrawn.Remove(p)
	v.ups[p]++
}

func (v *witness) onSent(o *sim.Observation) {
	if property.IsToken(v.w.Spec().Message(o.Message.Layer, o.Message.Type).Name) {
		v.token = o.Peer
	}
	if !v.links {
		return
	}
	v.number++
	v.raw = o.Message.AppendRaw(v.raw[:0])
	link := [2]process.ID{o.Process, o.Peer}
	v.sent[link] = append(v.sent[link], letter{string(v.raw), v.number, v.w.Now(), v.ups[o.Process] + v.ups[o.Peer]})
}

// received finds the letter that arrives. Among equal letters, it takes the first that
// overtakes nothing, so that only real faults are counted.
func (v *witness) received(o *sim.Observation) {
	link := [2]process.ID{o.Peer, o.Process}
	v.raw = o.Message.AppendRaw(v.raw[:0])
	letters, found := v.sent[link], -1
	for i := range letters {
		if letters[i].text == string(v.raw) {
			if found = i; letters[i].number > v.last[link] {
				break
			}
		}
	}
	if found < 0 {
		v.count(process.Duplication) // it has come before
		return
	}
	l := letters[found]
	if l.number < v.last[link] {
		v.count(process.Reorder)
	}
	if v.w.Now()-l.at > v.w.Config().D() {
		v.count(process.Slowness)
	}
	v.last[link] = max(v.last[link], l.number)
	v.sent[link] = append(letters[:found], letters[found+1:]...)
}

// end counts a message as lost if it has not arrived for a very long time although both
// ends were up. Under a detector, a run never becomes quiet, so end also looks for
// processes that still wait.
func (v *witness) end() string {
	why, _ := v.w.Ended()
	for link, letters := range v.sent {
		for _, l := range letters {
			late := why == sim.Quiet || v.w.Now()-l.at > 300*v.w.Config().D()
			if late && l.ups == v.ups[link[0]]+v.ups[link[1]] {
				v.count(process.Loss)
			}
		}
	}
	for p, phase := range v.phases {
		if phase == sim.Requested && v.s.plan.Spec.Has(process.Detector) {
			return v.w.Config().Text(process.ID(p)) + " still waits, long after the last command"
		}
	}
	return ""
}
