package check

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/process"
)

// checkable are the properties that the checker can judge.
var checkable = []process.Property{
	process.MutualExclusion, process.AtMostK, process.Progress, process.FencesGrow, process.FencesGrowCausally,
	process.OrderHappenedBefore, process.OrderTimestamp, process.OrderArrival, process.BoundedBypass, process.OneToken,
	process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.SingleLeader,
	process.StateInvariant,
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
		counted := claim.Property != process.BoundedBypass || claim.Since == process.SinceRequest
		if Checkable(claim.Property) && counted && !slices.Contains(properties, claim.Property) {
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
		if !Checkable(p) {
			return fmt.Errorf("check: %s cannot be checked", p)
		}
	}
	if c.checks(process.StateInvariant) && c.Spec.Invariant == nil {
		return fmt.Errorf("check: %s has no invariant to check", c.Spec.Name)
	}
	return nil
}

// Violation is a broken promise.
type Violation struct {
	Property process.Property // 0: an assertion of the algorithm, or a grant that nobody waits for
	Process  process.ID       // where it was seen, or None
	Text     string           // in one line
}

// String returns the violation in one line.
func (v *Violation) String() string {
	if v.Property == 0 {
		return "assertion: " + v.Text
	}
	return v.Property.String() + ": " + v.Text
}

