// Package node hosts a replica: it gives it a disk, a network, a clock and
// clients. One goroutine owns the replica and passes it one input after
// another; a second writes to the disk, so that persisting and replicating
// overlap and everything that arrives during an fsync shares the next one.
//
// Queues are bounded. Requests and messages wait at the door while the disk
// is behind; a client that does not take its replies is let go.
//
// A failed write, a failed fsync or a failed assertion stops the node for good:
// it never goes on with a disk that may have forgotten something.
package node
