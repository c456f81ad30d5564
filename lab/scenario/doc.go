// Package scenario reads runs of the simulator from files that people write: the
// algorithm, the number of processes, what its clients do, which faults occur, and the
// expected outcome.
//
//	algorithm: lamport
//	labels: [1, 2, 3]
//	workload:
//	  section: 2
//	  commands:
//	    - {at: 1, acquire: 2}
//	    - {at: 1, acquire: 1}
//	faults:
//	  - {at: 10, crash: 3, for: 20}
//	expect:
//	  order: [1, 2]
//	  messages: {REQ: 4, REPLY: 4, REL: 4}
//
// A file is YAML without anchors. Processes are given by their labels. Times are in
// units of D, the bound of one message delay, unless they have another unit: 3, 3D and
// 2.5 are multiples of D; 5ms and 100us are absolute.
//
// The keys; all except algorithm are optional:
//
//	algorithm   its name, or the names of a stack, bottom first, joined by plus
//	            signs: chandy-lamport+token-ring
//	about       for people
//	n           how many processes; absent: one for each label
//	labels      the numbers by which they go; absent: 1 to n
//	election-labels   what elections compare in place of the labels, by rank; they
//	            may be equal, to see the effect
//	options     of the algorithm, by name
//	d           what one D is; absent: 1ms
//	topology    coordinator: label
//	            ring: [labels in the order of the ring]
//	            tree: star, line, binary, or {child: parent}
//	            quorums: grid, plane, tree, {tree-without: [labels]} (those are
//	            down), or {member: [voting set]}
//	links       delay, fifo, drop, duplicate, reorder; and overrides, a list of
//	            the same with from and to, in which what is absent is as in links
//	clocks      {label: {offset: time, drift: ppm}}
//	disk        delay of a save
//	oracle      detect, elect: times; silent: true
//	timers      a list of how long timers run in place of what chance would say:
//	            timer (its name), of (label), delay, and about (a label) and layer
//	choices     [numbers], what machines and traitors choose, in the order in which
//	            they do
//	traitors    [labels] of processes that are Byzantine: in place of each message to
//	            each receiver they send one of the alternatives that the algorithm has
//	            for it, by number, and the last of these is nothing
//	workload    regime (listed, idle, saturated, loaded), clients, section,
//	            think, patience, commands
//	faults      a list, see below
//	schedule    somebody chooses what happens next, see below
//	seed        a number
//	draws       shared, or keyed: what chance does to a message, a timer or a client
//	            depends on the link, the timer or the client and on how many came before
//	            there; so a change of one thing changes only what follows from it
//	limit       time, events, entries, warmup
//	watch       [properties] that are judged in place of what the algorithm claims;
//	            {at most k inside: number} and {bounded bypass: number, since:
//	            request, arrival or known}
//	expect      see below
//
// A delay is a time, a list of times taken in turn, {uniform: [least, most]} or
// {exponential: mean, least: time}.
//
// A command has a time at, and one of acquire, cancel, release, campaign, resign, leave
// and record (a global state, of a recorder in the stack), each with the label of the
// process. Acquire may have hold: a time, or "release" to stay until released. Suspect,
// trust, fail, rejoin and neighbor name another process, and "to" the process that is
// told. Elected names a leader, with to and round. Propose and load have a value, vote
// has yes or no, and all three have by, the process.
//
// A fault has a time at and one of these: crash (for), crash-in-step (effects, step,
// for), restart, pause (for), resume, drift (ppm), jump (by) and slow-disk (delay),
// each with the label of the process; partition: [labels] (one-way, for); heal: all;
// lose, repeat or delay: the name of a message, or any (from, to, count, and skip: the
// number of such messages to leave alone first; delay also has by: how much later they
// arrive, or earlier if it is negative); forge: the name of a message that no process
// has sent (from, to, value). The key for is the time after which the fault ends.
//
// A schedule has turns, a list; after, the time from which only faults happen by
// themselves (default: the beginning), or record, the number of the record after which
// this begins; and rest: wait (the run ends after the last
// turn) or run (it continues by itself). Each turn takes one D. A turn is one of
//
//	REQ 1>2              the oldest REQ from 1 to 2 arrives; skip 1: the one after it;
//	                     overtake: although an older message is on a link that keeps order
//	lose REQ 1>2         it is lost
//	fire retry 2         the timer of 2 runs out; about 3: that which is about 3; layer 0
//	acquire 1            a command: also cancel, release, campaign, resign, leave and record
//	suspect 3 to 1       1 is told of 3: also trust, fail, rejoin, neighbor and elected (round 2)
//	propose 7 by 1       a command with a value: also load, and vote yes or no
//	wait 5               so much time passes
//
// A turn that cannot be taken ends the run, and counts as unexpected.
//
// Expect may have: violation, the name of a property, assertion for an assertion of the
// algorithm, or none, which is the default; reason, why the run ends; entries; order,
// the labels in the order of entering; messages, the number of each name;
// messages-per-entry; leader; decided, the values that every live process that is not a
// traitor has decided, in order, also commit or abort; waiting and inside, the number
// of such clients at the end; and refused, the number of refused commands.
package scenario
