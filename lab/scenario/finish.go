package scenario

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// MaxProcesses is the largest number of processes of any scenario.
const MaxProcesses = 1_000_000

// Less where more would not fit into the memory of a usual machine: any two voting sets
// are compared; where everyone sends to everyone, the messages on their way, and what is
// known of peers, grow with the square. If the run also watches happened-before, each
// message carries a number for each process: for Lamport's algorithm, saturated, 800 of
// them make 5 GB, and 1,000 make 9.
const (
	maxVoters   = 1_000
	maxComplete = 2_000
	maxWatched  = 800
	maxCentre   = 100_000
)

// mostProcesses returns the largest number of processes for an algorithm.
func mostProcesses(spec *process.Spec) int {
	switch {
	case spec.Needs.Topology == process.Quorums:
		return maxVoters
	case spec.Depth() > 1:
		return maxComplete // detectors and elections below
	case spec.Needs.Topology == process.Centre:
		return maxCentre
	case spec.Needs.Topology == process.RingTopology, spec.Needs.Topology == process.Tree:
		return MaxProcesses
	}
	return maxComplete
}

// watched are the properties that are judged by what happened before what.
var watched = []process.Property{
	process.OrderHappenedBefore, process.FencesGrowCausally, process.ClockCondition, process.StrongClock, process.ConsistentCut,
}

// watchesMany reports whether everyone sends to everyone at the same time, and
// the messages carry what happened before them.
func watchesMany(cfg *sim.Config) bool {
	if cfg.Judges != nil || cfg.Workload.Regime != sim.Saturated && cfg.Workload.Regime != sim.Loaded {
		return false
	}
	for _, l := range cfg.Spec.All() {
		if l.Needs.Topology != process.Complete {
			return false
		}
	}
	return slices.ContainsFunc(cfg.Spec.Claims.Properties, func(c process.Claim) bool {
		return c.Holds(cfg.Spec.Mode(&cfg.Process)) && slices.Contains(watched, c.Property)
	})
}

// complete fills in what a scenario need not say and the simulator must know, or
// says why it cannot.
func complete(cfg *sim.Config) error {
	c := &cfg.Process
	most := mostProcesses(cfg.Spec)
	if c.N < 1 || c.N > most {
		return fmt.Errorf("n: %d: must be 1 to %d for %s", c.N, most, cfg.Spec.Name)
	}
	if c.N > maxWatched && watchesMany(cfg) {
		return fmt.Errorf("n: %d: must be 1 to %d for %s while clients are %s and causality is watched", c.N, maxWatched, cfg.Spec.Name, cfg.Workload.Regime)
	}
	if cfg.Spec.Needs.Topology == process.Quorums && c.Topology.Quorums == nil {
		c.Topology.Quorums = process.VotingSets(c.N)
	}
	return nil
}

// finish asks the simulator for its opinion of the whole.
func (r *reader) finish(top *yaml.Node) {
	if r.cfg.Process.N == 0 {
		r.complain(top, "the number of processes is missing: set n or labels")
		return
	}
	if err := complete(&r.cfg); err != nil {
		r.complain(keyOf(top, "n", "labels"), "%s", err)
		return
	}
	if r.cfg.Validate() == nil {
		return
	}
	cfg := r.cfg
	commands, faults := cfg.Workload.Commands, cfg.Faults
	cfg.Workload.Commands, cfg.Faults = nil, nil
	if err := cfg.Validate(); err != nil {
		r.complain(r.blamed(top, cfg, err), "%s", plain(err))
		return
	}
	r.firstWrong(r.commandNodes, &cfg, func(k int) { cfg.Workload.Commands = commands[:k] })
	r.firstWrong(r.faultNodes, &cfg, func(k int) { cfg.Faults = faults[:k] })
}

// firstWrong complains about the first item of a list that the simulator refuses.
// Take puts the first k of them into the configuration.
func (r *reader) firstWrong(nodes []*yaml.Node, cfg *sim.Config, take func(k int)) {
	i := sort.Search(len(nodes), func(i int) bool { take(i + 1); return cfg.Validate() != nil })
	if take(min(i+1, len(nodes))); i < len(nodes) {
		r.complain(nodes[i], "%s", plain(cfg.Validate()))
	}
}

// sections are parts of a file that can be left away.
var sections = []struct {
	name  string
	clear func(c *sim.Config)
}{
	{"options", func(c *sim.Config) { c.Process.Options = nil }},
	{"traitors", func(c *sim.Config) { c.Traitors = nil }},
	{"topology", func(c *sim.Config) { c.Process.Topology = process.Topology{} }},
	{"links", func(c *sim.Config) { c.Links = sim.Links{} }},
	{"clocks", func(c *sim.Config) { c.Clocks = nil }},
	{"disk", func(c *sim.Config) { c.Disk = sim.Delay{} }},
	{"oracle", func(c *sim.Config) { c.Oracle = sim.Oracle{} }},
	{"workload", func(c *sim.Config) { c.Workload = sim.Workload{} }},
	{"schedule", func(c *sim.Config) { c.Schedule = nil }},
	{"limit", func(c *sim.Config) { c.Limit = sim.Limit{} }},
}

// blamed returns the part of the file without which there would be no such
// error, or else all of it.
func (r *reader) blamed(top *yaml.Node, cfg sim.Config, err error) *yaml.Node {
	for _, s := range sections {
		without := cfg
		s.clear(&without)
		if other := without.Validate(); other != nil && other.Error() == err.Error() {
			continue
		}
		if key := keyOf(top, s.name); key != top {
			return key
		}
	}
	return top
}

// keyOf returns the first key of a mapping with one of the names, or else all.
func keyOf(top *yaml.Node, names ...string) *yaml.Node {
	for _, key := range keys(top) {
		if slices.Contains(names, key.Value) {
			return key
		}
	}
	return top
}

// plain returns an error without the name of the package that it comes from.
func plain(err error) string {
	text := strings.TrimPrefix(err.Error(), "sim: ")
	return strings.TrimPrefix(text, "process: ")
}
