package sim

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/process"
)

// orphans are those who follow a leader that has crashed. To end so is no fault of an
// election that nobody calls for: clients or a detector have to notice.
type orphans struct {
	w       *World
	crashed []process.Duration // when each process did last
}

// abandoned names one who ends with a dead leader although it was told of the crash,
// or was asked for another leader when nothing else was left to happen.
func (o *orphans) abandoned() string {
	for p := range o.w.meter.leaders {
		l := &o.w.meter.leaders[p]
		if o.w.procs[p].down || l.Leader == process.None || !o.w.procs[l.Leader].down {
			continue
		}
		name, leader := o.w.config.Text(l.Process), o.w.config.Text(l.Leader)
		switch {
		case o.given(func(c *Command) bool {
			return c.Kind == process.Fail && c.Process == l.Process && c.Peer == l.Leader && c.At >= o.crashed[l.Leader]
		}):
			return fmt.Sprintf("%s was told that %s has crashed, and ends with it as its leader", name, leader)
		case o.given(func(c *Command) bool { return c.Kind == process.Campaign && c.Process == l.Process && c.At == o.w.now }):
			return fmt.Sprintf("%s is asked for another leader than %s, which has crashed, and nothing comes of it", name, leader)
		}
	}
	return ""
}

// given reports whether there was such a command.
func (o *orphans) given(like func(c *Command) bool) bool {
	return slices.ContainsFunc(o.w.cfg.Workload.Commands, func(c Command) bool { return c.At <= o.w.now && like(&c) })
}
