package broken

import (
	"github.com/conclave-io/conclave/algorithm/broken/maekawaslides"
	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/algorithm/mutex/centralclock"
	"github.com/conclave-io/conclave/algorithm/mutex/dijkstra"
	"github.com/conclave-io/conclave/algorithm/mutex/kricartagrawala"
	"github.com/conclave-io/conclave/algorithm/mutex/lamport"
	"github.com/conclave-io/conclave/algorithm/mutex/lease"
	"github.com/conclave-io/conclave/algorithm/mutex/maekawa"
	"github.com/conclave-io/conclave/algorithm/mutex/majority"
	"github.com/conclave-io/conclave/algorithm/mutex/naimitrehel"
	"github.com/conclave-io/conclave/algorithm/mutex/neilsenmizuno"
	"github.com/conclave-io/conclave/algorithm/mutex/raymond"
	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawala"
	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawalatoken"
	"github.com/conclave-io/conclave/algorithm/mutex/suzukikasami"
	"github.com/conclave-io/conclave/algorithm/mutex/tokenring"
	"github.com/conclave-io/conclave/process"
)

var ofCentral = of(central.Spec, []Variant{
	{
		Name:     "central-own-first",
		New:      central.Flaw{OwnFirst: true}.New,
		Mistake:  "The coordinator grants its own requests without checking whether the resource is taken.",
		Tempting: "It is in charge, and need not ask anyone.",
		Wrong:    "It enters while the process that it granted the resource to is inside.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
	{
		Name:     "central-unnumbered-release",
		New:      central.Flaw{UnnumberedEnding: true}.New,
		Mistake:  "The coordinator treats any RELEASE of the holder as the end of its present entry.",
		Tempting: "A process has one request at a time, so a number seems to say nothing new.",
		Wrong:    "A duplicate RELEASE, or the answer to a duplicate GRANTED, frees the resource while its sender is inside again.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 2, Duplicates: 1},
	},
})

var ofCentralClock = of(centralclock.Spec, []Variant{
	{
		Name:     "central-clock-answers-early",
		New:      centralclock.Flaw{AnswersEarly: true}.New,
		Mistake:  "A process that waits for its stamp permits others at once.",
		Tempting: "It has no stamp yet, so it seems that it cannot be the older one.",
		Wrong:    "The stamp that is in flight may be the older one; then both enter.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 3, Entries: 1, Alone: true},
	},
	{
		Name:     "central-clock-forgets-itself",
		New:      centralclock.Flaw{ForgetsItself: true}.New,
		Mistake:  "The clock permits every request that it stamps, even while it waits or is inside itself.",
		Tempting: "It is asked for a stamp, which seems unrelated to its own requests.",
		Wrong:    "No process asks it again, so it and the other process are inside together.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
})

var ofTokenRing = of(tokenring.Spec, []Variant{
	{
		Name:     "token-ring-accepts-copies",
		New:      tokenring.Flaw{AcceptsCopies: true}.New,
		Mistake:  "A process accepts every TOKEN, even a duplicate.",
		Tempting: "There is only one token, so it need not be numbered.",
		Wrong:    "A TOKEN that the link duplicates is a second token.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 2, Duplicates: 1},
	},
	{
		Name:     "token-ring-makes-tokens",
		New:      tokenring.Flaw{MakesTokens: true}.New,
		Mistake:  "A process that has waited very long makes a new token, without an election.",
		Tempting: "Some process must, and a round should be over by now.",
		Wrong:    "The time that others stay inside has no bound: the old token may still exist.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1, AnyTime: true},
	},
})

var ofLamport = of(lamport.Spec, []Variant{
	{
		Name:     "lamport-no-tie-break",
		New:      lamport.Flaw{NoTieBreak: true}.New,
		Mistake:  "Requests are compared by their times alone; of equal times, the request that arrived first is first.",
		Tempting: "Logical times seem to order events, and ties seem to be rare.",
		Wrong:    "Two that ask at once have equal times, each finds its own at the head, and both enter.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
	{
		Name:     "lamport-head-only",
		New:      lamport.Flaw{HeadOnly: true}.New,
		Mistake:  "A process enters when its request is at the head of its own queue.",
		Tempting: "The queue is sorted, and no request seems to be ahead of it.",
		Wrong:    "An older request may still be in flight.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
})

var ofRicartAgrawala = of(ricartagrawala.Spec, []Variant{
	{
		Name:     "ricart-agrawala-no-tie-break",
		New:      ricartagrawala.Flaw{NoTieBreak: true}.New,
		Mistake:  "Requests are compared by their times alone, as in [D0]; a request with the same time as the receiver's own is answered.",
		Tempting: "The rule mentions only the lower timestamp, and ties seem to be rare.",
		Wrong:    "Two processes that ask at once have equal times and permit each other.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
	{
		Name:     "ricart-agrawala-deaf-clock",
		New:      ricartagrawala.Flaw{DeafClock: true}.New,
		Mistake:  "The clock counts only the process's own requests, and requests of others do not raise it.",
		Tempting: "A counter is also a logical time, and the comparison does the rest.",
		Wrong:    "A process permits a request and then makes an older one, which is permitted as well.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 3, Entries: 1, Alone: true},
	},
})

var ofRicartAgrawalaToken = of(ricartagrawalatoken.Spec, []Variant{
	{
		Name:     "ricart-agrawala-token-no-tick",
		New:      ricartagrawalatoken.Flaw{NoTick: true}.New,
		Mistake:  "A request is stamped with the clock as it stands, as in [D4].",
		Tempting: "It carries the value of the clock; nothing says that the clock must tick first.",
		Wrong:    "The first request carries 0, which is not later than the 0 in the token, and is never served.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
	{
		Name:     "ricart-agrawala-token-gives-while-inside",
		New:      ricartagrawalatoken.Flaw{GivesInside: true}.New,
		Mistake:  "The holder sends the token to a process that asks, even while it is inside.",
		Tempting: "The request is open and the token is here, so the token should be sent.",
		Wrong:    "The receiver enters while the sender is still inside.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
})

var ofSuzukiKasami = of(suzukikasami.Spec, []Variant{
	{
		Name:     "suzuki-kasami-drops-while-inside",
		New:      suzukikasami.Flaw{DropsInside: true}.New,
		Mistake:  "A process that is inside drops the requests of others.",
		Tempting: "It cannot give the token now, and all others get the REQ as well.",
		Wrong:    "Only the holder puts the request into the queue, and it is not repeated: its process waits forever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
	{
		Name:     "suzuki-kasami-accepts-copies",
		New:      suzukikasami.Flaw{AcceptsCopies: true}.New,
		Mistake:  "A process accepts every TOKEN, even a duplicate.",
		Tempting: "The numbers in the token identify old requests, which seems to be enough.",
		Wrong:    "They do not identify an old token: a TOKEN that the link duplicates is a second token.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 3, Entries: 2, Duplicates: 1, Alone: true},
	},
})

var ofRaymond = of(raymond.Spec, []Variant{
	{
		Name:     "raymond-forgets-others",
		New:      raymond.Flaw{ForgetsOthers: true}.New,
		Mistake:  "A process that sends the token away does not ask for it back, although others are in its queue.",
		Tempting: "It has answered the REQ at the head of the queue and wants nothing itself.",
		Wrong:    "The others have asked once and do not ask again: they wait forever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 3, Entries: 1},
	},
	{
		Name:     "raymond-enters-at-head",
		New:      raymond.Flaw{EntersAtHead: true}.New,
		Mistake:  "A process enters when it is at the head of its own queue, with or without the token.",
		Tempting: "The head of the queue is next.",
		Wrong:    "It is only next among its neighbours when the token comes; another process may be inside with it.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
	{
		Name:     "raymond-turns-early",
		New:      raymond.Flaw{TurnsEarly: true}.New,
		Mistake:  "A process that gets a REQ points at its sender at once, while the token is elsewhere.",
		Tempting: "The token will go there next, and in the algorithm of Naimi and Trehel pointers turn so.",
		Wrong:    "A pointer leads away from the token, or the holder forgets that it has it: a later request never reaches it.",
		Breaks:   process.StateInvariant,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
})

var ofNaimiTrehel = of(naimitrehel.Spec, []Variant{
	{
		Name:     "naimi-trehel-root-gives",
		New:      naimitrehel.Flaw{RootGives: true}.New,
		Mistake:  "A root that is not inside sends the token to the process that asks.",
		Tempting: "In a quiet system the root has the token.",
		Wrong:    "A process is the root as soon as it asks, before the token comes: it sends one that it does not have.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 3, Entries: 1, Alone: true},
	},
	{
		Name:     "naimi-trehel-stays-root",
		New:      naimitrehel.Flaw{StaysRoot: true}.New,
		Mistake:  "A process that waits or is inside notes which process is next, and remains the root.",
		Tempting: "It has the token, or will have it, so requests should come here.",
		Wrong:    "The next request takes the place of the one before, and the process that it displaces waits forever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 3, Entries: 1, Alone: true},
	},
})

var ofMaekawa = of(maekawa.Spec, []Variant{
	{
		Name:     "maekawa-slides",
		Spec:     maekawaslides.Spec,
		Mistake:  "A voter queues later requests without sending an answer, as in [D1].",
		Tempting: "Every two sets have a common member, so it is safe, and the votes eventually come back.",
		Wrong:    "Processes that ask at once each get some of their votes and wait for the rest forever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 3, Entries: 1, Alone: true},
	},
	{
		Name:     "maekawa-no-sanders",
		New:      maekawa.Flaw{NoDisplaced: true}.New,
		Mistake:  "The oldest request in the queue is not told FAILED when an older one comes, as Maekawa printed it.",
		Tempting: "The new request gets its answer, and the candidate has already been asked for its vote.",
		Wrong:    "The displaced process does not know that it must yield: all wait for each other forever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 4, Entries: 1},
	},
	{
		Name:     "maekawa-keeps-votes",
		New:      maekawa.Flaw{KeepsVotes: true}.New,
		Mistake:  "A process that withdraws before it has all votes tells no voter.",
		Tempting: "It never held the resource, and a vote that comes now goes back at once.",
		Wrong:    "The votes that came before stay with it, and a process that needs one of them waits forever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 2, Entries: 1, Cancels: 1},
	},
})

var ofMajority = of(majority.Spec, []Variant{
	{
		Name:     "majority-half",
		New:      majority.Flaw{Half: true}.New,
		Mistake:  "Half of the votes are enough: m = n/2, as [D3] prints it without the sign >.",
		Tempting: "No other client can have more.",
		Wrong:    "Another client can have as many.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 3, Entries: 1},
	},
	{
		Name:     "majority-drops-fences",
		New:      majority.Flaw{DropsFences: true}.New,
		Mistake:  "A coordinator takes its vote back but does not note the fence that comes with it.",
		Tempting: "The RELEASE is there to free the vote.",
		Wrong:    "The next to enter gets a fence that was given before.",
		Breaks:   process.FencesGrow,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
})

var ofLease = of(lease.Spec, []Variant{
	{
		Name:     "lease-grants-at-once",
		New:      lease.Flaw{GrantsAtOnce: true}.New,
		Mistake:  "A server that restarts without its memory grants at once.",
		Tempting: "A lock without a known holder is free.",
		Wrong:    "The old holder relies on its TTL, and so does the new one.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 3, Entries: 1, Clients: []process.ID{1, 2}, Crashes: 1, Restarts: 1},
	},
})

var ofRedlock = of(lease.Redlock, []Variant{
	{
		Name:     "redlock-frees-any",
		New:      lease.Flaw{FreesAny: true}.NewRedlock,
		Mistake:  "A server frees the lock at any RELEASE, as a plain DEL of the key does.",
		Tempting: "Only the holder has a reason to release.",
		Wrong:    "A client that was denied also releases, in case an answer was lost. It frees another client's lock.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 3, Entries: 1, Timeouts: 1, Options: option("servers", "3")},
	},
})

var ofDijkstra = of(dijkstra.Spec, []Variant{
	{
		Name:     "dijkstra-sends-once",
		New:      dijkstra.Flaw{SendsOnce: true}.New,
		Mistake:  "A value is sent once, after a move, and not again.",
		Tempting: "Links lose nothing.",
		Wrong:    "A fault may leave cached values with which no process is privileged, and no process ever learns that they are wrong.",
		Breaks:   process.Convergence,
		Bounds:   Bounds{N: 2, Entries: 1, Corrupt: true, Options: option("values", "4")},
	},
	{
		Name:     "dijkstra-alike",
		New:      dijkstra.Flaw{Alike: true}.New,
		Mistake:  "All processes use the same rule: a process that differs from its predecessor copies it.",
		Tempting: "A ring is symmetric, so no process need be special.",
		Wrong:    "Two values chase each other round the ring forever.",
		Breaks:   process.Convergence,
		Bounds:   Bounds{N: 2, Entries: 1, Corrupt: true, InFlight: 1, Options: option("values", "4")},
	},
})

var ofKRicartAgrawala = of(kricartagrawala.Spec, []Variant{
	{
		Name:     "k-ricart-agrawala-forgets-debts",
		New:      kricartagrawala.Flaw{ForgetsDebts: true}.New,
		Mistake:  "A new request forgets which answers to earlier ones are still missing.",
		Tempting: "Each request is a separate round, and the old one was granted without them.",
		Wrong:    "A late answer counts for the new request, and lets one process too many in.",
		Breaks:   process.AtMostK,
		Bounds:   Bounds{N: 3, Entries: 2},
	},
	{
		Name:     "k-ricart-agrawala-enters-early",
		New:      kricartagrawala.Flaw{EntersEarly: true}.New,
		Mistake:  "A process waits for N-1-k answers, counting N others instead of N-1.",
		Tempting: "With k units, k of the N-1 others may be inside.",
		Wrong:    "The process itself needs a unit, too: k+1 are inside.",
		Breaks:   process.AtMostK,
		Bounds:   Bounds{N: 3, Entries: 1},
	},
})

var ofNeilsenMizuno = of(neilsenmizuno.Spec, []Variant{
	{
		Name:     "neilsen-mizuno-holds-inside",
		New:      neilsenmizuno.Flaw{HoldsInside: true}.New,
		Mistake:  "A process that enters with a token that was here already does not mark it as used.",
		Tempting: "The token is still here while the process is inside.",
		Wrong:    "A request that arrives meanwhile gets the token at once, and two processes are inside.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1, Alone: true},
	},
	{
		Name:     "neilsen-mizuno-relays-keep",
		New:      neilsenmizuno.Flaw{RelaysKeep: true}.New,
		Mistake:  "A process that passes a request on keeps its pointer.",
		Tempting: "It does not ask itself, and its pointer leads to the token.",
		Wrong:    "The process that asked last is elsewhere now. A later request goes to one that has another behind it already, or comes back, and one of them waits forever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 3, Entries: 1, Alone: true},
	},
})
