// Package franklin is the election of Franklin on a bidirectional ring: in each phase,
// only the processes that are better than the nearest candidates on both sides remain.
//
// # Problem and idea
//
// A process knows its two neighbors on the ring, not how many processes there are. Each
// candidate sends its label in both directions, to the nearest candidate there. So it
// also gets two labels, and gives up if one of them is better than its own. Of two
// neighboring candidates at most one remains, so each phase removes at least half of
// them. A process that has given up passes labels on, and the remaining candidates are
// neighbors in the next phase. A candidate that gets its own label from both sides is
// the only one left.
//
// # Rules
//
//	F1  start: unless this process takes part already, become a candidate of phase 1, and
//	    send LABEL(i, 1) left and right.
//	F2  the first message of a round: the same, before anything else.
//	F3  candidate of phase k, on LABEL(j, k) from one side: wait for that from the other.
//	F4  candidate of phase k, with the labels j and l from both sides:
//	    F4a i is better than j and l: send LABEL(i, k+1) left and right, and continue with
//	        the labels that F5 has kept.
//	    F4b j or l is better than i: give up, and pass on the labels that F5 has kept.
//	    F4c both are i: no other candidate is left. i leads, send ELECTED(i) right.
//	F5  candidate of phase k, on LABEL(j, k+1): keep it until this process is in phase k+1
//	    or has given up.
//	F6  given up in phase k, on LABEL(j, h) with h > k: pass it on.
//	F7  on ELECTED(j): j leads, pass it on. F7a it has completed the ring: stop it.
//	F8  a message of a round or a phase that is over: discard.
//
// Each message carries the direction in which it travels.
//
// # Why it is safe
//
// A label of phase k passes only processes that have given up in an earlier phase. So
// each candidate of phase k gets the labels of the candidates of phase k that are
// nearest to it on both sides. The best candidate never gives up, and its neighbors do.
// So candidates are removed until it is the only one, and its labels complete the ring.
// A candidate is at most one phase ahead of the next one, because it needs that one's
// label in each phase. So F5 keeps at most one label for each side. Elections are
// numbered by rounds, and a higher round ends a lower one.
//
// # Cost
//
// In each phase every link carries one LABEL in each direction: 2N messages. There are
// at most log2(N) phases, rounded down, with two or more candidates. The last phase has
// one candidate and costs 2N as well, the announcement N ELECTED. Together that is at
// most 2N log2(N) + 3N messages, and at least 5N, on a ring on which labels rise or
// fall. The number depends only on the arrangement of the labels, not on the starters
// or on delays.
//
// On a ring on which labels rise, with one starter s hops away from the best process, the
// best process starts after s message times. It gets the last label of phase 1 two message
// times later, because the neighbor behind it starts one later. If it is opposite the
// starter, it gets that label after N/2, rounded up. Its own labels need N message times,
// the announcement N-1.
//
// # Assumptions and deviations
//
// Links work in both directions and lose nothing. N is not known. Franklin's links keep
// order, so that his messages need no number of the phase: the k-th label from a side
// belongs to phase k. Here messages carry it, and order does not matter. In a ring of
// two there are two links between the same two processes, so a message carries its
// direction as well. The first message wakes a process, so the highest of all wins and
// not the highest starter. The leader waits for both its labels, although one would be
// enough: when it announces itself, no other message of the round is in transit. Labels
// are unique; they are represented by ranks, and if two labels were equal the higher
// rank would be better. The announcement and the rounds are additions.
//
// Not survived: any crash, because it cuts the ring, and any loss of a message.
//
// Source: W. R. Franklin: On an improved algorithm for decentralized extrema finding in
// circular configurations of processors, 1982.
package franklin

import (
	"math/bits"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:   "franklin",
	Title:  "Bidirectional ring election of Franklin",
	Paper:  "W. R. Franklin: On an improved algorithm for decentralized extrema finding in circular configurations of processors, CACM 25(5), 1982, doi:10.1145/358506.358517",
	Family: process.Election,
	Messages: []process.MessageSpec{
		{Name: "LABEL", Fields: []process.FieldUse{id, round, {Field: process.FieldSeq, Symbol: "phase"}, direction}},
		{Name: "ELECTED", Fields: []process.FieldUse{id, round}},
	},
	Rules: []process.RuleSpec{
		{Name: "F1", Text: "start: become a candidate, send LABEL with its own label left and right"},
		{Name: "F2", Text: "first message of a round: become a candidate and send its own LABEL before handling it"},
		{Name: "F3", Text: "candidate, LABEL from one side: wait for the other side"},
		{Name: "F4a", Text: "better than the labels from both sides: begin the next phase, send LABEL left and right"},
		{Name: "F4b", Text: "worse than a label from one side: give up"},
		{Name: "F4c", Text: "its own label from both sides: lead, send ELECTED"},
		{Name: "F5", Text: "candidate, LABEL of the next phase: keep it"},
		{Name: "F6", Text: "given up, LABEL of a later phase: pass it on"},
		{Name: "F7", Text: "ELECTED: record the leader, pass it on"},
		{Name: "F7a", Text: "ELECTED that has completed the ring: stop it"},
		{Name: "F8", Text: "a message of a round or a phase that is over: discard it"},
	},
	Needs:  process.Needs{Reliable: true, Topology: process.RingTopology},
	Claims: claims,
	New:    Flaw{}.New,
}

const (
	several = "N >= 2"
	rising  = "the labels rise to the right, N >= 2"
)

var claims = process.Claims{
	Properties: process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence),
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: rising, Exact: least},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: several + ", any arrangement of the labels, any starters", Lo: least, Hi: most},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: rising + ", s hops from the starter to the maximum, the shorter way; N+ceil(N/2)-1 more if it is opposite; until the last process knows the leader",
			Exact: fromStart},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "labels carry their phase, and one of the next phase is kept"},
		{Fault: process.Duplication, How: "a label of a phase that is over is discarded, and one of this phase replaces its twin"},
	},
}

// least is one phase with several candidates, the last phase and ELECTED.
var least = process.PerProcess("5N", 5)

var most = process.OfN("2N floor(log2 N)+3N", func(n float64) float64 { return 2*n*float64(bits.Len(uint(n))-1) + 3*n })

// fromStart is when the maximum has the labels of its neighbors, then N hops of its
// labels, and N-1 of ELECTED. The farther neighbor of the maximum starts one hop after
// the maximum, unless the maximum is the farthest of all.
var fromStart = &process.Formula{Text: "2N+1+s", Eval: func(p process.Params) float64 {
	s := min(p.Distance, p.N-p.Distance)
	alone := s + 2
	if s == p.N/2 {
		alone = (p.N + 1) / 2
	}
	return float64(alone + 2*p.N - 1)
}}

var (
	id        = process.FieldUse{Field: process.FieldSubject, Symbol: "id"}
	round     = process.FieldUse{Field: process.FieldTerm, Symbol: "round"}
	direction = process.FieldUse{Field: process.FieldValue, Symbol: "to", Names: []string{"right", "left"}}
)

const (
	label process.Type = iota + 1
	elected
)

const (
	ruleF1 process.Rule = iota + 1
	ruleF2
	ruleF3
	ruleF4a
	ruleF4b
	ruleF4c
	ruleF5
	ruleF6
	ruleF7
	ruleF7a
	ruleF8
)
