package demo

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// The events of a worker, as they appear in the file.
const (
	enter = "enter"
	leave = "leave"
	// lost means that the worker noticed, while it held the lock, that it no longer holds it.
	lost = "lost"
)

// record is one line of the file that the workers share.
type record struct {
	fence  uint64
	worker int
	event  string
	at     int64 // ns by CLOCK_MONOTONIC
	// waited is how long the worker waited for the lock, in ns.
	waited int64
}

func (r record) String() string {
	return fmt.Sprintf("%d %d %s %d %d\n", r.fence, r.worker, r.event, r.at, r.waited)
}

func readRecords(file io.Reader) ([]record, error) {
	var records []record
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var r record
		if _, err := fmt.Sscan(lines.Text(), &r.fence, &r.worker, &r.event, &r.at, &r.waited); err != nil {
			return nil, fmt.Errorf("line %d of the workers' file is %q: %w", len(records)+1, lines.Text(), err)
		}
		records = append(records, r)
	}
	return records, lines.Err()
}

// kill is the end of a process, by CLOCK_MONOTONIC: the signal was sent before sent, and nothing
// of the process was left at reaped.
type kill struct {
	worker       int // 0 for a server
	sent, reaped int64
}

// Report is the result of a run.
type Report struct {
	// Entries counts how often a worker entered.
	Entries int `json:"entries"`
	// Overlaps counts the entries that happened while another worker was
	// inside.
	Overlaps int `json:"overlaps"`
	// FirstOverlap describes the first of them.
	FirstOverlap string `json:"first_overlap,omitempty"`
	// FenceRegressions counts the entries whose fence is not larger than that
	// of the entry before.
	FenceRegressions int `json:"fence_regressions"`
	LeaderKills      int `json:"leader_kills"`
	WorkerKills      int `json:"worker_kills"`
	// FailoverMS is the time from the kill of each leader to the next entry, in
	// milliseconds.
	FailoverMS []float64 `json:"failover_ms"`
	// AcquireMSP50 and AcquireMSP99 are quantiles of the time that workers
	// waited for the lock, in milliseconds.
	AcquireMSP50 float64 `json:"acquire_ms_p50"`
	AcquireMSP99 float64 `json:"acquire_ms_p99"`

	*changes

	// takeover is the time from the kill of the worker that held to the next
	// entry.
	takeover time.Duration
}

// Good reports whether the lock kept its promises.
func (r *Report) Good() bool {
	return r.Overlaps == 0 && r.FenceRegressions == 0 && (r.changes == nil || r.SessionsLost == 0)
}

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

// interval is a stay inside.
type interval struct {
	record
	end  int64
	lost bool // the worker noticed before it left that it had lost the lock
}

func (s interval) String() string {
	text := fmt.Sprintf("worker %d was inside with fence %d from %.3f s", s.worker, s.fence, float64(s.at)/1e9)
	switch {
	case s.end == math.MaxInt64:
		return text + " and never left"
	case s.lost:
		return text + fmt.Sprintf(" to %.3f s, when it noticed that it had lost the lock", float64(s.end)/1e9)
	}
	return text + fmt.Sprintf(" to %.3f s", float64(s.end)/1e9)
}

// judge computes the report from the records and the kills.
func judge(records []record, kills []kill) Report {
	stays := intervals(records, kills)
	report := Report{Entries: len(stays), FailoverMS: []float64{}}
	var inside interval // the stay that ends last
	var fence uint64
	waits := make([]float64, 0, len(stays))
	for _, s := range stays {
		if s.at < inside.end {
			if report.Overlaps++; report.Overlaps == 1 {
				report.FirstOverlap = fmt.Sprintf("%v; %v", inside, s)
			}
		}
		if s.fence <= fence {
			report.FenceRegressions++
		}
		if s.end > inside.end {
			inside = s
		}
		fence = max(fence, s.fence)
		waits = append(waits, float64(s.waited)/1e6)
	}
	slices.Sort(waits)
	report.AcquireMSP50, report.AcquireMSP99 = quantile(waits, 0.50), quantile(waits, 0.99)
	for _, k := range kills {
		report.count(k, stays)
	}
	return report
}

// granted is how long after the death of a leader an entry may still result from it: its last
// replies may be on their way. Electing a new leader takes four times as long.
const granted = 50 * time.Millisecond

func (r *Report) count(k kill, stays []interval) {
	if k.worker != 0 {
		r.WorkerKills++
		r.takeover = time.Duration(nextEntry(stays, k.reaped) - k.sent)
		return
	}
	r.LeaderKills++
	next := nextEntry(stays, k.reaped+int64(granted))
	r.FailoverMS = append(r.FailoverMS, math.Round(float64(next-k.sent)/1e4)/100)
}

// nextEntry returns the time of the first entry after the given time.
func nextEntry(stays []interval, after int64) int64 {
	for _, s := range stays {
		if s.at > after {
			return s.at
		}
	}
	return math.MaxInt64
}

// intervals pairs each entry with its end, in the order of entries. A stay without an end
// lasts forever.
func intervals(records []record, kills []kill) (stays []interval) {
	open := make(map[int]int) // the stay that each worker is in
	for _, r := range records {
		if r.event == enter {
			open[r.worker] = len(stays)
			stays = append(stays, interval{record: r, end: math.MaxInt64})
			continue
		}
		if i, in := open[r.worker]; in && stays[i].fence == r.fence {
			stays[i].end, stays[i].lost = r.at, r.event == lost
			delete(open, r.worker)
		}
	}
	for _, k := range kills {
		if i, in := open[k.worker]; in && k.worker != 0 {
			stays[i].end = k.reaped
		}
	}
	slices.SortStableFunc(stays, func(a, b interval) int { return int(a.at - b.at) })
	return stays
}

// quantile returns the q-quantile of sorted values.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return math.Round(sorted[max(i, 0)]*1000) / 1000
}
