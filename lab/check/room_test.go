package check_test

import (
	"sync/atomic"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// A search ends with what it has found if the process has no more room, however much Memory is left.
func TestASearchEndsWithoutRoom(t *testing.T) {
	for name, change := range map[string]func(*check.Config){
		"breadth first": func(*check.Config) {},
		"depth first":   func(c *check.Config) { c.Order = check.DepthFirst },
		"liveness":      func(c *check.Config) { c.Liveness = true },
	} {
		var asked, most atomic.Int64
		most.Store(8 << 20)
		cfg := check.Config{
			Spec: algorithm.Find("ricart-agrawala"), Process: process.Config{N: 3}, Entries: 3, Workers: 2,
			Room: func(bytes int64) bool { return asked.Add(bytes) <= most.Load() },
		}
		change(&cfg)
		r, err := check.Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict != check.Bounded || r.Stopped != "memory" || r.States < 1000 {
			t.Errorf("%s: %v, stopped by %q after %d states", name, r.Verdict, r.Stopped, r.States)
		}
		most.Store(1 << 40)
		cfg.Entries = 1
		if r, err = check.Run(t.Context(), cfg); err != nil || r.Verdict != check.Proved || asked.Load() <= 8<<20 {
			t.Errorf("%s, with room: %v, %v, after %d bytes", name, r.Verdict, err, asked.Load())
		}
	}
}
