package broken

import (
	"github.com/conclave-io/conclave/algorithm/transaction/twophase"
	"github.com/conclave-io/conclave/process"
)

var ofTwoPhase = []Variant{
	{
		Name:     "two-phase-commit-votes-unlogged",
		Of:       twophase.Spec,
		New:      twophase.Flaw{VotesUnlogged: true}.New,
		Mistake:  "A participant sends VOTE yes and does not log PREPARED before.",
		Tempting: "The vote leaves sooner, and the log can follow.",
		Wrong:    "A participant that crashes comes back without a vote and aborts, while the others commit because of it.",
		Breaks:   process.Atomicity,
		Bounds:   Bounds{N: 2, Entries: 1, Crashes: 1, Restarts: 1, Alone: true},
	},
	{
		Name:     "two-phase-commit-aborts-alone",
		Of:       twophase.Spec,
		New:      twophase.Flaw{AbortsAlone: true}.New,
		Mistake:  "A participant that is PREPARED and waits too long for the decision aborts.",
		Tempting: "The coordinator seems to be dead, and its locks are in the way of others.",
		Wrong:    "The coordinator had decided to commit before it crashed, and perhaps told somebody.",
		Breaks:   process.Atomicity,
		Bounds:   Bounds{N: 2, Entries: 1, Crashes: 1, Alone: true},
	},
	{
		Name:     "two-phase-commit-commit-unlogged",
		Of:       twophase.Spec,
		New:      twophase.Flaw{CommitUnlogged: true}.New,
		Mistake:  "The coordinator sends DECISION(commit) and does not log COMMIT before.",
		Tempting: "Everybody has logged PREPARED, so the decision can be found out again.",
		Wrong:    "A coordinator that crashes knows of no decision when it is back, and presumes an abort.",
		Breaks:   process.Atomicity,
		Bounds:   Bounds{N: 3, Entries: 1, Crashes: 1, Restarts: 1, Alone: true},
	},
}
