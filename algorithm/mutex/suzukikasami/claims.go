package suzukikasami

import "github.com/conclave-io/conclave/process"

const (
	elsewhere = "the token is elsewhere, and N >= 2"
	anywhere  = "none if the token is here; the mean is over requesters drawn uniformly"
	several   = "N >= 2"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.OneToken},
		{Property: process.FencesGrow},
		{Property: process.Progress},
		{Property: process.BoundedBypass, Bound: others, Since: process.SinceKnown, When: "counted from when the request is known everywhere"},
		{Property: process.OrderHappenedBefore, Fails: true, When: "the queue is filled by rank, not by time"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, When: several, Exact: all},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: elsewhere, Exact: all},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: anywhere, Lo: process.Constant("0", 0), Hi: all, Mean: others},
		{Metric: process.ClientDelay, Regime: process.Idle, When: elsewhere, Exact: process.Constant("2", 2)},
		{Metric: process.ClientDelay, Regime: process.Idle, When: anywhere, Lo: process.Constant("0", 0), Hi: process.Constant("2", 2)},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1)},
		{Metric: process.Throughput, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "numbers tell open requests from served ones"},
		{Fault: process.Duplication, How: "a duplicate REQ has a number that was served, a duplicate TOKEN an old fence"},
		{Fault: process.CrashBystander, How: "no process waits for its answer"},
	},
}

// all is N-1 requests and one token.
var all = process.PerProcess("N", 1)

var others = process.PerOther("N-1", 1)
