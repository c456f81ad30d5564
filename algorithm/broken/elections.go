package broken

import (
	"github.com/conclave-io/conclave/algorithm/broken/changrobertsprinted"
	"github.com/conclave-io/conclave/algorithm/election/bully"
	"github.com/conclave-io/conclave/algorithm/election/byload"
	"github.com/conclave-io/conclave/algorithm/election/changroberts"
	"github.com/conclave-io/conclave/algorithm/election/franklin"
	"github.com/conclave-io/conclave/algorithm/election/hirschbergsinclair"
	"github.com/conclave-io/conclave/algorithm/election/lelann"
	"github.com/conclave-io/conclave/algorithm/election/peterson"
	"github.com/conclave-io/conclave/algorithm/election/ringactivelist"
	"github.com/conclave-io/conclave/algorithm/election/ringlist"
	"github.com/conclave-io/conclave/algorithm/election/superpeer"
	"github.com/conclave-io/conclave/process"
)

var ofBully = of(bully.Spec, []Variant{
	{
		Name:     "bully-waits-for-ever",
		New:      bully.Flaw{WaitsForEver: true}.New,
		Mistake:  "A process that has got an OK waits for the winner without a timer, as in [D0] and [D3].",
		Tempting: "A higher process is up and continues the election.",
		Wrong:    "If that process crashes after its OK, and no higher process is up, no process is elected.",
		Breaks:   process.LeaderTermination,
		Bounds:   Bounds{N: 3, Entries: 1, Clients: []process.ID{0}, Crashes: 2},
	},
})

var ofChangRoberts = of(changroberts.Spec, []Variant{
	{
		Name:     "chang-roberts-printed",
		Spec:     changrobertsprinted.Spec,
		Mistake:  "The comparison of labels is reversed, as [D1] prints it.",
		Tempting: "The two signs are easily confused.",
		Wrong:    "A lone starter elects itself whatever its label; of several starters, perhaps none is elected.",
		Breaks:   process.LeaderValidity,
		Bounds:   Bounds{N: 2, Entries: 1, Clients: []process.ID{0}, Alone: true},
	},
})

