// Command run plays seeds of internal/test/vopr, or a plan that was written down.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/conclave-io/conclave/internal/test/longrun"
	"github.com/conclave-io/conclave/internal/test/vopr"
	"github.com/conclave-io/conclave/internal/test/vopr/events"
	"github.com/conclave-io/conclave/internal/test/vopr/faults"
	"github.com/conclave-io/conclave/internal/test/vopr/mutants"
	"github.com/conclave-io/conclave/internal/test/vopr/stats"
)

type options struct {
	seed    uint64
	seeds   int
	hours   float64
	seconds int64
	servers int
	log     bool
	shrink  int
	out     string
	replay  string
	mutant  string
	checks  string
	record  string
	live    bool
	access  bool
	periods bool
	workers int
	every   uint64 // for a worker: it plays each seed of so many, until it is ended
}

var checks = map[string]events.Checks{"promises": events.Promises, "traces": events.Traces, "all": events.Promises | events.Traces}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "the first `seed`")
	flag.IntVar(&o.seeds, "seeds", 1, "how many seeds to play")
	flag.Float64Var(&o.hours, "hours", 0, "play as many seeds as make so many simulated `hours`, instead of -seeds")
	flag.Int64Var(&o.seconds, "seconds", 60, "simulated `seconds` of work and faults for each seed")
	flag.IntVar(&o.servers, "servers", 0, "the `size` of all clusters; without it, 3 and 5 in turn")
	flag.BoolVar(&o.log, "log", false, "write down all that happens")
	flag.IntVar(&o.shrink, "shrink", 400, "how many `runs` to make to find a smaller plan that fails as well")
	flag.StringVar(&o.out, "out", ".", "the `folder` for plans that fail")
	flag.StringVar(&o.record, "record", "", "write the plan that fails to this `file`, as it is")
	flag.StringVar(&o.replay, "replay", "", "play the plan in a `file` instead of seeds")
	flag.StringVar(&o.mutant, "mutant", "", "build the server with the mistake of this `name`, and play that")
	flag.StringVar(&o.checks, "check", "all", "`what` to check: promises, traces (that the model of the sessions allows what is decided), or all")
	flag.BoolVar(&o.access, "access", false, "let an administrator change rules and quotas")
	flag.BoolVar(&o.periods, "periods", false, "let three machines start the same job once a minute; use more -seconds")
	flag.BoolVar(&o.live, "live", false, "let algorithms on the servers guard names, which have seats then")
	flag.IntVar(&o.workers, "workers", runtime.NumCPU(), "how many `processes` play seeds; with -log, one does")
	flag.Uint64Var(&o.every, "every", 0, "play each seed of so `many`, and write what each gave, as a process of -workers does")
	flag.Parse()
	debug.SetGCPercent(400) // a world is small, and a fifth of the time went into collecting it
	if err := o.do(); err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func (o *options) do() error {
	switch {
	case checks[o.checks] == 0:
		return fmt.Errorf("-check: %q: must be promises, traces or all", o.checks)
	case o.workers < 1:
		return fmt.Errorf("-workers: %d: must be at least 1", o.workers)
	case o.mutant != "":
		return o.breed()
	case o.replay != "":
		text, err := os.ReadFile(o.replay)
		if err != nil {
			return err
		}
		plan, err := faults.Decode(text)
		if err != nil {
			return err
		}
		return o.judge(plan, &stats.Stats{})
	}
	if o.every > 0 {
		return o.work(os.Stdout)
	}
	return o.play()
}

