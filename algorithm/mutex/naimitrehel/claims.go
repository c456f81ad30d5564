package naimitrehel

import "github.com/conclave-io/conclave/process"

const (
	anywhere = "none if the token is here; the mean is over requesters drawn uniformly"
	several  = "N >= 2"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.OneToken},
		{Property: process.FencesGrow},
		{Property: process.Progress},
		{Property: process.OrderHappenedBefore, Fails: true, When: "a later request with a shorter path reaches the root first"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: anywhere, Lo: none, Hi: line, Mean: harmonic},
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, When: several + "; the mean is (4N-2)/(N+1) over N+1 rounds in which all enter in turn", Lo: there, Hi: line},
		{Metric: process.ClientDelay, Regime: process.Idle, When: anywhere, Lo: none, Hi: line, Mean: harmonic},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: several, Exact: one},
		{Metric: process.Throughput, Regime: process.Saturated, When: several, Exact: one},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a process is the root before its token comes, and takes the REQ that overtakes it"},
	},
}

var none = process.Constant("0", 0)

var one = process.Constant("1", 1)

// there is a REQ to the root and the token.
var there = process.Constant("2", 2)

// line is N-1 REQ from the end of a line, and the token.
var line = process.PerProcess("N", 1)

var harmonic = &process.Formula{Text: "H_(N-1)", Eval: func(p process.Params) float64 {
	sum := 0.0
	for k := 1; k < p.N; k++ {
		sum += 1 / float64(k)
	}
	return sum
}}
