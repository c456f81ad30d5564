// Package lease is mutual exclusion by leases: locks that end by themselves after a
// time, at one server or, as Redlock has it, at most of several that know nothing of
// each other.
//
// # Problem and idea
//
// A client that crashes while it holds a lock never gives it back. So a server grants
// the lock for a time only, the TTL. The client counts that time on its own clock, from
// when it asked, and leaves a margin earlier. If both clocks run nearly alike, the client
// has left when the server frees the lock, whether it is alive or not.
//
// One server is one machine that may fail. Redlock has an odd number of servers, and a
// client holds the lock if most of them have granted it. Two majorities have a server in
// common, which grants once at a time.
//
// # Rules
//
//	R1  request: take the next attempt number a and save it, REQUEST(a) to all
//	    servers, and set the deadline to TTL - margin from now.
//	R2  server on REQUEST(a) from c:
//	    R2a the lock is free: c has it, for a. GRANTED(a, F), F being the next fence,
//	        saved before (Redlock: none). The lease ends after a TTL.
//	    R2b otherwise: DENIED(a).
//	R3  client on GRANTED(a, F): count it. R3b most servers have granted, and by its
//	    clock the deadline has not passed: enter. R3c attempt a is over: RELEASE(a) to
//	    that server.
//	R4  client on DENIED(a): count it.
//	R5  a majority cannot be had any more, the answers do not come in time, or the
//	    deadline has passed: give up, RELEASE(a) to all servers, and back off.
//	R6  release: RELEASE(a) to all servers. R6b withdraw: the same.
//	    R6c server on RELEASE(a) from c: if c has the lock for a, it is free.
//	R7  the back-off is over: try again by R1. It lasts up to (4D+E) * 2^k after k
//	    failed attempts, at most 2^6, drawn by the host.
//	R8  the deadline: whoever is inside leaves (Revoke), RELEASE(a) to all servers.
//	R9  server: a lease is over, the lock is free.
//	R10 server after a crash: any other process may hold a lease that it has
//	    forgotten, so it grants nothing for a TTL.
//
// A client of Redlock draws a random value instead of the attempt number. Rank and number
// serve the same end: a RELEASE frees only what its sender was granted.
//
// # Why it is safe
//
// Let no clock be wrong by more than the part r of the time. A client stays for at most
// (TTL - margin) / (1-r) from its REQUEST on, a server keeps the lock for at least
// TTL / (1+r) from a later moment on. So as long as
//
//	r <= m / (2-m)    with m = margin / TTL
//
// a lease outlives the stay of its holder, whatever the messages do. With the margin of a
// tenth that is a drift of 5.2 per cent.
//
// That is all there is, and three things break it: a clock that is wrong by more, a clock
// that jumps, because somebody sets it, and a client that does not look at its clock
// because it is paused. None of them can be excluded by a message. With one server the
// fence helps: it is counted on the server's disk, so whoever is granted later has a larger
// one, even if the earlier holder enters late or stays too long. A resource that remembers
// the largest fence refuses a smaller one, so it serves holders in the order of their
// grants, and a stale one does no harm. Redlock has no number that grows: the counts of its
// servers would be the same for two holders that were granted by different ones, and
// agreement on one count is what it does without.
//
// # Cost
//
// With s servers 3s messages per entry, if the client is none of them: REQUEST, GRANTED
// and RELEASE. Each failed attempt costs as much. Client delay two message times.
//
// # Assumptions and deviations
//
// Clocks as above. Timers of this model run by them, also those of servers, as Redis
// expires its keys by the wall clock. Messages may be lost, repeated, late and out of
// order. A client may crash at any time. Of Redlock's servers fewer than half may be
// down, the single server may not, but it may come back.
//
// There is no queue: who comes first after the lock is free, gets it. Redlock asks the
// servers one after the other, here all are asked at once. Extending a lease is left
// out. So is the time that servers wait for crashed clients in Gray and Cheriton's
// leases, which are of many readers. The rule R10 is theirs, and Redlock's delayed
// restarts.
//
// Sources: C. Gray, D. Cheriton: Leases: an efficient fault-tolerant mechanism for
// distributed file cache consistency, SOSP 1989; S. Sanfilippo: Distributed locks with
// Redis, and Is Redlock safe?, 2016; M. Kleppmann: How to do distributed locking, 2016.
package lease

