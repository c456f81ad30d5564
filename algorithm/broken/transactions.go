package broken

import (
	"github.com/conclave-io/conclave/algorithm/transaction/paxoscommit"
	"github.com/conclave-io/conclave/algorithm/transaction/threephase"
	"github.com/conclave-io/conclave/algorithm/transaction/twophase"
	"github.com/conclave-io/conclave/process"
)

var ofTwoPhase = of(twophase.Spec, []Variant{
	{
		Name:     "two-phase-commit-votes-unlogged",
		New:      twophase.Flaw{VotesUnlogged: true}.New,
		Mistake:  "A participant sends VOTE yes without logging PREPARED first.",
		Tempting: "The vote leaves sooner, and the log can follow.",
		Wrong:    "A participant that crashes restarts without its vote and aborts, while the others commit because of that vote.",
		Breaks:   process.Atomicity,
		Bounds:   Bounds{N: 2, Entries: 1, Crashes: 1, Restarts: 1, Alone: true},
	},
	{
		Name:     "two-phase-commit-aborts-alone",
		New:      twophase.Flaw{AbortsAlone: true}.New,
		Mistake:  "A participant that is PREPARED and waits too long for the decision aborts.",
		Tempting: "The coordinator seems to have crashed, and the participant's locks block others.",
		Wrong:    "The coordinator had decided to commit before it crashed, and may have told another participant.",
		Breaks:   process.Atomicity,
		Bounds:   Bounds{N: 2, Entries: 1, Crashes: 1, Alone: true},
	},
	{
		Name:     "two-phase-commit-commit-unlogged",
		New:      twophase.Flaw{CommitUnlogged: true}.New,
		Mistake:  "The coordinator sends DECISION(commit) without logging COMMIT first.",
		Tempting: "All participants have logged PREPARED, so the decision can be derived again.",
		Wrong:    "A coordinator that crashes has no decision when it restarts, and presumes an abort.",
		Breaks:   process.Atomicity,
		Bounds:   Bounds{N: 3, Entries: 1, Crashes: 1, Restarts: 1, Alone: true},
	},
})

var ofThreePhase = of(threephase.Spec, []Variant{
	{
		Name:     "three-phase-commit-decides-alone",
		New:      threephase.Flaw{DecidesAlone: true}.New,
		Mistake:  "A participant that loses the coordinator decides by its own state: PRECOMMITTED commits, PREPARED aborts.",
		Tempting: "Many books show it like this: no process has committed while one is uncertain, so an uncertain one may abort.",
		Wrong:    "A coordinator that crashes between two messages leaves one PRECOMMITTED and one uncertain, and each decides for itself.",
		Breaks:   process.Atomicity,
		Bounds:   Bounds{N: 3, Entries: 1, Crashes: 1, Alone: true},
	},
	{
		Name:     "three-phase-commit-commits-at-once",
		New:      threephase.Flaw{CommitsAtOnce: true}.New,
		Mistake:  "The coordinator commits when it sends PRECOMMIT, and does not wait for ACK.",
		Tempting: "All have voted yes, so the outcome is certain.",
		Wrong:    "If it crashes before PRECOMMIT leaves, all others are uncertain and abort.",
		Breaks:   process.Atomicity,
		Bounds:   Bounds{N: 2, Entries: 1, Crashes: 1, Alone: true},
	},
})

var ofPaxosCommit = of(paxoscommit.Spec, []Variant{
	{
		Name:     "paxos-commit-reports-nothing",
		New:      paxoscommit.Flaw{ReportsNothing: true}.New,
		Mistake:  "An acceptor that promises a ballot does not report the votes that it has kept.",
		Tempting: "A vote belongs to the process that gave it, which can vote again.",
		Wrong:    "All votes may be with a majority, and the coordinator may have committed; the new leader treats them as missing and aborts.",
		Breaks:   process.Atomicity,
		Bounds:   Bounds{N: 3, Entries: 1, Crashes: 1, Timeouts: 1, Alone: true},
	},
	{
		Name:     "paxos-commit-one-acceptor",
		New:      paxoscommit.Flaw{OneAcceptor: true}.New,
		Mistake:  "The coordinator commits as soon as one acceptor has all votes.",
		Tempting: "Votes cannot be taken back, and the other acceptors will have them soon.",
		Wrong:    "A majority that does not have them promises a higher ballot first, and its leader aborts.",
		Breaks:   process.Atomicity,
		Bounds: Bounds{N: 3, Entries: 1, Timeouts: 1, AnyTime: true, Alone: true, Options: []process.OptionValue{
			{Name: "retry-time", Value: "4"},
		}},
	},
})
