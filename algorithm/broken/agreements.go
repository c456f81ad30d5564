package broken

import (
	"github.com/conclave-io/conclave/algorithm/agreement/floodset"
	"github.com/conclave-io/conclave/algorithm/agreement/generals"
	"github.com/conclave-io/conclave/algorithm/agreement/paxos"
	"github.com/conclave-io/conclave/algorithm/agreement/phaseking"
	"github.com/conclave-io/conclave/algorithm/agreement/raft"
	"github.com/conclave-io/conclave/algorithm/agreement/signedgenerals"
	"github.com/conclave-io/conclave/process"
)

var ofFloodSet = of(floodset.Spec, []Variant{
	{
		Name:     "floodset-one-round-less",
		New:      floodset.Flaw{OneRoundLess: true}.New,
		Mistake:  "There are f rounds instead of f+1.",
		Tempting: "After f rounds every process has had time to hear of every crash.",
		Wrong:    "If there is a crash in every round, each crash may leave a value with only one process.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 3, Entries: 1, Crashes: 1},
	},
	{
		Name:     "floodset-own-value-only",
		New:      floodset.Flaw{OwnValueOnly: true}.New,
		Mistake:  "A process sends its own value and does not pass on what it has learned.",
		Tempting: "Every process sends its value to all, so no process needs to hear it twice.",
		Wrong:    "A process that crashes in the middle of a multicast has told only some, and they do not pass the value on.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 3, Entries: 1, Crashes: 1},
	},
	{
		Name:     "floodset-decides-first",
		New:      floodset.Flaw{DecidesFirst: true}.New,
		Mistake:  "In mode early a process decides before it sends its values for the last time.",
		Tempting: "It has missed nothing, so what it knows is what it will decide.",
		Wrong:    "If it crashes between the two, the others never learn the value that it decided.",
		Breaks:   process.ValueAgreement,
		Bounds: Bounds{N: 3, Entries: 1, Crashes: 2, Options: []process.OptionValue{
			{Name: "mode", Value: "early"}, {Name: "f", Value: "2"},
		}},
	},
})

var ofPaxos = of(paxos.Proposers, []Variant{
	{
		Name:     "paxos-proposers-forgets-accepted",
		New:      paxos.Flaw{Alone: true, ForgetsAccepted: true}.New,
		Mistake:  "A promise does not report what was accepted before.",
		Tempting: "A new ballot is a new attempt, and its leader has its own value.",
		Wrong:    "A majority may have decided already, and the new leader proposes something else.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 3, Entries: 1, Clients: []process.ID{0, 1}},
	},
	{
		Name:     "paxos-proposers-breaks-promise",
		New:      paxos.Flaw{Alone: true, BreaksPromise: true}.New,
		Mistake:  "An acceptor accepts even in a ballot below its promise.",
		Tempting: "It has not accepted anything in the higher ballot yet.",
		Wrong:    "The leader of the higher ballot has been told that nothing was accepted, and proposes its own value.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 3, Entries: 1, Clients: []process.ID{0, 1}},
	},
})

var ofRaft = of(raft.Spec, []Variant{
	{
		Name:     "raft-votes-twice",
		New:      raft.Flaw{VotesTwice: true}.New,
		Mistake:  "A process votes for every candidate of a term whose log is new enough.",
		Tempting: "The first candidate does not lead yet, so the second may win as well.",
		Wrong:    "Two leaders in one term each append entries of that term at the same positions.",
		Breaks:   process.StateInvariant,
		Bounds:   Bounds{N: 3, Entries: 1, Clients: []process.ID{0}, Timeouts: 2, AnyTime: true},
	},
	{
		Name:     "raft-ignores-logs",
		New:      raft.Flaw{IgnoresLogs: true}.New,
		Mistake:  "A process votes without comparing logs.",
		Tempting: "The higher term shows that the candidate is up to date.",
		Wrong:    "A process that lacks a committed entry is elected and overwrites it.",
		Breaks:   process.StateInvariant,
		Bounds:   Bounds{N: 3, Entries: 1, Clients: []process.ID{0}, Timeouts: 3, AnyTime: true},
	},
})

