// Package byload is the election of the least busy process, by changing the order of
// other elections.
//
// # Problem and idea
//
// It may matter which process leads: a coordinator with little other work is better. So
// only the order in which processes are compared is changed: less load is better, and
// of equal loads the higher label.
//
// # Rules
//
// The rules are those of the carrier, with "better" in place of "higher label":
//
//   - by-load: ring-list. Loads travel in the list, beside the labels.
//   - by-load-ring: chang-roberts. A label travels with its load.
//   - by-load-bully: bully. No process knows in advance which others are better, so
//     ELECTION goes to all others. A process that is worse than the sender stays
//     silent; the winner tells all.
//
// Hosts report loads by the event Load. A process samples its load when it first takes
// part in a round, and that sample counts to the end of the round. A load that was
// never reported is worse than any other. A change of load starts no election.
//
// # Why it is safe
//
// The order is total, because labels differ, and it does not change during a round,
// because loads are sampled. So what holds for the carrier holds here, with "best" for
// "highest". If a load changes between two rounds that overlap, their winners may
// differ; then the later term counts, as in the carrier.
//
// # Cost
//
// On a ring, the cost of the carrier. The bully's is higher. If b processes are better
// than the starter, it costs (b+2)(N-1) + b(b+1)/2 messages, including all answers; if
// the starter is the best, 2(N-1). The best process always waits for T, because it does
// not know that it is the best.
//
// # Deviations
//
// [D3] elects the process with the highest 1/load, printed as l/load. The reciprocal is
// never computed here: a load of 0 has none, and different loads may have the same
// reciprocal in numbers of finite length. It breaks ties "by sorting process ID" and
// does not say in which direction; here the higher label wins, as everywhere. It does
// not say when a load is read.
//
// Not survived: what the carrier does not survive.
//
// Sources: [D3] and those of the carriers.
package byload

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/election/bully"
	"github.com/conclave-io/conclave/algorithm/election/changroberts"
	"github.com/conclave-io/conclave/algorithm/election/ringlist"
	"github.com/conclave-io/conclave/process"
)

// List describes the election by load on a ring with a list of senders.
var List = over(ringlist.Spec, ringlist.Flaw{ByLoad: true}.New, &process.Spec{
	Name:  "by-load",
	Title: "Election of the least busy, by a list of senders",
	Messages: []process.MessageSpec{
		{Name: "ELECTION", Fields: []process.FieldUse{{Field: process.FieldVector, Symbol: "loads"}}},
		{Name: "COORDINATOR", Fields: []process.FieldUse{load}},
	},
	Claims: process.Claims{Costs: ringlist.Spec.Claims.Costs},
})

// Ring describes the election by load of Chang and Roberts.
var Ring = over(changroberts.Spec, changroberts.NewByLoad, &process.Spec{
	Name:  "by-load-ring",
	Title: "Election of the least busy, on the ring of Chang and Roberts",
	Messages: []process.MessageSpec{
		{Name: "ELECTION", Fields: []process.FieldUse{load}},
		{Name: "ELECTED", Fields: []process.FieldUse{load}},
	},
	Claims: process.Claims{Costs: changroberts.Spec.Claims.Costs},
})

// Bully describes the election by load by asking everyone.
var Bully = over(bully.Spec, bully.Flaw{ByLoad: true}.New, &process.Spec{
	Name:  "by-load-bully",
	Title: "Election of the least busy, by the bully algorithm",
	Messages: []process.MessageSpec{
		{Name: "ELECTION", Fields: []process.FieldUse{load}},
		{Name: "COORDINATOR", Fields: []process.FieldUse{load}},
	},
	Claims: process.Claims{Costs: askingAll},
})

var load = process.FieldUse{Field: process.FieldValue, Symbol: "load"}

// over makes the Spec of an election by load from that of its carrier. The parameter
// own has what differs, and the additional fields of messages.
func over(carrier *process.Spec, machine func(process.ID, *process.Config) process.Machine, own *process.Spec) *process.Spec {
	s := *carrier
	s.Name, s.Title = own.Name, own.Title
	s.Documents = []string{"[D3]"}
	s.Messages = slices.Clone(carrier.Messages)
	for i := range s.Messages {
		for _, m := range own.Messages {
			if m.Name == s.Messages[i].Name {
				s.Messages[i].Fields = slices.Concat(s.Messages[i].Fields, m.Fields)
			}
		}
	}
	s.Options = slices.DeleteFunc(slices.Clone(carrier.Options), func(o process.Option) bool { return o.Name == "announce" })
	s.Needs.Load = true
	s.Claims.Costs = withoutFigures(own.Claims.Costs)
	s.New = machine
	return &s
}

// withoutFigures removes what documents say about the carriers: they give no figures
// for elections by load.
func withoutFigures(costs []process.Cost) []process.Cost {
	costs = slices.Clone(costs)
	for i := range costs {
		costs[i].Said = nil
	}
	return costs
}

var askingAll = []process.Cost{
	{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: "all processes are up; b = N-r of them are better than the starter", Exact: fromRank},
	{Metric: process.MessagesPerElection, Regime: process.AllStart, When: "all processes are up", Exact: everyone},
	{Metric: process.MessagesPerElection, Regime: process.Worst, When: "all processes are up; the worst starts, or all do", Exact: everyone},
	{Metric: process.ElectionTime, Regime: process.OneStarter, When: "all processes are up, every message takes D, T = 3D, N >= 2",
		Exact: &process.Formula{Text: "T+2D = 5; T+D = 4 if b = 0", Eval: func(p process.Params) float64 {
			if p.Rank == p.N {
				return 4
			}
			return 5
		}}},
	{Metric: process.ElectionTime, Regime: process.AllStart, When: "all processes are up, every message takes D, T = 3D, N >= 2",
		Exact: process.Constant("T+D = 4", 4)},
}

// fromRank: the starter and all better processes ask all others. Each of these gets
// answers from the processes that are better, and the winner tells all.
var fromRank = &process.Formula{Text: "(b+2)(N-1)+b(b+1)/2", Eval: func(p process.Params) float64 {
	b := p.N - p.Rank
	return float64((b+2)*(p.N-1)) + float64(b*(b+1))/2
}}

var everyone = process.OfN("(N+1)(N-1)+N(N-1)/2", func(n float64) float64 { return (n+1)*(n-1) + n*(n-1)/2 })
