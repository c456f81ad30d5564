// Package client is what stands behind the Go API: the connection of a program to a cluster, with
// its session and its holds. The root package, which is the API for programs, and package admin,
// which is that for operators, are written in terms of a [Conn].
//
// A Conn drives the I/O-free core in package line with goroutines, a clock and gRPC. Each input for
// the core is posted to a mailbox. One goroutine at a time takes all inputs from it, gives them to
// the core, and carries out the outputs; this is mostly the goroutine that posted, because waking
// another one takes longer.
//
// This package never imports the root. It reports facts: [Interrupted], [Rejected], [NotHeld], a
// [pool.Fault], or an error of package line. The root makes its public errors from them.
package client
