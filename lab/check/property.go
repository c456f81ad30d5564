package check

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// checkable are the properties that the checker can judge.
var checkable = []process.Property{
	process.MutualExclusion, process.AtMostK, process.Progress, process.FencesGrow, process.FencesGrowCausally,
	process.OrderHappenedBefore, process.OrderTimestamp, process.OrderArrival, process.BoundedBypass, process.OneToken,
	process.LeaderAgreement, process.RoundAgreement, process.LeaderValidity, process.LeaderTermination, process.SingleLeader,
	process.StateInvariant,
	process.ValueAgreement, process.ValueValidity, process.DecideOnce, process.Decision,
	process.Atomicity, process.StableDecision, process.UnanimousCommit, process.NonTriviality, process.RepairTermination, process.NonBlocking,
	process.Unanimity, process.VectorValidity,
	process.NoPhantom, process.DeadlockFound,
}

// costly are the properties that are checked only on request: what they have to
// remember distinguishes states that would otherwise be equal.
var costly = []process.Property{process.OrderTimestamp, process.OrderArrival, process.OneToken}

// Checkable reports whether the checker can judge a property.
func Checkable(p process.Property) bool { return slices.Contains(checkable, p) }

// Claimed returns the properties that a Spec claims under the given configuration and
// that can be checked. For mutual exclusion it adds progress, without which the others
// are trivial. Properties that make more states are left to AllClaimed.
func Claimed(spec *process.Spec, c *process.Config) []process.Property {
	return slices.DeleteFunc(AllClaimed(spec, c), func(p process.Property) bool { return slices.Contains(costly, p) })
}

// AllClaimed returns what Claimed does, and the orders of timestamps and of arrival and
// the one token.
func AllClaimed(spec *process.Spec, c *process.Config) []process.Property {
	properties, mode := []process.Property{}, spec.Mode(c)
	for _, claim := range spec.Claims.Properties {
		unknown := deadlocks(claim.Property) && spec.Waits == nil
		counted := claim.Property != process.BoundedBypass || claim.Since == process.SinceRequest
		if claim.Holds(mode) && Checkable(claim.Property) && counted && !unknown && !slices.Contains(properties, claim.Property) {
			properties = append(properties, claim.Property)
		}
	}
	if spec.Top().Family == process.Mutex && !slices.Contains(properties, process.Progress) {
		properties = append(properties, process.Progress)
	}
	if spec.Invariant != nil {
		properties = append(properties, process.StateInvariant)
	}
	return properties
}

func (c *Config) validateProperties() error {
	for _, p := range c.Properties {
		if !Checkable(p) && !(c.Corrupt && p == process.Convergence) {
			return fmt.Errorf("check: %s cannot be checked", p)
		}
	}
	if c.judgesDeadlocks() && c.Spec.Waits == nil {
		return fmt.Errorf("check: %s does not say which processes wait for which, so its deadlocks cannot be judged", c.Spec.Name)
	}
	if c.judgesDeadlocks() && c.Process.N > 32 {
		return fmt.Errorf("check: deadlocks of %d processes: must be at most 32", c.Process.N)
	}
	if c.checks(process.StateInvariant) && c.Spec.Invariant == nil {
		return fmt.Errorf("check: %s has no invariant to check", c.Spec.Name)
	}
	return nil
}

// Violation is a violated property.
type Violation = property.Violation

// scene is a state as judges see it.
type scene struct {
	w *worker
	v []uint32
}

func (s *scene) Config() *process.Config        { return s.w.config }
func (s *scene) Waiting(p process.ID) bool      { return s.w.view(s.v[p]).phase == waiting }
func (s *scene) Inside(p process.ID) bool       { return s.w.view(s.v[p]).phase == inside }
func (s *scene) Down(p process.ID) bool         { return s.w.view(s.v[p]).down }
func (s *scene) Leader(p process.ID) process.ID { return s.w.view(s.v[p]).state.leader }

// sceneOf is valid until the next call.
func (w *worker) sceneOf(v []uint32) *scene {
	w.scene = scene{w, v}
	return &w.scene
}

// judge returns a violation in a step as clients or others can see it, or nothing, and
// keeps the books of the properties.
func (w *worker) judge(next []uint32, f *print, p int, e *edge) *Violation {
	id := process.ID(p)
	if e.flags&broken != 0 {
		return &Violation{Process: id, Text: w.wrongs[e.wrong]}
	}
	if e.flags&campaigns != 0 && w.layout.oracle >= 0 && next[w.layout.oracle]&1 == 0 {
		w.set(next, f, w.layout.oracle, next[w.layout.oracle]|1)
	}
	if e.flags&announced != 0 {
		if broken := w.judgeLeader(next, id); broken != nil {
			return broken
		}
	}
	if e.flags&requested != 0 && w.layout.bypass >= 0 {
		w.set(next, f, w.layout.bypass+p, 0)
	}
	if e.flags&entered != 0 {
		if broken := w.judgeEntry(next, f, id, e); broken != nil {
			return broken
		}
	}
	return w.judgeBooks(next, f, id, e)
}