var ofLeLann = of(lelann.Spec, []Variant{
	{
		Name:     "le-lann-passes-first",
		New:      lelann.Flaw{PassesFirst: true}.New,
		Mistake:  "A process passes the first label on before it sends its own.",
		Tempting: "Messages are handled in the order in which they come.",
		Wrong:    "The first label is back at its owner before the labels behind it: the owner decides on half of them.",
		Breaks:   process.LeaderValidity,
		Bounds:   Bounds{N: 2, Entries: 1, Clients: []process.ID{0}},
	},
	{
		Name:     "le-lann-stops-worse",
		New:      lelann.Flaw{StopsWorse: true}.New,
		Mistake:  "A process discards a label that is lower than one that it has seen, as Chang and Roberts do.",
		Tempting: "That label cannot win, and most of the messages are saved.",
		Wrong:    "Its owner waits for it to come back: without an announcement it never learns who leads.",
		Breaks:   process.LeaderTermination,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
})

var ofHirschbergSinclair = of(hirschbergsinclair.Spec, []Variant{
	{
		Name:     "hirschberg-sinclair-side-by-sender",
		New:      hirschbergsinclair.Flaw{SideBySender: true}.New,
		Mistake:  "Messages carry no direction: what comes from the left neighbor travels right, everything else travels left.",
		Tempting: "Each process knows its two neighbors, so the sender determines the side.",
		Wrong:    "In a ring of two the neighbors are one process. Both replies seem to come from one side, and the candidate waits for the other.",
		Breaks:   process.LeaderTermination,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
	{
		Name:     "hirschberg-sinclair-sleepers-discard",
		New:      hirschbergsinclair.Flaw{SleepersDiscard: true}.New,
		Mistake:  "A process that has not started discards the probe of a worse one and does nothing else.",
		Tempting: "A worse process cannot win, and a discarded probe is not answered.",
		Wrong:    "If the better process never starts, no process is elected.",
		Breaks:   process.LeaderTermination,
		Bounds:   Bounds{N: 2, Entries: 1, Clients: []process.ID{0}},
	},
})

var ofPeterson = of(peterson.Spec, []Variant{
	{
		Name:     "peterson-last-leads",
		New:      peterson.Flaw{LastLeads: true}.New,
		Mistake:  "The process that is the only active one announces itself.",
		Tempting: "All others have given up, so it has won.",
		Wrong:    "The label that it carries has won, and that label belongs to another process.",
		Breaks:   process.LeaderValidity,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
	{
		Name:     "peterson-sleepers-relay",
		New:      peterson.Flaw{SleepersRelay: true}.New,
		Mistake:  "A process that has not started passes the first message on and becomes a relay.",
		Tempting: "It has not asked for an election, and this saves messages.",
		Wrong:    "The highest starter is elected, not the highest process.",
		Breaks:   process.LeaderValidity,
		Bounds:   Bounds{N: 2, Entries: 1, Clients: []process.ID{0}},
	},
})

var ofFranklin = of(franklin.Spec, []Variant{
	{
		Name:     "franklin-no-phase",
		New:      franklin.Flaw{NoPhase: true}.New,
		Mistake:  "A candidate takes the latest label from each side, whatever its phase.",
		Tempting: "Links keep order, so the labels of a side come phase by phase.",
		Wrong:    "A neighbor may be a phase ahead. Its label of the next phase replaces that of this one, and is never passed on: no process is elected.",
		Breaks:   process.LeaderTermination,
		Bounds:   Bounds{N: 3, Entries: 1},
	},
	{
		Name:     "franklin-sleepers-relay",
		New:      franklin.Flaw{SleepersRelay: true}.New,
		Mistake:  "A process that has not started passes labels on and is no candidate.",
		Tempting: "It has not asked for an election, and this saves messages.",
		Wrong:    "The highest starter is elected, not the highest process.",
		Breaks:   process.LeaderValidity,
		Bounds:   Bounds{N: 2, Entries: 1, Clients: []process.ID{0}},
	},
})

var ofRingList = of(ringlist.Spec, []Variant{
	{
		Name:     "ring-list-relay-only",
		New:      ringlist.Flaw{RelayOnly: true}.New,
		Mistake:  "A process that did not start the election passes the list on without adding itself.",
		Tempting: "It has not asked for an election.",
		Wrong:    "The starter is the only one on the list when the list returns, and wins.",
		Breaks:   process.LeaderValidity,
		Bounds:   Bounds{N: 2, Entries: 1, Clients: []process.ID{0}},
	},
})

var ofRingActiveList = of(ringactivelist.Spec, []Variant{
	{
		Name:     "ring-active-list-passes-first",
		New:      ringactivelist.Flaw{PassesFirst: true}.New,
		Mistake:  "A process passes the first label on before it sends its own.",
		Tempting: "What came first goes first.",
		Wrong:    "The label returns to its owner before the others' labels, and the owner treats its list as complete too early.",
		Breaks:   process.LeaderValidity,
		Bounds:   Bounds{N: 2, Entries: 1, Clients: []process.ID{0}},
	},
})

var ofByLoad = of(byload.List, []Variant{
	{
		Name:     "by-load-no-tie-break",
		New:      ringlist.Flaw{ByLoad: true, NoTieBreak: true}.New,
		Mistake:  "Only loads are compared; of equal loads, the first on the list wins.",
		Tempting: "It does not matter which of two equally busy processes leads.",
		Wrong:    "All processes must choose the same one: two that start at once choose two leaders.",
		Breaks:   process.LeaderValidity,
		Bounds:   Bounds{N: 3, Entries: 1, Clients: []process.ID{0}},
	},
})

var ofSuperPeer = of(superpeer.Spec, []Variant{
	{
		Name:     "super-peer-no-split",
		New:      superpeer.Flaw{NoSplit: true}.New,
		Mistake:  "A super-peer takes every node of its segment, as in [D3], which requires a limit but does not say how.",
		Tempting: "Hashing spreads the nodes evenly.",
		Wrong:    "Only on average: a large segment gives its super-peer more clients than the limit.",
		Breaks:   superpeer.Cap,
		Bounds:   Bounds{N: 3, Entries: 1, Options: append(option("prefix", "0"), option("cap", "1")...)},
		Scenario: "lab/scenarios/broken/super-peer-no-split.yaml",
	},
})
