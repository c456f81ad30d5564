package swim

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// check refuses a wait that leaves the helpers no time to answer.
func check(c *process.Config) error {
	wait, period := c.IntOption("swim-wait", 3), c.IntOption("swim-period", 8)
	if wait >= period {
		return fmt.Errorf("swim: swim-wait: %d: must be less than swim-period, which is %d", wait, period)
	}
	if s := suspicionPeriods(c); float64(s)*float64(period)*float64(c.D()) > 1<<62 {
		return fmt.Errorf("swim: swim-suspicion: %d: more than a hundred years with swim-period=%d; use a smaller value", s, period)
	}
	return nil
}

const calm = "from some time on messages take at most D, T > 2D, and no message is lost"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.StrongCompleteness, Within: noticed},
		{Property: process.EventualAccuracy, Within: settled, When: calm},
		{Property: process.StrongAccuracy, Fails: true, When: "a PING or ACK that is lost or late on all paths looks like a crash"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerPeriod, Regime: process.Steady, When: "N >= 2", Exact: process.PerProcess("2N", 2)},
		{Metric: process.DetectionTime, Regime: process.Steady,
			When: "every message takes D, T = 8D, all processes start together, N >= 3; from the crash to the first suspicion, the mean over the time of the crash",
			Lo:   process.Constant("T-D = 7", 7),
			Hi:   process.OfN("2(N-1)T-D", func(n float64) float64 { return 16*(n-1) - 1 }),
			Mean: process.OfN("(E+1/2)T-D, E near e/(e-1)", func(n float64) float64 { return 8*(Periods(int(n))+0.5) - 1 })},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "probes are numbered, news has a total order"},
		{Fault: process.Duplication, How: "probes are numbered, news has a total order"},
		{Fault: process.Loss, How: "R3 probes through others, R6 objects; remaining mistakes are withdrawn (R4a)"},
		{Fault: process.Slowness, How: "R6: a slow process objects, or its failure is withdrawn (R4a)"},
		{Fault: process.CrashAny, How: "its purpose"},
		{Fault: process.AmnesiaRestart, How: "JOIN (R7)"},
	},
}

// Periods is E, the expected number of periods until some process has probed a given
// one, counted from a random moment, if all begin their orders together. Of m = N-1
// others, u have had their turn. One prober misses the given process for j periods with
// probability (m-j)/m while its order lasts, then with u/m times the same in the next
// order. All m probers are independent.
func Periods(n int) float64 {
	m := n - 1
	if m < 1 {
		return 0
	}
	sum := 0.0
	for u := range m {
		for j := 0; j <= m-u; j++ {
			sum += power(float64(m-j)/float64(m), m)
		}
		for i := 1; i <= m; i++ {
			sum += power(float64(u)/float64(m)*float64(m-i)/float64(m), m)
		}
	}
	return sum / float64(m)
}

func power(x float64, n int) float64 {
	p := 1.0
	for range n {
		p *= x
	}
	return p
}

// noticed is the time after a crash in which every process finds out by itself: each
// probes all others within two orders, and perhaps twice, if an old objection arrives
// late.
func noticed(c *process.Config) process.Duration {
	return process.Duration(c.IntOption("swim-period", 8)*4*c.N) * c.D()
}

// settled is the time after the last fault from which no live process is suspected: a
// suspicion may just have begun, become a failure, and be withdrawn at the next probe.
func settled(c *process.Config) process.Duration {
	suspicion := process.Duration(suspicionPeriods(c)*c.IntOption("swim-period", 8)) * c.D()
	return 2*noticed(c) + 2*suspicion
}
