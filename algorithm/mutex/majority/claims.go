package majority

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

const fewDown = "at most n-m coordinators are down"

const (
	outsider = "no other client; the client is not a coordinator"
	insider  = "no other client; the client is one of the coordinators"
	onTime   = "while the deadlines of clients expire before the leases of coordinators, and no client is paused"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion, Mode: plain, When: "fewer than 2m-n coordinators restart during one entry"},
		{Property: process.FencesGrow, Mode: plain, When: "fewer than 2m-n coordinators restart during one entry"},
		{Property: process.MutualExclusion, Mode: lease, Fails: true, When: onTime},
		{Property: process.FencesGrow, Mode: lease, Fails: true, When: onTime},
		{Property: process.Progress, When: "with probability 1: no time bound for getting enough votes"},
		{Property: process.OrderHappenedBefore, Fails: true, When: "the first client to end its back-off wins"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Idle, Mode: plain, When: outsider, Exact: times("3n", 3, 0),
			Said: []process.Figure{{Document: "[D3]", Text: "2mk+m",
				Wrong: "all n are asked and answer, and all votes are returned; the figure asks m, and failed attempts keep their votes"}}},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, Mode: plain, When: insider, Exact: times("3(n-1)", 3, -3)},
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, Mode: plain,
			When: "clients are not coordinators; each failed attempt adds 2n and the returned votes",
			Lo:   &process.Formula{Text: "2n+m", Eval: func(p process.Params) float64 { return float64(2*p.Replicas + p.M) }}},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, Mode: lease, When: outsider + "; every message takes D", Exact: times("5n", 5, 0)},
		{Metric: process.ClientDelay, Regime: process.Idle, Mode: plain, When: outsider, Exact: process.Constant("2", 2),
			Said: []process.Figure{{Document: "[D3]", Text: "2mk", Wrong: "counts messages; those of different coordinators travel at the same time"}}},
		{Metric: process.ClientDelay, Regime: process.Idle, Mode: lease, When: outsider, Exact: process.Constant("4", 4)},
		{Metric: process.SyncDelay, Regime: process.Saturated, Mode: plain, When: "clients are not coordinators; plus the rest of the back-off", Lo: process.Constant("2", 2)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "attempt numbers; RELEASE goes only to coordinators whose VOTE came"},
		{Fault: process.Duplication, How: "attempt numbers; a vote given twice is returned"},
		{Fault: process.CrashBystander, Mode: plain, When: fewDown + " and no vote is on its way to it", How: "R5"},
		{Fault: process.CrashAny, Mode: lease, When: fewDown, How: "R5; the votes of a client expire, and its fence is known"},
	},
}

// times is each*n + add.
func times(text string, each, add float64) *process.Formula {
	return &process.Formula{Text: text, Eval: func(p process.Params) float64 { return each*float64(p.Replicas) + add }}
}

// Sizes returns the number of replicas and the number of votes needed. The coordinators
// are the processes whose rank is below the number of replicas.
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

// check refuses a number of votes that is not a majority: two clients could have them
// at once.
func check(c *process.Config) error {
	n, m := Sizes(c)
	if n > c.N {
		return fmt.Errorf("majority: replicas: %d: must be at most %d, the number of processes", n, c.N)
	}
	if 2*m <= n || m > n {
		return fmt.Errorf("majority: votes: %d of %d replicas: must be more than half and at most all, %d to %d", m, n, n/2+1, n)
	}
	return nil
}
