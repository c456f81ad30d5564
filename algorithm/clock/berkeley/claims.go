package berkeley

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ClockBound, When: "of any two, once all have worked in what one round told them; nothing is lost, no answer exceeds the limit, no crash comes between the ADJUSTs of a round, and max-min is worked in within an interval", Bound: bound},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerPeriod, Regime: process.Steady, When: "all answer within the limit",
			Exact: &process.Formula{Text: "3(N-1)", Eval: func(p process.Params) float64 { return float64(3 * (p.N - 1)) }}},
	},
	Survives: []process.Survival{
		{Fault: process.Duplication, How: "an answer and an ADJUST count once"},
		{Fault: process.CrashBystander, How: "its answer is not waited for; without a detector, the limit ends the round"},
		{Fault: process.CrashSpecial, How: "R6, with a reliable detector and an election"},
	},
}

// bound is how far two clocks are told to go from each other, and what becomes of it
// until the next round.
//
// Each is read to within half of what delays may differ by. They drift apart by
// 2 drift of the time, and a reading is older than an interval by less than another
// when the next one counts.
//
// Meanwhile each goes on working in the correction before. A slave does so from its
// CLOCK to its ADJUST, which is limit + max if a crash makes the master wait for the
// limit; two slaves may do it in opposite directions. The master does, too, and it
// reads them at moments up to 2 max apart, in whose middle it takes its own clock:
// that makes 1 max. One may have its ADJUST up to max earlier than another, and they
// part by 2 slew until both have it: 2 max.
//
// From then on each goes straight to where it is told. So the distance of two clocks
// only grows or only shrinks, from what it was to what it is to be. The average is
// between the slowest clock and the fastest, which therefore come together if they
// are further apart than they are to be.
//
// This needs a beginning at which all are close together. While clocks are still
// far from each other, some have arrived at the average when others are on their
// way. The average of the next round is another then, and so those who are there
// turn back: in the meantime they are as far from the others as both averages are.
var bound = &process.Formula{
	Text: "max-min + 4 drift interval + slew (2 limit + 5 max)",
	Eval: func(p process.Params) float64 {
		return p.MaxDelay - p.MinDelay + 4*p.Drift*p.Interval + p.Slew*(2*p.Limit+5*p.MaxDelay)
	},
}
