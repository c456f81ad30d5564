package check

import (
	"fmt"
	"math"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// In a consensus each requester proposes Entries values, each as soon as the previous
// one is answered. The first decision in each position is a digit of one slot, and the
// number of decisions of a process since it started is in its local state. Judges of
// decisions remember nothing else.

// proposal returns the value that a process proposes after the given number of others.
// All values differ.
func (c *Config) proposal(p process.ID, before int) int64 {
	return int64(before*c.Process.N + int(p) + 1)
}

// asks reports whether the client of a process asks. A Byzantine process has no client.
func (s *stepper) asks(l *local) bool { return l.traitors == 0 && s.cfg.asks(l.proc) }

// validateProposals reports proposals that do not fit into the slot.
func (c *Config) validateProposals() error {
	n := c.Process.N * c.Entries
	places := n
	if property.Answers(c.Spec, 0, 1) {
		places = 2 // the second is for the property of a single decision
	}
	switch {
	case c.family() != process.Agreement:
		return nil
	case c.Spec.Values != nil && c.Entries > 1:
		return fmt.Errorf("check: %d entries: in %s each process proposes once", c.Entries, c.Spec.Name)
	case math.Pow(float64(c.digits()), float64(places)) > math.MaxUint32:
		return fmt.Errorf("check: %d proposals: the decisions do not fit into a state; use fewer entries or processes", n)
	}
	return nil
}

// digits is the number of values that a position in the slot of decisions may have:
// none, or one of the possible proposals.
func (c *Config) digits() int {
	if c.Spec.Values != nil {
		return len(c.Spec.Values) + 1
	}
	return c.Process.N*c.Entries + 1
}

// digit is the digit of a value, or 0 if the value cannot be proposed.
func (c *Config) digit(value int64) uint64 {
	if c.Spec.Values != nil {
		value++
	}
	if value < 0 || value >= int64(c.digits()) {
		return 0
	}
	return uint64(value)
}

// value is the value of a digit.
func (c *Config) value(digit uint64) int64 {
	if c.Spec.Values != nil {
		return int64(digit) - 1
	}
	return int64(digit)
}

// EveryPlace returns all sets of as many traitors as an algorithm is configured for.
func EveryPlace(spec *process.Spec, c *process.Config) [][]process.ID {
	return AnyTraitors(c.N, property.Faulty(spec, c))
}

// AnyTraitors returns all sets of the given number of traitors among n processes.
func AnyTraitors(n, traitors int) [][]process.ID {
	sets := [][]process.ID{nil}
	for range min(traitors, n) {
		var larger [][]process.ID
		for _, set := range sets {
			first := process.ID(0)
			if len(set) > 0 {
				first = set[len(set)-1] + 1
			}
			for p := first; int(p) < n; p++ {
				larger = append(larger, append(set[:len(set):len(set)], p))
			}
		}
		sets = larger
	}
	return sets
}

// validateTraitors reports invalid sets of Byzantine processes.
func (c *Config) validateTraitors() error {
	if len(c.Traitors) > 0 && c.Spec.Lies == nil {
		return fmt.Errorf("check: %s is not for Byzantine processes", c.Spec.Name)
	}
	for _, set := range c.Traitors {
		for _, p := range set {
			if p < 0 || int(p) >= c.Process.N {
				return fmt.Errorf("check: traitor: rank %d: must be 0 to %d", p, c.Process.N-1)
			}
		}
	}
	if len(c.Traitors) > math.MaxUint16 {
		return fmt.Errorf("check: %d sets of traitors: must be at most %d", len(c.Traitors), math.MaxUint16)
	}
	return nil
}

// propose lets the client of a process propose its next value.
func (s *stepper) propose() {
	l := &s.next
	value := s.cfg.proposal(l.proc, int(l.asked))
	if s.spec.Values != nil {
		value = int64(s.odometer.Choose(len(s.spec.Values)))
		l.proposal = uint8(value) + 1
	}
	if l.decisions == 0 || !property.Answers(s.spec, value, value+1) {
		l.phase = waiting // otherwise it comes too late for an answer
	}
	l.asked++
	s.step(process.Event{Kind: process.Propose, Value: value})
}

// decided notes a decision.
func (s *stepper) decided(value int64) {
	l := &s.next
	l.decisions++
	asked := s.cfg.proposal(l.proc, int(l.asked)-1)
	if s.spec.Values != nil {
		asked = int64(l.proposal) - 1
	}
	if l.phase == waiting && property.Answers(s.spec, asked, value) {
		l.phase = idle
	}
	s.flags |= booked
	s.extra.decided = append(s.extra.decided, value)
}

// decisions returns the number of decisions that the present step has announced.
func (s *stepper) decisions() int {
	count := 0
	for i := range s.fx.Len() {
		if e := s.fx.At(i); e.Kind == process.EffectDecide && !e.Internal && s.decides() {
			count++
		}
	}
	return count
}

// decides reports whether decisions are outputs of the algorithm.
func (s *stepper) decides() bool { return s.cfg.family() == process.Agreement || s.cfg.transaction() }

// judgeDecisions judges the decisions of p in a step, given the number of its earlier
// decisions since its start.
func (w *worker) judgeDecisions(next []uint32, f *print, p process.ID, before int, values []int64) *Violation {
	s, place := w.sceneOf(next), before
	of := func(q process.ID) (int64, bool, bool) { return w.proposal(w.view(next[q]).state) }
	all, unanimous := property.Unanimous(w.spec, w.config, of)
	for _, v := range values {
		place++
		for _, broken := range []*Violation{
			property.ValueValidity(s, p, v, w.proposed(next, v)),
			property.ValueAgreement(s, p, place, v, w.agree(next, f, place, v)),
			property.DecideOnce(s, p, place, v),
			property.Unanimity(s, p, v, all, unanimous),
			property.VectorValidity(s, p, place, v, of),
		} {
			if broken != nil && w.cfg.checks(broken.Property) {
				return broken
			}
		}
	}
	return nil
}

// proposal is the first proposal of a process, and whether the process is correct.
func (w *worker) proposal(l *local) (value int64, proposed, correct bool) {
	value = w.cfg.proposal(l.proc, 0)
	if w.spec.Values != nil {
		value = int64(l.proposal) - 1
	}
	return value, l.asked > 0, l.traitors == 0 && !l.down && l.incarnation == 1
}

// proposed reports whether any process has proposed a value.
func (w *worker) proposed(v []uint32, value int64) bool {
	n := int64(w.layout.n)
	if w.spec.Values != nil {
		return w.count(v, func(l *view) bool { return int64(l.state.proposal) == value+1 }) > 0
	}
	if value < 1 || value > n*int64(w.cfg.Entries) {
		return false
	}
	return int64(w.view(v[(value-1)%n]).asked) > (value-1)/n
}

// agree returns the first decision in a position. If this value is the first, it notes
// it.
func (w *worker) agree(next []uint32, f *print, place int, value int64) int64 {
	if w.layout.agreed < 0 {
		return value
	}
	base, weight := uint64(w.cfg.digits()), uint64(1)
	for range place - 1 {
		weight *= base
	}
	held := uint64(next[w.layout.agreed])
	if first := held / weight % base; first != 0 {
		return w.cfg.value(first)
	}
	if digit := w.cfg.digit(value); digit > 0 && weight*base <= math.MaxUint32 {
		w.set(next, f, w.layout.agreed, uint32(held+weight*digit))
	}
	return value
}

// inRound reports whether a timer must wait because it ends a round that some process
// has not begun or not reached. Rounds are synchronous: no process ends the next round
// before all have ended this one.
func (w *worker) inRound(v []uint32, p int) bool {
	rounds := w.view(v[p]).state.rounds
	for q := range w.layout.n {
		l := w.view(v[q])
		switch {
		case l.down:
		case l.asked == 0 && w.asks(l.state), q != p && len(l.state.timers) > 0 && l.state.rounds < rounds:
			return true
		}
	}
	return false
}

// synchronous reports whether the timers of an algorithm are those of rounds.
func (c *Config) synchronous() bool {
	return c.family() == process.Agreement && c.Spec.Needs.Synchrony && c.Spec.Layers == nil && c.Timing == Synchronous
}

// In a transaction each requester votes once, and the search tries both votes. What a
// process has voted and decided is in its local state, which keeps it through crashes.
// The judges of atomic commitment remember nothing else.

// transaction reports whether the algorithm is one for atomic commitment.
func (c *Config) transaction() bool { return c.family() == process.Transaction }

func (c *Config) validateVotes() error {
	if c.transaction() && c.Entries > 1 {
		return fmt.Errorf("check: %d votes each: %s has one transaction; leave out the entries", c.Entries, c.Spec.Name)
	}
	return nil
}

// ballot is a vote or an outcome in a local state: 0 if there is none, otherwise the
// value plus 1.
type ballot uint8

func ballotOf(value int64) ballot {
	process.Assert(value == process.Abort || value == process.Commit, "a vote or an outcome is Abort or Commit")
	return ballot(value + 1)
}

func (b ballot) value() (value int64, known bool) { return int64(b) - 1, b > 0 }

// castVote lets the client of a process vote.
func (s *stepper) castVote(value int64) {
	s.next.asked++
	s.next.vote = ballotOf(value)
	s.step(process.Event{Kind: process.Propose, Value: value})
}

// concluded notes a decision.
func (s *stepper) concluded(outcome int64) {
	s.next.outcome = ballotOf(outcome)
	s.flags |= booked
	s.extra.decided = append(s.extra.decided, outcome)
}

// outcomeAfter returns the outcome of the process after the given number of decisions
// of the edge.
func (s *stepper) outcomeAfter(decided int) ballot {
	if decided == 0 || !s.cfg.transaction() {
		return s.before
	}
	return ballotOf(s.extra.decided[decided-1])
}

// ledger is the votes and outcomes of a state as judges see them. For process p it has
// those before a step.
type ledger struct {
	*scene
	p      process.ID
	before ballot
}

func (l ledger) Vote(q process.ID) (int64, bool) { return l.w.view(l.v[q]).state.vote.value() }

func (l ledger) Outcome(q process.ID) (int64, bool) {
	if q == l.p {
		return l.before.value()
	}
	return l.w.view(l.v[q]).state.outcome.value()
}

// ledgerOf is valid until sceneOf is called again.
func (w *worker) ledgerOf(v []uint32) ledger { return ledger{scene: w.sceneOf(v), p: process.None} }

// judgeOutcomes judges the decisions of p in a step, given its earlier decisions.
func (w *worker) judgeOutcomes(next []uint32, p process.ID, before ballot, outcomes []int64) *Violation {
	l := w.ledgerOf(next)
	l.p, l.before = p, before
	failed := w.cfg.Timing == AnyTime || w.failed(next)
	for _, outcome := range outcomes {
		for _, broken := range property.Outcome(l, l, p, outcome, failed) {
			if broken != nil && w.cfg.checks(broken.Property) {
				return broken
			}
		}
		l.before = ballotOf(outcome)
	}
	return nil
}

// noteLate notes that a timer expires. A process that has not voted yet is late, and
// may be the reason of an abort.
func (w *worker) noteLate(next []uint32, f *print) {
	if w.layout.late < 0 || next[w.layout.late] > 0 {
		return
	}
	for p := range w.layout.n {
		if w.view(next[p]).state.vote == 0 {
			w.set(next, f, w.layout.late, 1)
			return
		}
	}
}

// failed reports whether there was a fault so far, or a vote was late.
func (w *worker) failed(v []uint32) bool { return w.disturbed(v) || positive(v, w.layout.late) }

// disturbed reports whether there was a fault so far.
func (w *worker) disturbed(v []uint32) bool {
	for _, b := range [...]budget{crashes, drops, duplicates, suspicions} {
		if positive(v, w.layout.budgets[b]) {
			return true
		}
	}
	return false
}

// judgeUndecided watches that at the end every process that voted has decided.
func (w *worker) judgeUndecided(v []uint32) *Violation {
	l := w.ledgerOf(v)
	for _, broken := range property.TransactionEnds(l, l) {
		if w.cfg.checks(broken.Property) {
			return broken
		}
	}
	return nil
}

// undecided reports whether a live process has voted and not decided. If only decision
// after repair is promised, that counts only while all processes are up.
func (w *worker) undecided(v []uint32, p process.ID) bool {
	l := w.ledgerOf(v)
	if !w.cfg.checks(process.NonBlocking) {
		for q := range process.ID(w.layout.n) {
			if l.Down(q) {
				return false
			}
		}
	}
	return !l.Down(p) && property.Undecided(l, p)
}

// endless is the property that a run violates in which a process is undecided forever.
func (c *Config) endless() process.Property {
	if c.checks(process.NonBlocking) {
		return process.NonBlocking
	}
	return process.RepairTermination
}
