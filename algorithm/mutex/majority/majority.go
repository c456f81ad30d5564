// Package majority is mutual exclusion by the votes of most replicas of a
// resource, whose coordinators may forget.
//
// # Problem and idea
//
// A resource has n replicas, found in a distributed hash table; the process that
// is responsible for a replica is its coordinator and has one vote. Who gets m
// votes, more than half, may enter. Whoever gets too few gives back what it got
// and tries again after a random while. Coordinators keep nothing on disk for a
// vote: one that crashes is back soon, but has forgotten to whom it gave it.
// Mutual exclusion then holds with a probability that can be made very high, and
// not for certain.
//
// Here replica i is with the process of rank i-1: a table with one replica per
// node. Every process may be a client.
//
// # Rules
//
//	R1  request: take the next attempt number a, REQUEST(a) to all coordinators.
//	R2  coordinator on REQUEST(a) from c:
//	    R2a nobody has the vote: c has it, for a; VOTE(a, F), F being the highest
//	        fence that the coordinator knows of.
//	    R2b c has it for a: send the same again.
//	    R2c another attempt has it: DENIED(a).
//	R3  client on VOTE(a, F): count it. R3b with m votes: enter, with the fence
//	    1 + the largest F; votes that come later are kept. R3c the attempt is
//	    over: give the vote back by RELEASE. A vote is never ignored.
//	R4  client on DENIED(a): count it. R4b if m votes cannot be had any more: give
//	    up, RELEASE to those who voted, and back off.
//	R5  the answers do not come in time: give up as in R4b.
//	R6  release: RELEASE(a, f) to those who voted. R6b withdraw: the same. Every
//	    RELEASE carries the fence of the sender's last entry.
//	    R6c coordinator on RELEASE(a, f) from c: note f; if c has the vote for a,
//	    it is free.
//	R7  the back-off is over: try again by R1. It lasts up to (4D+E) * 2^k after
//	    k failed attempts, at most 2^6, drawn by the host.
//	R8  coordinator after a crash: the vote is free. Fences are on disk.
//
// With mode=lease clients may crash, too:
//
//	R9  a vote is free again after a time L.
//	R10 with m votes a client does not enter yet but claims its fence: CLAIM(a, f).
//	    R10b the coordinator notes it on disk if c still has the vote, and answers
//	    CLAIMED(a), else DENIED(a). With m CLAIMED the client enters by R3b.
//	R11 7/8 of L after it sent its REQUESTs the client must be out: it leaves by
//	    itself (Revoke), or gives up.
//
// # Why it is safe
//
// Without crashes a vote is with one attempt until that is over, and two sets of
// m of n votes have 2m-n common members. So two are inside at once only if as many
// of the first one's coordinators have forgotten, while it is inside; late votes
// raise that number. With p the chance of that for one coordinator, the chance of
// a violation is at most the sum over k >= 2m-n of C(m,k) p^k (1-p)^(m-k): for
// n=8, m=5 and coordinators that lose 3 seconds an hour, 7 in a million. A common
// coordinator that has not forgotten heard the last fence with its RELEASE, or
// with its CLAIM before the entry, so fences grow.
//
// # Cost
//
// Without contention 3n messages, or 5n with leases, if the client is no
// coordinator itself; every failed attempt costs 2n more and one for each vote
// given back. Client delay two message times per attempt, four with leases.
//
// # Assumptions and deviations
//
// Links may repeat and reorder; a lost VOTE or RELEASE is repaired by leases only.
// Up to n-m coordinators may be down. Nothing else bounds the wait than chance: a
// client may always come too late, and three that get one of three votes each will
// all back off. Without leases the crash of a client takes its votes with it. With
// leases mutual exclusion needs clocks that run alike and clients that are not
// paused; the fence protects the resource from those, and from forgetful
// coordinators, for it is on most coordinators' disks before the entry.
//
// [D3] asks "m n/2" coordinators, having lost the sign >, and
// counts 2mk+m messages for k attempts, as if only m were asked, all answered, and
// no vote came back. Leases and fences are ours. The queue at each replica,
// and clients that hand votes to the first in it (Sigma), which the paper has
// against low throughput under contention, are left out, as in the document.
//
// Sources: S. Lin, Q. Lian, M. Chen, Z. Zhang, A practical distributed mutual
// exclusion protocol in dynamic peer-to-peer systems, 2004;
// [D3].
package majority

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "majority",
	Title:     "Majority voting over replicas",
	Paper:     "S.-D. Lin, Q. Lian, M. Chen, Z. Zhang: A practical distributed mutual exclusion protocol in dynamic peer-to-peer systems, IPTPS 2004, LNCS 3279",
	Documents: []string{doc003},
	Family:    process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "REQUEST", Fields: []process.FieldUse{attempt}},
		{Name: "VOTE", Fields: []process.FieldUse{attempt, {Field: process.FieldFence, Symbol: "F"}}},
		{Name: "DENIED", Fields: []process.FieldUse{attempt}},
		{Name: "RELEASE", Fields: []process.FieldUse{attempt, {Field: process.FieldFence, Symbol: "f"}}},
		{Name: "CLAIM", Fields: []process.FieldUse{attempt, {Field: process.FieldFence, Symbol: "f"}}},
		{Name: "CLAIMED", Fields: []process.FieldUse{attempt}},
	},
	Timers: []string{"answers", "backoff", "deadline", "lease"},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "request: number the attempt, REQUEST to all coordinators"},
		{Name: "R2a", Text: "REQUEST while the vote is free: vote"},
		{Name: "R2b", Text: "REQUEST of who has the vote, again: send the same VOTE"},
		{Name: "R2c", Text: "REQUEST while another attempt has the vote: deny"},
		{Name: "R3", Text: "VOTE: count it"},
		{Name: "R3b", Text: "enough votes, or claims: enter"},
		{Name: "R3c", Text: "VOTE for an attempt that is over: give it back"},
		{Name: "R4", Text: "DENIED: count it"},
		{Name: "R4b", Text: "too few votes are left: give up and back off"},
		{Name: "R5", Text: "no answer in time: give up and back off"},
		{Name: "R6", Text: "release: RELEASE to those who voted"},
		{Name: "R6b", Text: "withdraw: RELEASE to those who voted"},
		{Name: "R6c", Text: "RELEASE: the vote is free"},
		{Name: "R7", Text: "the back-off is over: try again"},
		{Name: "R8", Text: "back after a crash: the vote is forgotten"},
		{Name: "R9", Text: "the lease is over: the vote is free"},
		{Name: "R10", Text: "enough votes: claim the fence"},
		{Name: "R10b", Text: "CLAIM of who has the vote: note it"},
		{Name: "R10c", Text: "CLAIM of anyone else: deny"},
		{Name: "R11", Text: "the own deadline: leave"},
	},
	Options: []process.Option{
		{Name: "mode", Default: plain, Values: []string{plain, lease}, Text: "whether a vote expires, so that clients may crash"},
		{Name: "replicas", Default: "0", Max: process.MaxProcesses,
			Text: "the number n of replicas; 0: 4, or one less than there are processes"},
		{Name: "votes", Default: "0", Max: process.MaxProcesses,
			Text: "the number m of votes needed, more than half of n; 0: three quarters of n"},
	},
	Needs:   process.Needs{Reliable: true},
	Claims:  claims,
	Cancels: true,
	Check:   check,
	New:     newMachine,
}

// The values of the mode option.
const (
	plain = "plain"
	lease = "lease"
)

var attempt = process.FieldUse{Field: process.FieldSeq, Symbol: "a"}

const (
	request process.Type = iota + 1
	vote
	denied
	release
	claim
	claimed
)

const (
	answersTimer process.Timer = iota + 1
	backoffTimer
	deadlineTimer
	leaseTimer
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2a
	ruleR2b
	ruleR2c
	ruleR3
	ruleR3b
	ruleR3c
	ruleR4
	ruleR4b
	ruleR5
	ruleR6
	ruleR6b
	ruleR6c
	ruleR7
	ruleR8
	ruleR9
	ruleR10
	ruleR10b
	ruleR10c
	ruleR11
)
