package main

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// many makes the searches into which one is split, as many at a time as there are
// processors, and adds them up. It keeps the first result that is not a proof.
func many(ctx context.Context, whole check.Config, split func(c check.Config) []check.Config) (*check.Result, error) {
	configs := split(whole)
	results, errs := make([]*check.Result, len(configs)), make([]error, len(configs))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	start := time.Now()
	var group sync.WaitGroup
	for i, cfg := range configs {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			cfg.Workers = 1
			results[i], errs[i] = check.Run(ctx, cfg)
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	total := sum(results)
	total.Config, total.Elapsed = whole, time.Since(start)
	return total, nil
}

// sum adds results up.
func sum(results []*check.Result) *check.Result {
	total := *results[0]
	for _, r := range results[1:] {
		if total.Verdict == check.Proved || total.Verdict == check.Bounded && r.Verdict == check.Violated {
			total.Verdict, total.Broken, total.Stopped = r.Verdict, r.Broken, r.Stopped
		}
		total.States += r.States
		total.Transitions += r.Transitions
		total.Depth = max(total.Depth, r.Depth)
	}
	return &total
}

// subsets are searches for each set of callers with a size in the range.
func subsets(from, to int) func(c check.Config) []check.Config {
	return func(c check.Config) []check.Config {
		var configs []check.Config
		for set := 1; set < 1<<c.Process.N; set++ {
			c.Requesters = nil
			for p := range process.ID(c.Process.N) {
				if set>>p&1 != 0 {
					c.Requesters = append(c.Requesters, p)
				}
			}
			if from <= len(c.Requesters) && len(c.Requesters) <= to {
				configs = append(configs, c)
			}
		}
		return configs
	}
}

// places are searches for one of all the sets of from to so many callers that stand in
// the same places to each other on the ring: of {1, 2} and {2, 3} only the first.
func places(from, to int) func(c check.Config) []check.Config {
	return func(c check.Config) []check.Config {
		return slices.DeleteFunc(subsets(from, to)(c), func(c check.Config) bool {
			own := gaps(c.Requesters, c.Process.N)
			for turn := range own {
				if slices.Compare(slices.Concat(own[turn:], own[:turn]), own) < 0 {
					return true
				}
			}
			return c.Requesters[0] != 0
		})
	}
}

// gaps are how far each of them is from the next on a ring of n.
func gaps(callers []process.ID, n int) []int {
	var far []int
	for i, p := range callers {
		next := callers[(i+1)%len(callers)]
		far = append(far, (int(next-p)+n-1)%n+1)
	}
	return far
}

// arrangements are searches for each order of the labels 1 to N on the ring. Where
// on it the highest stands makes no difference, so it always has rank 0.
func arrangements(c check.Config) []check.Config {
	var configs []check.Config
	var arrange func(labels []process.Label)
	arrange = func(labels []process.Label) {
		if len(labels) == c.Process.N {
			c.Process.Labels = labels
			configs = append(configs, c)
			return
		}
		for l := process.Label(1); int(l) < c.Process.N; l++ {
			if !slices.Contains(labels, l) {
				arrange(append(labels[:len(labels):len(labels)], l))
			}
		}
	}
	arrange([]process.Label{process.Label(c.Process.N)})
	return configs
}

// everyRing are searches for each set of callers on each ring.
func everyRing(c check.Config) []check.Config {
	var configs []check.Config
	for _, ring := range arrangements(c) {
		configs = append(configs, subsets(1, c.Process.N)(ring)...)
	}
	return configs
}