// play plays one seed after the other, and stops at the first that fails.
func (o *options) play() error {
	var all stats.Stats
	start := time.Now()
	next, end, err := o.source()
	if err != nil {
		return err
	}
	defer end()
	for n := uint64(0); o.more(&all); n++ {
		stats, err := next(o.seed + n)
		if err != nil {
			fmt.Printf("seed %d, after %d runs before it\n", o.seed+n, n)
			return err
		}
		all.Add(&stats)
	}
	if o.live {
		fmt.Printf("%+v\n%+v\n", all.Seats, all.Hosts)
	}
	if o.access {
		fmt.Printf("%+v\n", all.Access)
	}
	if err := all.TooHard(); err != nil {
		return err
	}
	wall := time.Since(start)
	fmt.Printf("%d runs without a violation\n", all.Runs)
	subject := "3 and 5 servers"
	if o.servers > 0 {
		subject = fmt.Sprintf("%d servers", o.servers)
	}
	figures := all.Figures(wall)
	for _, f := range figures {
		fmt.Printf("%14s  %s\n", longrun.Number(f.Value), f.Name)
	}
	return longrun.Note(fmt.Sprintf("%s, seeds %d to %d", subject, o.seed, o.seed+uint64(all.Runs)-1), figures...)
}

// more reports whether there is more to play after what was played.
func (o *options) more(played *stats.Stats) bool {
	if o.hours > 0 {
		return float64(played.Nanos) < o.hours*3600e9
	}
	return played.Runs < o.seeds
}

// plan draws the plan of a seed.
func (o *options) plan(seed uint64) faults.Plan {
	draw := faults.Draw
	if o.live {
		draw = faults.DrawGuarded
	}
	if o.access {
		draw = faults.DrawAccess
	}
	if o.periods {
		draw = faults.DrawPeriods
	}
	plan := draw(seed, o.seconds*1000)
	if o.servers > 0 {
		plan.Servers = o.servers
	}
	return plan
}

// one plays one seed.
func (o *options) one(seed uint64) (stats stats.Stats, err error) {
	err = o.judge(o.plan(seed), &stats)
	return stats, err
}

// judge plays a plan. If it fails, a smaller one that does as well is written down.
func (o *options) judge(plan faults.Plan, all *stats.Stats) error {
	var log io.Writer
	if o.log {
		log = os.Stdout
	}
	result := vopr.Check(plan, log, checks[o.checks])
	all.Add(&result.Stats)
	if result.Violation == nil {
		return nil
	}
	fmt.Println(result.Violation)
	if o.record != "" {
		if err := os.WriteFile(o.record, plan.Encode(), 0o600); err != nil {
			return errors.Join(result.Violation, err)
		}
	}
	if o.replay != "" || o.shrink == 0 {
		return result.Violation
	}
	smaller, v := vopr.Shrink(plan, result.Violation, o.shrink)
	file := filepath.Join(o.out, fmt.Sprintf("vopr-%d.json", plan.Seed))
	if err := os.WriteFile(file, smaller.Encode(), 0o600); err != nil {
		return errors.Join(v, err)
	}
	fmt.Printf("shrunk from %d faults in %d ms to %d in %d ms; repeat it with: go run ./internal/test/vopr/run -replay %s\n",
		len(plan.Faults), plan.Millis, len(smaller.Faults), smaller.Millis, file)
	return v
}

// breed builds this command with a mistake in the server, and has that do what this
// one was asked to.
func (o *options) breed() error {
	var chosen *mutants.Mutant
	var names []string
	for i := range mutants.All {
		names = append(names, mutants.All[i].Name)
		if mutants.All[i].Name == o.mutant {
			chosen = &mutants.All[i]
		}
	}
	if chosen == nil {
		return fmt.Errorf("-mutant: %q: unknown; expected %s", o.mutant, strings.Join(names, ", "))
	}
	folder, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	binary, err := chosen.Build(folder)
	if err != nil {
		return err
	}
	cmd := exec.Command(binary, given("mutant")...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// given returns the flags that this command was given, but not those of the names.
func given(without ...string) (args []string) {
	flag.Visit(func(f *flag.Flag) {
		if !slices.Contains(without, f.Name) {
			args = append(args, "-"+f.Name+"="+f.Value.String())
		}
	})
	return args
}
