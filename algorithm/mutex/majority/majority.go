// Package majority is mutual exclusion by majority voting over the replicas of a
// resource. Their coordinators may forget their votes.
//
// # Problem and idea
//
// A resource has n replicas, found in a distributed hash table. The process that is
// responsible for a replica is its coordinator and has one vote. A client that gets m
// votes, more than half, may enter. A client that gets too few returns its votes and
// tries again after a random time. Coordinators do not store votes on disk: one that
// crashes is back soon, but has forgotten which client has its vote. So mutual
// exclusion holds with a probability that can be made very high, but not with
// certainty.
//
// Here process rank i-1 has replica i: a table with one replica per node. Every process
// may be a client.
//
// # Rules
//
//	R1  request: take the next attempt number a, send REQUEST(a) to all coordinators.
//	R2  coordinator on REQUEST(a) from c:
//	    R2a the vote is free: c has it, for a; send VOTE(a, F), F being the highest
//	        fence that the coordinator knows of.
//	    R2b c has it for a: send the same again.
//	    R2c another attempt has it: DENIED(a).
//	R3  client on VOTE(a, F): count it. R3b with m votes: enter, with the fence
//	    1 + the largest F; later votes are kept. R3c the attempt is over: return
//	    the vote by RELEASE. A vote is never ignored.
//	R4  client on DENIED(a): count it. R4b if m votes are no longer possible: give
//	    up, send RELEASE to those that voted, and back off.
//	R5  the answers do not come in time: give up as in R4b.
//	R6  release: RELEASE(a, f) to those that voted. R6b withdraw: the same. Every
//	    RELEASE carries the fence of the sender's last entry.
//	    R6c coordinator on RELEASE(a, f) from c: note f; if c has the vote for a,
//	        free it.
//	R7  the back-off is over: try again by R1. It lasts up to (4D+E) * 2^k after
//	    k failed attempts, at most 2^6, drawn by the host.
//	R8  coordinator after a crash: the vote is free. Fences are on disk.
//
// With mode=lease clients may crash, too:
//
//	R9  a vote is free again after a time L.
//	R10 with m votes a client does not enter yet but claims its fence: CLAIM(a, f).
//	    R10b if c still has the vote, the coordinator saves f on disk and answers
//	    CLAIMED(a); otherwise DENIED(a). With m CLAIMED the client enters by R3b.
//	R11 7/8 of L after it sent its REQUESTs, the client must be out: it leaves
//	    (Revoke), or gives up.
//
// # Why it is safe
//
// Without crashes one attempt has a vote until the attempt is over, and two sets of m
// out of n votes have at least 2m-n common members. So two clients are inside at once
// only if that many coordinators of the first client forget while it is inside; votes
// that it gets after entering raise that number. Let p be the probability that one
// coordinator forgets in that time. The probability of a violation is at most the sum
// over k >= 2m-n of C(m,k) p^k (1-p)^(m-k). For n=8, m=5 and coordinators that are down
// 3 seconds an hour, that is 7 in a million. A common coordinator that has not
// forgotten learned the last fence from its RELEASE, or from its CLAIM before the
// entry, so fences grow.
//
// # Cost
//
// Without contention 3n messages, or 5n with leases, if the client is not a
// coordinator. Every failed attempt costs 2n more, and one for each returned vote.
// Client delay two message times per attempt, four with leases.
//
// # Assumptions and deviations
//
// Links may duplicate and reorder; only leases repair a lost VOTE or RELEASE. Up to n-m
// coordinators may be down. The wait has no bound, only a probability: a client may
// always come too late, and three clients that get one of three votes each will all
// back off. Without leases the crash of a client takes its votes with it. With leases
// mutual exclusion needs clocks that run at the same rate and clients that are not
// paused. The fence protects the resource from paused clients and from forgetful
// coordinators, because a majority of coordinators has it on disk before the entry.
//
// [D3] asks "m n/2" coordinators (the sign > was lost), and counts 2mk+m messages for k
// attempts, as if only m coordinators were asked, all answered, and no vote was
// returned. Leases and fences are additions. The paper also has a queue at each
// replica, and clients that pass votes to its head (Sigma), to improve throughput under
// contention. They are left out, as in the document.
//
// Sources: S. Lin, Q. Lian, M. Chen, Z. Zhang, A practical distributed mutual
// exclusion protocol in dynamic peer-to-peer systems, 2004;
// [D3].
package majority

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "majority",
	Title:     "Majority voting over replicas",
	Paper:     "S.-D. Lin, Q. Lian, M. Chen, Z. Zhang: A practical distributed mutual exclusion protocol in dynamic peer-to-peer systems, IPTPS 2004, LNCS 3279",
	Documents: []string{"[D3]"},
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
		{Name: "R2b", Text: "REQUEST repeated by the process that has the vote: send the same VOTE"},
		{Name: "R2c", Text: "REQUEST while another attempt has the vote: deny"},
		{Name: "R3", Text: "VOTE: count it"},
		{Name: "R3b", Text: "enough votes, or claims: enter"},
		{Name: "R3c", Text: "VOTE for an attempt that is over: return it"},
		{Name: "R4", Text: "DENIED: count it"},
		{Name: "R4b", Text: "not enough votes are left: give up and back off"},
		{Name: "R5", Text: "no answer in time: give up and back off"},
		{Name: "R6", Text: "release: RELEASE to those that voted"},
		{Name: "R6b", Text: "withdraw: RELEASE to those that voted"},
		{Name: "R6c", Text: "RELEASE: the vote is free"},
		{Name: "R7", Text: "the back-off is over: try again"},
		{Name: "R8", Text: "restart: the vote is forgotten"},
		{Name: "R9", Text: "the lease has expired: the vote is free"},
		{Name: "R10", Text: "enough votes: claim the fence"},
		{Name: "R10b", Text: "CLAIM by the process that has the vote: note it"},
		{Name: "R10c", Text: "CLAIM by any other process: deny it"},
		{Name: "R11", Text: "the client's deadline: leave"},
	},
	Options: []process.Option{
		{Name: "mode", Default: plain, Values: []string{plain, lease}, Text: "whether a vote expires, so that clients may crash"},
		{Name: "replicas", Default: "0", Max: process.MaxProcesses,
			Text: "the number n of replicas; 0: 4, or one less than the number of processes"},
		{Name: "votes", Default: "0", Max: process.MaxProcesses,
			Text: "the number m of votes needed, more than half of n; 0: three quarters of n"},
	},
	Needs:   process.Needs{Reliable: true},
	Claims:  claims,
	Cancels: true,
	Check:   check,
	New:     Flaw{}.New,
}

