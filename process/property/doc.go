// Package property decides whether a run keeps what algorithms promise. Every host
// (simulator, model checker, conformance test) calls the same judges, so all of them
// agree on what a promise means and print the same sentence when it is broken.
//
// A host calls a judge when it observes something that can break the promise, such as
// an entry. The judge asks the [Scene] for the present phases and leaders. What a
// promise requires to be remembered, such as the highest fence so far, the host keeps
// in its own way and passes in: in the checker it is a part of each searched state.
//
// The sentences, with processes 1 to 3 as an example:
//
//	mutual exclusion         2 entered while 1 was inside
//	at most k inside         3 entered while 1, 2 were inside: at most 2 may be
//	progress                 1, 2 wait forever: no event is enabled
//	                         1, 2 wait, and nobody has entered for 1000000 ns
//	fences grow              2 entered with fence 3: an earlier entry had fence 4
//	fences grow causally     2 entered with fence 3: another entry had the same fence
//	                         2 entered with fence 3: an entry that happened before had fence 4
//	happened-before order    2 entered before 1, whose request happened before its own
//	order of arrival         2 entered before 1, whose request arrived earlier
//	order of time stamps     2 entered after 3, whose request has a later time stamp
//	bounded bypass           others entered 3 times while 1 waited: the bound is 2
//	one token                2 entered without the token: it is with 1
//	                         2 sent a token that it did not have: the token is on its way from 1 to 3
//	                         the token from 1 to 3 never arrived
//	agreement on the leader  2 elected 3 in round 1: another process elected 1
//	valid leader             2 elected 1, but 3 is up
//	election terminates      1 was asked to take part, but nobody has elected a leader
//	                         2 has not elected a leader
//	                         1 ended with leader 3, 2 with leader 1
//	                         1 was told that its leader 3 crashed, and still follows it
//	                         1 was asked to replace its leader 3, which crashed, and did nothing
//	single leader            2 leads while 1 leads
//	agreement                2 decided 5: another process decided 3
//	                         2 decided 5 in place 2: another process decided 3 there
//	validity                 2 decided 5, which nobody proposed
//	single decision          2 decided 5 after it had decided
//	decision                 1, 2 never decided: no event is enabled
//	unanimity                2 decided 0: every correct proposer proposed 1
//	vector validity          2 decided 0 in place 3: 3 proposed 1
//	atomicity                2 aborted: 1 committed
//	stable decision          2 aborted after it had committed
//	unanimous commit         2 committed: 3 voted no
//	non-triviality           2 aborted: everybody voted yes, and nothing had failed
//	decision after repair    1, 2 voted and never decided: everybody is up, and no event is enabled
//	non-blocking             1, 2 voted and never decided: no event is enabled
//	no phantom deadlock      1 declared a deadlock of 2, which is in none
//	deadlocks are found      1, 2 can never go on, and no deadlock was declared
//	invariant                what Spec.Invariant says
//	assertion                what the algorithm asserts
//	                         1 was granted an entry that it did not wait for
//
// A property that only one algorithm promises is judged beside that algorithm.
package property
