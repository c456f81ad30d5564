// Package agreement lets the members of a cluster agree on one sequence of
// entries, by Raft, without doing any I/O itself.
//
// A Core is the go.etcd.io/raft state machine of one member. Its caller drives it by
// calls and takes its outputs from Ready. It has no clock, goroutine, socket or file.
// Its only source of randomness is the election timeout, which raft takes from
// crypto/rand. Given the same random numbers and the same order of calls, a Core
// always gives the same outputs. A Core must be used by one goroutine at a time.
//
// # What the caller owes
//
//  1. Call Tick at a steady rate, and Receive for every message from a peer. After
//     each call check HasReady.
//  2. Send Ready.Send at once, in any order. Messages may get lost. They
//     never wait for the disk.
//  3. Make Ready.Save durable, in the order in which the saves were handed
//     out, and then call Saved with each, in the same order. Many saves may be
//     under way at the same time, and may share one fsync. Only the messages
//     returned by Saved promise something to a peer (a vote, an acknowledged
//     entry), so they are sent only then.
//  4. If there is a Save.Snapshot, install it into the state machine before
//     calling Saved: it replaces everything applied so far.
//  5. Apply Ready.Committed in order, pass every configuration entry to
//     ApplyChange (EntryConfChange and EntryConfChangeV2), and then call
//     Applied with the same entries. An entry whose Data is empty and whose
//     type is EntryNormal is raft's own; it changes nothing but the index.
//  6. A read that waits for a ticket may proceed when Ready.Reads names the
//     ticket and the state machine has applied Read.Index. A ticket that is
//     not named before Ready.Term or Ready.Role changes will never be named.
//  7. Create a snapshot from time to time, and at once if Ready.WantSnapshot says
//     that a peer needs a newer one. Make it durable, and only then call Compact.
//
// # The commit index
//
// A leader tells its followers the commit index with the next entries. If none follow, it tells
// them at the next tick. Raft alone would send each follower a second message for each entry,
// which the follower would save and answer. So the state of a follower can be one tick behind.
// A change of the configuration is told at once, because a removed member cannot be reached later.
//
// # Who owns a message
//
// Entries, messages and snapshots are Google protobuf values: they hold a lock
// and must not be copied by value. Values that a Core hands out are shared with its
// own log and with messages under way, and must never be changed. Values passed to
// Receive, and data passed to Propose, belong to the Core from then on.
//
// # Founders, joiners, and members that lost their disk
//
// The founding members of a cluster all start from the snapshot that Bootstrap
// makes from the same arguments. Any other member starts with an empty Disk and is
// blank: it casts no vote, answers only a leader that counts it as a learner,
// and waits for a snapshot in which it is one. A voter that lost its data directory
// must come back the same way: it is removed from the configuration, added as
// a learner, and promoted when it has caught up. It must not simply start again,
// because it has forgotten its vote and the entries that it acknowledged. For
// example, if A and B have committed an entry and B then loses its data, B could help
// C, which never had the entry, to win an election.
package agreement
