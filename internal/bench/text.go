package bench

import (
	"fmt"
	"strings"
)

// Text says the report in words.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d clients over %d connections\n", r.Workload, r.Clients, r.Connections)
	fmt.Fprintf(&b, "acquire + release   %.0f per second\n", r.OpsPerSecond)
	fmt.Fprintf(&b, "acquire             p50 %.3f ms, p99 %.3f ms, p99.9 %.3f ms\n", r.AcquireMSP50, r.AcquireMSP99, r.AcquireMSP999)
	if r.HandoffMSP50 > 0 {
		fmt.Fprintf(&b, "hand-off            p50 %.3f ms, p99 %.3f ms\n", r.HandoffMSP50, r.HandoffMSP99)
	}
	fmt.Fprintf(&b, "most/least entries  %.3f\n", r.MaxMinEntries)
	fmt.Fprintf(&b, "this machine        fdatasync %.3f ms (three at once), round trip of an empty call %.3f ms\n", r.FdatasyncMSP50, r.RPCMSP50)
	fmt.Fprintf(&b, "acquire p50         %.2f times (fdatasync + round trip)\n", r.Ratio())
	return b.String()
}

// Ratio is the median of acquire over what no service that writes each grant to
// disk can do without: one write and one round trip.
func (r *Report) Ratio() float64 {
	return r.AcquireMSP50 / (r.FdatasyncMSP50 + r.RPCMSP50)
}
