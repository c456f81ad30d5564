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
// # Rules
//
//	S1  a seat ends only in one of two ways: its lease has expired, so that all its
//	    clients are past their deadlines; or the server itself reports that it holds
//	    nothing, or that everything it holds has an heir (P2).
//	S4  a seat whose renewal was not answered in time has lapsed. It reports no grant
//	    and asks for nothing; an answer that comes later ends that.
//	S5  the seat has ended: its state is dropped, and the server enters again.
//	V2  an entry that changes the target, wants a turn or ends a drain is START: the
//	    epoch is one higher, and the members are the target.
//	V3  the target has the only live seat of each server; if a server has several, the
//	    one that is a member, or none.
//	V5  after the largest epoch there are no more.
//	V2b the guards of an epoch are those at its START, whatever is applied later. But
//	    draining counts at once.
//	M1  a member that applies START, whatever epochs it missed, drops all machines,
//	    their timers and all frames of earlier epochs.
//	M2  it asks for each name that its clients hold. Such a grant changes nothing at the
//	    client. If the hold has ended since, the grant is returned.
//	M3  when all these were granted, it sends RESUMED to all members.
//	M4  when it has RESUMED of all, it asks for names that its clients wait for.
//	M5  START without its seat: it is out.
//	L4  a frame of an earlier epoch is dropped, one of a later epoch is kept until that
//	    begins.
//	G2  the change of a guard drains it first: nothing more is granted under it.
//	G4  a member sends quiet when nothing is held, asked for or being entered again
//	    under it. That names the change and the epoch, and counts in no other.
//	G5  all members are quiet, or agreement has no hold under it: the guard changes, and
//	    that entry is START.
//	P2  a server that stops freezes, and another member sets aside the holds of its
//	    clients. When that member knows that its own seat outlasts the promises made to
//	    these clients, it tells the log that it is the heir. At that START, and only if
//	    the log says so, it takes over and enters again. The server does not close its
//	    seat before it knows.
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
