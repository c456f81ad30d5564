// Package peering makes the decisions about connections between servers, without I/O: how
// a server introduces itself, which servers it refuses, which of two connections of one
// server counts, what is sent and what is dropped, and when to connect again. Package
// transport drives it with sockets; internal/test/vopr drives the same code in its simulated
// world.
//
// # What is promised
//
//   - Two processes with the same server id are never connected at the same time, whether
//     they have two data directories or a directory and its copy. While one of them is alive, the
//     other is refused.
//   - A process is refused as a copy only if another one with the same data has answered after
//     the refused one had introduced itself. So a server that was started again is admitted once
//     the connections of its earlier process have ended.
//   - A server that lost its data and came back is connected once the connections of its former
//     self have ended, without a restart of the others.
//   - A new connection of a server replaces its earlier one for the same lane. By then the
//     earlier one delivers nothing any more.
//   - Attempts to reach a server never end. The pause between them doubles up to a bound,
//     and is short again after a connection that lasted.
//   - Messages leave in the order in which they were offered, at most once, and only on the
//     connection that was there then. The queue is bounded. Messages beyond the bound are
//     dropped, and losses are reported, but no more often than [Bounds] say.
//   - For each snapshot the result is reported once: whether the peer has taken over all of it.
package peering
