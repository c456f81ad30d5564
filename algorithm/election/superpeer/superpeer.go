// Package superpeer is the choice of many leaders, each for a part of the nodes of
// a distributed hash table.
//
// # Problem and idea
//
// In a network of very many nodes one coordinator is too few. Some nodes shall be
// super-peers, which serve the others: about a wanted number of them, spread
// evenly, none with more than so many clients. The identifiers of a hash table are
// numbers of m bits, evenly drawn, on a circle, and the table finds for any key the
// first node at or after it. So let the first k bits of an identifier name its
// segment, and the first node of each segment be its super-peer. Nobody need
// compare anything: the table's own lookup finds whoever serves a node, and if
// that one goes, the next in the segment is found in its place.
//
// # The table
//
// A process is a node, its label the identifier; labels rise with the rank, so the
// circle is the order of ranks. A node knows who comes before it, who follows it,
// and its fingers, the first nodes at the distances 1, 2, 4, ...: as in Chord. All
// that follows from the labels, so none of it is kept. It is the table of a ring on
// which everyone is: a node that is down stands in it, and is found out by its
// silence. A real table would mend itself in the background; here each search pays
// one timeout for each dead node that it meets.
//
// # Rules
//
//	R1  join: if the node before this one is not in [seg, self), where seg is the
//	    own identifier with all but the first k bits zero, R3. Otherwise look up
//	    seg: ask the farthest finger before it, FIND(k), and so on with each answer.
//	R2  on FIND(k) from x: answer NEXT with the farthest finger that comes before
//	    x's seg, or, if none does, with the successor. R2a who does not answer is
//	    named to the one that sent us there, which then names the next best.
//	R3  the search comes back to the node itself: nobody before it in its segment
//	    answers. It is a super-peer.
//	R4  otherwise it ends with the first in the segment that answers: ATTACH(k).
//	R5  super-peer on ATTACH from one of its segment, if there is room: take it,
//	    ATTACHED(k). R5a a client: REDIRECT to its own super-peer. R5b one that
//	    searches itself: BUSY; the asker tries again a little later.
//	R6  the super-peer is silent twice, or back without memory: R1.
//	R7  a super-peer that finds another one before it in its segment sends its
//	    clients there, by REDIRECT, and becomes its client.
//	R8  every period: a client sends PING to its super-peer, a super-peer looks
//	    whether somebody stands before it (R1). Clients silent for three periods
//	    are forgotten.
//	R9  leave: a client says DETACH; a super-peer sends its clients to the first of
//	    them, which is next in the segment.
//	R10 no room: k+1 bits for this segment from now on. SPLIT(k+1) to the clients
//	    of the other half, which begin again with R1; repeat until there is room.
//	    Who asks later with fewer bits gets SPLIT, too.
//	R11 every period, a super-peer of more than k bits that is at most half full
//	    asks the first of the segment of one bit less: MERGE. If both fit into half
//	    of what one may serve, it takes all.
//
// # What it promises
//
// The first live node of a segment is a fact of the ring, so two that disagree on
// it are brought together by the next check of either: the order of identifiers
// decides, not an exchange of votes. Once nodes have stopped coming and going for a
// few periods, everyone has a live super-peer, which is the first live node of one
// of its segments, k bits or narrower. Meanwhile a segment may have two
// super-peers, or for a time none: there is no agreement on a leader in the sense of
// an election. No super-peer ever takes more clients than it may have, not counting
// those that were silent for three periods.
//
// # Cost
//
// The key of a lookup lies just behind the node that asks, nearly once around: about
// k + log2(N/2^k)/2 FINDs, each answered, rather than the log2(N)/2 of a lookup of
// any key; then ATTACH and ATTACHED. Two heartbeats for each client and period. When a super-peer goes, each
// of its clients looks up the next one. Nobody sends to all.
//
// # Deviations
//
// [D3] gives k = log2 of the wanted number, rounded up, and
// 2^(k-m) M super-peers among M nodes. That is the expected number of nodes whose
// last m-k bits are all zero. By the lookup there is one for each segment that is
// not empty: 2^k (1 - (1 - 2^-k)^M) for independent identifiers, so about 2^k, and
// never fewer. The two agree only if every identifier is taken. Rounding up gives
// up to twice the wanted number; see [Prefix].
//
// The document wants a limit of clients, and says of nothing how: R10 and R11 are
// ours, and so are all rules about nodes that crash. Nor does it say how the long
// lived are found, which it wants, too; hashing does not find them. The number k
// stays as configured: only single segments become narrower, and wider again.
//
// Sources: [D3]; M. van Steen, A. S. Tanenbaum, Distributed
// Systems; I. Stoica and others, Chord: a scalable peer-to-peer lookup service for
// internet applications, 2001.
package superpeer

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "super-peer",
	Title:     "Super-peers in a distributed hash table",
	Paper:     "I. Stoica, R. Morris, D. Karger, M. F. Kaashoek, H. Balakrishnan: Chord: a scalable peer-to-peer lookup service for internet applications, 2001 (the table); super-peers as in the document",
	Documents: []string{doc003},
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
		{Name: "R1", Text: "join, or check: look up the start of the own segment"},
		{Name: "R2", Text: "FIND: name the best finger before the key, or the successor"},
		{Name: "R2a", Text: "no answer: name who is silent, and get the next best"},
		{Name: "R3", Text: "nobody before this node in its segment answers: it is a super-peer"},
		{Name: "R4", Text: "the first in the segment that answers: ATTACH"},
		{Name: "R5", Text: "ATTACH at a super-peer with room: take the client"},
		{Name: "R5a", Text: "ATTACH at a client: REDIRECT to its super-peer"},
		{Name: "R5b", Text: "ATTACH or MERGE that cannot be granted now: BUSY"},
		{Name: "R6", Text: "the super-peer is silent or has forgotten: search again"},
		{Name: "R7", Text: "give the clients to another super-peer"},
		{Name: "R8", Text: "every period: PING"},
		{Name: "R9", Text: "leave"},
		{Name: "R10", Text: "no room, or not of this part: narrow the segment by one bit"},
		{Name: "R11", Text: "few clients: widen the segment by one bit"},
	},
	Options: []process.Option{
		{Name: "bits", Default: "0", Max: maxBits, Text: "m, the length of identifiers; 0: what the highest label needs"},
		{Name: "prefix", Default: "3", Max: maxBits, Text: "k, the first bits that name a segment: about 2^k super-peers"},
		{Name: "cap", Default: "0", Max: process.MaxProcesses, Text: "how many clients a super-peer may have; 0: four times the mean"},
		{Name: "check", Default: "20", Min: 8, Max: 1_000_000, Text: "the period of the checks, in D"},
	},
	Needs:  process.Needs{Reliable: true, Synchrony: true},
	Claims: claims,
	Check:  check,
	New:    newMachine,
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
