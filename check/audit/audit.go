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
	"sync"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/check"
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
	// Beyond is the search on the next step of the ladder that met the limit of
	// states without a violation, or nil.
	Beyond *check.Result
}

// Row is one algorithm without each of the assumptions, in their order.
type Row struct {
	Spec  *process.Spec
	Cells []Cell
}

// Audited returns those of the algorithms that can be audited: for mutual exclusion,
// and elections of one leader.
func Audited(all []*process.Spec) []*process.Spec {
	var specs []*process.Spec
	for _, s := range all {
		c := check.Config{Spec: s, Process: process.Config{N: ladder[0].n}}
		if c.Validate() == nil && len(check.Claimed(s, &c.Process)) > 0 && !knownBroken(s) {
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
	cell.Outcome = Bounded
	at := cell.climb(ctx, limits, 0, 0)
	if cell.Outcome != Violated && hasTimers(spec) {
		// It goes on for ever in ever new states, or in too many.
		cell.climb(ctx, limits, at, fewTimeouts)
	}
	return cell
}

// climb searches with more and more processes and requests, from a step of the ladder
// on, and returns the step on which it ended. With timeouts, only so many timers may
// run out in a run.
func (c *Cell) climb(ctx context.Context, limits Limits, from, timeouts int) int {
	for i := from; i < len(ladder); i++ {
		cfg := limits.config(c.Spec, c.Assumption, ladder[i])
		cfg.Timeouts = timeouts
		if cfg.Validate() != nil {
			continue // the algorithm is not for so few processes
		}
		r, err := check.Run(ctx, cfg)
		process.Assert(err == nil, "a configuration that was validated can be searched")
		if r.Verdict == check.Bounded {
			c.Beyond = r
			return i
		}
		c.Beyond = nil
		if r.Verdict == check.Violated {
			c.Outcome, c.Result, c.Few = Violated, r, nil
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
