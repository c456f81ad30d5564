// Package leasemodel is a model of the sessions of the service, for the model checker:
// three servers that agree on a log, and clients with clocks of their own that hold a
// lock as long as their sessions live.
//
// # What it answers
//
// A client believes that it holds the lock until a deadline on its own clock. Can the
// log give the lock to another session, or end the session, before that? The model
// asserts that it cannot:
//
//   - While a client believes, the committed log says that its session is open and
//     holds the lock, with the fence that the client was told.
//   - A client that enters has a larger fence than all that entered before.
//   - No committed entry is lost.
//
// A second question, with the option bound, is how long the lock of a dead client stays
// taken. There leaders do at once what is due, and the model asserts that the session
// ends after two TTLs at the latest, counted while there is a leader.
//
// # The rules
//
// Each rule stands where the service has it:
//
//   - Founding: founding.go calls package service/founding itself.
//   - A server that lost its disk neither votes nor answers, and a leader takes it back
//     when the two others have all that is committed: cluster.go, for
//     service/agreement (takenWhenBlank) and service/replica/admit.go.
//   - A renewal is acknowledged after a quorum round that began after it arrived. A
//     session that is on record as silent is renewed through the log: arrive and confirm
//     in lease.go, for service/replica/submit.go, rounds.go and apply.go.
//   - An expiry names the term that decided it, and counts in an entry of that term
//     alone. A session whose expiry is in flight takes no renewal: registry.go and
//     lease.go, for service/registry and service/lease/lease.go.
//   - A new leader starts each session at its full TTL once it has applied the first
//     entry of its term, and a silent one with what is on record: lead in lease.go.
//   - A revoked hold is dropped a full TTL after the leader has seen the revocation, and
//     answers to renewals tell the holder before: oust in lease.go, for
//     service/lease/revoked.go.
//   - A client counts its deadline from when it sent the renewal that was answered,
//     takes off a margin, and never believes again after it: client.go, for reply.go of
//     package internal/line.
//
// # What is abstract
//
// Agreement keeps what Raft guarantees and no more detail. An election takes the votes of
// the candidate and one other server in one step, by terms and by the rule that no
// voter's log is newer. With three servers, a follower that takes over the log of a
// leader commits all of it. So the model keeps the state that the committed log built,
// and what each disk has beyond it; of a disk that lacks committed entries it keeps that
// it does. Terms, votes and logs are lost with the disk. The steps in which a blank
// server is removed, added and promoted are one.
//
// Time goes on in ticks, for all at once. The clock of a client may be a tick late, and
// catch up. The clocks of servers do not drift: the margin has to cover the difference
// of both. That a leader which stood still adds the gap to its deadlines is left out,
// since it makes sessions longer. So is a clean release: that client has stopped.
//
// Each client asks for the lock once, and may be silent, or ask again, at any time. A
// client has one renewal under way. It gives it up when it sends another.
//
// With the option coarse, what clients and leaders tell each other arrives at once or
// never, a round begins as soon as it can, and its answer confirms it. That leaves out
// only what helps no violation:
//
//   - A renewal that arrives late, or is confirmed late, extends the client's deadline no
//     further, for it counts from the sending, and extends the leader's lease more.
//   - An answer that arrives late gives the same deadline. One that tells of a revocation
//     leaves a client that does not get it with its old deadline.
//   - A grant that arrives late extends nothing.
//
// This is an argument, not a proof, and with a flaw it may be wrong. So the searches with
// one client do without it, and so do those for most flaws. What goes wrong with it
// also goes wrong without it.
//
// With the option symmetric, states that differ in the names of servers and clients are
// mostly one.
//
// # Following a run
//
// A Run follows servers and clients that run. It is told what they decide, and requires
// that the rule of the model allows each decision in the state that the decisions before
// have led to. Where the model and what runs both have a number (what a lease has left,
// a client's deadline, what is on record of a silent session), it must be the same. The
// rules of one session (rules.go, the registry, the client) are those that are searched.
// What puts them together is another one, because what runs does more at a time:
//
//   - There are any number of servers. A majority is one of the voters that a server
//     counts. Changes of the members are not followed.
//   - An election comes in parts: votes, and the candidate that leads with a majority of
//     them. So does the replication of an entry.
//   - Several renewals and several rounds are under way. A round is answered by all who
//     answer it or a later one.
//   - A tick is a ns, and nothing is rounded. The clock of each server and client is its
//     own. That of a leader stands still while it does, and is set back when it notices.
//   - A verdict that names an earlier count of renewals does nothing, and may be proposed
//     at any time. A verdict that has no room in the log is seen in what the leader does
//     with the next renewal.
//   - A leader that is asked to renew a session which has ended says so at once in the
//     model. The service answers by the log, or after a round.
//
// Each session is followed by itself, until an operator ends it or its client closes it.
// Not followed are the founding, which log is newer, and who gets the lock.
//
// # Flaws
//
// Variants lists mistakes, each of which leaves out or changes one rule, with bounds in
// which the checker finds it within seconds. A few do no harm by themselves: two rules
// stand in the way of the same mistake.
package leasemodel
