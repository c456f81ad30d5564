package majority

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

const doc003 = "[D3]"

const fewDown = "at most n-m coordinators are down"

const (
	outsider = "nobody else asks; the client is no coordinator"
	insider  = "nobody else asks; the client is one of the coordinators"
	onTime   = "only while the deadlines of clients run out before the leases of coordinators, which a paused client does not see"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion, Mode: plain, When: "fewer than 2m-n coordinators forget during one entry"},
		{Property: process.FencesGrow, Mode: plain, When: "fewer than 2m-n coordinators forget during one entry"},
		{Property: process.MutualExclusion, Mode: lease, Fails: true, When: onTime},
		{Property: process.FencesGrow, Mode: lease, Fails: true, When: onTime},
		{Property: process.Progress, When: "with probability 1: nobody is sure to have enough votes at any time"},
		{Property: process.OrderHappenedBefore, Fails: true, When: "who comes back first from its back-off wins"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Idle, Mode: plain, When: outsider, Exact: times("3n", 3, 0),
			Said: []process.Figure{{Document: doc003, Text: "2mk+m",
				Wrong: "all n are asked and answer, and all votes go back; the figure asks m, and lets failed attempts keep theirs"}}},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, Mode: plain, When: insider, Exact: times("3(n-1)", 3, -3)},
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, Mode: plain,
			When: "clients are no coordinators; 2n more and the votes given back for each failed attempt",
			Lo:   &process.Formula{Text: "2n+m", Eval: func(p process.Params) float64 { return float64(2*p.Replicas + p.M) }}},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, Mode: lease, When: outsider + "; every message takes D", Exact: times("5n", 5, 0)},
		{Metric: process.ClientDelay, Regime: process.Idle, Mode: plain, When: outsider, Exact: constant("2", 2),
			Said: []process.Figure{{Document: doc003, Text: "2mk", Wrong: "it counts messages; those of different coordinators travel at once"}}},
		{Metric: process.ClientDelay, Regime: process.Idle, Mode: lease, When: outsider, Exact: constant("4", 4)},
		{Metric: process.SyncDelay, Regime: process.Saturated, Mode: plain, When: "clients are no coordinators; plus what is left of the back-off", Lo: constant("2", 2)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "attempt numbers; RELEASE goes only to those whose VOTE came"},
		{Fault: process.Duplication, How: "attempt numbers; a vote given twice comes back"},
		{Fault: process.CrashBystander, Mode: plain, When: fewDown + " and no vote is on its way to it", How: "R5"},
		{Fault: process.CrashAny, Mode: lease, When: fewDown, How: "R5; the votes of a client expire, and its fence was claimed"},
	},
}

// times is each*n + add.
func times(text string, each, add float64) *process.Formula {
	return &process.Formula{Text: text, Eval: func(p process.Params) float64 { return each*float64(p.Replicas) + add }}
}

func constant(text string, value float64) *process.Formula {
	return &process.Formula{Text: text, Eval: func(process.Params) float64 { return value }}
}

// Sizes returns the number of replicas and that of the votes needed. The
// coordinators are the processes with ranks below the former.
func Sizes(c *process.Config) (replicas, votes int) {
	replicas, votes = c.IntOption("replicas", 0), c.IntOption("votes", 0)
	if replicas == 0 {
		replicas = max(1, min(4, c.N-1))
	}
	if votes == 0 {
		votes = (3*replicas + 3) / 4
	}
	return replicas, votes
}

// check refuses votes that are no majority: two clients could have them at once.
func check(c *process.Config) error {
	n, m := Sizes(c)
	if n > c.N {
		return fmt.Errorf("majority: replicas is %d, it must be at most %d, the number of processes", n, c.N)
	}
	if 2*m <= n || m > n {
		return fmt.Errorf("majority: votes is %d of %d replicas, it must be more than half and at most all: %d to %d", m, n, n/2+1, n)
	}
	return nil
}
