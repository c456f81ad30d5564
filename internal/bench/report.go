package bench

import (
	"fmt"
	"strings"
)

// Report is the result of a run. One operation is an acquire and a release. Fields that do not
// apply to a workload are nil, and null in JSON.
type Report struct {
	Workload    string `json:"workload"`
	Clients     int    `json:"clients"`
	Connections int    `json:"connections"`

	OpsPerSecond  float64  `json:"ops_per_s"`
	AcquireMSP50  *float64 `json:"acquire_ms_p50"`
	AcquireMSP99  *float64 `json:"acquire_ms_p99"`
	AcquireMSP999 *float64 `json:"acquire_ms_p999"`
	// HandoffMSP50 and HandoffMSP99 are quantiles of the time from the call of release until the
	// next holder, who waited, has the lock.
	HandoffMSP50 *float64 `json:"handoff_ms_p50"`
	HandoffMSP99 *float64 `json:"handoff_ms_p99"`
	// MaxMinEntries is the number of entries of the client with the most, divided by that of the
	// client with the least.
	MaxMinEntries *float64 `json:"max_min_entries"`

	// FdatasyncMSP50 is the median of appending 4 KiB to a file and syncing it,
	// done by three processes at once, as three servers on one machine do it.
	FdatasyncMSP50 float64 `json:"fdatasync_ms_p50"`
	// RPCMSP50 is the median round trip of an empty call to the leader.
	RPCMSP50 float64 `json:"rpc_ms_p50"`

	// Failed is how many operations failed, of as many as were tried; Failure is
	// why the last did.
	Failed, Tried int64 `json:"-"`
	Failure       error `json:"-"`
	// Remark says what else could not be measured properly.
	Remark string `json:"-"`
}

func summarize(cfg Config, f Figures) Report {
	return Report{
		Workload: cfg.Workload, Clients: cfg.Clients, Connections: cfg.Connections,
		OpsPerSecond: f.Rate(),
		AcquireMSP50: f.Acquire(50), AcquireMSP99: f.Acquire(99), AcquireMSP999: f.Acquire(99.9),
		HandoffMSP50: f.Handoff(50), HandoffMSP99: f.Handoff(99),
		MaxMinEntries: f.MaxMin(),
		Failed:        f.Failed, Tried: f.Done + f.Failed, Failure: f.Failure,
	}
}

// Warnings returns what readers of the figures should know: nothing, if all operations
// succeeded.
func (r *Report) Warnings() string {
	var b strings.Builder
	if r.Failed > 0 {
		fmt.Fprintf(&b, "%d of %d operations failed; the last said: %v\n", r.Failed, r.Tried, r.Failure)
	}
	if r.Remark != "" {
		fmt.Fprintln(&b, r.Remark)
	}
	return b.String()
}

// Text returns the report as text.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d clients over %d connections\n", r.Workload, r.Clients, r.Connections)
	fmt.Fprintf(&b, "acquire + release   %.0f per second\n", r.OpsPerSecond)
	fmt.Fprintf(&b, "acquire             p50 %s, p99 %s, p99.9 %s\n", ms(r.AcquireMSP50), ms(r.AcquireMSP99), ms(r.AcquireMSP999))
	if r.HandoffMSP50 != nil {
		fmt.Fprintf(&b, "hand-off            p50 %s, p99 %s\n", ms(r.HandoffMSP50), ms(r.HandoffMSP99))
	}
	if r.MaxMinEntries != nil {
		fmt.Fprintf(&b, "most/least entries  %.3f\n", *r.MaxMinEntries)
	}
	fmt.Fprintf(&b, "this machine        fdatasync %.3f ms (three at once), round trip of an empty call %.3f ms\n", r.FdatasyncMSP50, r.RPCMSP50)
	if ratio := r.Ratio(); ratio > 0 {
		fmt.Fprintf(&b, "acquire p50         %.2f times (fdatasync + round trip)\n", ratio)
	}
	return b.String()
}

func ms(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f ms", *v)
}

// Ratio is the median time to acquire, divided by the least time of any service that writes each
// grant to disk: one write and one round trip. It is 0 if there is none.
func (r *Report) Ratio() float64 {
	if r.AcquireMSP50 == nil || r.FdatasyncMSP50+r.RPCMSP50 == 0 {
		return 0
	}
	return *r.AcquireMSP50 / (r.FdatasyncMSP50 + r.RPCMSP50)
}
