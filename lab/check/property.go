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

// costly are the properties that are checked only if somebody asks for them: what has
// to be remembered for them makes states differ that are one without.
var costly = []process.Property{process.OrderTimestamp, process.OrderArrival, process.OneToken}

// Checkable reports whether the checker can judge a property.
func Checkable(p process.Property) bool { return slices.Contains(checkable, p) }

// Claimed returns the properties that a Spec claims under the given configuration
// and that can be checked; and of an algorithm for mutual exclusion also progress,
// without which the others are easily had. Those that make more states are left to
// AllClaimed.
func Claimed(spec *process.Spec, c *process.Config) []process.Property {
	return slices.DeleteFunc(AllClaimed(spec, c), func(p process.Property) bool { return slices.Contains(costly, p) })
}

// AllClaimed returns what Claimed does, and the orders of time stamps and of arrival
// and the one token.
func AllClaimed(spec *process.Spec, c *process.Config) []process.Property {
	properties := []process.Property{}
	for _, claim := range spec.Claims.Properties {
		if claim.Fails || claim.Mode != "" && claim.Mode != spec.Mode(c) {
			continue
		}
		unknown := deadlocks(claim.Property) && spec.Waits == nil
		counted := claim.Property != process.BoundedBypass || claim.Since == process.SinceRequest
		if Checkable(claim.Property) && counted && !unknown && !slices.Contains(properties, claim.Property) {
			properties = append(properties, claim.Property)
		}
	}
	if familyOf(spec) == process.Mutex && !slices.Contains(properties, process.Progress) {
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
		return fmt.Errorf("check: %s does not say who waits for whom, so its deadlocks cannot be judged", c.Spec.Name)
	}
	if c.judgesDeadlocks() && c.Process.N > 32 {
		return fmt.Errorf("check: deadlocks of %d processes, at most 32 can be judged", c.Process.N)
	}
	if c.checks(process.StateInvariant) && c.Spec.Invariant == nil {
		return fmt.Errorf("check: %s has no invariant to check", c.Spec.Name)
	}
	return nil
}

// Violation is a broken promise.
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

// sceneOf is good until it is called again.
func (w *worker) sceneOf(v []uint32) *scene {
	w.scene = scene{w, v}
	return &w.scene
}

// judge says what is wrong with a step that clients or others can see, or nothing,
// and keeps the books of what properties remember.
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

// judgeEntry is judge for who has entered.
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

// judgeFence keeps the highest fence, or where fences need only be unique the set of
// those granted, as bits: they are dense.
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

// fenceBits is how many bits of a slot hold the number of a fence within its round.
const fenceBits = 24

// packFence returns a number of 32 bits in the order of fences. The bounds of a
// search keep them as small as that.
func packFence(f process.Fence) uint32 {
	process.Assert(f.Round() < 1<<(32-fenceBits) && f.Number() < 1<<fenceBits, "fences of a search are small")
	return uint32(f.Round())<<fenceBits | f.Number()
}

// judgeLeader watches who announces whom.
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

// judgeEnd says what is wrong with a state in which nothing can happen any more.
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

// goesOn reports whether timers are armed that run out beyond the bounds only.
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

// judgeElection watches that in the end all who are up follow one leader, which is up
// as well if a reliable detector has spoken.
func (w *worker) judgeElection(v []uint32) *Violation {
	s := w.sceneOf(v)
	if broken := property.LeaderTermination(s, func(p process.ID) bool { return w.view(v[p]).state.reached }); broken != nil {
		return broken
	}
	told := func(_, _ process.ID) bool { return w.cfg.Detector == process.ReliableDetector }
	return property.Orphan(s, told, func(_, _ process.ID) bool { return false })
}

// capacity returns how many may be inside.
func (c *Config) capacity() int {
	switch {
	case c.checks(process.MutualExclusion):
		return 1
	case !c.checks(process.AtMostK):
		return c.Process.N
	}
	return property.Units(c.Spec, &c.Process)
}

// overtakings returns how often others may enter while somebody waits.
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
