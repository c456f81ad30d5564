package bully

import "github.com/conclave-io/conclave/process"

const (
	silentHighest = "the highest of the N labels is down and not known to have failed; announce=lower; one message more with announce=all"
	unitDelays    = "every message takes D, T = 3D, the highest is down, N >= 3"
)

var claims = process.Claims{
	Properties: process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence),
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: silentHighest, Exact: fromRank,
			Said: []process.Figure{
				{Document: "[D1]", Text: "N-2 at best", Wrong: "leaves out the ELECTION to the crashed leader"},
				{Document: "[D2]", Text: "N-2 at best", Wrong: "leaves out the ELECTION to the crashed leader"}}},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: silentHighest, Exact: everyone},
		{Metric: process.MessagesPerElection, Regime: process.Worst, When: silentHighest, Exact: everyone,
			Said: []process.Figure{{Document: "[D1]", Text: "O(N^2)"}, {Document: "[D2]", Text: "O(N^2)"}, {Document: "[D3]", Text: "O(N^2)"}}},
		{Metric: process.MessagesPerElection, Regime: process.Idle,
			When:  "the process with the highest label restarts, all others are up; HELLO and WELCOME count as recovery",
			Exact: process.PerOther("N-1", 1)},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: unitDelays, Exact: timeFromRank},
		{Metric: process.ElectionTime, Regime: process.AllStart, When: unitDelays, Exact: &process.Formula{
			Text: "T+D = 4", Eval: timeOfBest}},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "rounds"},
		{Fault: process.Duplication, How: "rounds; a duplicate costs at worst another election"},
		{Fault: process.CrashAny, How: "T and T'; after the election, a detector below or a call for a new election"},
		{Fault: process.AmnesiaRestart, How: "B8, and the round on disk"},
	},
	Worst: lowestStarts,
}

func lowestStarts(int) process.Arrangement { return process.Arrangement{Starters: []int{0}} }

// fromRank: N-r processes, from the starter up, ask all above them. Each pair of live
// ones exchanges one answer, and the winner tells the other N-2.
var fromRank = &process.Formula{Text: "(N-r)^2+N-2", Eval: func(p process.Params) float64 {
	asking := p.N - p.Rank
	return float64(asking*asking + p.N - 2)
}}

var everyone = process.OfN("N^2-N-1", func(n float64) float64 { return n*n - n - 1 })

var timeFromRank = &process.Formula{Text: "T+2D = 5; T+D = 4 if r = N-1", Eval: func(p process.Params) float64 {
	if p.Rank == p.N-1 {
		return timeOfBest(p)
	}
	return 5
}}

// timeOfBest: with two processes, the one that is up has no process to tell.
func timeOfBest(p process.Params) float64 {
	if p.N == 2 {
		return 3
	}
	return 4
}
