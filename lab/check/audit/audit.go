// Package audit asks of every algorithm which assumptions it really needs. For each
// it drops one assumption at a time, keeps all others, and lets the model checker
// search every schedule within small bounds: either safety and liveness are proved
// without the assumption, or a shortest run shows what breaks.
//
// The bounds are a ladder, from two processes that ask once upwards. A search
// climbs until something breaks or a search finds more states than are allowed,
// and the cell says how far it came. All limits are counts, never times, so that
// the audit comes out the same on every machine.
package audit

import (
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// Outcome is what came of one cell.
type Outcome uint8

// The outcomes.
const (
	Proved        Outcome = iota + 1 // on the highest step of the ladder that Bounds names
	Violated                         // within Bounds, on the lowest step on which it is
	Bounded                          // even the lowest step was too much to search
	NotApplicable                    // the assumption is none of the algorithm; Why says so
	NotAudited                       // the checker cannot drop it; Why says what is missing
)

var outcomeNames = [...]string{"", "proved", "violated", "bounded", "does not apply", "not audited"}

// String returns the outcome in lower case.
func (o Outcome) String() string { return outcomeNames[o] }

// Cell is one algorithm without one assumption.
type Cell struct {
	Spec       *process.Spec
	Assumption Assumption
	Outcome    Outcome
	Why        string // of NotApplicable and NotAudited

	Result *check.Result // the highest proof with any number of timeouts, or the violation; nil if there is none
	Few    *check.Result // the highest proof with few timeouts, if that is higher
	// Beyond is the search on the next step of the ladder that met a limit without a
	// violation, or nil; and Cut the one before it with any number of timeouts, if
	// Beyond is one with few.
	Beyond, Cut *check.Result

	// Core is the same with the core promise alone: whether that holds where a lesser
	// one is broken. It is nil if none is, or the core promise itself.
	Core *Cell
	only process.Property // the core promise, if this is such a cell
}

// Row is one algorithm without each of the assumptions, in their order.
type Row struct {
	Spec  *process.Spec
	Cells []Cell
}

// Audited returns those of the algorithms that have a row: for mutual exclusion, and
// elections, consensus and transactions. Those for Byzantine processes have none: they make
// no assumption about the faults of a few processes, and searches with traitors show that.
func Audited(all []*process.Spec) []*process.Spec {
	var specs []*process.Spec
	for _, s := range all {
		c := check.Config{Spec: s, Process: process.Config{N: ladder[0].n}}
		if c.Validate() == nil && !knownBroken(s) && s.Lies == nil {
			specs = append(specs, s)
		}
	}
	return specs
}

// knownBroken are printed mistakes, which are no algorithms.
func knownBroken(s *process.Spec) bool {
	for _, wrong := range algorithm.Broken {
		if wrong == s {
			return true
		}
	}
	return false
}

// Run audits algorithms, on all processors. The rows come in the order of the
// specs, whatever is ready first. The error is that of the context.
func Run(ctx context.Context, specs []*process.Spec, limits Limits) ([]Row, error) {
	rows := make([]Row, len(specs))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var group sync.WaitGroup
	for i, spec := range specs {
		rows[i] = Row{spec, make([]Cell, len(Assumptions))}
		for k, a := range Assumptions {
			group.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				rows[i].Cells[k] = One(ctx, spec, a, limits)
			})
		}
	}
	group.Wait()
	return rows, ctx.Err()
}

// One audits one algorithm without one assumption.
func One(ctx context.Context, spec *process.Spec, a Assumption, limits Limits) Cell {
	cell := Cell{Spec: spec, Assumption: a}
	if cell.Outcome, cell.Why = a.applies(spec); cell.Outcome != 0 {
		return cell
	}
	cell.ascend(ctx, limits)
	core := corePromise(spec)
	if cell.Outcome == Violated && cell.Result.Broken.Property != "" && cell.Result.Broken.Property != core {
		cell.Core = &Cell{Spec: spec, Assumption: a, only: core}
		cell.Core.ascend(ctx, limits)
	}
	return cell
}

// corePromise is the one without which the others are worth nothing.
func corePromise(s *process.Spec) process.Property {
	claimed := check.Claimed(s, &process.Config{N: ladder[0].n})
	for _, p := range []process.Property{process.MutualExclusion, process.AtMostK, process.LeaderAgreement, process.ValueAgreement, process.Atomicity, process.NoPhantom} {
		if slices.Contains(claimed, p) {
			return p
		}
	}
	return ""
}

// ascend climbs with any number of timeouts, and from where that is too much with few:
// it goes on for ever in ever new states, or in too many.
func (c *Cell) ascend(ctx context.Context, limits Limits) {
	c.Outcome = Bounded
	at := c.climb(ctx, limits, 0, 0)
	if c.Outcome != Violated && hasTimers(c.Spec) {
		c.Cut = c.Beyond
		c.climb(ctx, limits, at, fewTimeouts(c.Spec))
	}
}

// climb searches with more and more processes and requests, from a step of the ladder
// on, and returns the step on which it ended. With timeouts, only so many timers may
// run out in a run.
func (c *Cell) climb(ctx context.Context, limits Limits, from, timeouts int) int {
	for i := from; i < len(ladder); i++ {
		r := c.search(ctx, limits, ladder[i], timeouts)
		if r == nil {
			continue // the algorithm is not for so few processes
		}
		if r.Verdict == check.Bounded {
			c.Beyond = r
			return i
		}
		c.Beyond = nil
		if r.Verdict == check.Violated {
			c.Outcome, c.Result, c.Few, c.Cut = Violated, r, nil, nil
			return i
		}
		c.Outcome = Proved
		if timeouts == 0 {
			c.Result = r
		} else {
			c.Few = r
		}
	}
	return len(ladder)
}

// search takes one step of the ladder. Of several searches it returns the first that
// is no proof, or the largest.
func (c *Cell) search(ctx context.Context, limits Limits, s step, timeouts int) *check.Result {
	var largest *check.Result
	for _, cfg := range limits.configs(c.Spec, c.Assumption, s) {
		cfg.Timeouts = timeouts
		if c.only != "" {
			cfg.Properties, cfg.Liveness = []process.Property{c.only}, false
		}
		if cfg.Validate() != nil {
			continue
		}
		r, err := check.Run(ctx, cfg)
		process.Assert(err == nil, "a configuration that was validated can be searched")
		if r.Verdict != check.Proved {
			return r
		}
		if largest == nil || r.States > largest.States {
			largest = r
		}
	}
	return largest
}
