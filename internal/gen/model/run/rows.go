package main

import (
	"time"

	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// rows are the searches, small ones of each algorithm before large ones.
var rows = []row{
	{name: "central", n: 3, entries: 2},
	{name: "central", n: 4, entries: 1},
	{name: "central-clock", n: 3, entries: 2},
	{name: "central-recovering", n: 3, entries: 1, change: recovers(check.Synchronous, 6)},
	{name: "central-swim", n: 3, entries: 1, change: recovers(check.Synchronous, 4)},
	{name: "token-ring", n: 3, entries: 1, note: "and nobody waits forever", change: live},
	{name: "token-ring", n: 5, entries: 1, note: "and nobody waits forever", change: live},
	{name: "token-ring", n: 4, entries: 1, change: crashes(1)},
	{name: "token-ring", n: 5, entries: 1, change: largeRing, limit: 6 * time.Minute},
	{name: "token-ring-recovering", n: 3, entries: 1, note: patiently, change: recovers(check.Patient, 6)},
	{name: "token-ring-recovering", n: 4, entries: 1, note: patiently, change: recovers(check.Patient, 5, 0, 2)},
	{name: "token-ring-recovering", n: 5, entries: 1, note: patiently + ", the first 500,000 states", change: beginning},
	{name: "token-ring-swim", n: 3, entries: 1, note: patiently, change: recovers(check.Patient, 4)},
	{name: "lamport", n: 2, entries: 1, change: unordered, violated: true},
	{name: "lamport", n: 3, entries: 1},
	{name: "lamport", n: 3, entries: 1, note: "reduced", change: reduced},
	{name: "lamport", n: 3, entries: 2},
	{name: "ricart-agrawala", n: 3, entries: 2},
	{name: "ricart-agrawala", n: 3, entries: 2, note: "reduced", change: reduced},
	{name: "ricart-agrawala", n: 3, entries: 2, change: unordered},
	{name: "ricart-agrawala", n: 3, entries: 1, change: crashes(1)},
	{name: "ricart-agrawala", n: 3, entries: 1, change: amnesia, violated: true},
	{name: "ricart-agrawala", n: 4, entries: 1},
	{name: "ricart-agrawala", n: 3, entries: 4},
	{name: "ricart-agrawala-token", n: 4, entries: 1},
	{name: "ricart-agrawala-token", n: 3, entries: 3},
	{name: "suzuki-kasami", n: 4, entries: 1},
	{name: "suzuki-kasami", n: 5, entries: 1},
	{name: "suzuki-kasami", n: 3, entries: 3},
	{name: "suzuki-kasami", n: 3, entries: 3, note: "reduced", change: reduced},
	{name: "raymond", n: 4, entries: 2, note: "on a line", change: tree(process.Line)},
	{name: "raymond", n: 4, entries: 2, note: "on a star", change: tree(process.Star)},
	{name: "naimi-trehel", n: 4, entries: 2},
	{name: "naimi-trehel", n: 4, entries: 2, change: unordered},
	{name: "naimi-trehel", n: 6, entries: 1},
	{name: "neilsen-mizuno", n: 4, entries: 2, note: "on a line", change: tree(process.Line)},
	{name: "neilsen-mizuno", n: 4, entries: 2, note: "on a star", change: tree(process.Star)},
	{name: "neilsen-mizuno", n: 4, entries: 2, change: unordered},
	{name: "singhal", n: 3, entries: 2},
	{name: "singhal", n: 4, entries: 1},
	{name: "singhal-printed", n: 3, entries: 2, violated: true},
	{name: "maekawa", n: 3, entries: 2},
	{name: "maekawa", n: 3, entries: 2, note: "reduced", change: reduced},
	{name: "maekawa", n: 4, entries: 1, change: requesters(0, 1, 2)},
	{name: "maekawa", n: 4, entries: 1, note: "tree quorums", change: treeQuorums},
	{name: "maekawa", n: 7, entries: 1, note: "tree quorums without the root", change: rootDown(3, 4, 6)},
	{name: "maekawa-slides", n: 3, entries: 1, violated: true},
	// Who is displaced from the head of the queue is not told FAILED.
	{name: "maekawa-no-sanders", n: 4, entries: 1, violated: true},
	{name: "majority", n: 3, entries: 1, note: "n=3, m=2", change: votes},
	{name: "lease", n: 3, entries: 1, change: leased(3)},
	{name: "lease", n: 3, entries: 1, change: leased(2, anyTime), violated: true},
	{name: "lease", n: 3, entries: 1, note: "fences along happened-before", change: leased(3, anyTime, stale)},
	{name: "redlock", n: 3, entries: 1, note: "three servers", change: leased(2, requesters(0, 1), crashes(1), restarts)},
	{name: "redlock", n: 3, entries: 1, note: "three servers", change: leased(1, requesters(0, 1), anyTime), violated: true},
	{name: "dijkstra", n: 3, entries: 2},
	{name: "dijkstra", n: 3, change: corrupt("3", 1)},
	{name: "dijkstra", n: 3, change: corrupt("2", 1), violated: true},
	{name: "k-ricart-agrawala", n: 3, entries: 2, note: "K=2"},
	{name: "total-order", n: 2, entries: 2},
	{name: "total-order", n: 3, entries: 1, change: requesters(0, 1)},
	{name: "total-order", n: 3, entries: 1, note: "the first 10,000,000 states", change: states(10_000_000)},
	{name: "total-order-sequencer", n: 3, entries: 2},
	{name: "total-order-sequencer", n: 4, entries: 1},
	{name: "views+ricart-agrawala", n: 5, entries: 1, note: oneFault, change: servers(3)},
	{name: "views+suzuki-kasami", n: 5, entries: 1, note: oneFault, change: servers(3)},
	{name: "views+central", n: 5, entries: 1, note: oneFault, change: servers(2)},
	{name: "views+central-clock", n: 5, entries: 1, note: oneFault, change: servers(2)},
	{name: "views+token-ring", n: 4, entries: 1, note: oneFault + ", and nobody waits forever", change: wholeView},
	{name: "views+lamport", n: 5, entries: 1, note: oneFault, change: servers(2)},
	{name: "views+ricart-agrawala", n: 5, entries: 1, note: oneFault, change: servers(2)},
	{name: "views+ricart-agrawala-token", n: 5, entries: 1, note: oneFault, change: servers(2)},
	{name: "views+suzuki-kasami", n: 5, entries: 1, note: oneFault, change: servers(2)},
	{name: "views+raymond", n: 5, entries: 1, note: oneFault, change: servers(2)},
	{name: "views+naimi-trehel", n: 5, entries: 1, note: oneFault, change: servers(2)},
	{name: "views+singhal", n: 5, entries: 1, note: oneFault, change: servers(2)},
	{name: "views+maekawa", n: 5, entries: 1, note: oneFault, change: servers(2)},
	{name: "views+majority", n: 5, entries: 1, note: oneFault, change: servers(2)},
	{name: "views+k-ricart-agrawala", n: 5, entries: 1, note: oneFault, change: servers(2)},
	{name: "views+suzuki-kasami", n: 4, entries: 2, note: oneFault + ", 2 changes of the guard", change: servers(2, process.OptionValue{Name: "changes", Value: "2"})},
	{name: "views+suzuki-kasami", n: 4, entries: 1, note: oneFault + ", 1 change of the guard, one server stops and hands over", change: servers(2, process.OptionValue{Name: "changes", Value: "1"}, process.OptionValue{Name: "leaves", Value: "1"})},
	{name: "floodset", n: 3, entries: 1, change: crashes(1)},
	{name: "floodset", n: 4, entries: 1, change: crashes(1)},
	{name: "floodset", n: 3, entries: 1, note: "early, f=2", change: early},
	{name: "paxos", n: 3, entries: 1},
	{name: "paxos", n: 3, entries: 1, change: oneTimeout},
	{name: "paxos-proposers", n: 2, entries: 1},
	{name: "paxos-proposers", n: 3, entries: 1, note: "the first 60,000 states, and nobody waits forever", change: duel, violated: true},
	{name: "raft", n: 3, entries: 1, change: twoTimeouts},
	{name: "generals", n: 3, entries: 1, change: traitors, violated: true},
	{name: "generals", n: 4, entries: 1, change: traitors},
	{name: "generals", n: 5, entries: 1, change: traitors},
	{name: "interactive-consistency", n: 3, entries: 1, change: traitors, violated: true},
	{name: "interactive-consistency", n: 4, entries: 1, change: traitors},
	{name: "signed-generals", n: 3, entries: 1, change: traitors},
	{name: "signed-generals", n: 4, entries: 1, note: "m=2", change: twoTraitors},
	{name: "phase-king", n: 4, entries: 1, change: traitors, violated: true},
	{name: "phase-king", n: 5, entries: 1, change: traitors},
	{name: "raft-mutex", n: 2, entries: 1, change: firstAsks},
	{name: "raft-election", n: 3, entries: 1, change: firstAsks},
	{name: "suzuki-kasami-consensus", n: 3, entries: 1},
	{name: "bully-consensus", n: 3, entries: 1},
	{name: "paxos-bully", n: 3, entries: 1, change: firstAsks},
	{name: "wait-for-graph", n: 3, entries: 1, note: "and nobody waits forever", change: live},
	{name: "wait-for-graph", n: 3, entries: 1, change: twoReports},
	{name: "edge-chasing", n: 3, entries: 1, note: "and nobody waits forever", change: live},
	{name: "edge-chasing", n: 4, entries: 1},
	{name: "edge-chasing", n: 3, entries: 1, change: hasty},
	{name: "diffusion", n: 3, entries: 1, note: "and nobody waits forever", change: live},
	{name: "maekawa-edge-chasing", n: 3, entries: 2, note: "and nobody waits forever", change: live},
	{name: "two-phase-commit", n: 3, entries: 1, note: "and nobody waits forever", change: repaired},
	{name: "two-phase-commit", n: 4, entries: 1, change: repaired},
	{name: "two-phase-commit", n: 3, entries: 1, note: "non-blocking", change: blocked, violated: true},
	{name: "three-phase-commit", n: 3, entries: 1, note: "and nobody waits forever", change: twoCrash},
	{name: "three-phase-commit", n: 3, entries: 1, note: "and nobody waits forever", change: repaired},
	{name: "three-phase-commit", n: 2, entries: 1, note: "atomicity", change: parted, violated: true},
	{name: "paxos-commit", n: 3, entries: 1},
	{name: "paxos-commit", n: 3, entries: 1, note: "and nobody waits forever", change: oneDown},
	{name: "paxos-commit", n: 2, entries: 1, change: comesBack},
}

func unordered(c *check.Config) { c.Unordered = true }

func reduced(c *check.Config) { c.Reduce = check.PartialOrder }

// leased limits how many timers run out, with one server or three.
func leased(timeouts int, changes ...func(c *check.Config)) func(c *check.Config) {
	return func(c *check.Config) {
		c.Timeouts = timeouts
		if c.Spec.Name == "redlock" {
			c.Process.Options = []process.OptionValue{{Name: "servers", Value: "3"}}
		}
		for _, change := range changes {
			change(c)
		}
	}
}

// corrupt begins in every state that a fault may leave, with the given number of values
// of S.
func corrupt(values string, inFlight int) func(c *check.Config) {
	return func(c *check.Config) {
		c.Corrupt, c.InFlight = true, inFlight
		c.Process.Options = []process.OptionValue{{Name: "values", Value: values}}
	}
}

func stale(c *check.Config) { c.Properties = []process.Property{process.FencesGrowCausally} }

func restarts(c *check.Config) { c.Restarts = c.Crashes }

func anyTime(c *check.Config) { c.Timing = check.AnyTime }

func amnesia(c *check.Config) { c.Crashes, c.Restarts = 1, 1 }

// crashes allows the given number of crashes, and in elections few timeouts. Otherwise
// false alarms would start rounds without end.
func crashes(n int) func(c *check.Config) {
	return func(c *check.Config) {
		if c.Crashes = n; c.Spec.Family == process.Election {
			c.Timeouts = 4
		}
	}
}

func states(n uint64) func(c *check.Config) { return func(c *check.Config) { c.MaxStates = n } }

func tree(shape func(n int) []process.ID) func(c *check.Config) {
	return func(c *check.Config) { c.Process.Topology.Parent = shape(c.Process.N) }
}

func requesters(p ...process.ID) func(c *check.Config) {
	return func(c *check.Config) { c.Requesters = p }
}

// oneFault is what goes wrong in a search of views: the log and the faults are the last
// two processes.
const oneFault = "a server dies and returns, or loses touch"

// servers lets the clients of the first n servers ask.
func servers(asking process.ID, options ...process.OptionValue) func(c *check.Config) {
	return func(c *check.Config) {
		c.Process.Options = options
		for p := range asking {
			c.Requesters = append(c.Requesters, p)
		}
	}
}

func wholeView(c *check.Config) {
	servers(2)(c)
	c.Liveness = true
}

func treeQuorums(c *check.Config) { c.Process.Topology.Quorums = process.TreeQuorums(c.Process.N) }

// rootDown replaces the root in the sets of a tree by paths below its children. The given
// processes ask.
func rootDown(asks ...process.ID) func(c *check.Config) {
	return func(c *check.Config) {
		c.Process.Topology.Quorums, c.Requesters = process.TreeQuorums(c.Process.N, 0), asks
	}
}

func votes(c *check.Config) {
	c.Process.Options = []process.OptionValue{{Name: "replicas", Value: "3"}, {Name: "votes", Value: "2"}}
	c.Timeouts = 2
}

// traitors lets as many be Byzantine as the algorithm is set up for, wherever they are.
func traitors(c *check.Config) { c.Traitors = check.EveryPlace(c.Spec, &c.Process) }

func twoTraitors(c *check.Config) {
	c.Process.Options = []process.OptionValue{{Name: "m", Value: "2"}}
	traitors(c)
}

// early lets as many crash as early stopping is set up for.
func early(c *check.Config) {
	c.Process.Options = []process.OptionValue{{Name: "mode", Value: "early"}, {Name: "f", Value: "2"}}
	c.Crashes = 2
}

// oneTimeout lets the leader crash, and somebody notice it.
func oneTimeout(c *check.Config) { c.Crashes, c.Timeouts, c.Requesters = 1, 1, []process.ID{0, 2} }

// duel looks for two proposers that continue forever. Their ballots have no end.
func duel(c *check.Config) {
	c.Requesters, c.Liveness, c.MaxStates = []process.ID{0, 1}, true, 60_000
}

// twoTimeouts is enough for an election, and for another one or a heartbeat.
func twoTimeouts(c *check.Config) {
	c.Timing, c.Timeouts, c.Crashes, c.Requesters = check.AnyTime, 2, 1, []process.ID{0}
}

// firstAsks lets one process ask, and timers of elections run out twice.
func firstAsks(c *check.Config) { c.Timeouts, c.Requesters = 2, []process.ID{0} }

// repaired lets a process crash and come back.
func repaired(c *check.Config) {
	c.Crashes, c.Restarts, c.Liveness = 1, 1, c.Process.N < 4
}

// blocked looks for participants that wait forever for one that is down.
func blocked(c *check.Config) {
	c.Crashes, c.Liveness, c.Properties = 1, true, []process.Property{process.NonBlocking}
}

// twoCrash leaves few to decide.
func twoCrash(c *check.Config) { c.Crashes, c.Liveness = 2, true }

// oneDown leaves a majority.
func oneDown(c *check.Config) { c.Crashes, c.Liveness = 1, true }

// comesBack bounds the ballots of those who wait for one that is down.
func comesBack(c *check.Config) { c.Crashes, c.Restarts, c.Timeouts = 1, 1, 3 }

// parted tells two sides that the other has crashed.
func parted(c *check.Config) {
	c.Suspicions, c.Properties = 2, []process.Property{process.Atomicity}
}

// twoReports lets two of three processes report at any time.
func twoReports(c *check.Config) {
	c.Timing, c.Timeouts, c.Requesters = check.AnyTime, 2, []process.ID{0, 1}
	c.Process.Options = []process.OptionValue{{Name: "ask", Value: "2"}}
}

// hasty lets suspicion times end at any time, three in all.
func hasty(c *check.Config) { c.Timing, c.Timeouts = check.AnyTime, 3 }

// live also looks for infinite runs in which a process waits forever. If a token never
// rests, no run ends.
func live(c *check.Config) { c.Liveness = true }

// largeRing allows one crash, and lets all but one process of five ask. If all do, the search does not
// end in six minutes: by then it has 157 million states, to depth 25.
func largeRing(c *check.Config) {
	c.Requesters, c.Crashes, c.Memory = []process.ID{0, 1, 2, 3}, 1, 15<<30
}

// patiently says that timers also wait until nobody is inside; else a client that waits
// for one who is inside calls one election after the other.
const patiently = "timers while nobody is inside"

// recovers lets one process crash that a detector of the stack has to notice. Its timers
// never end, so their number is bounded. About five run out until another process has
// taken over. The given processes ask, or all.
func recovers(when check.Timing, timeouts int, asks ...process.ID) func(c *check.Config) {
	return func(c *check.Config) { c.Timing, c.Timeouts, c.Crashes, c.Requesters = when, timeouts, 1, asks }
}

// beginning is of a search that does not end: the first heartbeats of five processes
// are twenty messages, in any order.
func beginning(c *check.Config) {
	recovers(check.Patient, 5, 0)(c)
	c.MaxStates = 500_000
}

// elections are the searches of elections. Where processes crash, whoever follows a
// leader that is down is asked for another, sooner or later.
var elections = []row{
	{name: "chang-roberts", n: 6, entries: 1},
	{name: "chang-roberts", n: 6, entries: 1, note: "reduced", change: reduced},
	{name: "chang-roberts", n: 6, entries: 1, note: "of each set of processes on each ring", each: everyRing},
	{name: "chang-roberts-printed", n: 2, entries: 1, note: "valid leader", change: lonely, violated: true},
	{name: "chang-roberts-repaired", n: 4, entries: 1},
	{name: "chang-roberts-repaired", n: 3, entries: 1, change: crashes(1)},
	{name: "le-lann", n: 6, entries: 1},
	{name: "le-lann", n: 5, entries: 1, note: "of each set of processes on each ring", each: everyRing},
	{name: "le-lann", n: 2, entries: 1, change: unordered, violated: true},
	{name: "hirschberg-sinclair", n: 4, entries: 1},
	{name: "hirschberg-sinclair", n: 4, entries: 1, note: "of each set of processes on each ring", each: everyRing},
	{name: "hirschberg-sinclair", n: 5, entries: 1, note: "of 1 or 2 processes in each position to each other", each: places(1, 2)},
	{name: "peterson", n: 6, entries: 1},
	{name: "peterson", n: 5, entries: 1, note: "of each set of processes on each ring", each: everyRing},
	{name: "peterson", n: 3, entries: 1, change: unordered, violated: true},
	{name: "franklin", n: 4, entries: 1},
	{name: "franklin", n: 4, entries: 1, note: "of each set of processes on each ring", each: everyRing},
	{name: "ring-list", n: 4, entries: 1, note: "reduced", change: reduced},
	{name: "ring-list", n: 5, entries: 1, note: "of 1 to 3 processes in each position to each other", each: places(1, 3)},
	{name: "ring-list", n: 5, entries: 1, note: "of 1 to 3 processes in each position to each other, reduced", change: reduced, each: places(1, 3)},
	{name: "ring-list", n: 3, entries: 1, change: crashes(1)},
	{name: "ring-active-list", n: 4, entries: 1},
	{name: "ring-active-list", n: 4, entries: 1, note: "reduced", change: reduced},
	{name: "ring-active-list", n: 5, entries: 1, note: "of 1 to 3 processes in each position to each other, reduced", change: reduced, each: places(1, 3)},
	{name: "by-load", n: 4, entries: 1, note: "of 1 to 3 processes in each position to each other", each: places(1, 3)},
	{name: "by-load-ring", n: 5, entries: 1},
	{name: "by-load-bully", n: 3, entries: 1, change: crashes(1)},
	{name: "bully", n: 3, entries: 1, change: crashes(1)},
	{name: "bully", n: 3, entries: 1, change: crashes(2)},
	{name: "bully", n: 4, entries: 1, note: "of one process, whichever", change: crashes(2), each: subsets(1, 1)},
	{name: "bully", n: 3, entries: 1, change: anyTime, violated: true},
	{name: "bully", n: 3, entries: 1, note: "single leader", change: single},
	{name: "bully", n: 3, entries: 1, note: "single leader", change: singleTooSoon, violated: true},
	{name: "bully", n: 4, entries: 1, note: "single leader", change: singleTooSoon, violated: true},
	{name: "bully", n: 3, entries: 1, note: "end of the election", change: endTooSoon},
	{name: "super-peer", n: 4, entries: 1, note: "prefix=1, its assertions alone", change: superPeers},
}

// superPeers checks what super-peers assert of themselves: their promises hold once
// nobody has come or gone for some periods, and of time the checker knows nothing.
func superPeers(c *check.Config) {
	c.Properties, c.Crashes, c.Timeouts = []process.Property{}, 1, 5
	c.Process.Options = []process.OptionValue{{Name: "prefix", Value: "1"}}
}

// single asks whether two that are up ever take themselves for the leader, which no
// Spec promises: with bully it needs timers that wait for all answers.
func single(c *check.Config) { c.Properties = []process.Property{process.SingleLeader} }

func singleTooSoon(c *check.Config) {
	single(c)
	anyTime(c)
}

// endTooSoon checks whether all processes still follow one leader in the end.
func endTooSoon(c *check.Config) {
	anyTime(c)
	c.Properties, c.Timeouts = []process.Property{process.LeaderTermination}, 2
}

// lonely asks whether the leader is the best one if the lowest alone calls.
func lonely(c *check.Config) {
	c.Requesters, c.Properties = []process.ID{0}, []process.Property{process.LeaderValidity}
}
