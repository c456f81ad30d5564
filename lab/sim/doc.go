// Package sim runs algorithms in a simulated world: virtual time; links that delay,
// lose, duplicate and reorder; processes that crash, restart, pause and have drifting
// clocks; clients that ask to enter; and judges that check whether an algorithm keeps
// the claims of its Spec.
//
// A [Config] and its seed determine a run completely: the same trace, byte for byte, on
// every machine. [Run] takes a run to its end; [New] and [World.Step] take it event by
// event, for callers that want to watch or interfere.
//
// # What happens, and in which order
//
// Time is a whole number of nanoseconds and moves only from one event to the next.
// Events at one instant happen in this order: faults; items that a resuming process has
// slept through; deliveries, by rank of the sender, then in the order of sending;
// timers, exits and news about others, by rank; commands and requests, by rank. A
// message takes at least a nanosecond.
//
// A step is one transition of one machine. It is atomic on the state; its sends
// are not: [CrashInStep] cuts them off after any number.
//
// # Incarnations
//
// Each start of a process is a new incarnation. A message reaches only the incarnation
// of the receiver that the sender knows. It does not reach a receiver that has heard of
// a later incarnation of the sender, or whose reliable detector has reported that the
// sender crashed. The first message of a new incarnation is preceded by Rejoin. A
// message to an incarnation that is over causes a Rejoin at the sender, one delay
// later. A restarted process has its durable fields as of the last complete Save.
//
// # What stands in for layers below
//
// If a Spec needs a detector or an elector and its stack has none, an [Oracle] replaces
// it, which tells the truth after a fixed time. A reliable detector reports Fail and
// Rejoin. An unreliable one reports Suspect and Trust, also for processes that are only
// paused.
//
// # What is measured
//
// All figures are for a window after the warm-up. Messages per entry are the remote
// sends of class Protocol in the window, divided by the entries completed in it;
// acknowledgements, heartbeats and recovery are counted separately. In the idle regime
// the window begins and ends when the system is quiet, otherwise right after an exit
// and the machine's reaction to it. See [Result] for each figure.
package sim
