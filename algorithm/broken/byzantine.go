package broken

import (
	"github.com/conclave-io/conclave/algorithm/agreement/generals"
	"github.com/conclave-io/conclave/algorithm/agreement/phaseking"
	"github.com/conclave-io/conclave/algorithm/agreement/signedgenerals"
	"github.com/conclave-io/conclave/process"
)

var ofGenerals = []Variant{
	{
		Name:     "generals-one-round-less",
		Of:       generals.Spec,
		New:      generals.Flaw{OneRoundLess: true}.New,
		Mistake:  "There are m rounds and not m+1.",
		Tempting: "With one traitor a single round brings the order to everybody.",
		Wrong:    "The commander may be that traitor. It gives different orders, and nobody compares them.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 4, Entries: 1, Traitors: []process.ID{0}},
	},
	{
		Name:     "generals-repeats-ids",
		Of:       generals.Spec,
		New:      generals.Flaw{RepeatsIDs: true}.New,
		Mistake:  "A path may contain a process twice: the commander, too, passes on what it has ordered.",
		Tempting: "Then all processes do the same in each round, and there are more votes.",
		Wrong:    "A traitor gets another vote on its own words, and gives it differently to each lieutenant.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 4, Entries: 1, Traitors: []process.ID{0}},
	},
	{
		Name:     "generals-no-default",
		Of:       generals.Spec,
		New:      generals.Flaw{Waits: true}.New,
		Mistake:  "A round is over when all of its values have come; none of them counts as RETREAT.",
		Tempting: "Links lose nothing, so every value comes.",
		Wrong:    "A traitor that keeps silent stops everybody.",
		Breaks:   process.Decision,
		Bounds:   Bounds{N: 4, Entries: 1, Traitors: []process.ID{3}},
	},
}

var ofSignedGenerals = []Variant{
	{
		Name:     "signed-generals-one-round-less",
		Of:       signedgenerals.Spec,
		New:      signedgenerals.Flaw{OneRoundLess: true}.New,
		Mistake:  "There are m rounds and not m+1.",
		Tempting: "The signature of the commander shows that the order is its own.",
		Wrong:    "A commander may sign two orders. Those who got only one of them do not learn of the other.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 3, Entries: 1, Traitors: []process.ID{0}},
	},
	{
		Name:     "signed-generals-first-order",
		Of:       signedgenerals.Spec,
		New:      signedgenerals.Flaw{FirstOrder: true}.New,
		Mistake:  "Of two orders a lieutenant obeys the one that came first.",
		Tempting: "Both are signed by the commander, and the first is as good as the second.",
		Wrong:    "Each lieutenant got another one first.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 3, Entries: 1, Traitors: []process.ID{0}},
	},
	{
		Name:     "signed-generals-passes-on-one",
		Of:       signedgenerals.Spec,
		New:      signedgenerals.Flaw{OneOrder: true}.New,
		Mistake:  "A lieutenant passes on the first order only.",
		Tempting: "Everybody tells everybody about one order, so all hear of every order.",
		Wrong:    "A lieutenant that knows of two falls back on RETREAT, and the others do not know why.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 4, Entries: 1, Options: option("m", "2"), Traitors: []process.ID{0, 1}},
	},
}

var ofPhaseKing = []Variant{
	{
		Name:     "phase-king-one-phase-less",
		Of:       phaseking.Spec,
		New:      phaseking.Flaw{OnePhaseLess: true}.New,
		Mistake:  "There are m phases and not m+1.",
		Tempting: "One phase is enough to make all agree.",
		Wrong:    "Only if its king is correct. A traitor for a king gives each process another value.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 5, Entries: 1, Clients: []process.ID{1, 2}, Traitors: []process.ID{0}},
	},
	{
		Name:     "phase-king-obeys-king",
		Of:       phaseking.Spec,
		New:      phaseking.Flaw{ObeysKing: true}.New,
		Mistake:  "A process takes the value of the king, whatever majority it has seen.",
		Tempting: "Then all that hear the same king agree at once.",
		Wrong:    "If the last king is a traitor, it parts those who had agreed.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 5, Entries: 1, Clients: []process.ID{2}, Traitors: []process.ID{1}},
	},
	{
		Name:     "phase-king-half-is-enough",
		Of:       phaseking.Spec,
		New:      phaseking.Flaw{HalfIsEnough: true}.New,
		Mistake:  "A process keeps every majority that it has seen, and not only one of more than N/2 + m.",
		Tempting: "A value that more than half prefer can have no rival.",
		Wrong:    "The vote of a traitor makes such a majority for one process and not for the king.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 5, Entries: 1, Clients: []process.ID{1, 2}, Traitors: []process.ID{4}},
	},
}
