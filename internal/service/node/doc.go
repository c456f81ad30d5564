// Package node runs a replica with a disk, a network, a clock and clients. One
// goroutine owns the replica and passes it one input after another. A second one
// writes to the disk, so that writing and replicating overlap, and everything that
// arrives during an fsync shares the next one.
//
// Queues are bounded. Requests and messages wait while the disk is behind. A client
// that does not read its replies is disconnected.
//
// A failed write, a failed fsync or a failed assertion stops the node for good:
// the disk may have lost something, so the node must not continue with it.
package node
