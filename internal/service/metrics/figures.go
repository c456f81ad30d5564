package metrics

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/conclave-io/conclave/api"
)

// Figures returns the figures of the server. It does not wait: those of the replica are from
// after its newest output.
func (m *Metrics) Figures() *api.Figures {
	known := m.of.Node.Metrics()
	f := &api.Figures{
		Requests: known.Requests.Load(), Replies: known.Replies.Load(), Exhausted: known.Exhausted.Load(),
		Fsyncs: known.Fsyncs.Load(), Snapshots: known.Snapshots.Load(), LeaderChanges: known.LeaderChanges.Load(),
		Pending: uint64(known.Stats().Pending), Streams: uint64(m.Attached.Load()), Watches: uint64(m.Watching.Load()),
		Latencies: m.latencies.counts(),
	}
	if u := m.usage.of(m.of.Dir); u != nil {
		f.DiskBytes, f.LogBytes = uint64(u.all), uint64(u.log)
	}
	if stall := m.of.Node.Stall(); stall.What != "" {
		f.Stalled = fmt.Sprint(stall)
	}
	return f
}

// latencies is a histogram of durations. Its buckets are at most an eighth wide: eight for
// each power of two of the microseconds.
type latencies [8 * 32]atomic.Uint64

// note counts a duration.
func (l *latencies) note(took time.Duration) {
	l[min(classOf(uint64(max(took.Microseconds(), 0))), len(l)-1)].Add(1)
}

// classOf returns the bucket for a number of microseconds. Numbers below 8 have one each.
func classOf(us uint64) int {
	doublings := max(bits.Len64(us)-4, 0)
	return 8*doublings + int(us>>doublings)
}

// largestOf returns the largest number of microseconds in a bucket.
func largestOf(class int) uint64 {
	if class < 16 {
		return uint64(class)
	}
	doublings := class/8 - 1
	return (uint64(class-8*doublings)+1)<<doublings - 1
}

// counts returns the buckets that are not empty.
func (l *latencies) counts() []*api.Latency {
	var counts []*api.Latency
	for class := range l {
		if n := l[class].Load(); n > 0 {
			counts = append(counts, &api.Latency{AtMostUs: largestOf(class), Count: n})
		}
	}
	return counts
}
