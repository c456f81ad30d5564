// Package peering decides about the connections between servers, without input and
// output: how a server introduces itself, whom it refuses, which of two connections of one
// server counts, what is sent on it and what is dropped, and when to try again. Package transport drives it with sockets;
// internal/vopr drives the same code in its simulated world.
//
// # What is promised
//
//   - Two directories with one server id are never connected at the same time. While one
//     of them is heard, the other is refused.
//   - A server that lost its data and came back is connected once nothing is heard of what
//     it was before, without a restart of the others.
//   - A connection of a server takes the place of its earlier one of the same kind. The
//     earlier one delivers nothing any more by then.
//   - A server that cannot be reached is tried forever. The pause doubles up to a bound and
//     is short again after a connection that lasted.
//   - Messages leave in the order in which they were offered, once, and only on the connection
//     that was there then. What waits is bounded. What is beyond that is dropped, and each
//     loss is reported, but no more often than [Bounds] say.
//   - Of each snapshot it is told once whether the peer has taken over the whole of it.
package peering