var ofGenerals = of(generals.Spec, []Variant{
	{
		Name:     "generals-one-round-less",
		New:      generals.Flaw{OneRoundLess: true}.New,
		Mistake:  "There are m rounds instead of m+1.",
		Tempting: "With one traitor a single round brings the order to every process.",
		Wrong:    "The commander may be that traitor. It gives different orders, and no lieutenant compares them.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 4, Entries: 1, Traitors: []process.ID{0}},
	},
	{
		Name:     "generals-repeats-ids",
		New:      generals.Flaw{RepeatsIDs: true}.New,
		Mistake:  "A path may contain a process twice: the commander also passes on its own order.",
		Tempting: "Then all processes follow the same rule in each round, and there are more votes.",
		Wrong:    "A traitor gets a vote on its own words, and votes differently towards each lieutenant.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 4, Entries: 1, Traitors: []process.ID{0}},
	},
	{
		Name:     "generals-no-default",
		New:      generals.Flaw{Waits: true}.New,
		Mistake:  "A round is over when all its values have come; a missing value does not count as RETREAT.",
		Tempting: "Links lose nothing, so every value comes.",
		Wrong:    "A silent traitor stops all processes.",
		Breaks:   process.Decision,
		Bounds:   Bounds{N: 4, Entries: 1, Traitors: []process.ID{3}},
	},
})

var ofSignedGenerals = of(signedgenerals.Spec, []Variant{
	{
		Name:     "signed-generals-one-round-less",
		New:      signedgenerals.Flaw{OneRoundLess: true}.New,
		Mistake:  "There are m rounds instead of m+1.",
		Tempting: "The signature of the commander proves that the order is its own.",
		Wrong:    "A commander may sign two orders. Lieutenants that got only one of them do not learn of the other.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 3, Entries: 1, Traitors: []process.ID{0}},
	},
	{
		Name:     "signed-generals-first-order",
		New:      signedgenerals.Flaw{FirstOrder: true}.New,
		Mistake:  "If there are two orders, a lieutenant obeys the one that came first.",
		Tempting: "Both are signed by the commander, so both seem equally valid.",
		Wrong:    "Different lieutenants got different orders first.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 3, Entries: 1, Traitors: []process.ID{0}},
	},
	{
		Name:     "signed-generals-passes-on-one",
		New:      signedgenerals.Flaw{OneOrder: true}.New,
		Mistake:  "A lieutenant passes on only the first order.",
		Tempting: "Every lieutenant tells all others about one order, so all hear of every order.",
		Wrong:    "A lieutenant that knows two orders decides RETREAT, and the others do not know of the second.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 4, Entries: 1, Options: option("m", "2"), Traitors: []process.ID{0, 1}},
	},
})

var ofPhaseKing = of(phaseking.Spec, []Variant{
	{
		Name:     "phase-king-one-phase-less",
		New:      phaseking.Flaw{OnePhaseLess: true}.New,
		Mistake:  "There are m phases instead of m+1.",
		Tempting: "One phase is enough to make all agree.",
		Wrong:    "Only if its king is correct. A king that is a traitor gives each process a different value.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 5, Entries: 1, Clients: []process.ID{1, 2}, Traitors: []process.ID{0}},
	},
	{
		Name:     "phase-king-obeys-king",
		New:      phaseking.Flaw{ObeysKing: true}.New,
		Mistake:  "A process takes the value of the king, whatever majority it has seen.",
		Tempting: "Then all processes that hear the same king agree at once.",
		Wrong:    "If the last king is a traitor, it splits the processes that had agreed.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 5, Entries: 1, Clients: []process.ID{2}, Traitors: []process.ID{1}},
	},
	{
		Name:     "phase-king-half-is-enough",
		New:      phaseking.Flaw{HalfIsEnough: true}.New,
		Mistake:  "A process keeps any majority that it sees, instead of only one of more than N/2 + m.",
		Tempting: "A value that more than half prefer can have no rival.",
		Wrong:    "The vote of a traitor makes such a majority for one process and not for the king.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 5, Entries: 1, Clients: []process.ID{1, 2}, Traitors: []process.ID{4}},
	},
})
