// Package replica makes all decisions of a server in one deterministic core: it contains
// agreement on a log, the registry that the log builds, and the leases of the
// sessions. It does no I/O and reads no clock. Its host passes in ticks, messages and
// requests, each with a clock reading, and carries out the outputs. The host can be a
// simulator, or a server with a network and a disk.
//
// # Duties of the host
//
// The scripts in testdata/script show them, and what clients see.
//
//  1. Call Output after one or more inputs, and carry out all of it.
//  2. Make every Save durable, in order, before calling Saved with it. Saves may share one
//     fsync. Send and Replies may go out at once: messages that must wait for the disk are
//     attached to the saves and come out of a later Output.
//  3. Encode what Encode has, and call Encoded.
//  4. Store Snapshot, then call SnapshotStored. Make saves durable meanwhile: storing a
//     large snapshot takes longer than a leader may take to persist an entry.
//  5. Call Tick at the configured rate. Late ticks are detected and compensated: see Leases.
//  6. Stop the server for good when Output reports an error.
//
// A disk that hangs reports no error. A leader whose saves do not complete within two
// election timeouts hands over or steps down: see tickCore.
//
// # Members
//
// The registry records the intended role of each server. The leader changes the configuration
// of agreement accordingly, one step at a time: see admit. Change asks for a change of the
// record. The host calls it again until it reports that record and configuration agree.
//
//   - A new server is a learner until it has nearly all committed entries.
//   - While the change of one server is under way, that of another is refused.
//   - A removed server takes part until the configuration no longer has it, and then stops. Its
//     id is never used again.
//   - A leader that is removed hands over, and its successor completes the removal.
//
// # Seats
//
// While an algorithm on the servers guards names, each server has a session of its own, its
// seat. Its commands are accepted only from that server, through SubmitSeat, with a report about
// the other servers. Its lease is like any other: renewals need a quorum, and only time ends it.
//
//   - The leader stops renewing the seats of members that hold up the others, at most half of
//     the members at a time. These seats then expire. See shun.
//   - A server whose seat has expired waits before it gets another one, because the end of a
//     seat stops all guarded names for a TTL.
//   - A change of a guard that takes longer than its operator allowed is cancelled.
//
// # Leases
//
// Only the leader measures how long a session has been silent.
//
//   - A renewal is acknowledged only after a quorum has answered a round of heartbeats that
//     began after the renewal arrived. So a leader that was deposed without knowing cannot
//     promise time that its successor does not grant. Many renewals share one round.
//   - A session that has been silent for half its TTL, or does not contact a new leader
//     soon, is recorded in the log with its remaining time. From then on renewals of it go
//     through the log.
//   - A new leader gives every session its full TTL from the time at which it has applied the
//     first entry of its own term. A silent session gets only its recorded time, because
//     nobody has promised more since. So a dead session outlives a change of leaders by at
//     most one TTL. Each further leader adds the time that it led before it recorded the
//     session, or that passed since the last record.
//   - An expiry goes through the log, names the term that decided it, and is void in any
//     other term. While it is under way the session cannot be renewed.
//   - A gap between two ticks longer than an election timeout means that this server was
//     suspended. Clients may have tried in vain to renew, so the gap is added to all
//     deadlines.
package replica
