// Package maekawa is mutual exclusion by votes of small sets, without deadlock.
//
// # Problem and idea
//
// Each process has a voting set that contains the process itself, and any two sets have
// a common member. Each process has one vote. A process that has the votes of its whole
// set may enter. Two processes inside at once would need the vote of a common member
// twice. A set of about the square root of N members is enough, so an entry costs far
// less than asking every process.
//
// With these rules alone, processes that ask at once can each get some of their votes
// and wait for each other forever (see the algorithm maekawa-slides). Therefore each
// request carries a logical time T, and the request with the lower (T, rank) is the older one. A
// voter that has voted for the younger of two requests asks for its vote back (INQUIRE).
// The candidate returns it (YIELD) if it knows that it cannot win yet, because another
// voter has told it so (FAILED).
//
// # Rules
//
//	R1  request: increase the clock, T is its value; send REQ(T) to the voting set.
//	R2  voter on REQ(T) from j:
//	    R2a the vote is free: j has it; GRANT(T, F), F being the highest fence
//	        that the voter knows of.
//	    Otherwise queue (T, j), oldest first, and
//	    R2b if it is not older than the queue and the candidate: send FAILED to j.
//	    R2c if it is the oldest: send INQUIRE to the candidate, unless already sent,
//	    R2d and FAILED to the request that was the oldest before (Sanders).
//	R3  candidate on GRANT: count it. R3b with all votes: enter, with the fence
//	    1 + the largest F. R3c the request was withdrawn: return the vote by REL.
//	R4  on FAILED from a voter that has not voted since: remember it.
//	R5  on INQUIRE while waiting: remember it.
//	R6  whenever some voter has said FAILED: send YIELD to each voter that inquires
//	    and whose vote is here. A returned vote counts as FAILED until it comes again.
//	R7  voter on YIELD: queue the candidate again and vote for the oldest.
//	R8  release: REL(T, fence) to the set. R8b withdraw: REL(T) to the set.
//	R9  voter on REL from the candidate: note the fence, vote for the oldest in the
//	    queue. R9b from any other process: remove its request from the queue.
//
// A message from a process to itself is not sent but takes effect at once. A message
// whose T is not that of the current request is stale and ignored, except GRANT.
//
// # Why it is safe and live
//
// A vote is with one process until that process sends YIELD or REL for it, which it does
// only while it is not inside. Every request in the queue of a voter, except perhaps the
// head, has been told FAILED. The head has not been told only if it is older than the
// candidate, and then the candidate was asked to yield. So if nothing moves, every
// process waits for an older request, and such waits form no cycle. A process raises its
// clock with every request that it hears of, so only finitely many requests are older
// than a given one. A fence is one more than those known to all members of a set, and one
// of them has heard of the previous entry.
//
// # Cost
//
// K is the size of the voting set. Idle: 3(K-1) messages per entry. Saturated: 4(K-1)
// if all messages take the same time, because each request then meets one FAILED at
// each voter. Never more than 7(K-1): REQ, FAILED, GRANT, REL, and INQUIRE, YIELD and a
// second GRANT for a request that is overtaken. Client delay two message times.
// Synchronization delay one or two, more if a vote has to be yielded first.
//
// # Voting sets
//
// Any sets will do if every two of them have a common member. Package process makes
// them from a finite projective plane (K = q+1 for N = q^2+q+1), a grid (K = 2
// sqrt(N)-1), or a binary tree. In a tree the set of a process is a path from the root
// to a leaf (K = log2(N+1), but the root votes for every process). If a process is
// known to be down when the sets are made, the paths below both its children replace
// it.
//
// # Assumptions and deviations
//
// Links lose and duplicate nothing; order does not matter. A crash is survived only if
// the crashed process is in no voting set of a process that asks, itself included.
// Every process whose set has a crashed member waits forever, and so do those that need
// a vote it had taken. It cannot simply be declared crashed: no other process knows
// whether it was inside, and with which fence.
//
// Withdrawal (R8b, R9b, R3c) and the fence are additions.
//
// Sources: M. Maekawa, A sqrt(N) algorithm for mutual exclusion in decentralized
// systems, 1985; B. Sanders, The information structure of distributed mutual exclusion
// algorithms, 1987, for R2d; D. Agrawal and A. El Abbadi, An efficient and
// fault-tolerant solution for distributed mutual exclusion, ACM TOCS 9(1), 1991, for
// the sets of a tree. [D1] has the votes, but none of the rules against deadlock. It
// counts 3 sqrt(N) messages, as if K were sqrt(N)+1; in a grid K is 2 sqrt(N)-1.
package maekawa

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "maekawa",
	Title:     "Maekawa's voting without deadlock",
	Paper:     "M. Maekawa: A sqrt(N) algorithm for mutual exclusion in decentralized systems, ACM TOCS 3(2), 1985, doi:10.1145/214438.214445; B. A. Sanders: The information structure of distributed mutual exclusion algorithms, ACM TOCS 5(3), 1987, doi:10.1145/24068.28052",
	Documents: []string{"[D1]"},
	Family:    process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "REQ", Part: process.Asks, Fields: []process.FieldUse{stamp}},
		{Name: "GRANT", Part: process.Answers, Fields: []process.FieldUse{stamp, {Field: process.FieldFence, Symbol: "F"}}},
		{Name: "FAILED", Fields: []process.FieldUse{stamp}},
		{Name: "INQUIRE", Fields: []process.FieldUse{stamp}},
		{Name: "YIELD", Part: process.Asks, Fields: []process.FieldUse{stamp}},
		{Name: "REL", Fields: []process.FieldUse{stamp, {Field: process.FieldFence, Symbol: "f"}}},
	},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "request: stamp it, REQ to the voting set"},
		{Name: "R2a", Text: "REQ while the vote is free: vote"},
		{Name: "R2b", Text: "REQ that is not the oldest: queue it and send FAILED"},
		{Name: "R2c", Text: "REQ that is the oldest: queue it and ask the candidate to return the vote"},
		{Name: "R2d", Text: "send FAILED to the request that was the oldest before"},
		{Name: "R3", Text: "GRANT: count the vote"},
		{Name: "R3b", Text: "all votes: enter"},
		{Name: "R3c", Text: "GRANT for a request that was withdrawn: return the vote"},
		{Name: "R4", Text: "FAILED: remember it"},
		{Name: "R5", Text: "INQUIRE: remember it"},
		{Name: "R6", Text: "some voter said FAILED: return the votes that voters ask for"},
		{Name: "R7", Text: "YIELD: queue the candidate again, vote for the oldest"},
		{Name: "R8", Text: "release: REL to the voting set"},
		{Name: "R8b", Text: "withdraw: REL to the voting set"},
		{Name: "R9", Text: "REL of the candidate: vote for the oldest in the queue"},
		{Name: "R9b", Text: "REL of a request that was withdrawn: remove it from the queue"},
	},
	State: []process.StateSpec{
		{Name: "st", Text: "whether it wants to enter: IDLE, WAIT or IN"},
		{Name: "C", Text: "its clock: the largest T that it has seen"},
		{Name: "T", Text: "the time of its latest request"},
		{Name: "fence", Text: "while it waits, the largest F of its votes; inside, the fence of the entry"},
		{Name: "got", Text: "the voters whose votes it has"},
		{Name: "failed", Text: "the voters that answered FAILED or got their votes back"},
		{Name: "inq", Text: "the voters that ask for their votes (INQUIRE)"},
		{Name: "lock", Text: "its own vote: the time and the process of the request that has it"},
		{Name: "q", Text: "the requests that want its vote, oldest first"},
		{Name: "inquired", Text: "whether it has asked for its vote (INQUIRE)"},
		{Name: "F", Text: "the highest fence that it knows"},
	},
	Needs:   process.Needs{Reliable: true, NoDuplication: true, Topology: process.Quorums},
	Claims:  claims,
	Cancels: true,
	New:     Flaw{}.New,
}

