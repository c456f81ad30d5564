// Package peering makes the decisions about connections between servers, without I/O: how
// a server introduces itself, which servers it refuses, which of two connections of one
// server counts, what is sent and what is dropped, and when to connect again. Package
// transport drives it with sockets; internal/test/vopr drives the same code in its simulated
// world.
//
// # What is promised
//
//   - Two data directories with the same server id are never connected at the same time.
//     While one of them is heard, the other is refused.
//   - A server that lost its data and came back is connected once its former self is no
//     longer heard, without a restart of the others.
//   - A new connection of a server replaces its earlier one for the same lane. By then the
//     earlier one delivers nothing any more.
//   - Attempts to reach a server never end. The pause between them doubles up to a bound,
//     and is short again after a connection that lasted.
//   - Messages leave in the order in which they were offered, at most once, and only on the
//     connection that was there then. The queue is bounded. Messages beyond the bound are
//     dropped, and losses are reported, but no more often than [Bounds] say.
//   - For each snapshot the result is reported once: whether the peer has taken over all of it.
package peering
