// Package lease is mutual exclusion by leases: locks that expire after a time. There is
// one server or, in Redlock, a majority of several servers that do not know each other.
//
// # Problem and idea
//
// A client that crashes while it holds a lock never releases it. So a server grants the
// lock for a limited time only, the TTL. The client counts that time on its own clock,
// from when it asked, and leaves earlier by a margin. If both clocks run at nearly the
// same rate, the client has left when the server frees the lock, whether it is alive or
// not.
//
// A single server is a single point of failure. Redlock has an odd number of servers,
// and a client holds the lock if a majority has granted it. Two majorities have a
// server in common, which grants the lock to one client at a time.
//
// # Rules
//
//	R1  request: take the next attempt number a and save it, send REQUEST(a) to all
//	    servers, and set the deadline to TTL - margin from now.
//	R2  server on REQUEST(a) from c:
//	    R2a the lock is free: c has it, for a. Send GRANTED(a, F) with the next fence
//	        F, saved first (Redlock has no F). The lease ends after a TTL.
//	    R2b otherwise: DENIED(a).
//	R3  client on GRANTED(a, F): count it. R3b a majority has granted, and by the
//	    client's clock the deadline has not passed: enter. R3c attempt a is over: send
//	    RELEASE(a) to that server.
//	R4  client on DENIED(a): count it.
//	R5  a majority is no longer possible, the answers do not come in time, or the
//	    deadline has passed: give up, send RELEASE(a) to all servers, and back off.
//	R6  release: RELEASE(a) to all servers. R6b withdraw: the same.
//	    R6c server on RELEASE(a) from c: if c has the lock for a, free it.
//	R7  the back-off is over: try again by R1. It lasts up to (4D+E) * 2^k after k
//	    failed attempts, at most 2^6, drawn by the host.
//	R8  the deadline: a client that is inside leaves (Revoke); RELEASE(a) to all
//	    servers.
//	R9  server: a lease has expired: free the lock.
//	R10 server after a crash: it has forgotten its leases, and any other process may
//	    hold one. So it grants nothing for a TTL.
//
// A client of Redlock draws a random value instead of an attempt number. Rank and
// attempt number serve the same purpose: a RELEASE frees only what its sender was
// granted.
//
// # Why it is safe
//
// Let r be the largest rate error of any clock. A client stays at most (TTL - margin) /
// (1-r) from its REQUEST on. A server keeps the lock for at least TTL / (1+r) from a
// later moment on. So as long as
//
//	r <= m / (2-m)    with m = margin / TTL
//
// a lease outlives the stay of its holder, whatever happens to messages. With a margin
// of one tenth, r may be up to 5.2 per cent.
//
// This is the only protection, and three things break it: a clock with a larger rate
// error, a clock that jumps because somebody sets it, and a client that is paused and
// does not look at its clock. No message can exclude them. With one server the fence
// helps: the server counts it on disk, so a later holder has a larger fence, even if
// the earlier holder enters late or stays too long. A resource that remembers the
// largest fence and refuses smaller ones serves holders in the order of their grants,
// and a stale holder does no harm. Redlock has no number that grows: two holders that
// were granted by different servers could get the same count. The servers would have to
// agree on one count, and Redlock avoids agreement.
//
// # Cost
//
// With s servers an entry costs 3s messages if the client is not a server: REQUEST,
// GRANTED and RELEASE. Each failed attempt costs as much. Client delay two message
// times.
//
// # Assumptions and deviations
//
// Clocks as above. In this model timers run by these clocks, also on servers, as Redis
// expires its keys by the wall clock. Messages may be lost, duplicated, late and out of
// order. A client may crash at any time. In Redlock fewer than half of the servers may
// be down. The single server must not be down, but may restart.
//
// There is no queue: the first request after the lock is free gets it. Redlock asks the
// servers one after the other; here all are asked at once. Extending a lease is left
// out. So is the waiting of servers for crashed clients in Gray and Cheriton, whose
// leases are for many readers. Rule R10 is theirs; Redlock calls it delayed restarts.
//
// Sources: C. Gray, D. Cheriton: Leases: an efficient fault-tolerant mechanism for
// distributed file cache consistency, SOSP 1989; S. Sanfilippo: Distributed locks with
// Redis, and Is Redlock safe?, 2016; M. Kleppmann: How to do distributed locking, 2016.
package lease

import "github.com/conclave-io/conclave/process"

// Spec describes the lock of one server, the coordinator.
var Spec = spec("lease", "Lease at one server", grayCheriton, process.Centre)

// Redlock describes the lock of several independent servers.
var Redlock = spec("redlock", "Redlock: leases from a majority of servers", sanfilippo, process.Complete)

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
			{Name: "R2b", Text: "REQUEST while the lock is taken: deny it"},
			{Name: "R3", Text: "GRANTED: count it"},
			{Name: "R3b", Text: "a majority has granted before the deadline: enter"},
			{Name: "R3c", Text: "GRANTED for an attempt that is over: return it"},
			{Name: "R4", Text: "DENIED: count it"},
			{Name: "R5", Text: "no majority, or not in time: give up and back off"},
			{Name: "R6", Text: "release: RELEASE to all servers"},
			{Name: "R6b", Text: "withdraw: RELEASE to all servers"},
			{Name: "R6c", Text: "RELEASE by the holder: free the lock"},
			{Name: "R7", Text: "the back-off is over: try again"},
			{Name: "R8", Text: "the deadline: leave"},
			{Name: "R9", Text: "a lease has expired: free the lock"},
			{Name: "R10", Text: "restart: grant nothing for a TTL"},
		},
		Options: []process.Option{
			{Name: "ttl", Default: "0", Max: 1_000_000, Text: "duration of a lease, in D; 0: ten times D plus the length of a critical section"},
			{Name: "margin", Default: "10", Max: 90, Text: "per cent of the TTL by which clients leave earlier"},
		},
		Needs:   process.Needs{Synchrony: true, Clock: true, Topology: topology},
		Cancels: true,
		Check:   check,
		New:     Flaw{}.New,
	}
	if topology == process.Centre {
		s.Messages[granted-1].Fields = append(s.Messages[granted-1].Fields, process.FieldUse{Field: process.FieldFence, Symbol: "F"})
		s.Claims = claimsOfLease
		return s
	}
	s.Options = append(s.Options, process.Option{Name: "servers", Default: "0", Max: process.MaxProcesses,
		Text: "number of servers; 0: the largest of 5, 3 and 1 that is below the number of processes"})
	s.Claims = claimsOfRedlock
	s.New = Flaw{}.NewRedlock
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
	leaseTimer // for the process that has, or may have, the lock
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
