// Package server is the public face of a Conclave server: its configuration,
// its listeners, and what it offers on them.
//
// One port serves everything. A connection that begins like HTTP/2 is gRPC, for
// programs; any other is HTTP/1.1 with JSON, for curl and browsers, and for what
// watches over the server: /healthz, /readyz and /metrics. With TLS the client's
// ALPN decides in the same way: whoever offers http/1.1 gets it.
//
// Any server takes single calls and passes them on to the leader, over one hop
// at most. Only the leader takes the streams of Attach and Observe; the others
// end them at once and say where it is: Attach in its Farewell, Observe in the
// trailer "conclave-leader".
package server
