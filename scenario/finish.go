package scenario

import (
	"fmt"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/sim"
)

// MaxProcesses is the largest number of processes of a scenario.
const MaxProcesses = 1_000_000

// maxVoters is the same for algorithms with voting sets, any two of which are
// compared.
const maxVoters = 1_000

// complete fills in what a scenario need not say and the simulator must know, or
// says why it cannot.
func complete(cfg *sim.Config) error {
	c := &cfg.Process
	if c.N < 1 || c.N > MaxProcesses {
		return fmt.Errorf("n is %d, it must be 1 to %d", c.N, MaxProcesses)
	}
	if cfg.Spec.Needs.Topology != process.Quorums || c.Topology.Quorums != nil {
		return nil
	}
	if c.N > maxVoters {
		return fmt.Errorf("n is %d, it must be 1 to %d for voting sets", c.N, maxVoters)
	}
	c.Topology.Quorums = process.VotingSets(c.N)
	return nil
}

// finish asks the simulator for its opinion of the whole.
func (r *reader) finish(top *yaml.Node) {
	if r.cfg.Process.N == 0 {
		r.complain(top, "the scenario does not say how many processes there are, it must have n or labels")
		return
	}
	if err := complete(&r.cfg); err != nil {
		r.complain(top, "%s", err)
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
	{"topology", func(c *sim.Config) { c.Process.Topology = process.Topology{} }},
	{"links", func(c *sim.Config) { c.Links = sim.Links{} }},
	{"clocks", func(c *sim.Config) { c.Clocks = nil }},
	{"disk", func(c *sim.Config) { c.Disk = sim.Delay{} }},
	{"oracle", func(c *sim.Config) { c.Oracle = sim.Oracle{} }},
	{"workload", func(c *sim.Config) { c.Workload = sim.Workload{} }},
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
		for i := 0; i+1 < len(top.Content); i += 2 {
			if top.Content[i].Value == s.name {
				return top.Content[i]
			}
		}
	}
	return top
}

// plain returns an error without the name of the package that it comes from.
func plain(err error) string {
	text := strings.TrimPrefix(err.Error(), "sim: ")
	return strings.TrimPrefix(text, "process: ")
}