// judgeEntry is judge for a process that has entered.
func (w *worker) judgeEntry(next []uint32, f *print, p process.ID, e *edge) *Violation {
	s := w.sceneOf(next)
	if broken := property.AtMost(s, w.capacity, p); broken != nil {
		return broken
	}
	if w.layout.fence >= 0 {
		if broken := w.judgeFence(next, f, p, e); broken != nil {
			return broken
		}
	}
	if own := w.view(next[p]).state.request; len(own) > 0 {
		if broken := property.HappenedBefore(s, p, func(q process.ID) bool { return own[q] >= w.view(next[q]).state.asked }); broken != nil {
			return broken
		}
	}
	if w.layout.bypass < 0 {
		return nil
	}
	w.set(next, f, w.layout.bypass+int(p), 0)
	return property.Bypass(s, p, w.overtakings, func(q process.ID) int {
		slot := w.layout.bypass + int(q)
		w.set(next, f, slot, next[slot]+1)
		return int(next[slot])
	})
}

// judgeFence keeps the highest fence. If fences need only be unique, it keeps the set
// of granted ones, as bits: they are dense.
func (w *worker) judgeFence(next []uint32, f *print, p process.ID, e *edge) *Violation {
	s, slot := w.sceneOf(next), w.layout.fence
	if w.cfg.checks(process.FencesGrow) {
		highest := process.MakeFence(uint64(next[slot]>>fenceBits), next[slot]&(1<<fenceBits-1))
		w.set(next, f, slot, packFence(e.fence))
		return property.FencesGrow(s, p, e.fence, highest)
	}
	given := uint32(1) << min(uint64(e.fence), 31)
	again := e.fence < 31 && next[slot]&given != 0
	w.set(next, f, slot, next[slot]|given)
	return property.FencesGrowCausally(s, p, e.fence, w.extras[e.extra].past, again)
}

// fenceBits is the number of bits of a slot that hold the number of a fence within its
// round.
const fenceBits = 24

// packFence returns a number of 32 bits in the order of fences. The bounds of a search
// keep fences that small.
func packFence(f process.Fence) uint32 {
	process.Assert(f.Round() < 1<<(32-fenceBits) && f.Number() < 1<<fenceBits, "fences of a search are small")
	return uint32(f.Round())<<fenceBits | f.Number()
}

// judgeLeader watches announcements of leaders.
func (w *worker) judgeLeader(next []uint32, p process.ID) *Violation {
	s, own := w.sceneOf(next), w.view(next[p]).state
	for q := range next[:w.layout.n] {
		o := w.view(next[q]).state
		if o.term == own.term && w.cfg.checks(process.LeaderAgreement) {
			if broken := property.LeaderAgreement(s, p, own.leader, own.term, o.leader); broken != nil {
				return broken
			}
		}
		if o.term.Round() == own.term.Round() && w.cfg.checks(process.RoundAgreement) {
			if broken := property.RoundAgreement(s, p, own.leader, own.term.Round(), o.leader); broken != nil {
				return broken
			}
		}
	}
	if w.cfg.checks(process.LeaderValidity) && !positive(next, w.layout.budgets[crashes]) {
		if broken := property.LeaderValidity(s, p, own.leader, w.load); broken != nil {
			return broken
		}
	}
	if w.cfg.checks(process.SingleLeader) {
		return property.SingleLeader(s, p)
	}
	return nil
}

// judgeEnd returns a violation in a state in which no event is enabled.
func (w *worker) judgeEnd(v []uint32) *Violation {
	if w.goesOn(v) {
		return nil
	}
	if w.cfg.checks(process.Decision) {
		s := w.sceneOf(v)
		if broken := property.Decision(s, s.Waiting); broken != nil {
			return broken
		}
	}
	if w.cfg.transaction() {
		return w.judgeUndecided(v)
	}
	if broken := w.judgeDeadlocks(v); broken != nil {
		return broken
	}
	if w.cfg.checks(process.Progress) {
		if broken := property.Progress(w.sceneOf(v), 0); broken != nil {
			return broken
		}
	}
	if w.cfg.checks(process.LeaderTermination) {
		return w.judgeElection(v)
	}
	return w.judgeLostToken(v)
}

// goesOn reports whether timers are armed that can expire only beyond the bounds.
func (w *worker) goesOn(v []uint32) bool {
	if w.cfg.Timing != Never && w.left(v, timeouts) {
		return false
	}
	for p := range w.layout.n {
		if l := w.view(v[p]); !l.down && len(l.state.timers) > 0 {
			return true
		}
	}
	return false
}

// judgeElection watches that at the end all live processes follow one leader, which is
// also up if a reliable detector has reported.
func (w *worker) judgeElection(v []uint32) *Violation {
	s := w.sceneOf(v)
	if broken := property.LeaderTermination(s, func(p process.ID) bool { return w.view(v[p]).state.reached }); broken != nil {
		return broken
	}
	told := func(_, _ process.ID) bool { return w.cfg.Detector == process.ReliableDetector }
	return property.Orphan(s, told, func(_, _ process.ID) bool { return false })
}

