package demo

import (
	"fmt"
	"strings"
)

// Text returns the report as text.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "entries             %d\n", r.Entries)
	fmt.Fprintf(&b, "overlaps            %d\n", r.Overlaps)
	if r.Overlaps > 0 {
		fmt.Fprintf(&b, "first overlap       %s\n", r.FirstOverlap)
	}
	fmt.Fprintf(&b, "fence regressions   %d\n", r.FenceRegressions)
	for i, ms := range r.FailoverMS {
		fmt.Fprintf(&b, "leader kill %d       next entry after %.0f ms\n", i+1, ms)
	}
	if r.WorkerKills > 0 {
		fmt.Fprintf(&b, "worker kill         next entry after %d ms (the session's TTL is %v)\n", r.takeover.Milliseconds(), ttl)
	}
	if r.changes != nil {
		fmt.Fprintf(&b, "servers restarted   %d\n", r.Restarts)
		fmt.Fprintf(&b, "servers replaced    %d\n", r.Replacements)
		fmt.Fprintf(&b, "leaders removed     %d\n", r.LeaderRemovals)
		fmt.Fprintf(&b, "sessions lost       %d\n", r.SessionsLost)
	}
	fmt.Fprintf(&b, "acquire             p50 %.2f ms, p99 %.2f ms, with %d workers waiting for one lock\n", r.AcquireMSP50, r.AcquireMSP99, workers)
	if r.Good() {
		b.WriteString("No two workers were ever inside together, and every fence was larger than the one before.\n")
	} else {
		b.WriteString("THE LOCK DID NOT KEEP ITS WORD.\n")
	}
	return b.String()
}
