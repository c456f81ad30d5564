package phiaccrual

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.StrongCompleteness, Within: noticed},
		{Property: process.EventualAccuracy, Within: settled,
			When: "from some time on the longest interval is no more than z(phi) deviations above the mean, and no message is lost"},
		{Property: process.StrongAccuracy, Fails: true, When: "about one suspicion in 10^phi is wrong, or more if delays are not normally distributed"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerPeriod, Regime: process.Steady, Exact: process.OfN("N(N-1)", func(n float64) float64 { return n * (n - 1) })},
		{Metric: process.DetectionTime, Regime: process.Steady,
			When: "every message takes D, P = 4D, phi = 8, and the first two samples have left the window; t = P + z(phi) D/2 = 6.81D",
			Lo:   process.Constant("t+D-P = 3.81", Wait(4, 8)+1-4), Hi: process.Constant("t+D = 7.81", Wait(4, 8)+1)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "an overtaken ALIVE proves nothing (R2a)"},
		{Fault: process.Duplication, How: "a duplicate proves nothing (R2a)"},
		{Fault: process.Loss, How: "losses make intervals irregular, so the detector waits longer; wrong suspicions are withdrawn (R2c)"},
		{Fault: process.Slowness, How: "it learns the usual delays; wrong suspicions are withdrawn (R2c)"},
		{Fault: process.CrashAny, How: "its purpose"},
		{Fault: process.AmnesiaRestart, How: "incarnation numbers (R2b)"},
	},
}

// Wait is the time, in D, after which a level is reached at the given period, in D, if
// every interval was equal to it.
func Wait(period, level int) float64 {
	w := window{values: []uint64{uint64(period * unitsPerD)}}
	return float64(w.reaches(level)) / unitsPerD
}

// noticed is how long a crash may go unnoticed for any window: the mean plus z
// deviations of samples up to C is at most C (2+z)/2.
func noticed(c *process.Config) process.Duration {
	period := process.Duration(c.IntOption("phi-period", 4)) * c.D()
	z := process.Duration(tail[c.IntOption("phi", 8)-1])
	return longestSilence*period*(2*tailUnit+z)/(2*tailUnit) + period + 2*c.D()
}

// settled is the time after the last fault in which the window forgets it, whatever the
// fault was.
func settled(c *process.Config) process.Duration {
	period := process.Duration(c.IntOption("phi-period", 4)) * c.D()
	return noticed(c) + period*process.Duration(c.IntOption("phi-window", 32))
}
