// Package replica is the whole decision-making of a server as one
// deterministic core: agreement on a log, the registry that the log builds, and
// the leases of the sessions. It does no I/O and reads no clock. Its host gives
// it ticks, messages and requests, each with the reading of a clock, and
// carries out what it returns; a simulator can be that host as well as a
// network and a disk.
//
// # Duties of the host
//
//  1. Call Output after each input, or after several, and carry out all of it.
//  2. Make every Save durable, in order, before calling Saved with it. Saves
//     may share one fsync. Send and Replies may go out at once: what must wait
//     for the disk is attached to the saves and comes out of a later Output.
//  3. Encode what Encode has, and call Encoded.
//  4. Store Snapshot, then call SnapshotStored. Saves may be made durable
//     meanwhile, and must be: a large snapshot takes longer than a leader may
//     take to persist an entry.
//  5. Call Tick at the configured rate. Ticks that come late are noticed and
//     forgiven: see Leases.
//  6. Stop the server for good when Output reports an error.
//
// A disk that hangs reports no error. A leader whose saves do not come back for two
// election timeouts hands over or steps down: see tickCore.
//
// # Members
//
// The registry has on record what each server is meant to be. The leader brings the
// configuration of the agreement there, one step at a time: see admit. Change asks
// for a change of the record, and is to be called again until it is done: it says
// so once record and configuration agree.
//
//   - A new server is a learner until it has nearly all that is committed.
//   - While the change of one server is under way, that of another is refused.
//   - A removed server takes part until the configuration is without it, and then
//     stops. Its id is given to nobody else.
//   - A leader that is removed hands over, and its successor does the rest.
//
// # Seats
//
// Each server has a session of its own, its seat, while an algorithm on the servers guards
// names. Its commands come through SubmitSeat from that server alone, with what it reports
// of the others. Its lease is one like all: renewals take a quorum, only time ends it.
//
//   - The leader renews the seats no more of members that hold the others up, half of the
//     members at most at a time, and leaves them to their leases. See shun.
//   - A server whose seat has expired waits before it gets another: each seat that goes
//     stops all live names for a TTL.
//   - A change of a guard that takes longer than its operator wanted is cancelled.
//
// # Leases
//
// The leader alone measures how long a session has been silent.
//
//   - A renewal is acknowledged only after a round of heartbeats, begun after
//     the renewal arrived, was answered by a quorum. So a leader that was
//     deposed without knowing cannot promise time that its successor does not
//     grant. Many renewals share one round.
//   - A session that fell silent for half its TTL, or does not call on a new
//     leader soon, is put on record in the log with the time it has left. From
//     then on it is renewed through the log only.
//   - A new leader gives every session its full TTL from the moment at which it
//     has applied the first entry of its own term, but a silent one only what
//     the record says: nobody promised it more since. So a dead session
//     outlives a change of leaders by one TTL at most. Each further leader adds
//     as much as it led before it put the session on record, or as passed since
//     the last record.
//   - An expiry goes through the log, names the term that decided it, and is
//     void in any other. While it is under way the session takes no renewal.
//   - A gap between two ticks longer than an election timeout means that this
//     server stood still. Its clients may have been renewing in vain, so the
//     gap is added to all deadlines.
package replica
