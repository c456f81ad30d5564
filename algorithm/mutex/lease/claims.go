package lease

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

const (
	onTime   = "clocks drift within the margin and do not jump, and nobody inside is paused"
	outsider = "no other client; the client is not a server"
	chance   = "with probability 1, if a client that leaves does not ask again at once: there is no queue"
)

var claimsOfLease = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion, When: onTime},
		{Property: process.FencesGrow, When: onTime},
		{Property: process.FencesGrowCausally},
		{Property: process.Progress, When: chance},
		{Property: process.OrderHappenedBefore, Fails: true, When: "the first client to end its back-off wins"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: outsider, Exact: process.Constant("3", 3)},
		{Metric: process.ClientDelay, Regime: process.Idle, When: outsider, Exact: process.Constant("2", 2)},
	},
	Survives: survives("the server stays up"),
}

var claimsOfRedlock = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion, When: onTime},
		{Property: process.FencesGrow, Fails: true, When: "there are none: the value of a lock is random, or here an attempt number"},
		{Property: process.Progress, When: chance},
		{Property: process.OrderHappenedBefore, Fails: true, When: "the first client to end its back-off wins"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: outsider + "; s servers",
			Exact: &process.Formula{Text: "3s", Eval: func(p process.Params) float64 { return 3 * float64(p.Replicas) }}},
		{Metric: process.ClientDelay, Regime: process.Idle, When: outsider, Exact: process.Constant("2", 2)},
	},
	Survives: append(survives("more than half of the servers are up"),
		process.Survival{Fault: process.CrashSpecial, When: "more than half of the servers are up", How: "the others are a majority"}),
}

func survives(servers string) []process.Survival {
	return []process.Survival{
		{Fault: process.Reorder, How: "attempt numbers"},
		{Fault: process.Loss, How: "R5 and R9: a client without an answer tries again, and a lock that is not released expires"},
		{Fault: process.Duplication, How: "attempt numbers; R3c returns a lock that is granted twice"},
		{Fault: process.CrashBystander, When: servers, How: "no process waits for it"},
		{Fault: process.CrashWaiter, When: servers, How: "R9"},
		{Fault: process.CrashHolder, When: servers, How: "R9"},
	}
}

// Servers returns how many servers Redlock has: the processes with the lowest ranks.
func Servers(c *process.Config) int {
	if s := c.IntOption("servers", 0); s != 0 {
		return s
	}
	s := min(5, c.N-1)
	return max(1, s-(s+1)%2)
}

// check refuses more servers than processes, and leases that end before an answer can
// come.
func check(c *process.Config) error {
	if s := Servers(c); s > c.N {
		return fmt.Errorf("lease: servers: %d: must be at most %d, the number of processes", s, c.N)
	}
	if ttl := c.IntOption("ttl", 0); ttl != 0 && ttl < 4 {
		return fmt.Errorf("lease: ttl: %d: must be 0 or at least 4, because an answer takes two delays", ttl)
	}
	return nil
}
