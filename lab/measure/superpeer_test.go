package measure_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm/election/superpeer"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// joinTime is when everyone has joined, in D.
const joinTime = 60

// superPeers runs n nodes with identifiers of 30 bits that all join at the start, for a
// time in D.
func superPeers(t *testing.T, n, prefix, check int, until process.Duration) *sim.Result {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(n), uint64(prefix)))
	var labels []process.Label
	for len(labels) < n {
		labels = append(labels, process.Label(r.Uint64N(1<<30)))
		slices.Sort(labels)
		labels = slices.Compact(labels)
	}
	options := []process.OptionValue{{Name: "bits", Value: "30"}, {Name: "prefix", Value: fmt.Sprint(prefix)},
		{Name: "cap", Value: fmt.Sprint(n)}, {Name: "check", Value: fmt.Sprint(check)}}
	result, err := sim.Run(sim.Config{
		Spec: superpeer.Spec, Process: process.Config{N: n, Delay: process.Millisecond, Labels: labels, Options: options},
		Links: sim.Links{Link: sim.Link{Delay: sim.Constant(process.Millisecond)}},
		Limit: sim.Limit{Until: until * process.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range result.Violations {
		t.Error(v)
	}
	return result
}

func supers(r *sim.Result) int {
	count := 0
	for _, l := range r.Leaders {
		if l.Leader == l.Process {
			count++
		}
	}
	return count
}

func superPeerCost(t *testing.T, metric process.Metric) *process.Cost {
	t.Helper()
	for i := range superpeer.Spec.Claims.Costs {
		if c := &superpeer.Spec.Claims.Costs[i]; c.Metric == metric {
			return c
		}
	}
	t.Fatalf("no cost for metric %s", metric)
	return nil
}

// What joining costs, and what heartbeats cost per period, is what the Spec says.
func TestSuperPeerCost(t *testing.T) {
	for _, n := range []int{10, 100, 1000} {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			const check, periods = 200, 20
			joined := superPeers(t, n, 4, 10*joinTime, joinTime)
			p := process.Params{N: n, K: supers(joined)}
			within(t, "messages", superPeerCost(t, process.MessageCount), p, float64(joined.Sent(process.Protocol)))
			after := superPeers(t, n, 4, check, joinTime+check*periods)
			if after.Sent(process.Protocol) != joined.Sent(process.Protocol) {
				t.Errorf("%d messages besides heartbeats once all have joined", after.Sent(process.Protocol)-joined.Sent(process.Protocol))
			}
			// What is cut off at the end may be a check of each.
			beats := float64(after.Sent(process.Heartbeat)) / periods
			within(t, "heartbeats", superPeerCost(t, process.MessagesPerPeriod), p, beats*(periods+0.5)/periods)
		})
	}
}

func within(t *testing.T, what string, c *process.Cost, p process.Params, got float64) {
	t.Helper()
	if lo, hi := c.Lo.Eval(p), c.Hi.Eval(p); got < lo || got > hi {
		t.Errorf("%s: %.1f, want %.1f to %.1f", what, got, lo, hi)
	}
}

// The number of super-peers is that of segments which are not empty, about
// 2^k (1 - (1 - 2^-k)^M) for M nodes, and not the 2^(k-m) M that
// [D3] gives.
func TestSuperPeerNumber(t *testing.T) {
	for _, c := range []struct{ n, prefix, least, most int }{
		{1000, 5, 32, 32}, // 2^5; the formula of the document: 2^(5-30) * 1000, which is none
		{1000, 3, 8, 8},
		{16, 3, 5, 8},    // 7.1 expected
		{100, 7, 56, 84}, // 69.6 expected
	} {
		if got := supers(superPeers(t, c.n, c.prefix, 10*joinTime, joinTime)); got < c.least || got > c.most {
			t.Errorf("n=%d k=%d: %d super-peers, want %d to %d", c.n, c.prefix, got, c.least, c.most)
		}
	}
}
