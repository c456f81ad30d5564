// Package transport carries raft messages between the servers of a cluster
// over TCP, or over TLS in which both sides show a certificate.
//
// # Connections
//
// Each server dials every other one, and sends its messages on the connection that it
// dialled. So each connection carries messages in one direction, and a message never waits
// for the other side's handshake. A snapshot has its own connection, which lasts as long
// as the snapshot, so that heartbeats do not queue up behind hundreds of megabytes. A
// third connection carries the frames of algorithms that guard names, so that they do not
// queue up behind log entries: see [Lane].
//
// Both ends of a connection send a ping whenever they have sent nothing for a while, and
// close a connection on which nothing arrives for Config.IdleTimeout. So both sides notice a
// cut cable or a stopped process in about a second. Pings continue while Handler.Receive
// blocks, because an overloaded server is not dead.
//
// # What is promised
//
//   - Messages of one connection arrive in order and at most once. After a reconnection,
//     the old connection is read to its end before the first message of the new one is
//     delivered.
//   - The transport retransmits nothing: raft does that. Messages that are not delivered are
//     reported by Handler.Unreachable, or Handler.SnapshotSent for a snapshot.
//   - Send never blocks and never calls the Handler. Every queue is bounded in
//     messages and in bytes; messages that do not fit are dropped and reported.
//   - A message whose sender is not the server that did the handshake, or whose
//     receiver is not this server, is dropped.
//   - A connection from a stranger costs one of a bounded number of places for a bounded
//     time, and nothing else.
//
// # On the wire
//
// A connection carries frames: length (4 bytes, big endian, of everything after the
// checksum), CRC-32C of the same bytes (4), version (1), kind (1), payload. The dialler
// sends its [Hello]. The other side answers with its own, or sends a [Refusal] and closes.
// The dialler sends its Hello again when something in it has changed. A receiver ignores
// what follows the fields that it knows.
package transport
