// Package registry is the replicated state of the service: sessions, locks,
// elections and the identities of the servers. It is a pure function of the
// log: every server applies the same entries in the same order and comes to
// the same state, byte for byte, on which its snapshots are compared.
//
// # Resources
//
// A lock or an election is a resource: a set of holders with a limit, 1 by
// default, and one queue in the order of arrival. A release grants to exactly
// those at the head of the queue that now fit. A resource that nobody holds
// costs no memory, since fences come from one counter for all of them.
//
// # Fences
//
// Every grant gets a fence, larger than that of every grant before it in any
// resource: the epoch in the upper 23 bits below the sign, a counter in the
// lower 40. The sign bit stays 0, so that databases without unsigned integers
// can compare fences.
//
// # Sessions and requests
//
// A session belongs to a process. Its requests are numbered from 1 up and may
// arrive in any order, more than once: an answer is remembered until the
// client says (by its low mark) that it has it, so a request sent again is
// carried out once. A claim, which is a hold or a place in a queue, is known by
// its session and the number of the request that made it; two requests of one
// session exclude each other like those of two.
//
// # Live names
//
// Names under a prefix can be guarded by an algorithm that runs between the servers. The
// registry then says by which, and which servers take part: it has a session for each,
// its seat. Whatever changes that begins an epoch, with which the fences that follow
// begin. Locks under such a prefix are refused here with MOVED. While what guards a
// prefix changes, nothing is granted under it.
//
// The registry does not measure time. The leader does, and writes its verdicts
// into the log: expiries and the remaining time of silent sessions, each
// with the term in which it was decided, and void in any other.
package registry
