package check

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// A proof that something never happens is worth little if nothing ever happens. So a
// search notes which of the states that exercise the algorithm it reached: one process
// waits while another is inside, two call for an election at once, a holder crashes.
// Each is looked for in the steps that can lead to it, until it was seen. It is not
// part of a state, so it costs no states.

// Sometimes is a state that a search should reach at least once.
type Sometimes struct {
	What    string `json:"what"` // in words, such as "somebody waits while another is inside"
	Reached bool   `json:"reached"`
}

// interest names such a state.
type interest uint8

const (
	someEnter interest = iota
	someWait
	allWait
	fullHouse
	someGiveUp
	holderCrash
	waiterCrash
	enterAfterCrash
	someLead
	twoCall
	leaderCrash
	leadAfterCrash
	someDecide
	twoPropose
	decideAfterCrash
	someCommit
	someAbort
	interestCount
)

// interests are those that a search within the bounds can reach, as bits, and what each
// is in words.
func (c *Config) interests() (wanted uint32, texts [interestCount]string) {
	add := func(i interest, when bool, text string) {
		if when {
			wanted |= 1 << i
			texts[i] = text
		}
	}
	mutex, election, asking := c.family().Locks(), c.family() == process.Election, len(c.Requesters)
	agreement := c.family() == process.Agreement
	crowded := mutex && asking > c.capacity()
	add(someEnter, mutex, "somebody enters")
	add(someWait, crowded, "somebody waits while another is inside")
	add(allWait, crowded, "all who ask wait at once")
	k := min(c.capacity(), asking)
	add(fullHouse, mutex && k > 1 && c.checks(process.AtMostK), fmt.Sprintf("%d are inside at once", k))
	add(someGiveUp, mutex && c.Cancels > 0, "somebody gives up")
	add(holderCrash, mutex && c.Crashes > 0, "somebody crashes inside")
	add(waiterCrash, mutex && c.Crashes > 0, "somebody crashes while it waits")
	add(enterAfterCrash, mutex && c.Crashes > 0 && c.Process.N > 1, "somebody enters after a crash")
	add(someLead, election, "a leader is announced")
	// Calls are left to any order by a reduction; see visible.
	add(twoCall, election && asking > 1 && c.Reduce == NoReduction, "two call for an election at once")
	add(leaderCrash, election && c.Crashes > 0, "a leader crashes")
	add(leadAfterCrash, election && c.Crashes > 0 && c.Process.N > 1, "another leader is announced after a crash")
	add(someDecide, agreement, "somebody decides")
	add(twoPropose, agreement && asking > 1, "two wait for a decision at once")
	add(decideAfterCrash, (agreement || c.transaction()) && c.Crashes > 0 && c.Process.N > 1, "somebody decides after a crash")
	add(someCommit, c.transaction(), "somebody commits")
	add(someAbort, c.transaction(), "somebody aborts")
	return wanted, texts
}

// watch looks at a step for interests that were not seen yet.
func (w *worker) watch(v []uint32, p process.ID, e *edge) {
	switch {
	case e.flags&announced != 0:
		w.reach(someLead)
		if w.crashed(v) && w.led(v, p) {
			w.reach(leadAfterCrash)
		}
	case e.kind == actCampaign && w.count(v, calling) > 1:
		w.reach(twoCall)
	case e.kind == actPropose && w.count(v, waits) > 1:
		w.reach(twoPropose)
	case e.extra > 0 && len(w.extras[e.extra].decided) > 0:
		w.reach(someDecide)
		if w.cfg.transaction() {
			w.watchOutcomes(w.extras[e.extra].decided)
		}
		if w.crashed(v) {
			w.reach(decideAfterCrash)
		}
	case e.kind == actCancel:
		w.reach(someGiveUp)
	case e.flags&entered != 0:
		w.watchEntry(v)
	case e.flags&requested != 0 && w.count(v, waits) == len(w.cfg.Requesters):
		w.reach(allWait)
	}
	if e.flags&requested != 0 && w.count(v, isInside) > 0 && w.count(v, waits) > 0 {
		w.reach(someWait)
	}
}

func (w *worker) watchOutcomes(outcomes []int64) {
	for _, outcome := range outcomes {
		if outcome == process.Commit {
			w.reach(someCommit)
		} else {
			w.reach(someAbort)
		}
	}
}

func (w *worker) watchEntry(v []uint32) {
	w.reach(someEnter)
	if w.count(v, waits) > 0 {
		w.reach(someWait)
	}
	if w.count(v, isInside) == w.capacity {
		w.reach(fullHouse)
	}
	if w.crashed(v) {
		w.reach(enterAfterCrash)
	}
}

// watchCrash looks at the state before p crashes.
func (w *worker) watchCrash(v []uint32, p process.ID) {
	if w.open == 0 {
		return
	}
	switch l := w.view(v[p]); {
	case l.phase == inside:
		w.reach(holderCrash)
	case l.phase == waiting:
		w.reach(waiterCrash)
	}
	if w.count(v, func(l *view) bool { return l.state.leader == p }) > 0 {
		w.reach(leaderCrash)
	}
}

func (w *worker) reach(i interest) { w.open &^= 1 << i }

func (w *worker) crashed(v []uint32) bool { return positive(v, w.layout.budgets[crashes]) }

// led reports whether p announces a live process.
func (w *worker) led(v []uint32, p process.ID) bool {
	leader := w.view(v[p]).state.leader
	return leader != process.None && !w.view(v[leader]).down
}

func (w *worker) count(v []uint32, is func(l *view) bool) int {
	n := 0
	for p := range w.layout.n {
		if l := w.view(v[p]); !l.down && is(l) {
			n++
		}
	}
	return n
}

func waits(l *view) bool { return l.phase == waiting }

func isInside(l *view) bool { return l.phase == inside }

// calling are the processes that have called for an election and do not know a leader
// yet.
func calling(l *view) bool { return l.asked > 0 && l.state.leader == process.None }

// usedUp notes that a budget is used up.
func (w *worker) usedUp(b budget) { w.unspent &^= 1 << b }

// sometimes merges what all workers have seen.
func (s *search) sometimes() []Sometimes {
	wanted, texts := s.cfg.interests()
	open, unspent := wanted, uint32(1)<<budgetCount-1
	for _, w := range s.workers {
		open &= w.open
		unspent &= w.unspent
	}
	var all []Sometimes
	for i := range interestCount {
		if wanted&(1<<i) != 0 {
			all = append(all, Sometimes{texts[i], open&(1<<i) == 0})
		}
	}
	for b := range budgetCount {
		if n := s.cfg.limit(b); n > 0 && b != timeouts { // that is a bound, not a fault
			all = append(all, Sometimes{count(n, budgetNames[b].one), unspent&(1<<b) == 0})
		}
	}
	return all
}