// capacity returns how many processes may be inside.
func (c *Config) capacity() int {
	switch {
	case c.checks(process.MutualExclusion):
		return 1
	case !c.checks(process.AtMostK):
		return c.Process.N
	}
	return property.Units(c.Spec, &c.Process)
}

// overtakings returns how often others may enter while a process waits.
func (c *Config) overtakings() int {
	if c.Bound > 0 {
		return c.Bound
	}
	for _, claim := range c.Spec.Claims.Properties {
		if claim.Property == process.BoundedBypass && claim.Since == process.SinceRequest && claim.Bound != nil && !claim.Fails {
			return int(claim.Bound.Eval(process.Params{N: c.Process.N}))
		}
	}
	return c.Process.N - 1
}

// Declarations in a step are compared with the processes that were stuck in the state
// before it.

// deadlocks reports whether a property is about deadlocks.
func deadlocks(p process.Property) bool {
	return p == process.NoPhantom || p == process.DeadlockFound
}

func (c *Config) judgesDeadlocks() bool {
	return c.checks(process.NoPhantom) || c.checks(process.DeadlockFound)
}

// bookDeadlock notes a message that reports a deadlock.
func (s *stepper) bookDeadlock(m *process.Message) {
	if layer, t := property.Declares(s.spec); s.cfg.judgesDeadlocks() && m.Layer == layer && m.Type == t {
		s.flags |= booked
		s.extra.victims = append(s.extra.victims, m.Subject)
	}
}

// stuck returns the processes that can never continue from a state.
func (w *worker) stuck(v []uint32) property.Stuck {
	return property.StuckIn(w.spec.Waits(w.global.take(w, v)))
}

// judgeVictims judges the deadlocks that p has declared in a step.
func (w *worker) judgeVictims(next []uint32, f *print, p process.ID, victims []process.ID) *Violation {
	s, stuck := w.sceneOf(next), w.stuck(w.origin)
	for _, victim := range victims {
		if broken := property.Phantom(s, p, victim, stuck); broken != nil && w.cfg.checks(process.NoPhantom) {
			return broken
		}
		if slot := w.layout.declared; slot >= 0 {
			w.set(next, f, slot, next[slot]|1<<victim)
		}
	}
	return nil
}

// judgeDeadlocks watches that no deadlock is overlooked when no event is enabled.
func (w *worker) judgeDeadlocks(v []uint32) *Violation {
	if !w.cfg.checks(process.DeadlockFound) {
		return nil
	}
	declared := func(p process.ID) bool { return v[w.layout.declared]&(1<<p) != 0 }
	return property.DeadlockFound(w.sceneOf(v), w.stuck(v), declared)
}

// global builds the machines and messages of a state from its numbers, for an
// invariant. It keeps each machine and the content of each link that it has met.
type global struct {
	process.Global
	machines []process.Machine    // by number of the local state; nil: not met yet, or down
	contents [][]*process.Message // by number of the channel
}

// judge says what is wrong with a state according to the invariant of the Spec.
func (g *global) judge(w *worker, v []uint32) *Violation {
	return property.Invariant(w.spec, g.take(w, v))
}

// take makes the machines and messages of a state. They are valid until the next call.
func (g *global) take(w *worker, v []uint32) *process.Global {
	g.Config, g.Machines, g.Messages, g.Faults = w.config, g.Machines[:0], g.Messages[:0], w.disturbed(v)
	for p := range w.layout.n {
		g.Machines = append(g.Machines, g.machine(w, v[p]))
	}
	for slot := w.layout.n; slot < w.layout.n+w.layout.links; slot++ {
		if v[slot] != 0 {
			g.onLink(w, v, slot)
		}
	}
	return &g.Global
}

// machine returns the machine of a local state, or nil if it is down.
func (g *global) machine(w *worker, id uint32) process.Machine {
	m := room(&g.machines, id)
	if l := w.view(id); *m == nil && !l.down {
		*m = w.spec.New(l.state.proc, w.config)
		err := process.DecodeState(l.state.state, *m, w.config.N)
		process.Assert(err == nil, "an encoded state can be decoded")
	}
	return *m
}

// onLink adds the messages of a link that its receiver would accept.
func (g *global) onLink(w *worker, v []uint32, slot int) {
	to := w.view(v[w.layout.receiver(slot)])
	if to.down {
		return
	}
	if w.cfg.faulty() {
		for _, m := range w.messagesOn(v[slot]) {
			if m.addressee == to.state.incarnation && 2*m.incarnation >= to.state.knows[m.From] {
				g.Messages = append(g.Messages, &m.Message)
			}
		}
		return
	}
	contents := room(&g.contents, v[slot])
	if *contents == nil {
		for _, m := range w.messagesOn(v[slot]) {
			*contents = append(*contents, &m.Message)
		}
	}
	g.Messages = append(g.Messages, *contents...)
}

// messagesOn returns the messages of a channel; if it keeps order, the one sent first
// comes first.
func (w *worker) messagesOn(id uint32) []*message {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []*message
	for _, m := range w.contents(id) {
		all = append(all, w.messages[m])
	}
	return all
}
