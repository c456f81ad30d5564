// Package hirschbergsinclair is the election of Hirschberg and Sinclair on a
// bidirectional ring: candidates look twice as far in each phase.
//
// # Problem and idea
//
// A process knows its two neighbors on the ring, not how many processes there are. A
// candidate sends its label in both directions, but not all the way round: 1 hop in the
// first phase, then 2, 4, 8. Only a label that meets no higher one reaches the end of
// its path, and the process there sends a reply. A candidate with both replies is the
// highest as far as it has looked, and looks twice as far. Two candidates of one phase
// cannot be close to each other, so there are fewer candidates the farther they look. A
// label that returns from the other side has passed every process.
//
// # Rules
//
//	H1  start: unless this process takes part already, become a candidate with reach 1, and
//	    send PROBE(i, 1) left and right.
//	H2  on PROBE(j, h) with j better than i: give up.
//	    H2a h > 1: pass PROBE(j, h-1) on.
//	    H2b h = 1: send REPLY(j) back.
//	H3  on PROBE(j, h) with j worse: discard.
//	    H3a If this process does not take part yet: start as in H1.
//	H4  on PROBE(i, h): it has completed the ring. i leads, send ELECTED(i) right.
//	H5  on REPLY(j): pass it on. H5a REPLY(i) from only one side: wait for the other.
//	    H5b From both sides: double the reach, send PROBE(i, reach) left and right.
//	H6  on ELECTED(j): j leads, pass it on. H6a it has completed the ring: stop it.
//	H7  a message of a round that is over, or a reply to a candidate that gave up: discard.
//
// Each message carries the direction in which it travels.
//
// # Why it is safe
//
// A PROBE that completes the ring has passed every process, and every better one would
// have discarded it. A candidate that is not the best of all looks farther until its
// PROBE meets a better process. That process takes part from then on: it is a
// candidate, or has heard of a better one. So eventually the best process is a
// candidate. It never gives up and gets every reply, and when its reach is N or more,
// its PROBE completes the ring. Elections are numbered by rounds, and a higher round
// ends a lower one.
//
// # Cost
//
// A candidate sends at most 4 r messages in a phase of reach r. It is in that phase
// only if it is the best of r+1 processes in a row, itself in the middle. So there are
// at most N/(r/2+1) candidates: at most 8N messages in each of 1+log2(N) phases, log2
// rounded up. Add N ELECTED. Let k be log2(N) rounded up. At least 6N+2^(k+2)-8
// messages are sent if all start. The leader needs k phases of 2, 4, 8, ... message
// times, N until its last PROBE has completed the ring, and N-1 for the announcement:
// all know after 2^(k+1)+2N-3.
//
// # Assumptions and deviations
//
// Links work in both directions and lose nothing. Order does not matter. N is not
// known. In a ring of two there are two links between the same two processes, so a
// message carries its direction: the sender does not determine it. The first message
// from a worse process wakes a process that has not started, so that the highest of all
// wins. A discarded PROBE is not answered: the candidate never gets both replies, which
// is enough. The announcement and the rounds are additions.
//
// Not survived: any crash, because it cuts the ring.
//
// Source: D. S. Hirschberg and J. B. Sinclair: Decentralized extrema-finding in circular
// configurations of processors, 1980.
package hirschbergsinclair

import (
	"math/bits"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:   "hirschberg-sinclair",
	Title:  "Bidirectional ring election of Hirschberg and Sinclair",
	Paper:  "D. S. Hirschberg, J. B. Sinclair: Decentralized extrema-finding in circular configurations of processors, CACM 23(11), 1980, doi:10.1145/359024.359029",
	Family: process.Election,
	Messages: []process.MessageSpec{
		{Name: "PROBE", Fields: []process.FieldUse{id, round, {Field: process.FieldSeq, Symbol: "h"}, direction}},
		{Name: "REPLY", Fields: []process.FieldUse{id, round, direction}},
		{Name: "ELECTED", Fields: []process.FieldUse{id, round}},
	},
	Rules: []process.RuleSpec{
		{Name: "H1", Text: "start: become a candidate, send PROBE with its own label left and right"},
		{Name: "H2a", Text: "PROBE of a better label: give up, pass it on"},
		{Name: "H2b", Text: "PROBE of a better label at the end of its path: give up, send REPLY"},
		{Name: "H3", Text: "PROBE of a worse label: discard it"},
		{Name: "H3a", Text: "PROBE of a worse label at a process that does not take part: start instead"},
		{Name: "H4", Text: "PROBE of its own label has completed the ring: lead, send ELECTED"},
		{Name: "H5", Text: "REPLY to another: pass it on"},
		{Name: "H5a", Text: "REPLY from one side: wait for the other"},
		{Name: "H5b", Text: "REPLY from both sides: look twice as far"},
		{Name: "H6", Text: "ELECTED: record the leader, pass it on"},
		{Name: "H6a", Text: "ELECTED that has completed the ring: stop it"},
		{Name: "H7", Text: "a message that is too late: discard it"},
	},
	Needs:  process.Needs{Reliable: true, Topology: process.RingTopology},
	Claims: claims,
	New:    Flaw{}.New,
}

