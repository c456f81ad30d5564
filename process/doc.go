// Package process is the contract between an algorithm and its host.
//
// An algorithm is a deterministic state machine: one [Event] in, [Effects] out. It sees
// no clock, no socket, no goroutine and no source of randomness. So the same machine
// works in a cluster, in a simulator, in a model checker, and for a student who
// delivers one message at a time.
//
// The parts, from the machine's point of view:
//
//   - A [Machine] has two methods. Step takes the only transition; Fields names
//     every piece of its state once, in order.
//   - An [Event] is borrowed for the duration of Step. A machine does nothing
//     on an event that it has no rule for.
//   - [Effects] belong to the host and are reused from step to step. They keep
//     program order and copy whatever they reference, so a machine may change
//     its slices right after a call.
//   - A [Message] is one struct for all algorithms. Each [Spec] declares which
//     of its fields a message uses and under which symbol of the paper.
//   - [Fields] is one walk that serves copying, encoding, decoding, hashing,
//     comparing and printing, and marks what survives a crash.
//   - A [Stack] is several machines in one process, such as a detector under an
//     election under a lock. It is a Machine itself.
//
// The duties of a host:
//
//  1. Create each machine with Spec.New and give it Start before anything else;
//     after a crash, create it again, load what it saved ([DecodeDurable]) and
//     give it Restart.
//  2. Call [Effects.Begin] before every Step, and interpret the effects in order
//     after it, skipping those marked Internal.
//  3. On Save, put the durable fields ([AppendDurable]) on disk before any
//     message of the same step leaves, also those sent before the Save.
//  4. Keep one deadline for each armed timer, drawn from its range. Arming
//     again replaces. A timer that was disarmed or replaced must not fire.
//  5. Deliver only messages that a [Codec] accepts, and none from a process to
//     itself; machines trust their input.
//  6. Never give Acquire to a process that waits or holds; one request at a time.
//     Give Release only to one that holds.
//
// Machines have no errors. What a host must prevent is asserted ([Assert]), and
// a failed assertion is a bug that stops the host.
package process
