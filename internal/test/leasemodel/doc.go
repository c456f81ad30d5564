// Package leasemodel is a model of the sessions of the service, for the model checker:
// three servers that agree on a log, and clients with clocks of their own that hold a
// lock as long as their sessions live.
//
// # What it answers
//
// A client relies on the lock until a deadline on its own clock. Can the log give the lock to
// another session, or end the session, before that? The model asserts that it cannot:
//
//   - While a client relies on the lock, the committed log says that its session is open and
//     holds the lock, with the fence that the client was told.
//   - A client that enters has a larger fence than all clients that entered before.
//   - No committed entry is lost.
//
// A second question, with the option bound, is how long the lock of a dead client stays
// taken. In that mode leaders act as soon as they can, and the model asserts that the session
// ends after at most two TTLs, counted while there is a leader.
//
// # The rules
//
// Each rule has its counterpart in the service:
//
//   - Founding: founding.go calls package internal/service/founding itself.
//   - A server that lost its disk neither votes nor answers, and a leader takes it back
//     when the two others have all that is committed: cluster.go, for
//     internal/service/agreement (takenWhenBlank) and internal/service/replica/admit.go.
//   - A renewal is acknowledged after a quorum round that began after it arrived. A
//     session that is on record as silent is renewed through the log: arrive and confirm
//     in lease.go, for internal/service/replica/submit.go, rounds.go and apply.go.
//   - An expiry names the term that decided it, and counts in an entry of that term
//     alone. A session whose expiry is in flight takes no renewal: registry.go and
//     lease.go, for internal/service/registry and internal/service/lease/lease.go.
//   - A new leader starts each session at its full TTL once it has applied the first
//     entry of its term, and a silent one with what is on record: lead in lease.go.
//   - A revoked hold is dropped a full TTL after the leader has seen the revocation, and
//     answers to renewals tell the holder before: oust in lease.go, for
//     internal/service/lease/revoked.go.
//   - A client counts its deadline from when it sent the renewal that was answered,
//     takes off a margin, and never believes again after it: client.go, for reply.go of
//     package internal/client/line.
//
// # What is abstract
//
// Of agreement, the model keeps only what Raft guarantees. An election takes the votes of the
// candidate and one other server in one step, by terms and by the rule that no voter's log is
// newer. With three servers, a follower that takes over the log of a leader commits all of it.
// So the model keeps the state that the committed log built, and what each disk has beyond it.
// For a disk that lacks committed entries it keeps only that fact. Terms, votes and logs are lost
// with the disk. The steps in which a blank server is removed, added and promoted are one step.
//
// Time advances in ticks, for all at once. The clock of a client may be a tick late, and catch
// up. The clocks of servers do not drift: the margin has to cover both differences. A leader that
// was suspended adds the gap to its deadlines; the model leaves that out, because it makes
// sessions longer. It also leaves out a regular release, because that client has stopped.
//
// Each client asks for the lock once, and may be silent, or ask again, at any time. A client has
// one renewal under way, and gives it up when it sends another.
//
// With the option coarse, messages between clients and leaders arrive at once or never, a round
// begins as soon as it can, and its answer confirms it. This leaves out only behaviour that does
// not help to find a violation:
//
//   - A renewal that arrives late, or is confirmed late, does not extend the client's deadline
//     further, because that counts from the sending, and extends the leader's lease more.
//   - An answer that arrives late gives the same deadline. If a client does not get an answer
//     that reports a revocation, it keeps its old deadline.
//   - A grant that arrives late extends nothing.
//
// This is an argument, not a proof, and may be wrong for a model with a flaw. So the searches
// with one client do not use the option, nor do those for most flaws. Every violation found with
// the option also exists without it.
//
// With the option symmetric, most states that differ only in the names of servers and clients
// count as one.
//
// # Following a run
//
// A Run follows real servers and clients. It is told their decisions, and requires that the rule
// of the model allows each decision in the state that earlier decisions have led to. If the model
// and the real system both have a number (the rest of a lease, a client's deadline, the recorded
// time of a silent session), the numbers must be equal. The rules of a single session (rules.go,
// the registry, the client) are the same ones that are searched. The code around them
// differs, because the real system does more at a time:
//
//   - There may be any number of servers. A majority is one of the voters that a server counts.
//     Changes of the members are not followed.
//   - An election has parts: votes, and a candidate that leads with a majority of them. So has
//     the replication of an entry.
//   - Several renewals and several rounds may be under way. A server that answers a round
//     also answers all earlier ones.
//   - A tick is a ns, and nothing is rounded. Each server and client has its own clock. That of a
//     leader stands still while the leader is suspended, and is set back when it notices.
//   - A verdict that names an earlier count of renewals has no effect, and may be proposed at any
//     time. A verdict that has no room in the log shows in how the leader treats the next
//     renewal.
//   - If a session has ended, the leader in the model refuses its renewal at once. The service
//     answers through the log, or after a round.
//
// Each session is followed separately, until an operator ends it or its client closes it. A Run
// does not follow the founding, which log is newer, and who gets the lock.
//
// # Flaws
//
// Variants lists flaws. Each leaves out or changes one rule, with bounds in which the checker
// finds the mistake within seconds. A few flaws alone do no harm, because two rules prevent the
// same mistake.
package leasemodel
