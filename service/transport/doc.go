// Package transport carries raft messages between the servers of a cluster
// over TCP, or over TLS in which both sides show a certificate.
//
// # Connections
//
// Each server dials every other one, and what it has to say travels on the
// connection that it dialled: one direction each, so a message never waits for
// the other side's handshake. A snapshot travels on a connection of its own,
// which lasts as long as the snapshot, so that heartbeats do not queue up
// behind hundreds of megabytes. A third carries the frames of algorithms that guard
// names, so that they do not queue up behind log entries: see [Lane].
//
// Both ends of a connection send a ping whenever they have been silent, and
// close a connection on which nothing arrives for Config.IdleTimeout: a cut
// cable or a stopped process is noticed in about a second, whichever side has
// something to say. Pings do not stop while Handler.Receive blocks, because an
// overloaded server is not a dead one.
//
// # What is promised
//
//   - Messages of one connection arrive in order and at most once. Across a
//     reconnection the old connection is read to its end before the first
//     message of the new one is delivered.
//   - Nothing is retransmitted: raft does that. Whatever is not delivered is
//     reported by Handler.Unreachable, or Handler.SnapshotSent for a snapshot.
//   - Send never blocks and never calls the Handler. Every queue is bounded in
//     messages and in bytes; what does not fit is dropped and reported.
//   - A message whose sender is not the server that shook hands, or whose
//     receiver is not this one, is dropped.
//   - Whoever connects without being a server of the cluster costs one of a
//     bounded number of places for a bounded time, and nothing else.
//
// # On the wire
//
// A connection carries frames: length (4 bytes, big endian, of all that
// follows the checksum), CRC-32C of the same bytes (4), version (1), kind (1),
// payload. The dialler sends its [Hello]; the other side answers with its own,
// or with a [Refusal] and closes. The dialler sends its Hello again when something
// in it has changed. What follows the fields that a receiver knows is skipped.
package transport
