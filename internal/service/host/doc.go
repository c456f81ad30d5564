// Package host runs algorithms for mutual exclusion between the servers of a cluster. It manages a
// member's seat, views, links and the machines of names, and it is the home of its clients. It is
// deterministic, does no I/O and reads no clock. The server passes in ticks, views, batches of
// frames, answers of the leader and requests of clients, each with a clock reading, and carries
// out its Output.
//
// It follows the rules of package view, to which these belong:
//
//	S2  a server wants a seat while an algorithm guards some name, and closes it when none
//	    does. It then grants nothing any more.
//	S3  the seat is renewed each twelfth of its lease L, and each 10 ms while clients with
//	    a shorter TTL wait. Each Renew has a number of its own.
//	S6  each seat is asked for once: a request that is late would bring it back when it has
//	    ended.
//	S7  the commands of the seat go with a report on the peers that hold this member up.
//	L1  there is one link for each peer and epoch. A batch has a version, the epoch, the
//	    number of its first frame, an acknowledgement, and frames.
//	L3  frames that were not acknowledged are kept, and sent again when the lane is up
//	    again. The receiver takes the next frame only. Nothing is sent again otherwise:
//	    frames are lost with a connection, and in no other way.
//	L5  a link over half full lets this member ask for no name. Answers always go out.
//	I1  a machine is made by the first wish or the first frame for its name. Until then it
//	    is in its initial state, which depends on nothing but the configuration.
//	I2  where processes that wait rely on others having started (Needs.Awake), who asks
//	    first wakes the coordinator.
//	I3  the configuration of a machine follows from the guard, the number of members and the
//	    coordinator of the name alone, so it is the same at all members.
//	I4  a machine has one request at a time.
//	I5  a machine that is idle and may be forgotten is kept for a while and then dropped.
//	    Its marks are the base of machines made later.
//	I6  all others live until the next START. When there are too many, this member asks
//	    for one.
//	I8  a timer of a machine ends at a time that is drawn from its range.
//	I9  a failed assertion of a machine, or a message that it fails at, ends the host, not the
//	    server.
//	E1  in each epoch a member runs the watch stack of that epoch: a failure detector and an
//	    election over it. Its frames go over the links.
//	E2  the member that was elected asks for the next epoch as its coordinator, if it does not
//	    coordinate and doubts nobody. An election is called when an epoch opens whose
//	    coordinator takes no part, or whose stack is new; by load, every 30 s.
//	E3  whom the detector doubts stands in the report (S7). It has no other effect.
//	H2  a client has a session at its home. It is that of one seat, and gone with it.
//	H3  a client may rely on a renewal for T_h: its TTL, or the lease L of the seat if that
//	    is shorter.
//	H4  an Open or a Renew of a client is answered by the first Renew of the seat that was
//	    sent after it had come: what the leader then says of the seat, it says after the
//	    client has sent. So the clock of the home need not be trusted.
//	H5  a try is withdrawn after a short while. A session ends when the largest promise to
//	    it is over; the time that the home stood still is added.
//	H6  a program within the process of this server is granted a name in the very call if
//	    the machine grants it in that step, and gives it up in another. Such a hold is near:
//	    it has no session, and is lost when the seat lapses (S4) or ends (S5).
//	H7  clients are sent away when this server is no member, or could promise nothing for
//	    a whole lease.
//	H8  whoever waits for a name that no algorithm guards is told to ask elsewhere.
//	H9  a hold that is asked back is dropped when its holder must have learned of it.
//	P1  a server that stops takes nothing new, asks the holders to leave, and closes its seat
//	    when nothing is held, if no member takes its home over.
//	C1  a cut of the machines of names is recorded by the machine of algorithm/globalstate:
//	    its markers are frames among the others, so the links of an epoch give them the
//	    order that they need. A START ends what is under way: its asker may try again.
//
// # Parts
//
// A Host is made of parts. Each has its own state and methods, and names the parts that it uses. An
// input goes to the parts that it concerns.
//
//	host.go      Host: Tick, Output, and what each input begins and ends with
//	self.go      self: what every part reads, such as the time and the state in the view
//	member.go    the life of a seat: Enter, View, the START of an epoch, the end
//	seat.go      seat: the session at the leader, and the report (S3-S7)
//	guards.go    guards: what the log says now of each prefix
//	prefix.go    the algorithm of a prefix in one epoch, and the options of guards (I3)
//	link.go      links: frames to and from the members (L1-L5), encoded by batch.go
//	receive.go   Receive: each frame goes to its part
//	machines.go  machines: those of names (I1-I9), with instance.go and timers.go
//	epoch.go     machines in the course of an epoch (M1-M4)
//	home.go      home: sessions of clients (H2-H5, H8, H9), with rules.go for access
//	clients.go   Submit, Revoke and the other inputs for the home
//	near.go      nears: holds of programs within this process (H6)
//	leave.go     departure: this server gives up its seat (P1, P2)
//	adopt.go     asides: homes of others that give up theirs (P2)
//	watch.go     watch: detector and election (E1-E3)
//	cut.go       recorder: consistent cuts (C1), completed by assemble.go
//	status.go    Status and lists, with start.go for the latest epochs
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
//  5. Give the commands of the seat to the leader, and its answers to Answer. Those that
//     are lost are in a later Output again.
//  6. Welcome clients with Seat while Serving says that they may be here. When it does not
//     any more, and when Output says Gone, end their streams after the replies, with the
//     code NOT_MEMBER. A stream belongs to the seat that it was welcomed by.
//  7. When Output says Enter, draw the id of a seat and call Enter.
//  8. To stop the server call Leave, and continue until Output says Left. Whoever cannot wait so
//     long stops: the lease of the seat is waited out then. Successor says at which server
//     the clients continue: the farewell names it.
//  9. Welcome clients with Adopted, too: the seats of other servers whose sessions are here.
//  10. Give Lock, Unlock and Near what programs within this process ask for, and call Output
//     if Owes says so. Tell the holders that Output names, and before Unlock the one that
//     gives a hold up.
package host
