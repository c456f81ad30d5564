package superpeer

import (
	"fmt"
	"math/bits"

	"github.com/conclave-io/conclave/process"
)

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
