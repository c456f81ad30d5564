// Package peering decides about the connections between servers, without input and
// output: how a server introduces itself, whom it refuses, which of two connections of one
// server counts, and when to try again. Package transport drives it with sockets;
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
package peering