// judge says what is wrong with a step that clients or others can see, or nothing,
// and keeps the books of what properties remember.
func (w *worker) judge(next []uint32, f *print, p int, e *edge) *Violation {
	id := process.ID(p)
	if e.flags&broken != 0 {
		return &Violation{0, id, w.wrongs[e.wrong]}
	}
	if e.flags&campaigns != 0 && w.layout.oracle >= 0 && next[w.layout.oracle]&1 == 0 {
		w.set(next, f, w.layout.oracle, next[w.layout.oracle]|1)
	}
	if e.flags&announced != 0 {
		if broken := cmp.Or(w.judgeLeader(next, id), w.judgeSingle(next, id)); broken != nil {
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
	within := 0
	for q := range w.layout.n {
		if w.view(next[q]).phase == inside {
			within++
		}
	}
	if within > w.capacity {
		property := process.AtMostK
		if w.capacity == 1 {
			property = process.MutualExclusion
		}
		return &Violation{property, p, fmt.Sprintf("%s are inside, at most %d may be", w.those(next, inside), w.capacity)}
	}
	if w.layout.fence >= 0 {
		if broken := w.judgeFence(next, f, p, e.fence); broken != nil {
			return broken
		}
	}
	if w.cfg.checks(process.OrderHappenedBefore) {
		if broken := w.judgeOrder(next, p); broken != nil {
			return broken
		}
	}
	if w.layout.bypass >= 0 {
		return w.judgeBypass(next, f, p)
	}
	return nil
}

func (w *worker) judgeFence(next []uint32, f *print, p process.ID, fence process.Fence) *Violation {
	if !w.cfg.checks(process.FencesGrow) {
		return w.judgeUnique(next, f, p, fence)
	}
	packed, highest := packFence(fence), next[w.layout.fence]
	if packed <= highest {
		return &Violation{process.FencesGrow, p, fmt.Sprintf("%s enters with fence %s, an earlier entry had %s",
			w.config.Text(p), fence, process.MakeFence(uint64(highest>>fenceBits), highest&(1<<fenceBits-1)))}
	}
	w.set(next, f, w.layout.fence, packed)
	return nil
}

// fenceBits is how many bits of a slot hold the number of a fence within its round.
const fenceBits = 24

// packFence returns a number of 32 bits in the order of fences. The bounds of a
// search keep them as small as that.
func packFence(f process.Fence) uint32 {
	process.Assert(f.Round() < 1<<(32-fenceBits) && f.Number() < 1<<fenceBits, "fences of a search are small")
	return uint32(f.Round())<<fenceBits | f.Number()
}

// judgeUnique watches that no fence is granted twice. Those that were are bits of
// the slot; they are dense.
func (w *worker) judgeUnique(next []uint32, f *print, p process.ID, fence process.Fence) *Violation {
	given := uint32(1) << min(uint64(fence), 31)
	if fence < 31 && next[w.layout.fence]&given != 0 {
		return &Violation{process.FencesGrowCausally, p, fmt.Sprintf("%s enters with fence %s, which another entry had",
			w.config.Text(p), fence)}
	}
	w.set(next, f, w.layout.fence, next[w.layout.fence]|given)
	return nil
}

// judgeOrder watches that nobody enters while somebody waits whose request
// happened before.
func (w *worker) judgeOrder(v []uint32, p process.ID) *Violation {
	own := w.view(v[p]).state
	for q := range process.ID(w.layout.n) {
		other := w.view(v[q])
		if q == p || other.phase != waiting || len(own.request) == 0 || own.request[q] < other.asked {
			continue
		}
		return &Violation{process.OrderHappenedBefore, p, fmt.Sprintf("%s enters, but the request of %s happened before its own",
			w.config.Text(p), w.config.Text(q))}
	}
	return nil
}

// judgeBypass counts the entry for all who wait.
func (w *worker) judgeBypass(next []uint32, f *print, p process.ID) *Violation {
	for q := range process.ID(w.layout.n) {
		if w.view(next[q]).phase != waiting {
			continue
		}
		slot := w.layout.bypass + int(q)
		w.set(next, f, slot, next[slot]+1)
		if int(next[slot]) > w.overtakings {
			return &Violation{process.BoundedBypass, q, fmt.Sprintf("others have entered %d times while %s waits, at most %d are allowed",
				next[slot], w.config.Text(q), w.overtakings)}
		}
	}
	w.set(next, f, w.layout.bypass+int(p), 0)
	return nil
}

// judgeLeader watches who announces whom.
func (w *worker) judgeLeader(next []uint32, p process.ID) *Violation {
	own := w.view(next[p]).state
	if w.cfg.checks(process.LeaderAgreement) {
		for q := range process.ID(w.layout.n) {
			o := w.view(next[q]).state
			if q != p && o.leader != process.None && own.leader != process.None && o.term == own.term && o.leader != own.leader {
				return &Violation{process.LeaderAgreement, p, fmt.Sprintf("%s elects %s in round %d, another process elected %s",
					w.config.Text(p), w.config.Text(own.leader), own.term.Round(), w.config.Text(o.leader))}
			}
		}
	}
	crashed := w.layout.budgets[crashes] >= 0 && next[w.layout.budgets[crashes]] > 0
	if best := w.best(next); w.cfg.checks(process.LeaderValidity) && !crashed && !w.asGood(own.leader, best) {
		return &Violation{process.LeaderValidity, p, fmt.Sprintf("%s elects %s, but %s is up",
			w.config.Text(p), w.config.Text(own.leader), w.config.Text(best))}
	}
	return nil
}

// best returns the best process that is up, or None.
func (w *worker) best(v []uint32) process.ID {
	best := process.None
	for p := range process.ID(w.layout.n) {
		if !w.view(v[p]).down && (best == process.None || w.better(p, best)) {
			best = p
		}
	}
	return best
}

// asGood reports whether p is the best, or no worse: two are equal if their labels are.
func (w *worker) asGood(p, best process.ID) bool {
	return p == best || p != process.None && best != process.None && !w.better(best, p)
}

func (w *worker) better(p, q process.ID) bool {
	if w.spec.Needs.Load && w.cfg.Loads[p] != w.cfg.Loads[q] {
		return w.cfg.Loads[p] < w.cfg.Loads[q]
	}
	return w.config.Above(p, q)
}

// judgeEnd says what is wrong with a state in which nothing can happen any more.
func (w *worker) judgeEnd(v []uint32) *Violation {
	if w.goesOn(v) {
		return nil
	}
	if w.cfg.checks(process.Progress) {
		if who := w.those(v, waiting); who != "" {
			return &Violation{process.Progress, process.None, who + " wait for ever: nothing is left that could happen"}
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

// judgeElection watches that in the end all who are up follow one leader, if
// anybody does or was asked to.
func (w *worker) judgeElection(v []uint32) *Violation {
	known, reached, first := false, process.None, process.None
	for p := range process.ID(w.layout.n) {
		l := w.view(v[p]).state
		known = known || l.leader != process.None
		if l.reached && !l.down {
			reached = p
		}
	}
	wrong := func(p process.ID, format string, args ...any) *Violation {
		return &Violation{process.LeaderTermination, p, fmt.Sprintf(format, args...)}
	}
	if !known && reached != process.None {
		return wrong(reached, "%s has never learnt who leads, nor has anybody else", w.config.Text(reached))
	}
	for p := range process.ID(w.layout.n) {
		l := w.view(v[p]).state
		switch {
		case l.down || !known:
		case l.leader == process.None:
			return wrong(p, "%s has never learnt who leads", w.config.Text(p))
		case first == process.None:
			first = p
		case l.leader != w.view(v[first]).state.leader:
			return wrong(p, "%s ends with leader %s, %s with %s", w.config.Text(first),
				w.config.Text(w.view(v[first]).state.leader), w.config.Text(p), w.config.Text(l.leader))
		}
	}
	return w.judgeOrphan(v)
}

// those lists the processes whose clients are in a phase.
func (w *worker) those(v []uint32, ph phase) string {
	var labels []string
	for p := range w.layout.n {
		if l := w.view(v[p]); l.phase == ph && !l.down {
			labels = append(labels, w.config.Text(process.ID(p)))
		}
	}
	return strings.Join(labels, ", ")
}

// capacity returns how many may be inside.
func (c *Config) capacity() int {
	switch {
	case c.checks(process.MutualExclusion):
		return 1
	case !c.checks(process.AtMostK):
		return c.Process.N
	}
	for _, o := range c.Spec.AllOptions() {
		if k, err := strconv.Atoi(o.Default); o.Name == "k" && err == nil {
			return c.Process.IntOption("k", k)
		}
	}
	return 1
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