import "github.com/conclave-io/conclave/process"

// Spec describes the lock of one server, the coordinator.
var Spec = spec("lease", "Lease at one server", grayCheriton, process.Centre)

// Redlock describes the lock of several independent servers.
var Redlock = spec("redlock", "Redlock: leases at most of several servers", sanfilippo, process.Complete)

const (
	grayCheriton = "C. Gray, D. Cheriton: Leases: An Efficient Fault-Tolerant Mechanism for Distributed File Cache Consistency, SOSP 1989, doi:10.1145/74850.74870"
	sanfilippo   = "S. Sanfilippo: Distributed locks with Redis, https://redis.io/docs/latest/develop/use/patterns/distributed-locks; M. Kleppmann: How to do distributed locking, 2016, https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html"
)

func spec(name, title, paper string, topology process.TopologyKind) *process.Spec {
	s := &process.Spec{
		Name:   name,
		Title:  title,
		Paper:  paper,
		Family: process.Mutex,
		Messages: []process.MessageSpec{
			{Name: "REQUEST", Fields: []process.FieldUse{attempt}},
			{Name: "GRANTED", Fields: []process.FieldUse{attempt}},
			{Name: "DENIED", Fields: []process.FieldUse{attempt}},
			{Name: "RELEASE", Fields: []process.FieldUse{attempt}},
		},
		Timers: []string{"answers", "backoff", "deadline", "lease"},
		Rules: []process.RuleSpec{
			{Name: "R1", Text: "request: number the attempt, REQUEST to all servers"},
			{Name: "R2a", Text: "REQUEST while the lock is free: grant it for a TTL"},
			{Name: "R2b", Text: "REQUEST while it is not: deny"},
			{Name: "R3", Text: "GRANTED: count it"},
			{Name: "R3b", Text: "most have granted, before the deadline: enter"},
			{Name: "R3c", Text: "GRANTED for an attempt that is over: give it back"},
			{Name: "R4", Text: "DENIED: count it"},
			{Name: "R5", Text: "no majority, or not in time: give up and back off"},
			{Name: "R6", Text: "release: RELEASE to all servers"},
			{Name: "R6b", Text: "withdraw: RELEASE to all servers"},
			{Name: "R6c", Text: "RELEASE of who has the lock: it is free"},
			{Name: "R7", Text: "the back-off is over: try again"},
			{Name: "R8", Text: "the deadline: leave"},
			{Name: "R9", Text: "the lease is over: the lock is free"},
			{Name: "R10", Text: "back after a crash: grant nothing for a TTL"},
		},
		Options: []process.Option{
			{Name: "ttl", Default: "0", Max: 1_000_000, Text: "how long a lease lasts, in D; 0: ten times D and the length of a critical section"},
			{Name: "margin", Default: "10", Max: 90, Text: "by how many per cent of the TTL clients leave earlier"},
		},
		Needs:   process.Needs{Synchrony: true, Clock: true, Topology: topology},
		Cancels: true,
		Check:   check,
		New:     newMachine,
	}
	if topology == process.Centre {
		s.Messages[granted-1].Fields = append(s.Messages[granted-1].Fields, process.FieldUse{Field: process.FieldFence, Symbol: "F"})
		s.Claims = claimsOfLease
		return s
	}
	s.Options = append(s.Options, process.Option{Name: "servers", Default: "0", Max: process.MaxProcesses,
		Text: "the number of servers; 0: 5, 3 or 1, fewer than there are processes"})
	s.Claims = claimsOfRedlock
	s.New = newRedlock
	return s
}

var attempt = process.FieldUse{Field: process.FieldSeq, Symbol: "a"}

const (
	request process.Type = iota + 1
	granted
	denied
	release
)

const (
	answersTimer process.Timer = iota + 1
	backoffTimer
	deadlineTimer
	leaseTimer // about the process that has, or may have, the lock
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2a
	ruleR2b
	ruleR3
	ruleR3b
	ruleR3c
	ruleR4
	ruleR5
	ruleR6
	ruleR6b
	ruleR6c
	ruleR7
	ruleR8
	ruleR9
	ruleR10
)