const fewDown = "at most n-m coordinators are down"

const (
	outsider = "no other client; the client is not a coordinator"
	insider  = "no other client; the client is one of the coordinators"
	onTime   = "while the deadlines of clients expire before the leases of coordinators, and no client is paused"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion, Mode: plain, When: "fewer than 2m-n coordinators restart during one entry"},
		{Property: process.FencesGrow, Mode: plain, When: "fewer than 2m-n coordinators restart during one entry"},
		{Property: process.MutualExclusion, Mode: lease, Fails: true, When: onTime},
		{Property: process.FencesGrow, Mode: lease, Fails: true, When: onTime},
		{Property: process.Progress, When: "with probability 1: no time bound for getting enough votes"},
		{Property: process.OrderHappenedBefore, Fails: true, When: "the first client to end its back-off wins"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Idle, Mode: plain, When: outsider, Exact: times("3n", 3, 0),
			Said: []process.Figure{{Document: "[D3]", Text: "2mk+m",
				Wrong: "all n are asked and answer, and all votes are returned; the figure asks m, and failed attempts keep their votes"}}},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, Mode: plain, When: insider, Exact: times("3(n-1)", 3, -3)},
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, Mode: plain,
			When: "clients are not coordinators; each failed attempt adds 2n and the returned votes",
			Lo:   &process.Formula{Text: "2n+m", Eval: func(p process.Params) float64 { return float64(2*p.Replicas + p.M) }}},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, Mode: lease, When: outsider + "; every message takes D", Exact: times("5n", 5, 0)},
		{Metric: process.ClientDelay, Regime: process.Idle, Mode: plain, When: outsider, Exact: process.Constant("2", 2),
			Said: []process.Figure{{Document: "[D3]", Text: "2mk", Wrong: "counts messages; those of different coordinators travel at the same time"}}},
		{Metric: process.ClientDelay, Regime: process.Idle, Mode: lease, When: outsider, Exact: process.Constant("4", 4)},
		{Metric: process.SyncDelay, Regime: process.Saturated, Mode: plain, When: "clients are not coordinators; plus the rest of the back-off", Lo: process.Constant("2", 2)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "attempt numbers; RELEASE goes only to coordinators whose VOTE came"},
		{Fault: process.Duplication, How: "attempt numbers; a vote given twice is returned"},
		{Fault: process.CrashBystander, Mode: plain, When: fewDown + " and no vote is on its way to it", How: "R5"},
		{Fault: process.CrashAny, Mode: lease, When: fewDown, How: "R5; the votes of a client expire, and its fence is known"},
	},
}

// times is each*n + add.
func times(text string, each, add float64) *process.Formula {
	return &process.Formula{Text: text, Eval: func(p process.Params) float64 { return each*float64(p.Replicas) + add }}
}

// Sizes returns the number of replicas and the number of votes needed. The coordinators
// are the processes whose rank is below the number of replicas.
func Sizes(c *process.Config) (replicas, votes int) {
	replicas, votes = c.IntOption("replicas", 0), c.IntOption("votes", 0)
	if replicas == 0 {
		replicas = max(1, min(4, c.N-1))
	}
	if votes == 0 {
		votes = (3*replicas + 3) / 4
	}
	return replicas, votes
}

// check refuses a number of votes that is not a majority: two clients could have them
// at once.
func check(c *process.Config) error {
	n, m := Sizes(c)
	if n > c.N {
		return fmt.Errorf("majority: replicas: %d: must be at most %d, the number of processes", n, c.N)
	}
	if 2*m <= n || m > n {
		return fmt.Errorf("majority: votes: %d of %d replicas: must be more than half and at most all, %d to %d", m, n, n/2+1, n)
	}
	return nil
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
