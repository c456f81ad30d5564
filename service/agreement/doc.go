// Package agreement lets the members of a cluster agree on one sequence of
// entries, by Raft, without doing any input or output itself.
//
// A Core is the go.etcd.io/raft state machine of one member, driven by calls
// and drained by Ready. It holds no clock, no goroutine, no socket and no
// file; the only chance it draws on is the random election timeout, which
// raft takes from crypto/rand. Given one seed for that source and one order of
// calls, a Core always answers the same way. A Core must be used by one
// goroutine at a time.
//
// # What the caller owes
//
//  1. Call Tick at a steady pace, Receive for every message from a peer, and
//     after either look at HasReady.
//  2. Send Ready.Send at once, in any order, losing what must be lost. These
//     messages never wait for the disk.
//  3. Make Ready.Save durable, in the order in which the saves were handed
//     out, and then call Saved with each, in the same order. Many saves may be
//     under way at the same time, and may share one fsync. Only the messages
//     returned by Saved promise something to a peer (a vote, an acknowledged
//     entry), so they are sent only then.
//  4. Install Save.Snapshot, where there is one, into the state machine before
//     calling Saved: it replaces everything applied so far.
//  5. Apply Ready.Committed in order, pass every configuration entry to
//     ApplyChange (EntryConfChange and EntryConfChangeV2), and then call
//     Applied with the same entries. An entry whose Data is empty and whose
//     type is EntryNormal is raft's own; it changes nothing but the index.
//  6. Let a read that carries a ticket proceed when Ready.Reads names the
//     ticket and the state machine has applied Read.Index. A ticket that is
//     not named before Ready.Term or Ready.Role changes will never be named.
//  7. Create a snapshot now and then, and at once when Ready.WantSnapshot says
//     that a peer needs a newer one, make it durable, and only then Compact.
//
// # Who owns a message
//
// Entries, messages and snapshots are Google protobuf values: they hold a lock
// and must not be copied by value. What a Core hands out is shared with its
// own log and with messages under way, and must be treated as constant for
// ever; what is handed to Receive, and the data handed to Propose, belongs to
// the Core from then on.
//
// # Founders, joiners, and members that lost their disk
//
// The founding members of a cluster all start from the snapshot that Bootstrap
// makes from the same arguments. Any other member starts with an empty Disk
// and is blank: it casts no vote, answers only a leader that counts it as a
// learner, and waits for a snapshot in which it is one. A voter whose data directory was lost must come back the same way
// (removed from the configuration, added as a learner, promoted when it has
// caught up). It may not simply start over, because it has forgotten both its
// vote and the entries it acknowledged: with A and B having committed an
// entry, B emptied could help C, which never had it, to win an election.
package agreement
