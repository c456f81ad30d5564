package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/conclave-io/conclave/algorithm/view/viewcheck"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

var timings = []string{
	check.AsNeeded: "as-needed", check.Synchronous: "synchronous", check.Patient: "patient", check.AnyTime: "any", check.Never: "never",
}

var detectors = []string{process.NoDetector: "none", process.UnreliableDetector: "unreliable", process.ReliableDetector: "reliable"}

var reductions = []string{check.NoReduction: "none", check.PartialOrder: "por"}

// The most that a search can use. Each worker starts with some memory of its own.
const (
	mostWorkers = 1024
	mostMemory  = 16 << 20 // MiB
)

func (c *checking) config(name string) (cfg check.Config, err error) {
	cfg = c.search
	if c.views {
		name = viewcheck.Prefix + name
		c.n += viewcheck.Others
	}
	if cfg.Spec, err = findAlgorithm(name); err != nil {
		return cfg, err
	}
	world := sim.Config{Spec: cfg.Spec, Process: process.Config{N: c.n}}
	s := simulation{App: c.App, n: c.n, options: c.options, tree: c.tree}
	if err := s.world(&world); err != nil {
		return cfg, err
	}
	cfg.Process = world.Process
	if err := c.validate(); err != nil {
		return cfg, err
	}
	cfg.Unordered = !c.fifo
	cfg.Timing = check.Timing(slices.Index(timings, c.timers))
	cfg.Reduce = check.Reduction(slices.Index(reductions, c.reduce))
	cfg.Detector = process.DetectorKind(slices.Index(detectors, c.detector))
	if c.synchronous {
		cfg.Timing = check.Synchronous
	}
	if c.depthFirst {
		cfg.Order = check.DepthFirst
	}
	return cfg, c.named(&cfg)
}

// validate checks the flags that are words of a list, and the bounds.
func (c *checking) validate() error {
	switch {
	case !slices.Contains(timings, c.timers):
		return fmt.Errorf("--timers: %q: expected %s", c.timers, ui.OrList(timings))
	case !slices.Contains(reductions, c.reduce):
		return fmt.Errorf("--reduce: %q: expected %s", c.reduce, ui.OrList(reductions))
	case !slices.Contains(detectors, c.detector):
		return fmt.Errorf("--detector: %q: expected %s", c.detector, ui.OrList(detectors))
	case c.search.Entries < 1:
		return fmt.Errorf("--entries: %d: must be at least 1", c.search.Entries)
	case c.search.MaxDepth < 0:
		return fmt.Errorf("--depth: %d: must be at least 0", c.search.MaxDepth)
	case c.search.Workers < 0 || c.search.Workers > mostWorkers:
		return fmt.Errorf("--workers: %d: must be between 1 and %d", c.search.Workers, mostWorkers)
	case c.memory < 16 || c.memory > mostMemory:
		return fmt.Errorf("--memory: %d: must be between 16 and %d MiB", c.memory, mostMemory)
	}
	return nil
}

// named sets what is given by labels and names.
func (c *checking) named(cfg *check.Config) error {
	if c.labels != "" {
		for _, text := range strings.Split(c.labels, ",") {
			label, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
			if err != nil {
				return fmt.Errorf("--labels: %q: %q: expected an integer of at least 0", c.labels, text)
			}
			cfg.Process.Labels = append(cfg.Process.Labels, process.Label(label))
		}
		cfg.Process.N = len(cfg.Process.Labels)
	}
	var err error
	if cfg.Requesters, err = ranks(&cfg.Process, "--requesters", c.requesters); err != nil {
		return err
	}
	if len(c.requesters) == 0 && strings.HasPrefix(cfg.Spec.Name, viewcheck.Prefix) {
		for p := range process.ID(cfg.Process.N - viewcheck.Others) {
			cfg.Requesters = append(cfg.Requesters, p)
		}
	}
	if err := c.setTraitors(cfg); err != nil {
		return err
	}
	for _, name := range c.properties {
		if name == "all" {
			cfg.Properties = append(cfg.Properties, check.AllClaimed(cfg.Spec, &cfg.Process)...)
			continue
		}
		p := process.Property(name)
		if !check.Checkable(p) {
			return fmt.Errorf("--property: %q: unknown property%s", name, scenario.Near(name, checkableNames()))
		}
		cfg.Properties = append(cfg.Properties, p)
	}
	return nil
}

// ranks returns the processes of some labels.
func ranks(c *process.Config, flag string, labels []string) ([]process.ID, error) {
	var ids []process.ID
	for _, text := range labels {
		label, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
		p := c.Rank(process.Label(label))
		if err != nil || p == process.None {
			return nil, fmt.Errorf("%s: %q: not the label of a process", flag, text)
		}
		ids = append(ids, p)
	}
	return ids, nil
}

// setTraitors sets who may be Byzantine.
func (c *checking) setTraitors(cfg *check.Config) error {
	if len(c.traitors) == 0 {
		return nil
	}
	if cfg.Spec.Lies == nil {
		return fmt.Errorf("--traitors: %s has no rules for Byzantine processes; remove the flag", cfg.Spec.Name)
	}
	if slices.Equal(c.traitors, []string{"any"}) {
		cfg.Traitors = check.EveryPlace(cfg.Spec, &cfg.Process)
		return nil
	}
	set, err := ranks(&cfg.Process, "--traitors", c.traitors)
	cfg.Traitors = [][]process.ID{set}
	return err
}

func checkableNames() (names []string) {
	for _, p := range process.Properties {
		if check.Checkable(p) {
			names = append(names, p.String())
		}
	}
	return names
}
