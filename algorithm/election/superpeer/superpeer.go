// Package superpeer chooses many leaders, each for a part of the nodes of a distributed
// hash table.
//
// # Problem and idea
//
// In a network of very many nodes one coordinator is not enough. Some nodes shall be
// super-peers, which serve the others: about a wanted number of them, spread evenly,
// each with a limited number of clients. The identifiers of a hash table are numbers of
// m bits on a circle, drawn uniformly, and the table finds for any key the first node
// at or after it. So let the first k bits of an identifier name its segment, and let
// the first node of each segment be its super-peer. No comparison of nodes is needed:
// the table's own lookup finds the super-peer of a node, and if that one fails, the
// next node in the segment is found instead.
//
// # The table
//
// A process is a node, and its label is the identifier. Labels rise with the rank, so
// the circle is the order of ranks. A node knows its predecessor, its successor, and
// its fingers, the first nodes at the distances 1, 2, 4, ..., as in Chord. All of this
// follows from the labels, so none of it is stored. The table includes all nodes of the
// configuration: a node that is down is in it, and is noticed by its silence. A real
// table would repair itself in the background; here each search pays one timeout for
// each node that is down.
//
// # Rules
//
//	R1  join: if the node before this one is not in [seg, self), where seg is the
//	    identifier of this node with all but the first k bits zero, R3. Otherwise look
//	    up seg: ask the farthest finger before it, FIND(k), and so on with each answer.
//	R2  on FIND(k) from x: answer NEXT with the farthest finger that is before x's
//	    seg, or, if there is none, with the successor. R2a a node that does not answer
//	    is reported to the node that named it, which then names the next best.
//	R3  the search returns to the node itself: no node before it in its segment
//	    answers. It is a super-peer.
//	R4  otherwise it ends with the first node in the segment that answers: ATTACH(k).
//	R5  super-peer on ATTACH from a node of its segment, if there is room: accept it,
//	    ATTACHED(k). R5a a client: REDIRECT to its own super-peer. R5b a node that
//	    is searching itself: BUSY; the asker tries again a little later.
//	R6  the super-peer is silent twice, or has restarted without memory: R1.
//	R7  a super-peer that finds another one before it in its segment sends its
//	    clients there, by REDIRECT, and becomes its client.
//	R8  every period: a client sends PING to its super-peer, and a super-peer checks
//	    whether a node is before it in its segment (R1). Clients that were silent for
//	    three periods are forgotten.
//	R9  leave: a client sends DETACH. A super-peer sends its clients to the first of
//	    them, which is next in the segment.
//	R10 no room: this segment has k+1 bits from now on. SPLIT(k+1) to the clients
//	    of the other half, which begin again with R1; repeat until there is room.
//	    A node that asks later with fewer bits also gets SPLIT.
//	R11 every period, a super-peer of more than k bits that is at most half full
//	    asks the first node of the segment of one bit less: MERGE. If both fit into
//	    half of the limit, that node accepts all.
//
// # What it promises
//
// The first live node of a segment is a fact of the ring. So if two nodes disagree on
// it, the next check of either resolves the conflict: the order of identifiers decides,
// not an exchange of votes. Once no node has come or gone for a few periods, every node
// has a live super-peer, which is the first live node of one of its segments, k bits or
// narrower. Until then a segment may have two super-peers, or for a time none: there is
// no agreement on a leader in the sense of an election. No super-peer ever accepts more
// clients than its limit, not counting those that were silent for three periods.
//
// # Cost
//
// The key of a lookup lies just behind the node that asks, nearly one full circle away:
// about k + log2(N/2^k)/2 FINDs, each answered, rather than the log2(N)/2 of a lookup
// of an arbitrary key; then ATTACH and ATTACHED. Two heartbeats for each client and
// period. When a super-peer fails, each of its clients looks up the next one. No node
// sends to all others.
//
// # Deviations
//
// [D3] gives k = log2 of the wanted number, rounded up, and 2^(k-m) M super-peers among
// M nodes. That is the expected number of nodes whose last m-k bits are all zero. The
// lookup gives one super-peer for each segment that is not empty: 2^k (1 - (1 -
// 2^-k)^M) for independent identifiers, so about 2^k, and never fewer. The two agree
// only if every identifier is taken. Rounding up gives up to twice the wanted number;
// see [Prefix].
//
// The document asks for a limit of clients but does not say how. R10 and R11 are
// additions, and so are all rules about nodes that crash. The document also asks for
// long-lived super-peers but does not say how to find them; hashing does not find them.
// The number k stays as configured: only single segments become narrower, and wider
// again.
//
// Sources: [D3]; M. van Steen, A. S. Tanenbaum, Distributed
// Systems; I. Stoica and others, Chord: a scalable peer-to-peer lookup service for
// internet applications, 2001.
package superpeer

