// Package registry is the replicated state of the service: sessions, locks,
// elections and the identities of the servers. It is a pure function of the
// log: every server applies the same entries in the same order and reaches
// the same state, byte for byte. Servers compare their states by digests.
//
// # Resources
//
// A lock or an election is a resource: a set of holders with a limit, 1 by
// default, and one queue in the order of arrival. A release grants to exactly
// those at the head of the queue that now fit. A resource that nobody holds
// uses no memory, since fences come from one counter for all of them.
//
// # Fences
//
// Every grant gets a fence, larger than that of every earlier grant of any
// resource. The upper 23 bits below the sign are the epoch, the lower 40 a
// counter. The sign bit stays 0, so that databases without unsigned integers
// can compare fences.
//
// # Sessions and requests
//
// A session belongs to a process. Its requests are numbered from 1 and may
// arrive in any order and more than once. An answer is stored until the
// client reports, by its low mark, that it has the answer; so a request that
// is sent again is carried out only once. A claim is a hold or a place in a
// queue. It is identified by its session and the number of the request that
// made it. Two requests of one session exclude each other like requests of
// two sessions.
//
// # Guarded names
//
// The names under a prefix can be guarded by an algorithm that runs between the servers. The
// registry then records the algorithm and the servers that take part: each has a session, its
// seat. Every change of these begins a new epoch, and later fences start with it. The
// registry refuses locks under such a prefix with MOVED. While the guard of a prefix changes,
// nothing is granted under it.
//
// # Time
//
// The registry does not measure time. The leader does, and writes its verdicts
// into the log: which sessions have expired, and the remaining time of silent
// sessions. A verdict names the term in which it was made and is void in any other.
package registry
