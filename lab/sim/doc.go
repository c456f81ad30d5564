// Package sim runs algorithms in a world of its own: virtual time, links that
// delay, lose, repeat and reorder, processes that crash, restart, pause and run
// on clocks that drift, clients that ask to enter, and judges that watch whether
// an algorithm keeps what its Spec claims.
//
// A [Config] and its seed determine a run completely: the same trace, byte for
// byte, on every machine. [Run] takes one to its end; [New] and [World.Step]
// take it event by event, for whoever wants to look on or interfere.
//
// # What happens, and in which order
//
// Time is a whole number of nanoseconds and moves only from one event to the
// next. What happens at one instant happens in this order: faults; what a
// process that resumes has slept through; deliveries, by rank of the sender, then
// in the order of sending; timers, exits and news of peers, by rank; commands and
// requests, by rank. A message takes at least a nanosecond.
//
// A step is one transition of one machine. It is atomic on the state; its sends
// are not: [CrashInStep] cuts them off after any number.
//
// # Incarnations
//
// Each start of a process is a new incarnation. A message reaches only the
// incarnation of the receiver that the sender knows of, and none that has heard
// of a later incarnation of the sender, or whose reliable detector has said that
// the sender crashed. The first message of a new incarnation is preceded by
// Rejoin, and so is, a delay later, what follows on a message to one that is over.
// A restarted process has its durable fields as of the last Save that was
// complete.
//
// # What stands in for layers below
//
// If a Spec needs a detector or an elector and its stack has none, an [Oracle]
// stands in, which tells the truth after a fixed time. A reliable detector says
// Fail, Rejoin; an unreliable one says Suspect, Trust, also of processes that are
// only paused.
//
// # What is measured
//
// All figures are of a window after the warm-up. Messages per entry are the
// remote sends of class Protocol in the window by the entries completed in it;
// acknowledgements, heartbeats and recovery are counted apart. In the idle regime
// the window begins and ends when the system is quiet, otherwise right after an
// exit and what the machine did about it. See [Result] for each figure.
package sim
