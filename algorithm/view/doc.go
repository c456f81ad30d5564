// Package view decides which servers take part when an algorithm for mutual exclusion
// runs between them, and whether agreement or such an algorithm guards a name.
//
// # Problem and idea
//
// The algorithms assume a fixed set of processes. Servers come and go. So the agreed
// log decides about epochs. Each epoch has a fixed list of members, which are the
// processes of the algorithm in that epoch. A seat is the session of one running
// server. A log entry that changes the set of live seats is the START of the next
// epoch. The holds of clients do not move: a hold stays at the server where the client
// asked for it, its home, and is entered again there.
//
//   - [Log] is the state that the log determines: seats, epochs, guards. It is a part
//     of the registry.
//   - [Member] is what a server does about it, and [Name] what it does about one name.
//
// Package viewcheck makes one algorithm of these, a lock and faults, which the model
// checker searches and the simulator runs. Its machines use Log, Member and Name
// unchanged.
//
// # Promises
//
// What names under an algorithm promise, in addition to what all locks promise. The
// simulations of servers check it.
//
//	N1  no more clients hold a name than its guard allows.
//	N2  the fences of a name increase from grant to grant, whatever guards it. For k units
//	    they are unique, and increase from epoch to epoch.
//	N4  whoever holds a name by an algorithm has a home whose seat is live, or an heir of it.
//	N5  no member asks for names in an epoch before all members have begun it and have
//	    entered again what their clients hold.
//	N6  within an epoch the algorithm has what it needs: no frame between members is
//	    refused or lost, and its machines exclude each other.
//	N7  the guard of a name changes only when nobody holds the name.
//	N8  the fences that the machines of an epoch grant increase. For k units they are unique.
//
// # Rules
//
// These rules and those of package internal/service/host are one list: each name has one
// text, in one of the two places.
//
//	S1  a seat ends only in one of two ways: its lease has expired, so that all its
//	    clients are past their deadlines; or the server itself reports that it holds
//	    nothing, or that everything it holds has an heir (P2).
//	S4  a seat has lapsed when the time is over that the leader gave it, counted from when
//	    the renewal was sent, less a margin. Then it reports no grant and asks for nothing;
//	    an answer that comes later ends that.
//	S5  the seat has ended: its state is dropped, and the server enters again after a
//	    pause, which is longer each time.
//	V2  an entry that changes the target, wants a turn or ends a drain is START: the
//	    epoch is one higher, and the members are the target.
//	V2b the guards of an epoch are those at its START, whatever is applied later. But
//	    draining counts at once.
//	V3  the target has the only live seat of each server; if a server has several, the
//	    one that is a member, or none.
//	V4  a member may ask for a turn: for another coordinator, or to let machines be
//	    forgotten. It has no effect if its epoch is over, or if that server coordinates
//	    already. The leader refuses a turn that comes too soon after the last one.
//	V5  after the largest epoch there are no more.
//	M1  a member that applies START, whatever epochs it missed, drops all machines,
//	    their timers and all frames of earlier epochs.
//	M2  it asks for each name that its clients hold. Such a grant changes nothing at the
//	    client. If the hold has ended since, the grant is returned.
//	M3  when all these were granted, it sends RESUMED to all members.
//	M4  when it has RESUMED of all, it asks for names that its clients wait for.
//	M5  START without its seat: it is out.
//	M6  the members of an epoch do not crash, and store nothing: a server that crashes
//	    comes back with another seat.
//	L4  a frame of an earlier epoch is dropped. One of a later epoch is kept without
//	    acknowledgement, for the newest epoch seen, until that begins.
//	G1  a guard is accepted only if its algorithm can run with its options in views of
//	    every size.
//	G2  the change of a guard drains it first: nothing more is granted under it.
//	G3  under a guard that drains no name is asked for, and requests that wait are
//	    withdrawn.
//	G4  a member sends quiet when nothing is held, asked for or being entered again
//	    under it. That names the change and the epoch, and counts in no other.
//	G5  all members are quiet, or agreement has no hold under it: the guard changes, and
//	    that entry is START.
//	G6  a change that an operator forces asks the holders under the prefix to leave.
//	G7  an epoch has one level of the cluster: a change of the level is START. A level
//	    without algorithms on the servers has no guards, seats or epochs.
//	P2  a server that stops and still holds something freezes, and another member sets it
//	    aside: sessions, what they hold and wait for, and what is left of the promises to
//	    their clients. When its own seat outlasts those promises, by a renewal that was
//	    sent after all had come, that member says so, and the log is told that it is the
//	    heir of the seat that closes. What was set aside counts if and only if the log says
//	    so: it is taken over at that START, before anything is entered again. A member that
//	    may be an heir does not close its seat before it knows. If there is no heir after
//	    all, the home continues.
//	P3  a server that has no vote any more gives its seat up. The leader does not wait for
//	    one that does not: nobody renews its seat any more.
//	I7  a fence is the epoch and, within it, the fence of the machine.
//
// # Why it is safe
//
// A client that believes it holds has a home whose seat is live (S1), so the home is a
// member of every later epoch. In such an epoch no client is newly granted the name
// before the home has sent RESUMED (M4), and the home sends that only when its machine
// has entered again (M3). From then on the algorithm keeps others out. Before the home
// applies START it is in the critical section of the old epoch, which keeps out every
// member that has not applied START either. A guard changes only when no member holds
// anything and none will (G4, G5).
//
// Fences grow: within an epoch by the algorithm, and across epochs because a first
// grant comes after the barrier. For k units only this holds: the numbers are unique,
// and those of a later epoch are larger. Within an epoch a late member may grant a
// fence below one that a process has seen and that the member heard of through the next
// epoch.
package view
