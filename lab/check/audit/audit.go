// Package audit determines, for every algorithm, which assumptions it really needs. It
// drops one assumption at a time, keeps all others, and lets the model checker search
// every schedule within small bounds. Either safety and liveness are proved without the
// assumption, or a shortest run shows what breaks.
//
// The bounds are a ladder, starting with two processes that ask once. A search climbs
// until something breaks or it finds more states than allowed, and the cell says how
// far it came. All limits are counts, never times, so the result of the audit is the
// same on every machine.
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

// Outcome is the outcome of one cell.
type Outcome uint8

// The outcomes.
const (
	Proved        Outcome = iota + 1 // on the highest step of the ladder that Bounds names
	Violated                         // within Bounds, on the lowest step on which it is
	Bounded                          // even the lowest step was too large to search
	NotApplicable                    // the algorithm does not make the assumption; Why says why
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

	// Core is the same for the core property alone: whether it holds if a secondary
	// property fails. It is nil if none fails, or if the core property itself does.
	Core *Cell
	only process.Property // the core promise, if this is such a cell
}

// Row is one algorithm without each of the assumptions, in their order.
type Row struct {
	Spec  *process.Spec
	Cells []Cell
}

// Audited returns the algorithms that have a row: mutual exclusion, elections,
// consensus and transactions. Algorithms for Byzantine processes have none: they make
// no assumption about the faults of a few processes, which searches with traitors show.
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

// knownBroken are printed mistakes, which have no row.
func knownBroken(s *process.Spec) bool {
	for _, wrong := range algorithm.Broken {
		if wrong == s {
			return true
		}
	}
	return false
}

// Run audits algorithms, on all processors. The rows are in the order of the specs. The
// error is that of the context.
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

// corePromise is the property without which the others are worthless.
func corePromise(s *process.Spec) process.Property {
	claimed := check.Claimed(s, &process.Config{N: ladder[0].n})
	for _, p := range []process.Property{process.MutualExclusion, process.AtMostK, process.LeaderAgreement, process.ValueAgreement, process.Atomicity, process.NoPhantom} {
		if slices.Contains(claimed, p) {
			return p
		}
	}
	return ""
}

// ascend climbs with any number of timeouts, and continues with few where any number is
// too many: then the search continues forever in new states, or has too many.
func (c *Cell) ascend(ctx context.Context, limits Limits) {
	c.Outcome = Bounded
	at := c.climb(ctx, limits, 0, 0)
	if c.Outcome != Violated && hasTimers(c.Spec) {
		c.Cut = c.Beyond
		c.climb(ctx, limits, at, fewTimeouts(c.Spec))
	}
}

// climb searches with more and more processes and requests, from a step of the ladder on,
// and returns the step on which it ended. With timeouts, the number of timers that run
// out is bounded.
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

// search takes one step of the ladder. It returns the first result that is not a proof,
// or the largest search.
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
