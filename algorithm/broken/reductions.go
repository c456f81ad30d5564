package broken

import (
	"github.com/conclave-io/conclave/algorithm/agreement/byelection"
	"github.com/conclave-io/conclave/algorithm/agreement/bymutex"
	electionbyconsensus "github.com/conclave-io/conclave/algorithm/election/byconsensus"
	mutexbyconsensus "github.com/conclave-io/conclave/algorithm/mutex/byconsensus"
	"github.com/conclave-io/conclave/algorithm/stack/consensus"
	"github.com/conclave-io/conclave/process"
)

var ofRaftMutex = of(consensus.RaftMutex, []Variant{
	{
		Name:     "raft-mutex-enters-when-decided",
		New:      mutexbyconsensus.Flaw{EntersWhenDecided: true}.New,
		Mistake:  "A process enters as soon as its request is decided.",
		Tempting: "The decision has given it a slot, and all agree on whose slot that is.",
		Wrong:    "All also agree on the slots before it, and their holders have not left.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1, Timeouts: 1},
	},
	{
		Name:     "raft-mutex-own-slots",
		New:      mutexbyconsensus.Flaw{OwnSlots: true}.New,
		Mistake:  "A process counts only the slots of its own requests.",
		Tempting: "It does not need the numbers of others, and its own grow.",
		Wrong:    "Two processes get the same fence, and a resource that checks it accepts the former holder as the present one.",
		Breaks:   process.FencesGrow,
		Bounds:   Bounds{N: 2, Entries: 1, Timeouts: 1},
	},
})

var ofRaftElection = of(consensus.RaftElection, []Variant{
	{
		Name:     "raft-election-leads-at-once",
		New:      electionbyconsensus.Flaw{LeadsAtOnce: true}.New,
		Mistake:  "A process leads when it has proposed itself.",
		Tempting: "There was no leader, and it was the first to notice.",
		Wrong:    "Another process noticed at the same time, and the decision is for that one.",
		Breaks:   process.RoundAgreement,
		Bounds:   Bounds{N: 2, Entries: 1, Timeouts: 1},
	},
	{
		Name:     "raft-election-last-wins",
		New:      electionbyconsensus.Flaw{LastWins: true}.New,
		Mistake:  "If there are several decisions for one round, the last one counts.",
		Tempting: "All see the decisions in the same order, so they have the same last one.",
		Wrong:    "They do not see it at the same time: one process still follows the first.",
		Breaks:   process.RoundAgreement,
		Bounds:   Bounds{N: 2, Entries: 1, Timeouts: 1},
	},
})

var ofTokenConsensus = of(consensus.TokenConsensus, []Variant{
	{
		Name:     "suzuki-kasami-consensus-never-reads",
		New:      bymutex.Flaw{NeverReads: true}.New,
		Mistake:  "A process that is inside writes the cell without reading it.",
		Tempting: "It is alone, so no process interferes.",
		Wrong:    "Another process was alone before it, and has decided the value that it wrote.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
	{
		Name:     "suzuki-kasami-consensus-leaves-early",
		New:      bymutex.Flaw{LeavesBeforeWritten: true}.New,
		Mistake:  "A process leaves when it has sent its value to the keeper of the cell.",
		Tempting: "The message is in flight, and links lose nothing.",
		Wrong:    "The next process enters and reads the cell before the message arrives.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 3, Entries: 1, Clients: []process.ID{1, 2}},
	},
})

var ofElectionConsensus = of(consensus.ElectionConsensus, []Variant{
	{
		Name:     "bully-consensus-followers-lead",
		New:      byelection.Flaw{FollowersLead: true}.New,
		Mistake:  "Every process that knows the leader multicasts its own value.",
		Tempting: "The first value is decided, whichever it is.",
		Wrong:    "Different processes receive different values first.",
		Breaks:   process.ValueAgreement,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
	{
		Name:     "bully-consensus-forgets-value",
		New:      byelection.Flaw{ForgetsValue: true}.New,
		Mistake:  "A process that knows no leader asks for an election but does not keep its value.",
		Tempting: "Only the value of the leader counts, and this process does not lead.",
		Wrong:    "It is elected, and has nothing to multicast.",
		Breaks:   process.Decision,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
})
