// Package host runs algorithms for mutual exclusion between the servers of a cluster: it
// is what a member does about views, links and the machines of names. It is deterministic,
// does no I/O and reads no clock. The server gives it ticks, views, batches of frames and
// the wishes of its clients, each with the reading of a clock, and carries out its Output.
//
// Rules M, L, I and G of package view and of this text:
//
//	L1  there is one link for each peer and epoch. A batch has a version, the epoch, the
//	    number of its first frame, an acknowledgement, and frames.
//	L3  frames that were not acknowledged are kept, and sent again when the lane is up
//	    again. The receiver takes the next frame only. Nothing is sent again otherwise:
//	    frames are lost with a connection, and in no other way.
//	L4  frames of an older epoch are dropped. Those of a newer one are kept without
//	    acknowledgement, for the newest epoch seen, until that begins here.
//	L5  a link over half full lets this member ask for no name. Answers always go out.
//	I1  a machine is made by the first wish or the first frame for its name. Until then it
//	    is in its initial state, which depends on nothing but the configuration.
//	I2  where processes that wait rely on others having started (Needs.Awake), who asks
//	    first wakes the coordinator.
//	I4  a machine has one request at a time.
//	I5  a machine that is idle and may be forgotten is kept for a while and then dropped.
//	    Its marks are the base of machines made later.
//	I6  all others live until the next START. When there are too many, this member asks
//	    for one.
//	I7  a fence is the epoch and, within it, the fence of the machine.
//	I9  a failed assertion of a machine ends the live part of this server, not the server.
//
// # Duties of the caller
//
//  1. Call Output after each input, or after several, and carry out all of it before the
//     next. Batches for a peer go out in their order.
//  2. Call View after each entry that changes views, guards or seats, or with the newest
//     after several.
//  3. Call Lane when the lane to a peer is connected or lost. When Receive returns an
//     error, close the lane: its frames are sent again on the next.
//  4. Call Tick about every 10 ms.
//  5. When Output says that the seat is over, draw another id and call Enter.
package host
