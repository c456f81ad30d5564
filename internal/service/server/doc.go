// Package server is the public interface of a Conclave server: how it starts and stops,
// its listeners, and the calls of clients.
//
// One port serves everything. A connection that starts with the HTTP/2 preface is gRPC,
// for programs. Any other is HTTP/1.1 with JSON, for curl, browsers and monitoring:
// /healthz, /readyz and /metrics. With TLS, ALPN decides: a client that offers http/1.1
// gets it.
//
// Any server takes single calls and passes them on to the leader, over at most one hop.
// Only the leader takes the streams of Attach and Observe. The others end them at once and
// name the leader: Attach in its Farewell, Observe in the trailer "conclave-leader".
package server
