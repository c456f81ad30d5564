package engine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/algorithm/broken"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// timings has the names of the rules for when a timer may fire.
var timings = []string{
	check.AsNeeded: "as-needed", check.Synchronous: "synchronous", check.Patient: "patient", check.AnyTime: "any", check.Never: "never",
}

// check runs the model checker and reports its progress.
func (e *Engine) check(r *Request) (Frame, error) {
	if r.Check == nil {
		return Frame{}, badRequest("check: missing")
	}
	cfg, err := e.searchOf(r.Check)
	if err != nil {
		return Frame{}, err
	}
	cfg.Progress = func(p check.Progress) {
		e.options.Send(Frame{ID: r.ID, Type: TypeProgress, Head: CheckProgress{p.States, p.Transitions, p.Depth, p.Elapsed.Seconds()}})
	}
	result, err := check.Run(e.options.Context, cfg)
	if err != nil {
		return Frame{}, badRequest("check: %s", strings.TrimPrefix(strings.TrimPrefix(err.Error(), "check: "), "process: "))
	}
	return Frame{Head: checked(r.Check, result)}, nil
}

// searchOf returns the search that a request asks for.
func (e *Engine) searchOf(c *Check) (check.Config, error) {
	cfg := check.Config{
		Spec: algorithm.Find(c.Algorithm), Process: process.Config{N: c.N}, Entries: c.Entries, Unordered: c.Unordered,
		Timeouts: c.Timeouts, Crashes: c.Crashes, Restarts: c.Restarts, Drops: c.Drops, Duplicates: c.Duplicates,
		Reorders: c.Reorders, Cancels: c.Cancels, Corrupt: c.Corrupt, InFlight: c.InFlight, Liveness: c.Liveness,
		NoReturn: check.NoReturnStates, MaxStates: c.MaxStates, Memory: c.Memory, Room: e.options.Room, Workers: e.options.Cores, Requesters: processes(c.Requesters),
	}
	if cfg.Spec == nil {
		return cfg, badRequest("check: unknown algorithm %q", c.Algorithm)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Options)) {
		cfg.Process.Options = append(cfg.Process.Options, process.OptionValue{Name: name, Value: c.Options[name]})
	}
	if c.Timers != "" {
		timing := slices.Index(timings, c.Timers)
		if timing < 0 {
			return cfg, badRequest("check: timers: %q: must be one of %s", c.Timers, strings.Join(timings, ", "))
		}
		cfg.Timing = check.Timing(timing)
	}
	if c.Reduce {
		cfg.Reduce = check.PartialOrder
	}
	if len(c.Traitors) > 0 {
		if cfg.Spec.Lies == nil {
			return cfg, badRequest("check: traitors: %s is not for Byzantine processes", cfg.Spec.Name)
		}
		cfg.Traitors = [][]process.ID{processes(c.Traitors)}
	}
	for _, name := range c.Properties {
		p := process.Property(name)
		if !check.Checkable(p) {
			return cfg, badRequest("check: properties: %q: cannot be checked", name)
		}
		cfg.Properties = append(cfg.Properties, p)
	}
	return cfg, e.limitMemory(&cfg)
}

// limitMemory sets the memory limit of a search. The default is twice the limit of a run, but at
// most check.DefaultMemory. A request may ask for at most eight times the limit of a run.
func (e *Engine) limitMemory(cfg *check.Config) error {
	most := int64(e.options.Memory) * 8
	switch {
	case cfg.Memory < 0 || most > 0 && cfg.Memory > most:
		return tooLarge("check: memory: %d: must be between 1 and %d", cfg.Memory, most)
	case cfg.Memory == 0 && most > 0:
		cfg.Memory = min(check.DefaultMemory, most/4)
	}
	return nil
}

func processes(ranks []int) []process.ID {
	var ids []process.ID
	for _, r := range ranks {
		ids = append(ids, process.ID(r))
	}
	return ids
}

func checked(c *Check, r *check.Result) Checked {
	done := Checked{
		CheckProgress: CheckProgress{r.States, r.Transitions, r.Depth, r.Elapsed.Seconds()},
		Verdict:       r.Verdict.String(), Sentence: r.Sentence(), Bounds: r.Config.Bounds(), Stopped: r.Stopped,
		Unreached: append([]string{}, r.Unreached...), Sometimes: append([]check.Sometimes{}, r.Sometimes...), Command: c.command(),
	}
	if r.Broken != nil {
		done.Property, done.Text = r.Broken.Property.String(), r.Broken.Text
	}
	if r.Path != nil {
		done.Scenario, done.Steps, done.Fate = string(r.Scenario()), len(r.Path.Steps), r.PointOfNoReturn()
		done.Story = r.Story()
		if r.NoReturn >= 0 {
			done.NoReturn = &r.NoReturn
		}
	}
	return done
}

// command returns the shell command that runs the same search.
func (c *Check) command() string {
	text := fmt.Sprintf("conclave check %s -n %d", c.Algorithm, c.N)
	for _, f := range []struct {
		flag string
		n    int
	}{{"entries", c.Entries}, {"timeouts", c.Timeouts}, {"crashes", c.Crashes}, {"restarts", c.Restarts}, {"drops", c.Drops},
		{"duplicates", c.Duplicates}, {"reorders", c.Reorders}, {"cancels", c.Cancels}, {"in-flight", c.InFlight}, {"states", int(c.MaxStates)}} {
		if f.n > 0 {
			text += fmt.Sprintf(" --%s %d", f.flag, f.n)
		}
	}
	for _, f := range []struct {
		text string
		is   bool
	}{{"--fifo=false", c.Unordered}, {"--corrupt", c.Corrupt}, {"--liveness", c.Liveness}, {"--reduce por", c.Reduce}, {"--timers " + c.Timers, c.Timers != ""}} {
		if f.is {
			text += " " + f.text
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Options)) {
		text += fmt.Sprintf(" --option %s=%s", name, c.Options[name])
	}
	for _, p := range c.Properties {
		text += fmt.Sprintf(" --property %q", p)
	}
	return text + labels(" --requesters ", c.Requesters) + labels(" --traitors ", c.Traitors)
}

// labels returns a flag with the labels of the given ranks.
func labels(flag string, ranks []int) string {
	text := ""
	for i, r := range ranks {
		text += []string{flag, ","}[min(i, 1)] + strconv.Itoa(r+1)
	}
	return text
}

// checkOf returns the search that finds the mistake of a variant. It returns nil if only a scenario
// shows the mistake.
func checkOf(v *broken.Variant) *Check {
	if v.Scenario != "" {
		return nil
	}
	b := &v.Bounds
	c := &Check{
		Algorithm: v.Name, N: b.N, Entries: b.Entries, Requesters: ranks(b.Clients), Duplicates: b.Duplicates, Timeouts: b.Timeouts,
		Crashes: b.Crashes, Restarts: b.Restarts, Cancels: b.Cancels, Traitors: ranks(b.Traitors), Corrupt: b.Corrupt, InFlight: b.InFlight,
	}
	if b.AnyTime {
		c.Timers = timings[check.AnyTime]
	}
	for _, o := range b.Options {
		if c.Options == nil {
			c.Options = map[string]string{}
		}
		c.Options[o.Name] = o.Value
	}
	if b.Alone {
		c.Properties = []string{v.Breaks.String()}
	}
	return c
}