const several = "N >= 2, k is log2 N rounded up"

var claims = process.Claims{
	Properties: process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence),
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: several + ", the labels rise to the right",
			Lo: formula("3N+2^(k+2)-4", func(n, span float64) float64 { return 3*n + 4*span - 4 }), Hi: least},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: several + "; the mean is over all arrangements of the labels, and w is the number of processes among which a candidate must be the best for a hop", Mean: mean,
			Lo: least, Hi: most},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: several + "; until the last process knows the leader",
			Lo: formula("2^(k+1)+2N-3", func(n, span float64) float64 { return 2*span + 2*n - 3 }),
			Hi: formula("2^(k+1)+3N-4", func(n, span float64) float64 { return 2*span + 3*n - 4 })},
		{Metric: process.ElectionTime, Regime: process.AllStart, When: several + "; until the last process knows the leader",
			Exact: formula("2^(k+1)+2N-3", func(n, span float64) float64 { return 2*span + 2*n - 3 })},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a message of a round that is over is discarded, and a phase ends when both replies have come"},
		{Fault: process.Duplication, How: "replies are counted by direction; a late duplicate is discarded"},
	},
}

// least is the cost of a ring on which labels rise or fall: 3N messages in the first
// phase, and then those of the leader.
var least = formula("6N+2^(k+2)-8", func(n, span float64) float64 { return 6*n + 4*span - 8 })

// most is 8N messages in each phase, and ELECTED.
var most = formula("8N(k+1)+N", func(n, span float64) float64 {
	return 8*n*float64(bits.Len(uint(span))) + n
})

// mean sums, over the hops of a PROBE and the REPLY, the probability that a candidate
// gets that far. A candidate sends a PROBE of a phase of reach r, and the PROBE passes
// j processes, under one condition: it is the best of the r/2 processes behind it (none
// in the first phase), and of the j or r/2 in front of it, whichever is more. A
// candidate is the best of w processes with the probability 1/w.
var mean = &process.Formula{Text: "N+2N sum of 1/w over hops", Eval: func(p process.Params) float64 {
	hops := 0.0
	for reach := 1; reach/2 < p.N; reach *= 2 {
		behind := reach / 2
		likely := func(passed int) float64 { return 1 / float64(min(p.N, behind+max(behind, passed)+1)) }
		for j := range min(reach, p.N) {
			hops += likely(j)
		}
		if reach < p.N {
			hops += float64(reach) * likely(reach)
		}
	}
	return float64(p.N) + 2*float64(p.N)*hops
}}

// formula is a formula in N and in the reach of the last phase, 2^k.
func formula(text string, eval func(n, span float64) float64) *process.Formula {
	return &process.Formula{Text: text, Eval: func(p process.Params) float64 {
		span := 1
		for span < p.N {
			span *= 2
		}
		return eval(float64(p.N), float64(span))
	}}
}

var (
	id        = process.FieldUse{Field: process.FieldSubject, Symbol: "id"}
	round     = process.FieldUse{Field: process.FieldTerm, Symbol: "round"}
	direction = process.FieldUse{Field: process.FieldValue, Symbol: "to", Names: []string{"right", "left"}}
)

const (
	probe process.Type = iota + 1
	reply
	elected
)

const (
	ruleH1 process.Rule = iota + 1
	ruleH2a
	ruleH2b
	ruleH3
	ruleH3a
	ruleH4
	ruleH5
	ruleH5a
	ruleH5b
	ruleH6
	ruleH6a
	ruleH7
)
