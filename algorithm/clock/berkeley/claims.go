package berkeley

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ClockBound, When: "between any two clocks, once all have completed the corrections of one round; no message is lost, no answer exceeds the limit, no crash occurs between the ADJUSTs of a round, and a correction of max-min completes within an interval", Bound: bound},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerPeriod, Regime: process.Steady, When: "all processes answer within the limit",
			Exact: process.PerOther("3(N-1)", 3)},
	},
	Survives: []process.Survival{
		{Fault: process.Duplication, How: "an answer and an ADJUST count once"},
		{Fault: process.CrashBystander, How: "the master does not wait for its answer; without a detector, the limit ends the round"},
		{Fault: process.CrashSpecial, How: "R6, with a reliable detector and an election"},
	},
}

// bound is how far apart two clocks may be: the error of their corrections, and what
// happens to it until the next round.
//
// Each clock is read with an error of at most half the difference of delays. Two clocks
// drift apart by 2 drift per unit of time. When the next reading counts, the last one
// is less than two intervals old.
//
// In the meantime each clock still applies the previous correction. A slave does so
// from its CLOCK to its ADJUST, which is limit + max if a crash makes the master wait
// for the limit; two slaves may do so in opposite directions. The master does so too,
// and it reads the slaves at moments up to 2 max apart, relative to its own clock in
// the middle: that adds 1 max. One slave may have its ADJUST up to max earlier than
// another, and they diverge by 2 slew until both have it: 2 max.
//
// From then on each clock goes straight to its target. So the distance of two clocks
// only grows or only shrinks, from its old value to its target. The average lies
// between the slowest and the fastest clock, so these two move together if they are
// further apart than their targets.
//
// This needs a start at which all clocks are close together. While clocks are still far
// apart, some have arrived at the average when others are still moving. The average of
// the next round is then different, so the clocks that have arrived turn back. Until
// then they are as far from the others as the two averages are.
var bound = &process.Formula{
	Text: "max-min + 4 drift interval + slew (2 limit + 5 max)",
	Eval: func(p process.Params) float64 {
		return p.MaxDelay - p.MinDelay + 4*p.Drift*p.Interval + p.Slew*(2*p.Limit+5*p.MaxDelay)
	},
}
