package broken

import (
	"github.com/conclave-io/conclave/algorithm/agreement/floodset"
	"github.com/conclave-io/conclave/algorithm/agreement/paxos"
	"github.com/conclave-io/conclave/algorithm/agreement/raft"
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
