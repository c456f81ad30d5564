package broken

import (
	"github.com/conclave-io/conclave/algorithm/agreement/generals"
	"github.com/conclave-io/conclave/algorithm/agreement/phaseking"
	"github.com/conclave-io/conclave/algorithm/agreement/signedgenerals"
	"github.com/conclave-io/conclave/process"
)

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
