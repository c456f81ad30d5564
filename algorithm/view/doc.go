// Package view decides which servers take part when an algorithm for mutual exclusion runs
// between them, and what guards a name: agreement or such an algorithm.
//
// # Problem and idea
//
// The algorithms are for processes that are there from the start and do not come and go.
// Servers do. So the log of agreement decides about epochs: each has a fixed list of
// members, which are the processes of the algorithm in that epoch. Whenever the set of
// live seats changes, a seat being the session of one running server, the entry of the log
// that changes it is the START of the next epoch. What clients hold does not travel: it
// stays at the server where they asked for it, their home, and is entered again there.
//
//   - [Log] is what the log says: seats, epochs, guards. It is a part of the registry.
//   - [Member] is what a server does about it, and [Name] what it does about one name.
//   - [Over] makes one algorithm of these, a lock and faults, which the model checker
//     searches and the simulator runs. Its machines use Log, Member and Name as they are.
//
// # Rules
//
//	S1  a seat ends only when its lease was waited out, so that all clients of it are
//	    past their deadlines, or by its own word that nothing is held, or that all that is
//	    has an heir (P2).
//	S4  a seat of which no renewal was answered in time has lapsed. It tells no grant
//	    and asks for nothing; an answer that comes later ends that.
//	S5  the seat has ended: all of it is thrown away, and the server enters anew.
//	V2  an entry that changes the target, wants a turn or ends a drain is START: the
//	    epoch is one higher, and the members are the target.
//	V3  the target has of each server its only live seat; of several, the one that is a
//	    member, or none.
//	V5  after the largest epoch there is none.
//	V2b the guards of an epoch are those at its START, whatever is applied later. That one
//	    drains counts at once.
//	M1  a member that applies START, whatever epochs it missed, drops all machines,
//	    their timers and all frames of earlier epochs.
//	M2  it asks for each name that its clients hold. Such a grant changes nothing at the
//	    client. If the hold has ended meanwhile the grant is given back.
//	M3  when all these were granted, it says RESUMED to all members.
//	M4  when it has RESUMED of all, it asks for names that its clients wait for.
//	M5  START without its seat: it is out.
//	L4  a frame of an earlier epoch is dropped, one of a later epoch is kept until that
//	    begins.
//	G2  the change of a guard drains it first: nothing more is granted under it.
//	G4  a member says quiet when nothing is held, asked for or being entered again
//	    under it. That names the change and the epoch, and counts in no other.
//	G5  all members are quiet, or agreement has no hold under it: the guard changes, and
//	    that entry is START.
//	P2  a server that stops stands still, and another member sets aside what its clients
//	    hold. When that knows that its own seat outlasts what they were promised, the log
//	    is told that it is the heir. At that START, and only if the log says so, it takes
//	    over and enters again. It does not close its own seat before it knows.
//	I7  a fence is the epoch and, within it, the fence of the machine.
//
// # Why it is safe
//
// A client that believes that it holds has a home whose seat lives (S1), so the home is a
// member of every later epoch. In such an epoch nobody is granted the name for the first
// time before the home has said RESUMED (M4), and it says that only when its machine has
// entered again (M3). From then on the algorithm keeps others out. Before the home applies
// START it is in the critical section of the old epoch, which keeps out whoever has not
// applied it either. A guard changes only when no member holds anything and none will
// (G4, G5).
//
// Fences grow: within an epoch by the algorithm, and from one to the next because a first
// grant comes after the barrier. Of k units only this is kept: the numbers are unique, and
// those of a later epoch are larger. Within an epoch a member that is late may grant a
// lower one than a process has seen that it heard of by way of the next epoch.
//
// # Deviations and bounds
//
// In Over there is one name, and a client for each server. The lease is a message: a server
// tells the log that the deadline of its client is over, and only then the log ends its
// seat. A home that has lapsed asks for nothing and gives back what it is granted, for its
// client is past its deadline. Links do not break, and machines are not dropped when they
// are idle. What a client waits for is not handed over, and one server stops at most, so
// none is the heir of an heir.
package view