import (
	"fmt"
	"math/bits"

	"github.com/conclave-io/conclave/process"
)

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "super-peer",
	Title:     "Super-peers in a distributed hash table",
	Paper:     "I. Stoica, R. Morris, D. Karger, M. F. Kaashoek, H. Balakrishnan: Chord: a scalable peer-to-peer lookup service for internet applications, 2001 (the table); super-peers as in the document",
	Documents: []string{"[D3]"},
	Family:    process.Election,
	Messages: []process.MessageSpec{
		{Name: "FIND", Fields: []process.FieldUse{number, width, {Field: process.FieldSubject, Symbol: "dead"}}},
		{Name: "NEXT", Fields: []process.FieldUse{number, node}},
		{Name: "ATTACH", Fields: []process.FieldUse{number, width}},
		{Name: "ATTACHED", Fields: []process.FieldUse{number, width}},
		{Name: "BUSY", Fields: []process.FieldUse{number}},
		{Name: "REDIRECT", Fields: []process.FieldUse{number, node, width}},
		{Name: "SPLIT", Fields: []process.FieldUse{number, width}},
		{Name: "MERGE", Fields: []process.FieldUse{number, width, {Field: process.FieldIDs, Symbol: "clients"}}},
		{Name: "DETACH"},
		{Name: "PING", Class: process.Heartbeat, Fields: []process.FieldUse{number, width}},
		{Name: "PONG", Class: process.Heartbeat, Fields: []process.FieldUse{number, width}},
	},
	Timers: []string{"answer", "check"},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "join, or check: look up the start of this node's segment"},
		{Name: "R2", Text: "FIND: name the best finger before the key, or the successor"},
		{Name: "R2a", Text: "no answer: report the silent node, and get the next best"},
		{Name: "R3", Text: "no node before this one in its segment answers: it is a super-peer"},
		{Name: "R4", Text: "the first node in the segment that answers: send it ATTACH"},
		{Name: "R5", Text: "ATTACH at a super-peer with room: accept the client"},
		{Name: "R5a", Text: "ATTACH at a client: REDIRECT to its super-peer"},
		{Name: "R5b", Text: "ATTACH or MERGE that cannot be granted now: BUSY"},
		{Name: "R6", Text: "the super-peer is silent or has restarted: search again"},
		{Name: "R7", Text: "another super-peer is before this one: send the clients there"},
		{Name: "R8", Text: "every period: PING"},
		{Name: "R9", Text: "leave"},
		{Name: "R10", Text: "no room, or the client is in the other half: narrow the segment by one bit"},
		{Name: "R11", Text: "few clients: widen the segment by one bit"},
	},
	Options: []process.Option{
		{Name: "bits", Default: "0", Max: maxBits, Text: "m, the length of identifiers in bits; 0: as needed for the highest label"},
		{Name: "prefix", Default: "3", Max: maxBits, Text: "k, the number of leading bits that name a segment: about 2^k super-peers"},
		{Name: "cap", Default: "0", Max: process.MaxProcesses, Text: "largest number of clients of a super-peer; 0: four times the mean"},
		{Name: "check", Default: "20", Min: 8, Max: 1_000_000, Text: "the period of the checks, in D"},
	},
	Needs:  process.Needs{Reliable: true, Synchrony: true},
	Claims: claims,
	Check:  check,
	New:    Flaw{}.New,
}

// maxBits is the longest identifier.
const maxBits = 62