var stamp = process.FieldUse{Field: process.FieldClock, Symbol: "T"}

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.FencesGrow},
		{Property: process.Progress},
		{Property: process.OrderHappenedBefore, Fails: true,
			When: "an earlier request may lack a vote that a later one has, and neither is told FAILED"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: "K is the size of the voting set", Exact: perVoter("3(K-1)", 3),
			Said: []process.Figure{{Document: "[D1]", Text: "3 sqrt(N)", Wrong: "assumes K = sqrt(N)+1 and sends nothing to itself"}}},
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, When: "every message takes D, so that each request meets one FAILED; K is the mean size",
			Exact: perVoter("4(K-1)", 4)},
		{Metric: process.MessagesPerEntry, Regime: process.AnyLoad, When: "nobody withdraws; K is the mean size",
			Lo: perVoter("3(K-1)", 3), Hi: perVoter("7(K-1)", 7)},
		{Metric: process.ClientDelay, Regime: process.Idle, When: "K >= 2", Exact: process.Constant("2", 2),
			Said: []process.Figure{{Document: "[D1]", Text: "2 sqrt(N)", Wrong: "counts messages; those of different voters travel at the same time"}}},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: "K >= 2", Lo: process.Constant("1", 1), Hi: process.Constant("2", 2)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "timestamps; an INQUIRE may overtake its GRANT, and a GRANT may overtake a FAILED"},
		{Fault: process.CrashBystander, When: "it is in the voting set of nobody who asks", How: "no process waits for its vote"},
	},
}

func perVoter(text string, each float64) *process.Formula {
	return &process.Formula{Text: text, Eval: func(p process.Params) float64 { return each * float64(p.K-1) }}
}

const (
	req process.Type = iota + 1
	grant
	failed
	inquire
	yield
	rel
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2a
	ruleR2b
	ruleR2c
	ruleR2d
	ruleR3
	ruleR3b
	ruleR3c
	ruleR4
	ruleR5
	ruleR6
	ruleR7
	ruleR8
	ruleR8b
	ruleR9
	ruleR9b
)
