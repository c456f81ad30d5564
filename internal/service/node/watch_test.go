package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// BenchmarkAnnounce is what 10,000 watches cost the goroutine that owns the replica for
// each lock that changes, while another goroutine notifies them.
func BenchmarkAnnounce(b *testing.B) {
	const watches = 10_000
	all := newWatchers()
	for i := range watches {
		all.add(&Watch{class: registry.Lock, prefix: fmt.Sprintf("watched-%d-", i), signal: make(chan struct{}, 1), changed: make(map[string]bool)})
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		all.run(stop)
		close(ended)
	}()
	names := make([]string, watches)
	for i := range names {
		names[i] = fmt.Sprintf("watched-%d-lock", i)
	}
	var longest time.Duration
	turn := time.NewTicker(time.Millisecond) // 1,000 locks change in a second
	defer turn.Stop()
	var sum time.Duration
	for i := 0; b.Loop(); i++ {
		<-turn.C
		begun := time.Now()
		all.announce(&replica.Output{Locks: names[i%watches : i%watches+1]})
		took := time.Since(begun)
		sum, longest = sum+took, max(longest, took)
	}
	b.ReportMetric(float64(sum)/float64(b.N), "ns/announce")
	b.ReportMetric(float64(longest), "longest-ns")
	close(stop)
	<-ended
}