const settled = "once no node has come or gone for some periods"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: Place, When: settled},
		{Property: Cap, When: "a node that was silent for three periods is no longer a client"},
		{Property: Spread, When: settled},
		{Property: process.LeaderAgreement, Fails: true, When: "there are many leaders, and while nodes come and go a segment may have two"},
	},
	Costs: []process.Cost{
		{Metric: process.MessageCount, Regime: process.AllStart, When: "all N nodes join, none is down; S of them are super-peers",
			Lo: &process.Formula{Text: "2(N-S)", Eval: func(p process.Params) float64 { return float64(2 * (p.N - p.K)) }},
			Hi: &process.Formula{Text: "2(N-S)(log2(N)+2)", Eval: func(p process.Params) float64 {
				return float64(2 * (p.N - p.K) * (bits.Len(uint(p.N)) + 2))
			}}},
		{Metric: process.MessagesPerPeriod, Regime: process.Steady, When: "no node comes or goes; the first node of each segment is up; checks are 1 to 1.25 periods apart",
			Lo: &process.Formula{Text: "1.6(N-S)", Eval: func(p process.Params) float64 { return 1.6 * float64(p.N-p.K) }},
			Hi: &process.Formula{Text: "2(N-S)", Eval: func(p process.Params) float64 { return float64(2 * (p.N - p.K)) }}},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "questions are numbered, and a node has one at a time"},
		{Fault: process.Duplication, How: "questions are numbered; ATTACH and PING may be repeated"},
		{Fault: process.CrashAny, How: "R2a during a lookup, R6 for a super-peer, R8 for a client"},
		{Fault: process.AmnesiaRestart, How: "a restarted node joins; R7 if it is now first in its segment"},
	},
}

// Sizes are the numbers of a configuration, with defaults filled in.
type Sizes struct {
	Bits   int // m
	Prefix int // k
	Cap    int // most clients of one super-peer
	Check  int // the period, in D
}

// SizesOf returns the numbers of a configuration that has passed Validate.
func SizesOf(c *process.Config) Sizes {
	s := Sizes{Bits: c.IntOption("bits", 0), Cap: c.IntOption("cap", 0), Check: c.IntOption("check", 20)}
	if s.Bits == 0 {
		s.Bits = max(1, bits.Len64(uint64(c.Label(process.ID(c.N-1)))))
	}
	s.Prefix = min(c.IntOption("prefix", 3), s.Bits)
	if s.Cap == 0 {
		s.Cap = max(1, min(c.N, 4*c.N>>s.Prefix))
	}
	return s
}

// Prefix returns the k for about a wanted number of super-peers: the nearest power of
// two on a scale of ratios, so that there are between 0.7 and 1.42 times as many
// segments as wanted.
func Prefix(wanted int) int {
	if wanted < 2 {
		return 0
	}
	k := bits.Len(uint(wanted)) - 1
	if wanted*wanted > 2<<(2*k) { // beyond 2^(k+1/2)
		k++
	}
	return k
}

// check refuses labels that are not identifiers of the table.
func check(c *process.Config) error {
	for p := process.ID(1); int(p) < c.N; p++ {
		if c.Label(p) <= c.Label(p-1) {
			return fmt.Errorf("super-peer: label %d follows %d: labels must rise with the rank", c.Label(p), c.Label(p-1))
		}
	}
	highest := uint64(c.Label(process.ID(c.N - 1)))
	if length := bits.Len64(highest); length > SizesOf(c).Bits || length > maxBits {
		return fmt.Errorf("super-peer: label %d: %d bits, but identifiers have %d", highest, length, min(maxBits, SizesOf(c).Bits))
	}
	return nil
}

var (
	number = process.FieldUse{Field: process.FieldSeq, Symbol: "n"}
	width  = process.FieldUse{Field: process.FieldValue, Symbol: "k"}
	node   = process.FieldUse{Field: process.FieldSubject, Symbol: "node"}
)

const (
	findType process.Type = iota + 1
	nextType
	attachType
	attachedType
	busyType
	redirectType
	splitType
	mergeType
	detachType
	pingType
	pongType
)

const (
	answerTimer process.Timer = iota + 1
	checkTimer
)

const (
	ruleR1 process.Rule = iota + 1
	ruleR2
	ruleR2a
	ruleR3
	ruleR4
	ruleR5
	ruleR5a
	ruleR5b
	ruleR6
	ruleR7
	ruleR8
	ruleR9
	ruleR10
	ruleR11
)
