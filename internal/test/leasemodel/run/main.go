// Command run searches the lease model within the bounds that docs/verification.md
// reports, and notes the figures for it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/conclave-io/conclave/internal/test/leasemodel"
	"github.com/conclave-io/conclave/internal/test/longrun"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

func main() {
	limit := flag.Duration("limit", time.Hour, "how long each search may take")
	memory := flag.Int64("memory", 16, "how many GiB each search may take")
	workers := flag.Int("workers", 0, "how many goroutines search; 0: one for each processor")
	only := flag.String("options", "", "search with these options alone, such as \"clients=1 flaw=no-round\", and print the run to a violation")
	flag.Parse()
	if err := run(*limit, *memory<<30, *workers, *only); err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func run(limit time.Duration, memory int64, workers int, only string) error {
	searches := leasemodel.Searches
	if only != "" {
		searches = []leasemodel.Search{{Name: only, Options: parse(only)}}
	}
	var failures []error
	for _, s := range searches {
		failures = append(failures, search(s, limit, memory, workers))
	}
	return errors.Join(failures...)
}

// parse reads options of the form name=value.
func parse(text string) (all []process.OptionValue) {
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		all = append(all, process.OptionValue{Name: name, Value: value})
	}
	return all
}

func search(s leasemodel.Search, limit time.Duration, memory int64, workers int) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	world := check.World{
		Spec: leasemodel.Spec, Process: process.Config{N: 1, Options: s.Options}, Memory: memory, Workers: workers,
	}
	r, err := world.Run(ctx)
	if err != nil {
		return err
	}
	verdict := r.Verdict.String()
	if r.Stopped != "" {
		verdict += " by " + r.Stopped
	}
	fmt.Printf("%s: %s, %d states, %d transitions, depth %d, %.2f GiB, %v; rules not applied: %v\n",
		s.Name, verdict, r.States, r.Transitions, r.Depth, float64(r.Memory)/(1<<30), r.Elapsed.Round(time.Second/10), r.Unreached)
	if r.Verdict == check.Violated {
		fmt.Println(r.Broken)
		for i, step := range r.Steps {
			fmt.Printf("%4d  %s\n", i+1, step)
		}
		return fmt.Errorf("%s: %s", s.Name, r.Broken)
	}
	return longrun.Note(s.Name+": "+verdict, longrun.Figure{Name: "states", Value: float64(r.States)},
		longrun.Figure{Name: "transitions", Value: float64(r.Transitions)}, longrun.Figure{Name: "depth", Value: float64(r.Depth)},
		longrun.Figure{Name: "GiB", Value: float64(r.Memory) / (1 << 30)}, longrun.Figure{Name: "s", Value: r.Elapsed.Seconds()})
}
